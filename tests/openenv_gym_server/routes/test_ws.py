"""Tests of ``openenv_gym_server.routes.ws``: what is said."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from openenv_gym.messages import SUBPROTOCOL
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import SECRET, app_of, calling, climber, rpc
from tests.sockets import ask, client_of
from tests.text_envs import Bare, Broken, Echo

STEP = b"\1\2" + bytes(14)


def assert_closed(socket: Any) -> None:
    with pytest.raises(WebSocketDisconnect) as caught:
        socket.receive_text()
    assert caught.value.code == 1000


def test_a_stock_peer_plays_an_episode() -> None:
    with client_of() as client, client.websocket_connect("/ws") as socket:
        assert socket.accepted_subprotocol is None
        assert ask(socket, {"type": "reset"})["data"]["observation"]["echo"] == "ready"
        assert ask(socket, {"type": "step", "data": {"message": "bye"}})["data"]["done"] is True
        assert ask(socket, {"type": "state"})["data"]["step_count"] == 1
        socket.send_text('{"type":"close"}')
        assert_closed(socket)


def test_bad_frames_are_answered_and_the_session_goes_on() -> None:
    with client_of() as client, client.websocket_connect("/ws") as socket:
        for text, code in (("{", "INVALID_JSON"), ("[]", "VALIDATION_ERROR"), ('{"type":"x"}', "UNKNOWN_TYPE")):
            assert ask(socket, text)["data"]["code"] == code
        socket.send_bytes(b"\x00\x01")
        assert socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"
        for message in ("exit", "rude", "raise"):
            assert ask(socket, {"type": "step", "data": {"message": message}})["type"] == "error"
        assert ask(socket, {"type": "step", "data": {"message": "on"}})["type"] == "observation"


def test_a_full_server_says_so_and_closes() -> None:
    with client_of(max_concurrent_envs=1) as client, client.websocket_connect("/ws") as first:
        ask(first, {"type": "reset"})
        with client.websocket_connect("/ws") as second:
            refused = second.receive_json()["data"]
            assert refused["code"] == "CAPACITY_REACHED"
            assert (refused["active_sessions"], refused["max_sessions"]) == (1, 1)
            assert refused["message"].startswith("Server at capacity: 1/1 sessions active.")
            assert_closed(second)
        assert ask(first, {"type": "state"})["type"] == "state"


def test_a_slot_is_free_once_its_client_has_closed() -> None:
    with client_of(max_concurrent_envs=1) as client:
        for _ in range(5):
            with client.websocket_connect("/ws") as socket:
                assert ask(socket, {"type": "reset"})["type"] == "observation"


def test_a_broken_factory_is_told_and_the_slot_is_freed() -> None:
    with client_of(Broken, max_concurrent_envs=1) as client:
        for _ in range(2):
            with client.websocket_connect("/ws") as socket:
                refused = socket.receive_json()["data"]
                assert refused["code"] == "FACTORY_ERROR"
                assert refused["factory_name"] == "Broken"
                assert_closed(socket)


def test_an_instance_is_one_sessions_at_a_time_and_never_closed() -> None:
    env = Echo()
    with client_of(env) as client:
        with client.websocket_connect("/ws") as first:
            ask(first, {"type": "reset"})
            with client.websocket_connect("/ws") as second:
                assert second.receive_json()["data"]["code"] == "CAPACITY_REACHED"
            assert client.post("/reset").status_code == 503
            assert client.get("/metadata").status_code == 200
        with client.websocket_connect("/ws") as third:
            assert ask(third, {"type": "step", "data": {"message": "again"}})["type"] == "observation"
        assert client.post("/reset").status_code == 200
        assert client.get("/ready").json() == {"status": "ready", "capacity": {"active_sessions": 0, "max_sessions": 1}}
    assert env.closed == 0


def test_an_environment_lives_and_dies_on_one_thread() -> None:
    made: list[Echo] = []

    def factory() -> Echo:
        made.append(Echo())
        return made[-1]

    with client_of(factory) as client, client.websocket_connect("/ws") as socket:
        ask(socket, {"type": "reset"})
        ask(socket, {"type": "step", "data": {"message": "x"}})
    assert made[0].closed == 1
    assert len(made[0].threads) == 1
    assert threading.get_ident() not in made[0].threads


CONTROL = [
    {"type": "reset"},
    {"type": "reset", "data": 5},
    {"type": "step", "data": {"type": "call_tool", "tool_name": "climb"}},
    {"type": "state"},
    {"type": "x-open"},
    {"type": "x-open", "data": {"num_envs": 3}},
    {"type": "x-render"},
    {"type": "x-call", "data": {"name": "reset"}},
    {"type": "x-get_attr", "data": {"name": "height"}},
    {"type": "x-set_attr", "data": {"name": "height", "values": [0]}},
    {"type": "x-vector_reset"},
    {"type": "x-vector_step", "data": {"actions": [{}]}},
]


@pytest.mark.parametrize("subprotocols", [None, [SUBPROTOCOL]])
def test_production_refuses_every_control_message_names_the_way_and_goes_on(subprotocols: list[str] | None) -> None:
    env = climber()
    settings = ServerSettings(remote_names="all", share_tracebacks=True)
    with (
        TestClient(app_of(env, "production", settings)) as client,
        client.websocket_connect("/ws", subprotocols=subprotocols) as socket,
    ):
        for turn in range(2):
            for message in CONTROL:
                refused = ask(socket, message)["data"]
                assert refused["code"] == "VALIDATION_ERROR"
                assert "production mode" in refused["message"]
                assert "/mcp" in refused["message"]
            socket.send_bytes(STEP)
            assert socket.receive_json()["data"]["code"] == "VALIDATION_ERROR"
            answer = ask(socket, {"type": "mcp", "data": calling("climb")})
            assert answer["data"]["result"]["data"] == turn + 1
        assert [each.seeds for each in env.made] == [[None]]
        socket.send_text('{"type":"close"}')
        assert_closed(socket)


def test_production_hides_why_a_session_could_not_be_made() -> None:
    def broken() -> Any:
        raise FileNotFoundError(SECRET)

    settings = ServerSettings(share_tracebacks=True)
    with TestClient(app_of(broken, "production", settings)) as client, client.websocket_connect("/ws") as socket:
        refused = socket.receive_text()
        assert "FACTORY_ERROR" in refused
        assert SECRET not in refused
        assert_closed(socket)


def test_a_json_rpc_message_repeats_the_id_of_its_frame_and_its_own() -> None:
    ours = [SUBPROTOCOL]
    with TestClient(app_of(climber())) as client, client.websocket_connect("/ws", subprotocols=ours) as socket:
        ask(socket, {"type": "x-open"})
        answer = ask(socket, {"type": "mcp", "id": 7, "data": rpc("tools/list", "own")})
        assert (answer["type"], answer["id"], answer["data"]["id"]) == ("mcp", 7, "own")
        refused = ask(socket, {"type": "mcp", "id": 8, "data": {"method": "tools/list"}})
        assert (refused["id"], refused["data"]["error"]["code"]) == (8, -32600)


def test_a_vector_session_has_no_tools() -> None:
    app, ours = create_gym_app("CartPole-v1"), [SUBPROTOCOL]
    with TestClient(app) as client, client.websocket_connect("/ws", subprotocols=ours) as socket:
        assert ask(socket, {"type": "x-open", "data": {"num_envs": 2}})["data"]["num_envs"] == 2
        answer = ask(socket, {"type": "mcp", "data": rpc("tools/list")})["data"]
        assert answer["error"]["code"] == -32603
        assert ask(socket, {"type": "x-vector_reset"})["type"] == "x-vector"


# ------------------------------------------------------------------------------------------- the extension


def test_the_subprotocol_is_agreed_only_when_offered() -> None:
    with client_of() as client:
        with client.websocket_connect("/ws", subprotocols=["other", SUBPROTOCOL]) as socket:
            assert socket.accepted_subprotocol == SUBPROTOCOL
        with client.websocket_connect("/ws", subprotocols=["other"]) as socket:
            assert socket.accepted_subprotocol is None


def test_a_session_is_opened_with_what_the_operator_allows() -> None:
    class Sized(Echo):
        def __init__(self, size: int = 1, secret: int = 0) -> None:
            super().__init__()
            self.size = size

    settings = ServerSettings(allowed_env_kwargs=frozenset({"size", "shape"}), remote_names=frozenset({"size"}))
    with client_of(Sized, settings) as client, client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
        for name, setting in (("secret", "allowed_env_kwargs"), ("shape", "takes no keyword")):
            refused = ask(socket, {"type": "x-open", "id": 1, "data": {"env_kwargs": {name: 5}}})
            assert refused["id"] == 1
            assert refused["data"]["code"] == "VALIDATION_ERROR"
            assert setting in refused["data"]["message"]
            assert refused["data"]["errors"][0]["loc"] == ["data", "env_kwargs", name]
        for data in (
            {"num_envs": 0},
            {"num_envs": 65_537},
            {"autoreset_mode": "Sometimes"},
            {"vectorization": "vector_entry_point"},
            {"max_episode_steps": 5},
            {"render_mode": "ansi"},
        ):
            assert ask(socket, {"type": "x-open", "data": data})["data"]["code"] == "VALIDATION_ERROR"
        assert ask(socket, "{")["data"]["code"] == "INVALID_JSON"
        opened = ask(socket, {"type": "x-open", "id": 2, "data": {"env_kwargs": {"size": 5}}})
        assert opened["id"] == 2
        assert opened["data"]["metadata"]["name"] == "Sized"
        assert ask(socket, {"type": "x-get_attr", "data": {"name": "size"}})["data"]["value"] == 5
        assert ask(socket, {"type": "x-open"})["data"]["code"] == "VALIDATION_ERROR"
        assert ask(socket, {"type": "reset", "id": 3})["id"] == 3


def test_the_first_message_of_the_extension_opens_the_session() -> None:
    with client_of() as client:
        with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
            refused = ask(socket, {"type": "reset", "id": 9})
            assert refused["id"] == 9
            assert refused["data"]["code"] == "SESSION_ERROR"
            assert_closed(socket)
        with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
            socket.send_text('{"type":"close"}')
            assert_closed(socket)
        with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]):
            pass


def test_errors_of_opening_end_the_connection() -> None:
    with (
        client_of(Broken) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        assert ask(socket, {"type": "x-open", "id": 1})["data"]["code"] == "FACTORY_ERROR"
        assert_closed(socket)


# ---------------------------------------------------------------------------------------------- kept sessions


def keep(client: TestClient) -> str:
    return client.post("/reset", headers={"X-OpenEnv-Session": "new"}).headers["X-OpenEnv-Session"]


def test_a_socket_attaches_to_a_kept_session_and_leaves_it_alive() -> None:
    with client_of() as client:
        kept = keep(client)
        header = {"X-OpenEnv-Session": kept}
        client.post("/step", json={"action": {"message": "x"}}, headers=header)
        with client.websocket_connect(f"/ws?session_id={kept}") as socket:
            assert ask(socket, {"type": "state"})["data"]["step_count"] == 1
            ask(socket, {"type": "step", "data": {"message": "y"}})
            with client.websocket_connect(f"/ws?session_id={kept}") as second:
                assert "already has an attached WebSocket" in second.receive_json()["data"]["message"]
            socket.send_text('{"type":"close"}')
            assert_closed(socket)
        assert client.get("/state", headers=header).json()["step_count"] == 2
        with client.websocket_connect(f"/ws?session_id={kept}", subprotocols=[SUBPROTOCOL]) as socket:
            assert ask(socket, {"type": "x-open"})["data"]["session_id"] == kept


def test_a_session_deleted_while_attached_ends_at_detach() -> None:
    with client_of() as client:
        kept = keep(client)
        with client.websocket_connect(f"/ws?session_id={kept}") as socket:
            answer = client.delete(f"/session/{kept}")
            assert answer.status_code == 202
            assert answer.json()["closing"] is True
            assert ask(socket, {"type": "state"})["type"] == "state"
            socket.send_text('{"type":"close"}')
            assert_closed(socket)
        assert client.get("/state", headers={"X-OpenEnv-Session": kept}).status_code == 404


def test_an_unknown_session_cannot_be_attached_to() -> None:
    with client_of() as client, client.websocket_connect("/ws?session_id=none") as socket:
        refused = socket.receive_json()["data"]
        assert refused["code"] == "SESSION_ERROR"
        assert refused["message"] == "Unknown session_id: none"
        assert_closed(socket)


def test_a_bare_class_serves_one_session_and_advises() -> None:
    with client_of(Bare) as client, client.websocket_connect("/ws") as first:
        ask(first, {"type": "reset"})
        with client.websocket_connect("/ws") as second:
            assert "SUPPORTS_CONCURRENT_SESSIONS" in second.receive_json()["data"]["message"]


def test_a_socket_that_is_never_opened_is_closed_in_time() -> None:
    with client_of(settings=ServerSettings(open_timeout_s=0.05)) as client:
        for frames in ([], ["{", '{"type":"x"}']):
            with client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket:
                for frame in frames:
                    assert ask(socket, frame)["type"] == "error"
                ended = socket.receive_json()["data"]
                assert ended["code"] == "SESSION_ERROR"
                assert "open_timeout_s=0.05" in ended["message"]
                assert_closed(socket)


def test_an_opening_that_was_refused_may_be_tried_again_and_takes_as_long_as_it_takes() -> None:
    made = threading.Event()

    class Slow(Echo):
        def __init__(self) -> None:
            super().__init__()
            made.wait(0.2)

    with (
        client_of(Slow, settings=ServerSettings(open_timeout_s=0.1)) as client,
        client.websocket_connect("/ws", subprotocols=[SUBPROTOCOL]) as socket,
    ):
        assert ask(socket, {"type": "x-open", "data": {"env_kwargs": {"a": 1}}})["type"] == "error"
        assert ask(socket, {"type": "x-open"})["type"] == "x-open"
        made.wait(0.2)
        assert ask(socket, {"type": "reset"})["type"] == "observation"
