"""The tools of a FastMCP server, as an environment's."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.tools.base import ToolResult
from pydantic import BaseModel

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction
from openenv_gym.types import Observation
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_functions import tool

RELEASE = threading.Event()


def server() -> FastMCP:
    mcp = FastMCP("test")

    @mcp.tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers.

        Args:
            a: the first
        """
        return a + b

    @mcp.tool
    async def later(a: int) -> dict[str, int]:
        return {"a": a}

    @mcp.tool
    def unannotated(a):  # type: ignore[no-untyped-def]
        return [a]

    @mcp.tool
    def fail(how: str) -> str:
        raise {
            "value": ValueError("wrong"),
            "tool": ToolError("plain words"),
            "missing": NotFoundError("its own"),
            "invalid": ValidationError("its own"),
            "exit": SystemExit(3),
        }[how]

    @mcp.tool
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    @mcp.tool
    def block() -> str:
        RELEASE.wait(20)
        return "late"

    @mcp.tool
    def odd() -> ToolResult:
        return ToolResult(content="text", structured_content={"a": "half \ud800"})

    @mcp.tool
    def refuse() -> ToolResult:
        result = ToolResult(content="it says no")
        result.is_error = True
        return result

    return mcp


class Served(MCPEnvironment):
    def __init__(self, mcp: FastMCP | None = None) -> None:
        super().__init__(mcp or server())

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0)

    @tool
    def own(self, a: int) -> int:
        return a


def call(env: MCPEnvironment, name: str, timeout_s: float | None = None, **arguments: Any) -> CallToolObservation:
    observation = env.step(CallToolAction(tool_name=name, arguments=arguments), timeout_s=timeout_s)
    assert isinstance(observation, CallToolObservation)
    return observation


def kind_of(observation: CallToolObservation) -> str:
    assert observation.error is not None
    return observation.error.error_type.value


def test_its_tools_are_listed_before_the_environments_own() -> None:
    tools = Served().step(ListToolsAction()).tools
    assert tools[0].name == "add"
    assert tools[0].description == "Add two numbers."
    assert tools[0].input_schema["properties"]["a"] == {"type": "integer", "description": "the first"}
    assert tools[-1].name == "own"


def test_its_tools_are_called_and_the_environments_own_too() -> None:
    env = Served()
    assert call(env, "add", a=2).result["data"] == 3
    assert call(env, "later", a=2).result["data"] == {"a": 2}
    assert call(env, "unannotated", a=2).result["content"][0]["text"] == "[2]"
    assert call(env, "own", a=2).result["data"] == 2


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("unknown", {}, "tool_not_found"),
        ("add", {}, "invalid_args"),
        ("add", {"a": "x"}, "invalid_args"),
        ("fail", {"how": "value"}, "execution_error"),
        ("fail", {"how": "tool"}, "execution_error"),
        ("fail", {"how": "missing"}, "execution_error"),
        ("fail", {"how": "exit"}, "execution_error"),
        ("refuse", {}, "execution_error"),
        ("odd", {}, "execution_error"),
    ],
)
def test_each_failure_has_its_kind(name: str, arguments: dict[str, Any], kind: str) -> None:
    env = Served()
    assert kind_of(call(env, name, **arguments)) == kind
    assert call(env, "add", a=1).error is None


def test_an_error_that_the_server_reports_has_its_text() -> None:
    observation = call(Served(), "refuse")
    assert observation.error is not None
    assert observation.error.message == "it says no"


SECRET = "/srv/answers.json"


class Door(BaseModel):
    number: int


def secretive() -> FastMCP:
    mcp = FastMCP("secretive")

    @mcp.tool
    def slip(how: str) -> Any:
        if how == "model":
            return Door.model_validate({"number": SECRET})
        if how == "result":
            result = ToolResult(content=f"Error calling tool 'far': {SECRET}")
            result.is_error = True
            return result
        raise {"path": FileNotFoundError(SECRET), "missing": NotFoundError(SECRET)}[how]

    return mcp


@pytest.mark.parametrize("how", ["model", "result", "path", "missing"])
def test_production_tells_nothing_of_what_a_tool_raised_that_was_not_to_be_read(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    messages = []
    for mode in ("simulation", "production"):
        env = Served(secretive())
        env.tool_caller.mode = mode
        error = call(env, "slip", how=how).error
        assert error is not None
        messages.append(error.message)
    assert SECRET in messages[0]
    assert messages[1].startswith("Error calling tool 'slip': it ")
    assert SECRET not in messages[1]
    assert SECRET in caplog.text


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("fail", {"how": "tool"}, "plain words"),
        ("add", {"a": "x"}, "valid integer"),
        ("unknown", {}, "Unknown tool: 'unknown'"),
        ("refuse", {}, "it says no"),
    ],
)
def test_production_tells_what_agents_are_to_read(name: str, arguments: dict[str, Any], part: str) -> None:
    env = Served()
    env.tool_caller.mode = "production"
    error = call(env, name, **arguments).error
    assert error is not None
    assert part in error.message


