"""Tests of ``openenv_gym_server.rpc_methods``, over POST and over the two sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from openenv_gym_server.app import HTTPEnvServer, create_app
from openenv_gym_server.rpc_tools import EPISODE_OVER
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import SECRET, TOP, Climb, app_of, calling, climber, rpc, server_of
from tests.sockets import until
from tests.text_envs import Echo, Heard, Say

MODES = ("simulation", "production")

Ask = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def peer_of(client: TestClient, transport: str) -> Iterator[Ask]:
    """A way to ask, and the name that the socket's session has where there is one."""
    if transport == "post":
        yield lambda request: client.post("/mcp", json=request).json()
        return
    with client.websocket_connect("/mcp" if transport == "mcp" else "/ws") as socket:

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            socket.send_json(request if transport == "mcp" else {"type": "mcp", "data": request})
            answer = socket.receive_json()
            if transport == "ws":
                assert answer["type"] == "mcp"
                return answer["data"]
            return answer

        yield ask


@pytest.fixture(params=["post", "mcp", "ws"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_tools_are_listed_in_the_shape_of_the_reference(transport: str, mode: str) -> None:
    with TestClient(app_of(climber(), mode)) as client, peer_of(client, transport) as ask:
        answer = ask(rpc("tools/list", "first"))
    assert answer["id"] == "first"
    tools = answer["result"]["tools"]
    assert tools[0] == {
        "name": "climb",
        "title": None,
        "description": "Climb a few steps.",
        "inputSchema": {
            "type": "object",
            "properties": {"steps": {"type": "integer", "default": 1}},
            "additionalProperties": False,
        },
        "outputSchema": tools[0]["outputSchema"],
        "icons": None,
        "annotations": tools[0]["annotations"],
        "meta": None,
        "execution": None,
    }
    assert ("ask" in {tool["name"] for tool in tools}) is (mode == "production")


def test_a_tool_is_called_in_an_episode_that_the_server_began(mode: str) -> None:
    for transport in ("post", "mcp"):
        env = climber()
        with TestClient(app_of(env, mode, ServerSettings(seed=4))) as client, peer_of(client, transport) as ask:
            answer = ask(calling("climb", steps=2))
        assert answer["result"] == {
            "content": [{"type": "text", "text": "2", "annotations": None, "meta": None}],
            "structured_content": {"result": 2},
            "meta": {"fastmcp": {"wrap_result": True}},
            "data": 2,
            "is_error": False,
        }
        assert [each.seeds for each in env.made] == [[4]]


def test_without_a_session_every_call_has_an_environment_for_itself_that_is_closed(mode: str) -> None:
    env = climber()
    with TestClient(app_of(env, mode)) as client, peer_of(client, "post") as ask:
        assert [ask(calling("climb", steps=2))["result"]["data"] for _ in range(2)] == [2, 2]
        assert len(env.made) == 2
        assert all(each.closed for each in env.made)


def test_a_socket_keeps_its_environment_and_closes_it_at_its_end(mode: str) -> None:
    env = climber()
    with TestClient(app_of(env, mode)) as client:
        with peer_of(client, "mcp") as ask:
            assert [ask(calling("climb"))["result"]["data"] for _ in range(2)] == [1, 2]
        until(lambda: env.made[0].closed)
        assert len(env.made) == 1


def test_in_simulation_a_client_of_ws_begins_the_episode_itself() -> None:
    env = climber()
    with TestClient(app_of(env)) as client, client.websocket_connect("/ws") as socket:
        socket.send_json({"type": "mcp", "data": calling("climb")})
        assert "no episode has begun" in socket.receive_json()["data"]["error"]["message"]
        socket.send_json({"type": "reset"})
        assert socket.receive_json()["type"] == "observation"
        socket.send_json({"type": "mcp", "data": calling("climb")})
        assert socket.receive_json()["data"]["result"]["data"] == 1
        socket.send_json({"type": "step", "data": {"type": "call_tool", "tool_name": "climb"}})
        assert socket.receive_json()["data"]["reward"] == 2.0, "a call over either way is a step of one episode"


def test_in_production_a_client_of_ws_finds_its_episode_begun() -> None:
    env = climber()
    with TestClient(app_of(env, "production")) as client, peer_of(client, "ws") as ask:
        assert ask(calling("climb"))["result"]["data"] == 1
        assert env.made[0].seeds == [None]


@pytest.mark.parametrize(
    ("name", "arguments", "code", "kind"),
    [
        ("nope", {}, -32602, "tool_not_found"),
        ("climb", {"steps": "two"}, -32602, "invalid_args"),
        ("slip", {}, -32603, "execution_error"),
        ("crash", {}, -32603, "execution_error"),
        ("rest", {}, -32603, "timeout"),
    ],
)
def test_the_failure_of_a_tool_says_its_kind(name: str, arguments: Any, code: int, kind: str, transport: str) -> None:
    env = climber()
    env.held.set()
    with TestClient(app_of(env, "production")) as client, peer_of(client, transport) as ask:
        if name == "rest":
            env.held.clear()
            threading.Timer(0.1, env.held.set).start()
        error = ask(calling(name, **arguments))["error"]
        assert (error["code"], error["data"]) == (code, {"error_type": kind, "tool_name": name})
        assert ask(calling("climb"))["result"]["is_error"] is False, "the session goes on"


def test_a_tool_that_outlives_its_limit_does_not_keep_its_caller() -> None:
    env = climber()
    with TestClient(app_of(env)) as client, peer_of(client, "post") as ask:
        session_id = created(ask)
        error = ask(calling("rest", session_id))["error"]
        assert error["data"]["error_type"] == "timeout"
        env.held.set()
        assert ask(calling("climb", session_id))["result"]["data"] == 1


def test_a_call_may_have_a_limit_of_its_own() -> None:
    env = climber()
    with TestClient(app_of(env)) as client, peer_of(client, "post") as ask:
        session_id = created(ask)
        error = ask(rpc("tools/call", name="rest", session_id=session_id, timeout_s=0.01))["error"]
        assert "0.01 seconds" in error["message"]
        env.held.set()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Missing 'name' in params"),
        ({"name": ""}, "Missing 'name' in params"),
        ({"name": 5}, "Invalid params - 'name' has to be a string"),
        ({"name": "climb", "arguments": [1]}, "Invalid params - 'arguments' has to be an object"),
        ({"name": "climb", "timeout_s": 0}, "Invalid params - 'timeout_s' has to be a positive number"),
        ({"name": "climb", "timeout_s": True}, "Invalid params - 'timeout_s' has to be a positive number"),
        ({"name": "climb", "timeout_s": "1"}, "Invalid params - 'timeout_s' has to be a positive number"),
    ],
)
def test_faulty_params_are_refused(params: dict[str, Any], message: str, transport: str) -> None:
    with TestClient(app_of(climber())) as client, peer_of(client, transport) as ask:
        assert ask(rpc("tools/call", **params))["error"] == {"code": -32602, "message": message, "data": None}


