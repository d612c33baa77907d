"""Calls of tools that outlive their limit: what ``after_tool`` makes of them while the tool still runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server import late_calls, tool_caller
from openenv_gym_server import session as session_module
from openenv_gym_server.code_act import CodeLimits
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.climbing import calling, server_of

WAIT_S = 10.0
RELEASE = threading.Event()


class Hanging(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    TOOL_TIMEOUT_S = 0.1
    CODE_LIMITS = CodeLimits(time_s=0.1)

    rewarded: ClassVar[list[tuple[str, str, bool]]] = []

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0)

    @tool
    def hang(self) -> str:
        self.thread = threading.get_ident()
        RELEASE.wait(WAIT_S)
        return "late"

    @tool
    async def hang_later(self) -> str:
        await asyncio.Event().wait()
        return "never"

    @tool
    async def block(self) -> str:
        """What an ``async def`` must not do."""
        self.thread = threading.get_ident()
        time.sleep(0)
        RELEASE.wait(WAIT_S)
        return "late"

    @tool(timeout_s=WAIT_S)
    def look(self) -> str:
        return "a door"

    def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> Any:
        error = observation.error
        kind = "" if error is None else error.error_type.value
        self.rewarded.append((action.tool_name, kind, threading.get_ident() == getattr(self, "thread", None)))
        observation.reward = 1.0 if error is None else -1.0
        observation.done = error is not None
        return observation


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session_module, "TOOL_GRACE_S", 0.1)
    monkeypatch.setattr(late_calls, "AFTER_TOOL_S", WAIT_S)
    RELEASE.clear()
    yield
    RELEASE.set()


def client_of(kind: type[Hanging], mode: str = "simulation", **settings: Any) -> TestClient:
    app = FastAPI()
    server_of(kind, ServerSettings(**settings)).register_routes(app, mode)
    return TestClient(app)


def recording(**members: Any) -> type[Hanging]:
    return type("Recording", (Hanging,), {"rewarded": [], **members})


class Stepping:
    """Calls as steps over a socket."""

    def __init__(self, kind: type[Hanging], **settings: Any) -> None:
        self._client = client_of(kind, **settings)

    def __enter__(self) -> Self:
        self._client.__enter__()
        self._socket = self._client.websocket_connect("/ws").__enter__()
        self._ask({"type": "reset", "data": {}})
        return self

    def __exit__(self, *error: object) -> None:
        RELEASE.set()
        self._socket.__exit__(None, None, None)
        self._client.__exit__(None, None, None)

    def _ask(self, message: Any) -> Any:
        self._socket.send_json(message)
        return self._socket.receive_json()["data"]

    def call(self, name: str, **arguments: Any) -> tuple[Any, Any, Any]:
        """The reward, the end and the kind of error of a call."""
        data = self._ask({"type": "step", "data": {"type": "call_tool", "tool_name": name, "arguments": arguments}})
        return data["reward"], data["done"], (data["observation"]["error"] or {}).get("error_type")


@pytest.mark.parametrize("name", ["hang", "hang_later", "block"])
def test_after_tool_rewards_a_call_that_times_out_once_whatever_it_hangs_in(name: str) -> None:
    kind = recording()
    with Stepping(kind) as stepping:
        assert stepping.call(name) == (-1.0, True, "timeout")
        RELEASE.set()
        assert stepping.call("look") == (1.0, False, None)
    assert kind.rewarded[:1] == [(name, "timeout", False)]
    assert [each[0] for each in kind.rewarded] == [name, "look"]


def test_a_call_that_was_not_begun_is_no_step_and_has_no_reward() -> None:
    kind = recording(look=tool(timeout_s=0.1)(lambda self: "a door"))
    with Stepping(kind) as stepping:
        assert stepping.call("hang")[0] == -1.0
        assert stepping.call("look") == (None, False, "timeout")
    assert [each[0] for each in kind.rewarded] == ["hang"]


def test_an_awaited_after_tool_is_awaited() -> None:
    async def after_tool(self: Any, action: Any, observation: Any) -> Any:
        await asyncio.sleep(0)
        observation.reward = -2.0

    with Stepping(recording(after_tool=after_tool)) as stepping:
        assert stepping.call("hang") == (-2.0, False, "timeout")


def test_a_rubric_rewards_it_too() -> None:
    async def rubric(action: Any, observation: Any) -> float:
        await asyncio.sleep(0)
        return 0.0 if observation.error is None else -3.0

    def make(self: Any) -> None:
        MCPEnvironment.__init__(self, rubric=rubric)

    kind = recording(__init__=make, after_tool=MCPEnvironment.after_tool)
    with Stepping(kind) as stepping:
        assert stepping.call("hang") == (-3.0, False, "timeout")


@pytest.mark.parametrize("failing", ["raises", "hangs", "alone"])
def test_where_after_tool_cannot_tell_the_timeout_is_told_without_a_reward(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_calls, "AFTER_TOOL_S", 0.2)

    def after_tool(self: Any, action: Any, observation: Any) -> Any:
        if failing == "hangs":
            RELEASE.wait(WAIT_S)
        raise SystemExit(3)

    alone = failing == "alone"
    kind = recording(after_tool=after_tool, REQUIRES_SINGLE_THREAD_EXECUTOR=alone)
    with Stepping(kind) as stepping:
        assert stepping.call("hang") == (None, False, "timeout")


def test_a_call_that_ends_at_the_last_moment_has_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def after_tool(self: Any, action: Any, observation: Any) -> Any:
        self.begun = self.begun + 1 if hasattr(self, "begun") else 1
        given_up.wait(WAIT_S)
        observation.reward = float(self.begun)

    given_up = threading.Event()
    kind = recording(after_tool=after_tool, hang=tool(timeout_s=0.1)(lambda self: "just in time"))
    give_up = session_module.given_up

    async def watched(*args: Any) -> Any:
        given_up.set()
        return await give_up(*args)

    monkeypatch.setattr(session_module, "given_up", watched)
    with Stepping(kind) as stepping:
        assert stepping.call("hang") == (1.0, False, None)


def test_of_code_the_tool_that_hangs_is_rewarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(env: Any, code: str, limit_s: float | None) -> Any:
        """Code in this process, which needs no time to start one."""
        return env.step(CallToolAction(tool_name=code.removesuffix("()")))

    monkeypatch.setattr(tool_caller, "code_observation", run)
    kind = recording()
    with Stepping(kind, allow_code=True) as stepping:
        assert stepping.call("execute_code", code="hang()") == (-1.0, True, "timeout")
    assert [each[:2] for each in kind.rewarded] == [("hang", "timeout")]


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_over_mcp_an_episode_that_after_tool_ends_at_a_timeout_is_over(mode: str) -> None:
    with client_of(recording(), mode) as client, client.websocket_connect("/mcp") as socket:
        socket.send_json(calling("hang"))
        assert socket.receive_json()["error"]["data"]["error_type"] == "timeout"
        RELEASE.set()
        socket.send_json(calling("look"))
        answer = socket.receive_json()
        assert ("error" in answer) is (mode == "production")
