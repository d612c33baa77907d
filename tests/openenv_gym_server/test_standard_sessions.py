"""Tests of ``openenv_gym_server.standard_sessions``."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from mcp import McpError

from openenv_gym.tool_wire import ERROR_TYPE
from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server import standard_sessions
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.catalogue import Catalogue
from openenv_gym_server.closed_mode import FAILED
from openenv_gym_server.gym_app import GymFactory
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc_methods import RpcMethods
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.standard_sessions import KnownTools, SessionTools
from openenv_gym_server.tool_functions import tool
from tests.text_envs import Echo, Heard, Say


class Growing(MCPEnvironment):
    """Has one more tool after each call of ``grow``."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1

    def reset(self, seed: int | None = None, **kwargs: Any) -> Observation:
        return Observation()

    @tool
    def grow(self, name: str) -> None:
        """Learn a trick."""
        self.tool(name=name)(lambda: "a trick")


class Secretive(Growing):
    def __init__(self) -> None:
        raise OSError("no such file: /srv/secret.json")


def served(env: Any = Growing, classes: Any = (CallToolAction, CallToolObservation), **settings: Any) -> Served:
    chosen = ServerSettings(**settings)
    sessions = HTTPEnvServer(env, *classes, settings=chosen)._sessions
    return Served("growing", sessions, Catalogue(sessions, chosen.mode), chosen, RpcMethods(sessions, chosen))


def use(served: Served, play: Any) -> Any:
    async def main() -> Any:
        tools = SessionTools(served, KnownTools(served))
        try:
            return await play(tools)
        finally:
            tools.close()
            await served.sessions.shutdown()

    return asyncio.run(main())


def test_tools_are_asked_of_one_environment_for_all_until_there_is_an_own() -> None:
    async def play(tools: SessionTools) -> list[list[str]]:
        Growing.made = 0
        looks = await asyncio.gather(*(tools.list_tools() for _ in range(5)))
        assert Growing.made == 1
        await tools.call_tool("grow", {"name": "jump"})
        return [sorted(each.name for each in listed) for listed in (*looks, await tools.list_tools())]

    *before, after = use(served(), play)
    assert before == [["grow"]] * 5
    assert after == ["grow", "jump"]


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_an_environment_without_tools_is_an_error_of_both_requests(mode: str) -> None:
    async def play(tools: SessionTools) -> list[int]:
        codes = []
        for request in (tools.list_tools, lambda: tools.call_tool("look", {})):
            with pytest.raises(McpError) as caught:
                await request()
            codes.append(caught.value.error.code)
        return codes

    assert use(served(Echo, (Say, Heard), mode=mode), play) == [-32603, -32603]


@pytest.mark.parametrize(("mode", "told"), [("simulation", True), ("production", False)])
def test_what_a_factory_raised_is_told_in_simulation_alone(mode: str, told: bool) -> None:
    async def play(tools: SessionTools) -> list[Any]:
        errors = []
        for request in (tools.list_tools, lambda: tools.call_tool("look", {})):
            with pytest.raises(McpError) as caught:
                await request()
            errors.append(caught.value.error)
        return errors

    for error in use(served(Secretive, mode=mode), play):
        assert error.code == -32000
        assert error.data == {"factory_name": "Secretive"}
        assert ("secret.json" in error.message) is told


def test_closing_before_anything_was_made_is_nothing() -> None:
    async def play(_: SessionTools) -> None:
        return None

    assert use(served(), play) is None


def test_a_call_after_the_end_of_the_environment_says_what_to_do() -> None:
    async def play(tools: SessionTools) -> Any:
        await tools.call_tool("grow", {"name": "jump"})
        tools.close()
        listed = await tools.list_tools()
        return [each.name for each in listed], await tools.call_tool("grow", {"name": "run"})

    names, given = use(served(), play)
    assert names == ["grow"]
    assert given.isError is True
    assert "open a new MCP session" in given.content[0].text


def test_a_reset_that_fails_leaves_no_session() -> None:
    class Stuck(Growing):
        def reset(self, seed: int | None = None, **kwargs: Any) -> Observation:
            raise OSError("/srv/secret.json")

    parts = served(Stuck, mode="production")

    async def play(tools: SessionTools) -> str:
        with pytest.raises(McpError) as caught:
            await tools.call_tool("grow", {"name": "jump"})
        return caught.value.error.message

    assert "secret" not in use(parts, play)
    assert len(parts.sessions) == 0


