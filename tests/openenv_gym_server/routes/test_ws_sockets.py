"""Tests of ``openenv_gym_server.routes.ws``: on real sockets, peers that leave, environments that block."""

from __future__ import annotations

import json
import struct
import threading
from socket import SO_LINGER, SOL_SOCKET

import httpx
import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.app import create_app
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve
from tests.sockets import WAIT_S, ask, client_of, serving, socket_of, until
from tests.text_envs import Broken, Echo, Heard, Say


class Gated(Echo):
    """A step that says when it has begun and waits for leave to end."""

    begun: threading.Event
    leave: threading.Event
    ended: threading.Event

    def step(self, action: Say) -> Heard:
        if action.message == "wait":
            self.begun.set()
            assert self.leave.wait(WAIT_S)
        return super().step(action)

    def close(self) -> None:
        self.ended.set()


@pytest.fixture
def gated() -> type[Gated]:
    return type("Fresh", (Gated,), {name: threading.Event() for name in ("begun", "leave", "ended")})


def test_a_peer_that_leaves_during_a_step_frees_its_slot_after_it(gated: type[Gated]) -> None:
    app, server = serving(gated, max_concurrent_envs=1)
    with serve(app) as url:
        with socket_of(url) as socket:
            ask(socket, {"type": "reset"})
            socket.send('{"type":"step","data":{"message":"wait"}}')
            assert gated.begun.wait(WAIT_S)
        assert server.active_sessions == 1
        assert not gated.ended.is_set()
        gated.leave.set()
        assert gated.ended.wait(WAIT_S)
        until(lambda: server.active_sessions == 0)


def test_a_long_step_leaves_the_server_responsive_and_is_no_idleness(gated: type[Gated]) -> None:
    app, server = serving(gated, ServerSettings(session_timeout_s=0.1))
    with serve(app) as url, socket_of(url) as socket:
        socket.send('{"type":"step","data":{"message":"wait"}}')
        assert gated.begun.wait(WAIT_S)
        with socket_of(url) as other:
            assert ask(other, {"type": "reset"})["type"] == "observation"
            # The other one is idle and is ended; the busy one outlives several timeouts.
            assert json.loads(other.recv(timeout=WAIT_S))["data"]["code"] == "SESSION_ERROR"
        assert server.active_sessions == 1
        gated.leave.set()
        assert json.loads(socket.recv(timeout=WAIT_S))["type"] == "observation"


def test_an_idle_socket_is_told_that_its_session_has_ended() -> None:
    app, server = serving(Echo, ServerSettings(session_timeout_s=0.1))
    with serve(app) as url, socket_of(url) as socket:
        ask(socket, {"type": "reset"})
        farewell = json.loads(socket.recv(timeout=WAIT_S))["data"]
        assert farewell["code"] == "SESSION_ERROR"
        assert "idle" in farewell["message"]
        until(lambda: server.active_sessions == 0)


@pytest.mark.parametrize("kind", ["reset", "step"])
def test_a_time_limit_of_the_operator_ends_the_session(gated: type[Gated], kind: str) -> None:
    class Slow(gated):  # type: ignore[misc, valid-type]
        def reset(self) -> Heard:
            if kind == "reset":
                self.begun.set()
                assert self.leave.wait(WAIT_S)
            return Heard()

    app, server = serving(Slow, ServerSettings(step_timeout_s=0.1, reset_timeout_s=0.1))
    with serve(app) as url, socket_of(url) as socket:
        message = {"type": "step", "data": {"message": "wait"}} if kind == "step" else {"type": "reset"}
        ended = ask(socket, message)["data"]
        assert ended["code"] == "SESSION_ERROR"
        assert f"{kind}_timeout_s=0.1" in ended["message"]
        gated.leave.set()
        assert gated.ended.wait(WAIT_S)
        until(lambda: server.active_sessions == 0)


def test_the_end_of_the_server_closes_every_environment(gated: type[Gated]) -> None:
    app, server = serving(gated)
    before = {thread.name for thread in threading.enumerate()}
    with serve(app) as url:
        socket = connect(url.replace("http", "ws") + "/ws", compression=None, proxy=None, legacy=True)
        ask(socket, {"type": "reset"})
        assert any(thread.name.startswith("openenv-session-") for thread in threading.enumerate())
    assert gated.ended.is_set()
    assert server.active_sessions == 0
    assert {thread.name for thread in threading.enumerate() if thread.name.startswith("openenv")} <= before
    socket.close()


