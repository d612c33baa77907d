"""Tests of ``openenv_gym_server.rpc_methods`` with environments that give what nobody expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from openenv_gym.tools import CallToolObservation, ListToolsObservation, Tool
from openenv_gym.types import Observation
from openenv_gym_server import rpc_methods
from openenv_gym_server.app import create_app
from openenv_gym_server.closed_mode import FAILED
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import SECRET, app_of, calling, climber, rpc, server_of
from tests.sockets import until
from tests.text_envs import Echo, Heard, Say

Ask = Callable[[Any], Any]


class Peculiar(MCPEnvironment):
    """Gives by its own ``step`` what the class of a test says."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    listed: Any = ListToolsObservation(tools=[])
    called: Any = CallToolObservation(tool_name="look")

    def reset(self, seed: int | None = None, **kwargs: Any) -> Observation:
        return Observation()

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
        return self.called if action.type == "call_tool" else self.listed


def peculiar(**given: Any) -> type[Peculiar]:
    return type("Peculiar", (Peculiar,), given)


@contextmanager
def peer_of(env: Any, transport: str, mode: str = "simulation", **settings: Any) -> Iterator[Ask]:
    with TestClient(app_of(env, mode, ServerSettings(**settings))) as client:
        if transport == "post":
            yield lambda request: client.post("/mcp", json=request).json()
            return
        with client.websocket_connect("/mcp" if transport == "mcp" else "/ws") as socket:

            def ask(request: Any) -> Any:
                socket.send_json(request if transport == "mcp" else {"type": "mcp", "data": request})
                answer = socket.receive_json()
                return answer if transport == "mcp" else answer["data"]

            yield ask


@pytest.fixture(params=["post", "mcp", "ws"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ENDLESS = Tool(name="look", description="Look.", input_schema={"type": "object", "default": float("inf")})


def test_an_answer_that_json_does_not_have_is_an_error_and_the_session_goes_on(transport: str) -> None:
    with peer_of(peculiar(listed=ListToolsObservation(tools=[ENDLESS])), transport) as ask:
        for _ in range(2):
            answer = ask(rpc("tools/list", "a"))
            assert (answer["id"], answer["error"]["code"]) == ("a", -32603)
            assert "what was done for it stays done" in answer["error"]["message"]
        assert ask(calling("look"))["result"]["data"] is None


def test_in_a_batch_it_is_the_error_of_that_call_alone() -> None:
    with peer_of(peculiar(listed=ListToolsObservation(tools=[ENDLESS])), "post") as ask:
        failed, called = ask([rpc("tools/list", 1), calling("look")])
        assert failed["error"]["code"] == -32603
        assert called["result"]["is_error"] is False


def test_a_batch_whose_answers_are_too_large_is_not_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_methods.rpc, "MAX_BATCH_BYTES", 500)
    env = climber()
    with peer_of(env, "post") as ask:
        session_id = ask(rpc("openenv/session/create"))["result"]["session_id"]
        unheard = {name: part for name, part in calling("climb", session_id).items() if name != "id"}
        answers = ask([rpc("tools/list", 1), calling("climb", session_id), unheard, 5])
        assert ["result" in answer for answer in answers] == [True, False, False]
        assert answers[1]["error"]["code"] == -32600
        assert "500 bytes" in answers[1]["error"]["message"]
        assert env.made[0].height == 0


class Priced(Tool):
    price: int


def test_an_authors_own_class_of_tools_is_told_as_any_other(transport: str) -> None:
    tool = Priced(name="look", description="Look.", input_schema={"type": "object"}, price=3)
    with peer_of(peculiar(listed=ListToolsObservation(tools=[tool])), transport) as ask:
        (listed,) = ask(rpc("tools/list"))["result"]["tools"]
    assert (listed["name"], listed["inputSchema"], listed["outputSchema"]) == ("look", {"type": "object"}, None)


def test_a_description_of_a_tool_that_is_none_is_the_environments_failure(transport: str) -> None:
    with peer_of(peculiar(listed=SimpleNamespace(tools=[SECRET])), transport, "production") as ask:
        assert ask(rpc("tools/list"))["error"] == {"code": -32603, "message": FAILED, "data": None}


class OwnFailure(Observation):
    tool_name: str = "look"
    error: Any = None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"error_type": "out_of_coffee", "message": "no more"}, ("execution_error", "no more")),
        ({"error_type": ["timeout"], "since": 3}, ("execution_error", "the tool failed")),
        ({"error_type": "timeout", "message": "late", "seconds": 3}, ("timeout", "late")),
    ],
)
def test_a_failure_in_words_of_an_authors_own_is_a_failure(error: Any, told: tuple[str, str]) -> None:
    with peer_of(peculiar(called=OwnFailure(error=error)), "post") as ask:
        answer = ask(calling("look"))["error"]
    assert (answer["data"]["error_type"], answer["message"]) == told