def test_a_tool_that_outlives_its_limit_is_a_timeout_and_the_session_lives() -> None:
    release = threading.Event()

    class Slow(Growing):
        @tool(timeout_s=0.05)
        def wait(self) -> None:
            """Wait for the test."""
            release.wait(20)

    async def play(tools: SessionTools) -> tuple[Any, Any]:
        late = await tools.call_tool("wait", {})
        release.set()
        return late, await tools.call_tool("grow", {"name": "jump"})

    late, after = use(served(Slow, mode="production"), play)
    assert (late.isError, late.meta) == (True, {ERROR_TYPE: "timeout"})
    assert after.isError is False


def test_an_environment_that_takes_longer_than_the_operator_allows_has_its_session_ended() -> None:
    release = threading.Event()

    class Slow(Growing):
        @tool
        def wait(self) -> None:
            """Wait for the test."""
            release.wait(20)

    async def play(tools: SessionTools) -> tuple[Any, Any]:
        late = await tools.call_tool("wait", {})
        release.set()
        return late, await tools.call_tool("grow", {"name": "jump"})

    late, after = use(served(Slow, step_timeout_s=0.05), play)
    assert (late.isError, late.meta) == (True, {ERROR_TYPE: "timeout"})
    assert "step_timeout_s" in late.content[0].text
    assert (after.isError, after.meta) == (True, {ERROR_TYPE: "transport_error"})
    assert "open a new MCP session" in after.content[0].text


def test_a_call_that_was_cancelled_before_its_turn_is_never_made_also_without_a_limit() -> None:
    began, release = threading.Event(), threading.Event()

    class Patient(Growing):
        TOOL_TIMEOUT_S = None

        @tool
        def wait(self) -> None:
            """Wait for the test."""
            began.set()
            release.wait(20)

    async def play(tools: SessionTools) -> list[str]:
        first = asyncio.create_task(tools.call_tool("wait", {}))
        await asyncio.to_thread(began.wait, 20)
        second = asyncio.create_task(tools.call_tool("grow", {"name": "jump"}))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        release.set()
        await first
        return [each.name for each in await tools.list_tools()]

    assert "jump" not in use(served(Patient), play)


@pytest.mark.parametrize(("mode", "message"), [("simulation", "/srv/secret.json"), ("production", FAILED)])
def test_whatever_is_raised_besides_is_an_answer_and_in_production_tells_nothing(
    mode: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*args: Any) -> Any:
        raise FileNotFoundError("/srv/secret.json")

    async def play(tools: SessionTools) -> str:
        monkeypatch.setattr(standard_sessions, "call_on", failing)
        with pytest.raises(McpError) as caught:
            await tools.call_tool("grow", {"name": "jump"})
        return caught.value.error.message

    assert use(served(mode=mode), play) == message


class Careless(Growing):
    """Two of its tools give what they do not declare."""

    @tool
    def count(self) -> int:
        """Count the doors."""
        return "three"  # type: ignore[return-value]

    @tool
    def find(self, there: bool) -> list[str]:
        """Find keys."""
        return ["a key"] if there else None  # type: ignore[return-value]

    @tool
    def say(self) -> Any:
        """Declare nothing."""
        return 3


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_a_result_that_is_not_what_its_tool_declares_is_a_failed_call(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(tools: SessionTools) -> list[Any]:
        calls = [("count", {}), ("find", {"there": False}), ("find", {"there": True}), ("say", {})]
        return [await tools.call_tool(name, arguments) for name, arguments in calls]

    count, nothing, keys, say = use(served(Careless, mode=mode), play)
    for failed, fault in ((count, "expected type 'integer' at $.result"), (nothing, "expected type ")):
        assert (failed.isError, failed.meta) == (True, {ERROR_TYPE: "execution_error"})
        assert fault in failed.content[0].text
        assert "three" not in failed.content[0].text
        assert failed.content[0].text in caplog.text
    assert [each.isError for each in (keys, say)] == [False, False]
    if mode == "simulation":
        assert count.structuredContent["reward"] is None
        assert count.structuredContent["error"]["error_type"] == "execution_error"


def test_what_a_tool_gives_is_told_where_the_tools_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*args: Any) -> Any:
        raise OSError("no list")

    async def play(tools: SessionTools) -> Any:
        monkeypatch.setattr(standard_sessions, "list_on", failing)
        return await tools.call_tool("count", {})

    assert use(served(Careless), play).isError is False


def test_results_of_a_gymnasium_environment_need_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(tools: SessionTools) -> Any:
        given = await tools.call_tool("act", {"action": 1})
        assert "act" not in tools._checks
        return given

    assert use(served(GymFactory("CartPole-v1"), (dict, dict)), play).isError is False