def test_a_stuck_environment_does_not_keep_the_server_from_stopping(gated: type[Gated]) -> None:
    settings = ServerSettings(shutdown_timeout_s=0.1, close_timeout_s=0.1)
    app, server = serving(gated, settings)
    with serve(app, timeout_graceful_shutdown=1, log_level="critical") as url:
        socket = connect(url.replace("http", "ws") + "/ws", compression=None, proxy=None, legacy=True)
        socket.send('{"type":"step","data":{"message":"wait"}}')
        assert gated.begun.wait(WAIT_S)
    assert server.active_sessions == 1
    gated.leave.set()
    assert gated.ended.wait(WAIT_S)
    until(lambda: server.active_sessions == 0)
    socket.close()


def test_a_message_above_the_limit_leaves_the_session_alive() -> None:
    app, _ = serving(Echo, ServerSettings(max_message_size_mb=0.01))
    with serve(app) as url, socket_of(url) as socket:
        refused = ask(socket, {"type": "step", "data": {"message": "x" * 20_000}})["data"]
        assert refused["setting"] == "max_message_size_mb"
        assert ask(socket, {"type": "step", "data": {"message": "x"}})["type"] == "observation"


def test_foreign_pages_are_refused_at_the_handshake() -> None:
    with serve(create_app(Echo, Say, Heard)) as url:
        port = url.rsplit(":", 1)[1]
        from websockets.exceptions import InvalidStatus

        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            with pytest.raises(InvalidStatus) as caught, socket_of(url, additional_headers=headers):
                pass
            assert caught.value.response.status_code == 403
            assert b"OPENENV_ALLOWED_ORIGINS" in (caught.value.response.body or b"")
        with socket_of(url, additional_headers={"Origin": f"http://127.0.0.1:{port}"}) as socket:
            assert ask(socket, {"type": "reset"})["type"] == "observation"


def test_a_refused_handshake_is_closed_where_no_response_can_be_sent() -> None:
    with (
        client_of() as client,
        pytest.raises((WebSocketDenialResponse, WebSocketDisconnect)),
        client.websocket_connect("/ws", headers={"Origin": "https://evil.example"}),
    ):
        pass


def test_many_sessions_run_at_once() -> None:
    app, server = serving(Echo)
    with serve(app) as url:
        sockets = [
            connect(url.replace("http", "ws") + "/ws", compression=None, proxy=None, legacy=True) for _ in range(16)
        ]
        for number, socket in enumerate(sockets):
            socket.send(json.dumps({"type": "step", "data": {"message": str(number)}}))
        echoes = [json.loads(socket.recv(timeout=WAIT_S))["data"]["observation"]["echo"] for socket in sockets]
        assert echoes == [str(number) for number in range(16)]
        assert server.active_sessions == 16
        for socket in sockets:
            socket.close()
        until(lambda: server.active_sessions == 0)


def test_a_session_that_takes_too_long_to_describe_itself_leaves_its_slot() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def get_metadata(self) -> EnvironmentMetadata:
            assert leave.wait(WAIT_S)
            return super().get_metadata()

    app, server = serving(Slow, ServerSettings(step_timeout_s=0.05))
    with serve(app) as url, socket_of(url, subprotocols=[SUBPROTOCOL]) as socket:
        ended = ask(socket, {"type": "x-open"})["data"]
        assert ended["code"] == "SESSION_ERROR"
        assert "step_timeout_s" in ended["message"]
        leave.set()
        until(lambda: server.active_sessions == 0)


def test_strangers_do_not_get_past_the_handshake_of_a_server_with_a_token() -> None:
    app, _ = serving(Echo, ServerSettings(token="a-token"))
    with serve(app) as url:
        for headers in ({}, {"Authorization": "Bearer another"}, {"Authorization": "Basic YTpi"}):
            with pytest.raises(InvalidStatus) as caught, socket_of(url, additional_headers=headers):
                pass
            assert caught.value.response.status_code == 401
            assert b"Authorization: Bearer" in caught.value.response.body
        with socket_of(url, additional_headers={"Authorization": "Bearer a-token"}) as socket:
            assert ask(socket, {"type": "reset"})["type"] == "observation"


