"""Calls of tools on a session: their limits, their thread, and what a late one leaves behind."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym.types import Observation
from openenv_gym_server import session as session_module
from openenv_gym_server.app import create_app
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.parsing import Terms
from openenv_gym_server.routes import episode
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool
from openenv_gym_server.tool_waiting import run_now


class Slow(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    TOOL_TIMEOUT_S = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.said: list[str] = []
        self.threads = {threading.get_ident()}
        self.loops: set[int] = set()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        self.threads.add(threading.get_ident())
        return Observation(reward=0.0)

    @tool
    def say(self, message: str) -> str:
        self.threads.add(threading.get_ident())
        self.said.append(message)
        return message

    @tool
    async def say_later(self, message: str) -> str:
        self.threads.add(threading.get_ident())
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return message

    @tool
    def hang(self, size: str = "") -> str:
        self.release.wait(20)
        return "late"

    @tool
    async def hang_later(self) -> str:
        await asyncio.Event().wait()
        return "never"

    def close(self) -> None:
        self.release.set()


class Inline(Slow):
    INLINE = True
    say_later = None
    hang_later = None


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "TOOL_GRACE_S", 0.1)


class Server:
    def __init__(self, env: type[Slow] = Slow, **settings: Any) -> None:
        self.envs: list[Slow] = []

        def make() -> Slow:
            self.envs.append(env())
            return self.envs[-1]

        make.SUPPORTS_CONCURRENT_SESSIONS = True
        make.REQUIRES_SINGLE_THREAD_EXECUTOR = False
        app = create_app(make, CallToolAction, CallToolObservation, settings=ServerSettings(**settings))
        self.client = TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with server.client:
        yield server


def ask(socket: Any, **message: Any) -> Any:
    socket.send_json(message)
    return socket.receive_json()


def call(socket: Any, name: str, **arguments: Any) -> Any:
    return ask(socket, type="step", data={"type": "call_tool", "tool_name": name, "arguments": arguments})["data"]


def error_of(reply: Any) -> Any:
    return reply["observation"]["error"]["error_type"]


def test_a_tool_that_hangs_is_answered_in_time_and_disturbs_nothing_later(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        late = call(socket, "hang")
        assert error_of(late) == "timeout"
        assert "0.5 seconds" in late["observation"]["error"]["message"]
        # The thread is still busy: this call is given up, and never begins behind the client's back.
        waiting = call(socket, "say", message="first")
        assert error_of(waiting) == "timeout"
        assert "was not called" in waiting["observation"]["error"]["message"]
        (env,) = server.envs
        env.release.set()
        # Which waits for the thread, for as long as it takes; of the two calls one was a step.
        assert ask(socket, type="state")["data"]["step_count"] == 1
        assert call(socket, "say", message="second")["observation"]["result"]["data"] == "second"
        assert env.said == ["second"]


def test_another_session_does_not_notice(server: Server) -> None:
    with server.client.websocket_connect("/ws") as first, server.client.websocket_connect("/ws") as second:
        ask(first, type="reset")
        ask(second, type="reset")
        first.send_json({"type": "step", "data": {"type": "call_tool", "tool_name": "hang"}})
        assert call(second, "say", message="x")["observation"]["error"] is None
        assert error_of(first.receive_json()["data"]) == "timeout"
        server.envs[0].release.set()


def test_a_large_call_has_its_limit_too(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        assert error_of(call(socket, "hang", size="x" * 100_000)) == "timeout"
        server.envs[0].release.set()
        large = call(socket, "say", message="y" * 100_000)
        assert len(large["observation"]["result"]["data"]) == 100_000
        socket.send_text("{" * 100_000)
        assert socket.receive_json()["data"]["code"] == "INVALID_JSON"


def test_an_awaited_tool_answers_for_itself_and_leaves_the_thread_free(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        late = call(socket, "hang_later")
        assert error_of(late) == "timeout"
        assert call(socket, "say", message="x")["observation"]["error"] is None


def test_all_of_a_session_is_on_one_thread_and_one_loop(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for name in ("say", "say_later", "say", "say_later"):
            assert call(socket, name, message="x")["observation"]["error"] is None
        (env,) = server.envs
        assert len(env.threads) == 1
        assert len(env.loops) == 1


def test_calls_are_steps_and_lists_are_not(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for name in ("say", "unknown"):
            call(socket, name, message="x")
        assert len(ask(socket, type="step", data={"type": "list_tools"})["data"]["observation"]["tools"]) == 4
        assert ask(socket, type="state")["data"]["step_count"] == 2


def test_the_operators_own_limit_of_a_step_ends_the_session_as_ever() -> None:
    server = Server(step_timeout_s=0.1)
    with server.client, server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        error = call(socket, "hang")
        assert error["code"] == "SESSION_ERROR"
        assert "step_timeout_s=0.1" in error["message"]
        server.envs[0].release.set()


def test_without_any_limit_a_tool_takes_its_time() -> None:
    class Endless(Slow):
        TOOL_TIMEOUT_S = None

    server = Server(Endless)
    with server.client, server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        threading.Timer(0.3, server.envs[0].release.set).start()
        assert call(socket, "hang")["observation"]["result"]["data"] == "late"


def test_a_class_that_says_so_has_its_tools_on_the_event_loop() -> None:
    server = Server(Inline)
    with server.client, server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        assert call(socket, "say", message="x")["observation"]["result"]["data"] == "x"
        # Made and reset on the session's thread, stepped on the loop's.
        assert len(server.envs[0].threads) == 2


def test_a_class_with_awaited_tools_is_never_on_the_event_loop() -> None:
    class Mixed(Slow):
        INLINE = True

    server = Server(Mixed)
    with server.client, server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        for name in ("say", "say_later"):
            assert call(socket, name, message="x")["observation"]["error"] is None
        assert len(server.envs[0].threads) == 1


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_the_environment_knows_the_mode_of_its_server(mode: str) -> None:
    envs: list[Slow] = []

    class Recorded(Slow):
        def __init__(self) -> None:
            super().__init__()
            envs.append(self)

    app = create_app(Recorded, CallToolAction, CallToolObservation, mode=mode)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client, client.websocket_connect("/ws") as socket:
        ask(socket, type="state")
        assert [env.tool_caller.mode for env in envs] == [mode]


def test_over_http_a_tool_has_the_same_limits(server: Server) -> None:
    def step(name: str, headers: dict[str, str], **extra: Any) -> Any:
        action = {"type": "call_tool", "tool_name": name}
        return server.client.post("/step", json={"action": action, **extra}, headers=headers)

    begun = server.client.post("/reset", headers={"X-OpenEnv-Session": "new"})
    session = {"X-OpenEnv-Session": begun.headers["X-OpenEnv-Session"]}
    for name in ("hang_later", "hang"):
        late = step(name, session, timeout_s=0.1)
        assert late.status_code == 200
        assert error_of(late.json()) == "timeout"
        assert "0.1 seconds" in late.json()["observation"]["error"]["message"]
    server.envs[0].release.set()
    action = {"type": "call_tool", "tool_name": "say", "arguments": {"message": "x"}}
    reply = server.client.post("/step", json={"action": action}, headers=session).json()
    assert reply["observation"]["result"]["data"] == "x"
    assert server.client.get("/state", headers=session).json()["step_count"] == 3


def test_over_http_without_a_session_an_awaited_tool_answers_for_itself(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode, "TOOL_GRACE_S", 20.0)
    action = {"type": "call_tool", "tool_name": "hang_later"}
    late = server.client.post("/step", json={"action": action, "timeout_s": 0.2})
    assert late.status_code == 200
    assert error_of(late.json()) == "timeout"


def test_over_http_without_a_session_no_request_asks_for_more_time_than_the_server_gives(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openenv_gym_server.sessions.DEFAULT_REQUEST_TIMEOUT_S", 0.05)
    action = {"type": "call_tool", "tool_name": "hang"}
    late = server.client.post("/step", json={"action": action, "timeout_s": 1e9})
    assert late.status_code == 504
    assert "the server's default" in late.text
    for env in server.envs:
        env.release.set()


def test_a_client_cannot_reach_what_leads_past_the_tools() -> None:
    server = Server(remote_names="all")
    with (
        server.client,
        server.client.websocket_connect("/ws", subprotocols=["openenv-gym.v1"]) as socket,
    ):
        ask(socket, type="x-open")
        # So that whatever the base class gets is thought of.
        named = {name for name in vars(MCPEnvironment) if not name.startswith("_")}
        for name in named - {"TOOL_TIMEOUT_S", "supports_code_mode"}:
            for message in ({"type": "x-call", "data": {"name": name, "args": ["1"]}}, {"type": "x-get_attr"}):
                error = ask(socket, **({"data": {"name": name}} | message))["data"]
                assert (name, error["code"]) == (name, "VALIDATION_ERROR")
                assert "never reachable" in error["message"]


def test_an_answer_that_comes_late_repeats_the_id(server: Server) -> None:
    with server.client.websocket_connect("/ws", subprotocols=["openenv-gym.v1"]) as socket:
        ask(socket, type="x-open", id=1)
        ask(socket, type="reset", id=2)
        message = {"type": "step", "data": {"type": "call_tool", "tool_name": "hang"}, "id": 3}
        assert ask(socket, **message)["id"] == 3
        server.envs[0].release.set()


def test_a_lent_instance_keeps_its_tools_from_session_to_session() -> None:
    env = Slow()
    app = create_app(env, CallToolAction, CallToolObservation)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        for _ in range(2):
            with client.websocket_connect("/ws") as socket:
                ask(socket, type="reset")
                assert call(socket, "say", message="x")["observation"]["error"] is None
    assert env.said == ["x", "x"]


def test_a_list_by_an_applications_own_class_is_no_step_either() -> None:
    class Asking(ListToolsAction):
        detail: int = 0

    hosted = HostedEnvironment(Slow(), Models(Asking, CallToolObservation), run_now)
    hosted.step({"type": "list_tools", "detail": 3})
    assert hosted.total_steps == 0
    hosted.step({"type": "call_tool", "tool_name": "say", "arguments": {"message": "x"}})
    assert hosted.total_steps == 1


@pytest.mark.parametrize("name", ["list_tools", "call_tool"])
def test_a_keyword_that_no_call_takes_is_named(server: Server, name: str) -> None:
    action = {"type": name} | ({"tool_name": "say", "arguments": {"message": "x"}} if name == "call_tool" else {})
    body = {"action": action, "speed": 3, "timeout_s": 5, "request_id": "a"}
    reply = server.client.post("/step", json=body).json()
    assert reply["metadata"]["x-warnings"] == ["step() of Slow takes no 'speed'; it was not passed on"]


def test_a_step_of_an_authors_own_takes_what_its_signature_has() -> None:
    seen: list[Any] = []

    class Own(Slow):
        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return super().step(action, timeout_s)

    hosted = HostedEnvironment(Own(), Models(CallToolAction, CallToolObservation), run_now)
    outcome = hosted.step({"type": "call_tool", "tool_name": "say", "arguments": {"message": "x"}}, {"speed": 3})
    assert seen == [{"speed": 3}]
    assert not outcome.metadata


def test_json_rpc_lists_the_tools_on_the_same_socket(server: Server) -> None:
    with server.client.websocket_connect("/ws") as socket:
        answer = ask(socket, type="mcp", data={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["data"]
    assert answer["result"]["tools"]


@pytest.mark.parametrize("name", ["after_tool", "_step_impl"])
def test_a_class_that_awaits_beside_its_tools_is_never_on_the_event_loop(name: str) -> None:
    async def awaited(self: Any, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)

    mixed = type("Mixed", (Inline,), {name: awaited})
    server = Server(mixed)
    with server.client, server.client.websocket_connect("/ws") as socket:
        ask(socket, type="reset")
        assert call(socket, "say", message="x")["observation"]["error"] is None
        assert len(server.envs[0].threads) == 1


def test_a_call_whose_caller_has_gone_before_it_began_never_begins() -> None:
    async def main() -> list[str]:
        models = Models(CallToolAction, CallToolObservation)
        sessions = Sessions(EnvironmentFactory(Slow), models, ServerSettings())
        session = await sessions.open("socket")
        assert session.hosted is not None
        env = session.hosted.env

        def begin(name: str) -> asyncio.Task[Any]:
            data = {"type": "call_tool", "tool_name": name, "arguments": {"message": "x"} if name == "say" else {}}
            message = json.dumps({"type": "step", "data": data})
            return asyncio.ensure_future(session.handle(message, Terms()))

        hanging = begin("hang")
        waiting = begin("say")
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        env.release.set()
        await hanging
        await session.run(lambda hosted: None)
        await sessions.shutdown()
        return list(env.said)

    assert asyncio.run(main()) == []