def test_arguments_may_be_null_or_left_out() -> None:
    with TestClient(app_of(climber())) as client, peer_of(client, "post") as ask:
        assert ask(rpc("tools/call", name="climb"))["result"]["data"] == 1
        assert ask(rpc("tools/call", name="climb", arguments=None))["result"]["data"] == 1


@pytest.mark.parametrize("method", ["reset", "step", "state", ""])
def test_there_are_no_other_methods(method: str, transport: str, mode: str) -> None:
    with TestClient(app_of(climber(), mode)) as client, peer_of(client, transport) as ask:
        error = ask(rpc(method, 9))["error"]
        assert error == {"code": -32601, "message": f"Method not found: {method}", "data": None}


def test_in_production_a_session_is_one_episode_and_its_end_is_told_by_the_tools(transport: str) -> None:
    env = climber()
    with TestClient(app_of(env, "production")) as client, peer_of(client, transport) as ask:
        session = {"session_id": created(ask)} if transport == "post" else {}
        assert ask(rpc("tools/call", name="climb", arguments={"steps": TOP}, **session))["result"]["data"] == TOP
        over = ask(rpc("tools/call", name="climb", **session))["error"]
        assert (over["code"], over["message"], over["data"]["episode_over"]) == (-32603, EPISODE_OVER, True)
        assert env.made[0].height == TOP
        assert ask(rpc("tools/list", **session))["result"]["tools"]