class Listless(Echo):
    """Merely has a FastMCP server, which cannot list its tools."""

    class mcp_server:
        @staticmethod
        async def list_tools() -> Any:
            raise FileNotFoundError(SECRET)

        @staticmethod
        async def call_tool(name: str, arguments: Any = None) -> Any:
            raise FileNotFoundError(SECRET)


@pytest.mark.parametrize(("mode", "message"), [("simulation", SECRET), ("production", FAILED)])
def test_a_fastmcp_server_that_cannot_list_is_the_environments_failure(mode: str, message: str) -> None:
    with TestClient(create_app(Listless, Say, Heard, mode=mode)) as client:
        for request in (rpc("tools/list"), calling("look")):
            error = client.post("/mcp", json=request).json()["error"]
            assert error == {"code": -32603, "message": message, "data": None}


@pytest.mark.parametrize(("mode", "message"), [("simulation", SECRET), ("production", FAILED)])
def test_whatever_is_raised_besides_is_an_answer_too(
    mode: str, message: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*args: Any) -> Any:
        raise FileNotFoundError(SECRET)

    with peer_of(climber(), transport, mode) as ask:
        with monkeypatch.context() as patch:
            patch.setattr(rpc_methods, "call_on", failing)
            patch.setattr("openenv_gym_server.sessions.Sessions.borrow", failing)
            assert ask(calling("climb"))["error"] == {"code": -32603, "message": message, "data": None}
        assert ask(rpc("tools/list"))["result"]["tools"], "the session goes on"


def test_a_session_that_ends_meanwhile_is_no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ended(*args: Any) -> Any:
        raise SessionEndedError("the server stops", code="SESSION_ERROR")

    with peer_of(climber(), "post") as ask:
        session_id = ask(rpc("openenv/session/create"))["result"]["session_id"]
        monkeypatch.setattr(rpc_methods, "call_on", ended)
        error = ask(calling("climb", session_id))["error"]
    assert (error["code"], error["data"]["error_type"]) == (-32603, "transport_error")


def test_a_limit_above_all_floats_is_none(transport: str) -> None:
    with peer_of(climber(), transport) as ask:
        error = ask(rpc("tools/call", name="climb", timeout_s=10**400))["error"]
        assert error["message"] == "Invalid params - 'timeout_s' has to be a positive number"
        assert ask(rpc("tools/call", name="rest", timeout_s=1e308))["error"]["data"]["error_type"]


@pytest.mark.parametrize("session_id", [None, 0, False, [], "", {}, 5, ["a"], 1.5])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
def test_what_names_no_session_is_never_taken_for_a_call_without_one(method: str, session_id: Any) -> None:
    env = climber()
    with peer_of(env, "post") as ask:
        error = ask(rpc(method, name="climb", session_id=session_id))["error"]
        assert (error["code"], "'session_id' has to be a string" in error["message"]) == (-32602, True)
    assert env.made == []


@pytest.mark.parametrize("method", ["initialize", "ping", "notifications/initialized"])
def test_whoever_speaks_standard_mcp_without_its_header_is_told_of_it(method: str) -> None:
    with peer_of(climber(), "post") as ask:
        error = ask(rpc(method))["error"]
    assert error["code"] == -32601
    assert error["message"].startswith(f"Method not found: {method}; ")
    assert "the header Accept: application/json, text/event-stream" in error["message"]


def test_a_session_whose_tool_hangs_is_not_said_to_be_closed() -> None:
    env = climber()
    server = server_of(env, ServerSettings(close_timeout_s=0.05))
    app = FastAPI()
    server.register_routes(app, "simulation")
    with TestClient(app) as client:

        def ask(request: Any) -> Any:
            return client.post("/mcp", json=request).json()

        for by_http in (False, True):
            session_id = ask(rpc("openenv/session/create"))["result"]["session_id"]
            env.held.clear()
            assert ask(calling("rest", session_id))["error"]["data"]["error_type"] == "timeout"
            expected = {"session_id": session_id, "closed": False, "closing": True}
            if by_http:
                answer = client.delete(f"/session/{session_id}")
                assert (answer.status_code, answer.json()) == (202, expected)
            else:
                assert ask(rpc("openenv/session/close", session_id=session_id))["result"] == expected
            assert server.active_sessions == 1
            env.held.set()
            until(lambda: server.active_sessions == 0)