class Slow(Gated):
    """Waits where it is told to while it is made or described."""

    where: str = "factory"

    def __init__(self) -> None:
        super().__init__()
        self._pause("factory")

    def get_metadata(self) -> EnvironmentMetadata:
        self._pause("description")
        return super().get_metadata()

    def _pause(self, where: str) -> None:
        if where == self.where:
            self.begun.set()
            assert self.leave.wait(WAIT_S)


def break_off(socket: ClientConnection) -> None:
    """Leave as a killed process does, without a closing handshake."""
    socket.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket.close()


@pytest.mark.parametrize("gentle", [True, False], ids=["closed", "broken off"])
@pytest.mark.parametrize(("where", "ours"), [("factory", True), ("description", True), ("factory", False)])
def test_peers_that_leave_while_their_environments_are_made_leave_nothing_behind(
    where: str, ours: bool, gentle: bool
) -> None:
    slow: type[Slow] = type(
        "Fresh", (Slow,), {"where": where} | {name: threading.Event() for name in ("begun", "leave", "ended")}
    )
    app, server = serving(slow, max_concurrent_envs=8)
    with serve(app) as url:
        for number in range(1, 5):
            with socket_of(url, close_timeout=0.1, subprotocols=[SUBPROTOCOL] if ours else None) as socket:
                if ours:
                    socket.send('{"type":"x-open","id":1}')
                until(lambda number=number: server.active_sessions == number)
                assert slow.begun.wait(WAIT_S)
                if not gentle:
                    break_off(socket)
        slow.leave.set()
        until(lambda: server.active_sessions == 0)
        until(lambda: not any(thread.name.startswith("openenv-session") for thread in threading.enumerate()))


def test_a_peer_that_breaks_off_an_attached_socket_leaves_the_session_to_others() -> None:
    app, server = serving(Echo)
    with serve(app) as url:
        name = httpx.post(url + "/reset", headers={"X-OpenEnv-Session": "new"}).headers["X-OpenEnv-Session"]
        for options in ({}, {"subprotocols": [SUBPROTOCOL]}):
            for _ in range(3):
                until(lambda: not server._sessions.kept(name).attached)
                with socket_of(url, f"?session_id={name}", **options) as socket:
                    ask(socket, {"type": "state"})
                    break_off(socket)
        until(lambda: not server._sessions.kept(name).attached)
        assert httpx.delete(f"{url}/session/{name}").status_code == 204
        assert server.active_sessions == 0


def test_a_large_message_before_x_open_is_answered_and_the_socket_goes_on() -> None:
    with client_of() as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        refused = ask(socket, {"type": "x-open", "id": 7, "data": {"zz": "x" * 100_000}})
        assert refused["id"] == 7
        assert refused["data"]["errors"][0]["loc"] == ["data", "zz"]
        assert len(json.dumps(refused)) < 2_000
        assert ask(socket, {"type": "x-open"})["type"] == "x-open"


def test_arguments_nested_too_deeply_are_refused_and_the_socket_goes_on() -> None:
    class Any_(Echo):
        def __init__(self, size: object = None) -> None:
            super().__init__()

    deep = '{"$":"tuple","items":[' * 450 + "1" + "]}" * 450
    settings = ServerSettings(allowed_env_kwargs="all")
    with client_of(Any_, settings) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        refused = ask(socket, '{"type":"x-open","data":{"env_kwargs":{"size":%s}}}' % deep)  # noqa: UP031
        assert refused["data"]["code"] == "VALIDATION_ERROR"
        assert ask(socket, {"type": "x-open"})["type"] == "x-open"


def test_what_a_factory_raised_is_named_in_the_refusal_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    settings = ServerSettings(share_tracebacks=True)
    with client_of(Broken, settings) as client:
        for options in ({}, {"subprotocols": [SUBPROTOCOL]}):
            with client.websocket_connect("/ws", **options) as socket:
                refused = ask(socket, {"type": "x-open"}) if options else socket.receive_json()
            assert refused["data"]["exception_type"] == "OSError"
            assert 'raise OSError("no such device")' in refused["data"]["traceback"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