def test_production_says_nothing_of_reward_and_end(transport: str) -> None:
    with TestClient(app_of(climber(), "production")) as client, peer_of(client, transport) as ask:
        for request in (rpc("tools/list"), calling("climb", steps=TOP), calling("slip"), calling("crash")):
            text = str(ask(request))
            assert not any(word in text for word in ("reward", "done", "terminated", "truncated")), text


def test_production_hides_why_the_environment_failed() -> None:
    with TestClient(app_of(climber(), "production")) as client, peer_of(client, "post") as ask:
        assert SECRET not in str(ask(calling("crash")))
    with TestClient(app_of(climber())) as client, peer_of(client, "post") as ask:
        assert ask(calling("crash"))["error"]["message"] == SECRET


# --------------------------------------------------------------------------------------------------- sessions


def app_of_server(server: HTTPEnvServer, mode: str) -> FastAPI:
    app = FastAPI()
    server.register_routes(app, mode)
    return app


def created(ask: Ask) -> str:
    return str(ask(rpc("openenv/session/create"))["result"]["session_id"])


def test_a_created_session_keeps_its_environment_until_it_is_closed(mode: str) -> None:
    env = climber()
    with TestClient(app_of(env, mode)) as client, peer_of(client, "post") as ask:
        session_id = created(ask)
        assert [ask(calling("climb", session_id))["result"]["data"] for _ in range(2)] == [1, 2]
        assert env.made[0].seeds == [None]
        closed = ask(rpc("openenv/session/close", session_id=session_id))
        assert closed["result"] == {"session_id": session_id, "closed": True}
        assert env.made[0].closed
        for request in (calling("climb", session_id), rpc("openenv/session/close", session_id=session_id)):
            error = ask(request)["error"]
            assert error == {"code": -32602, "message": f"Unknown session_id: {session_id}", "data": None}


def test_in_production_a_created_session_is_reset_at_once_and_in_simulation_at_its_first_call() -> None:
    for mode, seeds in (("production", [None]), ("simulation", [])):
        env = climber()
        with TestClient(app_of(env, mode)) as client, peer_of(client, "post") as ask:
            session_id = created(ask)
            ask(rpc("tools/list", session_id=session_id))
            assert env.made[0].seeds == seeds


def test_concurrent_first_calls_begin_one_episode(mode: str) -> None:
    env = climber()
    with (
        TestClient(app_of(env, mode)) as client,
        peer_of(client, "post") as ask,
        ThreadPoolExecutor(8) as threads,
    ):
        session_id = created(ask)
        answers = list(threads.map(lambda _: ask(calling("climb", session_id, steps=0)), range(16)))
    assert all(answer["result"]["data"] == 0 for answer in answers)
    assert [each.seeds for each in env.made] == [[None]]


@pytest.mark.parametrize("session_id", [None, "", 5])
def test_closing_needs_the_name_of_a_session(session_id: Any, transport: str) -> None:
    with TestClient(app_of(climber())) as client, peer_of(client, transport) as ask:
        error = ask(rpc("openenv/session/close", session_id=session_id))["error"]
        expected = "Invalid params - 'session_id' has to be a string that is not empty, or left out"
        assert (error["code"], error["message"]) == (-32602, expected)
        assert "is required" in ask(rpc("openenv/session/close"))["error"]["message"]


@pytest.mark.parametrize("transport", ["mcp", "ws"])
def test_a_sockets_session_is_its_own_and_not_closed_by_a_method(transport: str, mode: str) -> None:
    env = climber()
    with TestClient(app_of(env, mode)) as client, peer_of(client, transport) as ask:
        session_id = created(ask)
        assert created(ask) == session_id
        error = ask(rpc("openenv/session/close", session_id=session_id))["error"]
        message = "Cannot close active WebSocket-managed session via MCP method"
        assert error == {"code": -32600, "message": message, "data": None}
        stranger = client.post("/mcp", json=rpc("openenv/session/close", session_id=session_id)).json()
        assert stranger["error"]["message"] == f"Unknown session_id: {session_id}"
        assert len(env.made) == 1