def test_a_tool_that_takes_too_long_does_not_disturb_the_next() -> None:
    env = Served()
    RELEASE.clear()
    for name in ("hang", "block"):
        assert kind_of(call(env, name, timeout_s=0.1)) == "timeout"
        assert call(env, "own", a=1).error is None
    RELEASE.set()
    assert call(env, "add", a=1).result["data"] == 2


def test_an_environment_is_made_in_a_running_loop_too() -> None:
    async def main() -> None:
        env = Served()
        assert call(env, "add", a=1).result["data"] == 2
        assert (await env.step_async(CallToolAction(tool_name="add", arguments={"a": 1}))).result["data"] == 2

    asyncio.run(main())


def test_a_reserved_name_or_one_that_is_there_twice_is_refused() -> None:
    wrong = FastMCP("test")
    wrong.tool(lambda: 1, name="close")
    with pytest.raises(ValueError, match="'close'"):
        Served(wrong)
    twice = FastMCP("test")
    twice.tool(lambda: 1, name="own")
    with pytest.raises(ValueError, match="'own'"):
        Served(twice)
    with pytest.raises(ValueError, match="'add'"):
        Served().tool(name="add")(lambda: 1)


def test_openenvs_own_ways_to_the_server_are_there() -> None:
    async def main(env: Served) -> None:
        async with env.mcp_session() as client:
            assert (await client.call_tool("add", {"a": 2})).data == 3

    env = Served()
    asyncio.run(main(env))
    assert env.get_callables()["add"](2, 3) == 5
    assert env.execute_code("result = add(own(2), 3)").metadata == {"result": 5}
    env.close()
    assert env.mcp_client is None
    assert kind_of(call(env, "add", a=1)) == "tool_not_found"


class Unhappy:
    """A server whose list of tools does not come, or only once."""

    def __init__(self, how: str) -> None:
        self.how = ""
        self.then = how

    async def list_tools(self) -> list[Any]:
        if self.how == "hang":
            await asyncio.Event().wait()
        if self.how == "raise":
            raise ConnectionError("no server there")
        self.how = self.then
        return []

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        given = (arguments or {}).get("a", 1)
        return ToolResult(content="text", structured_content={"a": given}, meta={"fastmcp": {"wrap_result": True}})


@pytest.mark.parametrize(("limit_s", "timeout_s"), [(0.05, None), (0.01, 0.05), (20.0, 0.05), (None, 0.05)])
def test_a_list_that_does_not_come_is_waited_for_as_long_as_a_call(
    limit_s: float | None, timeout_s: float | None
) -> None:
    class Limited(Served):
        TOOL_TIMEOUT_S = limit_s

    env = Limited(Unhappy("hang"))  # type: ignore[arg-type]
    with pytest.raises(EnvironmentExecutionError, match=r"longer than 0\.05 seconds to list its tools"):
        env.step(ListToolsAction(), timeout_s=timeout_s)


def test_a_list_that_fails_is_the_environments_error() -> None:
    env = Served(Unhappy("raise"))  # type: ignore[arg-type]
    with pytest.raises(ConnectionError, match="no server there"):
        env.step(ListToolsAction())


def test_a_result_that_is_not_wrapped_after_all_is_given_as_it_is() -> None:
    env = Served(Unhappy(""))  # type: ignore[arg-type]
    assert call(env, "any").result["data"] == {"a": 1}


def test_a_result_is_bounded_in_each_of_its_forms() -> None:
    class Bounded(Served):
        MAX_RESULT_MB = 0.01

    env = Bounded(Unhappy(""))  # type: ignore[arg-type]
    assert call(env, "any", a="x" * 5_000).error is None
    assert kind_of(call(env, "any", a="x" * 20_000)) == "execution_error"


def test_a_default_that_json_does_not_have_is_written_as_in_results_and_in_the_way_of_no_other_tool() -> None:
    mcp = server()

    @mcp.tool
    def wait(seconds: float = float("inf")) -> str:
        return str(seconds)

    env = Served(mcp)
    listed = {each.name: each for each in env.step(ListToolsAction()).tools}
    assert listed["wait"].input_schema["properties"]["seconds"]["default"] == "Infinity"
    assert "add" in listed
    assert call(env, "wait").result["data"] == "inf"