def test_a_socket_attaches_to_a_created_session_and_both_act_on_one_environment(mode: str) -> None:
    env = climber()
    with TestClient(app_of(env, mode)) as client, peer_of(client, "post") as ask:
        session_id = created(ask)
        with client.websocket_connect(f"/ws?session_id={session_id}") as socket:
            if mode == "simulation":
                socket.send_json({"type": "reset", "data": {"seed": 3}})
                assert socket.receive_json()["type"] == "observation"
            assert ask(calling("climb", session_id))["result"]["data"] == 1
            socket.send_json({"type": "mcp", "data": calling("climb")})
            assert socket.receive_json()["data"]["result"]["data"] == 2
            closing = ask(rpc("openenv/session/close", session_id=session_id))["result"]
            assert closing == {"session_id": session_id, "closed": False, "closing": True}
            assert ask(calling("climb", session_id))["result"]["data"] == 3
        until(lambda: env.made[0].closed)
        assert env.made[0].seeds == ([3] if mode == "simulation" else [None])


def test_a_session_that_is_being_made_says_so() -> None:
    began, go_on = threading.Event(), threading.Event()

    class Slow(Climb):
        def __init__(self) -> None:
            began.set()
            go_on.wait(10.0)
            super().__init__()

    server = server_of(Slow)
    with (
        TestClient(app_of_server(server, "simulation")) as client,
        peer_of(client, "post") as ask,
        ThreadPoolExecutor(1) as threads,
    ):
        coming = threads.submit(created, ask)
        assert began.wait(10.0)
        (session_id,) = server._sessions.ids()
        error = ask(rpc("tools/list", session_id=session_id))["error"]
        assert error["code"] == -32600
        assert error["message"] == f"Session {session_id} is still initializing; retry shortly"
        go_on.set()
        assert coming.result(10.0) == session_id


def test_a_full_server_says_how_full_it_is(mode: str) -> None:
    app = app_of(climber(), mode, ServerSettings(max_concurrent_envs=1))
    with TestClient(app) as client, peer_of(client, "post") as ask:
        created(ask)
        error = ask(rpc("openenv/session/create"))["error"]
        assert (error["code"], error["data"]) == (-32000, {"active_sessions": 1, "max_sessions": 1})


class Broken:
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        raise FileNotFoundError(SECRET)


def test_a_broken_factory_is_named_and_in_production_not_explained(mode: str) -> None:
    with TestClient(app_of(Broken, mode)) as client, peer_of(client, "post") as ask:
        for request in (rpc("openenv/session/create"), rpc("tools/list"), calling("climb")):
            error = ask(request)["error"]
            assert (error["code"], error["data"]) == (-32000, {"factory_name": "Broken"})
            assert error["message"].startswith("Environment factory 'Broken' failed to create instance.")
            assert (SECRET in error["message"]) is (mode == "simulation")


class NeverBegins(Climb):
    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
        raise FileNotFoundError(SECRET)


def test_an_episode_that_cannot_begin_leaves_no_session_in_production() -> None:
    server = server_of(NeverBegins)
    with TestClient(app_of_server(server, "production")) as client, peer_of(client, "post") as ask:
        error = ask(rpc("openenv/session/create"))["error"]
        assert error["code"] == -32603
        assert SECRET not in error["message"]
        until(lambda: server.active_sessions == 0)


def test_a_session_whose_step_takes_longer_than_the_operator_allows_ends() -> None:
    env = climber()
    app = app_of(env, "simulation", ServerSettings(step_timeout_s=0.02))
    with TestClient(app) as client, peer_of(client, "post") as ask:
        session_id = created(ask)
        error = ask(calling("rest", session_id))["error"]
        assert (error["code"], error["data"]["error_type"]) == (-32603, "timeout")
        assert "step_timeout_s" in error["message"]
        assert ask(calling("climb", session_id))["error"]["code"] == -32602
        env.held.set()


def test_an_environment_without_tools_says_so(transport: str) -> None:
    for mode in MODES:
        with TestClient(create_app(Echo, Say, Heard, mode=mode)) as client, peer_of(client, transport) as ask:
            for request in (rpc("tools/list"), calling("x")):
                assert ask(request)["error"] == {
                    "code": -32603,
                    "message": "Environment does not support MCP",
                    "data": None,
                }
