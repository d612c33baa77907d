"""Tests of ``openenv_gym_server.rpc_tools``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

import numpy as np
import pytest
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import field_validator

from openenv_gym.errors import EnvironmentExecutionError
from openenv_gym.messages import Outcome
from openenv_gym.tools import CallToolAction, CallToolObservation, DescribedTool, ListToolsObservation, Tool
from openenv_gym.types import Action, Observation
from openenv_gym_server import rpc_tools
from openenv_gym_server.closed_mode import FAILED
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.rpc_tools import (
    EPISODE_OVER,
    MAX_TOLD,
    NO_TOOLS,
    NoToolsError,
    ToolOutcome,
    begin_episode,
    call_tool,
    list_tools,
    outcome_of_call,
)
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.climbing import SECRET, TOP, climber
from tests.text_envs import Bare, Heard, Say

CALLS = Models(CallToolAction, CallToolObservation)


def hosting(env: Any, mode: str = "simulation", models: Models = CALLS) -> HostedEnvironment:
    return HostedEnvironment(env, models, wait_for, mode)


def wait_for(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


def begun(mode: str = "simulation") -> HostedEnvironment:
    hosted = hosting(climber()(), mode)
    hosted.opening = {"seed": 5}
    return hosted


def error_of(outcome: ToolOutcome) -> tuple[str, str]:
    assert outcome.result is None
    assert outcome.error is not None
    return outcome.error.error_type.value, outcome.error.message


# ------------------------------------------------------------------------------------------------- episodes


def test_the_first_call_begins_the_episode_that_the_server_is_to_begin_and_no_later_one_does() -> None:
    hosted = begun()
    assert call_tool(hosted, "climb", {}).error is None
    assert call_tool(hosted, "climb", {}).error is None
    assert hosted.env.seeds == [5]
    assert hosted.steps == 2


def test_a_clients_own_episode_goes_on() -> None:
    hosted = begun()
    hosted.reset({"seed": 7})
    call_tool(hosted, "climb", {})
    assert hosted.env.seeds == [7]


def test_without_the_servers_word_no_episode_is_begun() -> None:
    hosted = hosting(climber()())
    begin_episode(hosted)
    assert error_of(call_tool(hosted, "climb", {})) == (
        "execution_error",
        "Error calling tool 'climb': no episode has begun",
    )
    assert hosted.env.seeds == []


def test_listing_begins_no_episode_and_is_no_step() -> None:
    hosted = begun()
    list_tools(hosted)
    assert (hosted.env.seeds, hosted.steps) == ([], 0)


def test_simulation_tells_reward_and_end_and_goes_on_after_it() -> None:
    hosted = begun()
    first = call_tool(hosted, "climb", {"steps": 1})
    assert (first.reward, first.terminated, first.truncated) == (1.0, False, False)
    last = call_tool(hosted, "climb", {"steps": 2})
    assert (last.reward, last.terminated, last.truncated) == (3.0, True, False)
    assert call_tool(hosted, "climb", {}).error is None


def test_production_tells_neither_and_the_end_is_the_end() -> None:
    hosted = begun("production")
    last = call_tool(hosted, "climb", {"steps": TOP})
    assert last.result is not None
    assert (last.reward, last.terminated, last.truncated) == (None, False, False)
    assert error_of(call_tool(hosted, "climb", {})) == ("execution_error", EPISODE_OVER)
    assert hosted.env.height == TOP, "the call after the end never reached it"
    hosted.reset({})
    assert call_tool(hosted, "climb", {}).error is None, "a new episode is not over"


def test_a_failure_that_ends_the_episode_ends_it_in_production_too() -> None:
    hosted = begun("production")
    call_tool(hosted, "climb", {"steps": 1})
    hosted.env.height = TOP
    assert error_of(call_tool(hosted, "slip", {}))[0] == "execution_error"
    assert error_of(call_tool(hosted, "climb", {})) == ("execution_error", EPISODE_OVER)


def test_truncation_is_told_where_the_step_says_so() -> None:
    hosted = begun()
    result: dict[str, Any] = {"content": [], "structured_content": None, "meta": None, "data": None, "is_error": False}
    step = Outcome(
        observation={"tool_name": "x", "result": result, "error": None}, done=True, metadata={"truncated": True}
    )
    outcome = outcome_of_call(hosted, "x", step)
    assert (outcome.result, outcome.terminated, outcome.truncated) == (result, False, True)


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, np.float32(0.5), 3, True, None])
def test_a_reward_of_any_kind_is_the_calls_reward(reward: Any) -> None:
    class Scored(MCPEnvironment):
        @tool
        def score(self) -> None:
            """Be scored."""

        def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> Any:
            return observation.model_copy(update={"reward": reward})

        def reset(self, **kwargs: Any) -> Observation:
            return Observation()

    given = call_tool(hosting(Scored()), "score", {}).reward
    np.testing.assert_equal(given, reward)
    assert given is None or type(given) is type(reward) or type(given) is float
    assert call_tool(hosting(Scored(), "production"), "score", {}).reward is None


# ------------------------------------------------------------------------------------------------- failures


def test_failures_are_told_apart() -> None:
    hosted = begun()
    assert error_of(call_tool(hosted, "nope", {}))[0] == "tool_not_found"
    assert error_of(call_tool(hosted, "climb", {"steps": "two"}))[0] == "invalid_args"
    assert error_of(call_tool(hosted, "slip", {})) == ("execution_error", f"Error calling tool 'slip': {SECRET}")
    assert error_of(call_tool(hosted, "crash", {})) == ("execution_error", SECRET)
    hosted.env.held.set()


def test_arguments_that_are_no_arguments_are_refused_before_anything_happens() -> None:
    hosted = begun()
    assert error_of(call_tool(hosted, "climb", [1]))[0] == "invalid_args"  # type: ignore[arg-type]
    assert hosted.steps == 0


def test_production_tells_a_tools_own_words_cut_short_and_nothing_of_the_environments_failure() -> None:
    class Wordy(MCPEnvironment):
        @tool
        def talk(self) -> str:
            raise ToolError("word " * 1000)

        def reset(self, **kwargs: Any) -> Observation:
            return Observation()

    wordy = error_of(call_tool(hosting(Wordy(), "production"), "talk", {}))[1]
    assert wordy.startswith("Error calling tool 'talk': word ")
    assert len(wordy) == MAX_TOLD
    slipped = error_of(call_tool(begun("production"), "slip", {}))[1]
    assert slipped.startswith("Error calling tool 'slip': it raised FileNotFoundError; ")
    assert SECRET not in slipped
    assert error_of(call_tool(begun("production"), "crash", {})) == ("execution_error", FAILED)


class Waiting(MCPEnvironment):
    TOOL_TIMEOUT_S = 0.02

    @tool
    async def wait(self) -> None:
        await asyncio.Event().wait()

    @tool(timeout_s=0.03)
    async def wait_a_little(self) -> None:
        await asyncio.Event().wait()

    @tool
    async def nap(self) -> str:
        await asyncio.sleep(0.05)
        return "rested"

    def reset(self, **kwargs: Any) -> Observation:
        return Observation()


@pytest.mark.parametrize(
    ("name", "timeout_s", "limit"),
    [
        ("wait", None, "0.02"),
        ("wait", 0.01, "0.01"),
        ("wait", 0.04, "0.04"),
        ("wait_a_little", None, "0.03"),
        ("wait_a_little", 0.01, "0.01"),
        ("wait_a_little", 20.0, "0.03"),
    ],
)
def test_a_calls_limit_is_in_place_of_the_environments_and_no_higher_than_the_tools(
    name: str, timeout_s: float | None, limit: str
) -> None:
    kind, message = error_of(call_tool(hosting(Waiting()), name, {}, timeout_s))
    assert kind == "timeout"
    assert f"after {limit} seconds" in message


def test_a_call_that_asks_for_more_time_than_the_environment_gives_has_it() -> None:
    outcome = call_tool(hosting(Waiting()), "nap", {}, timeout_s=20.0)
    assert outcome.result is not None
    assert outcome.result["data"] == "rested"


# -------------------------------------------------------------------------------------- modes and other environments


def test_tools_of_one_mode_are_listed_and_called_in_that_mode_alone() -> None:
    production, simulation = begun("production"), begun()
    names = [each.name for each in list_tools(production)]
    assert [name for name in names if name != "ask"] == [each.name for each in list_tools(simulation)]
    assert call_tool(production, "ask", {}).error is None
    assert error_of(call_tool(simulation, "ask", {}))[0] == "tool_not_found"


def test_an_instance_lent_to_applications_of_two_modes_has_for_each_the_tools_of_its_own() -> None:
    instance = climber()()
    agents, trainers = hosting(instance, "production"), hosting(instance, "simulation")
    agents.reset({})
    for _ in range(2):
        assert "ask" not in [each.name for each in list_tools(trainers)]
        assert "ask" in [each.name for each in list_tools(agents)]
        assert error_of(call_tool(trainers, "ask", {}))[0] == "tool_not_found"
        assert call_tool(agents, "ask", {}).error is None


def test_production_hides_what_a_check_of_an_authors_own_class_raised() -> None:
    class Checked(CallToolAction):
        @field_validator("arguments")
        @classmethod
        def looked_up(cls, arguments: Any) -> Any:
            raise FileNotFoundError(SECRET)

    models = Models(Checked, CallToolObservation)
    for mode, told in (("simulation", True), ("production", False)):
        kind, message = error_of(call_tool(hosting(climber()(), mode, models), "climb", {"steps": 1}))
        assert kind == "invalid_args"
        assert (SECRET in message) is told


def test_an_environment_without_tools_says_so() -> None:
    hosted = hosting(Bare(), models=Models(Say, Heard))
    for ask in (lambda: list_tools(hosted), lambda: call_tool(hosted, "x", {})):
        with pytest.raises(NoToolsError, match=NO_TOOLS):
            ask()


class Plain:
    """No ``MCPEnvironment``, but its actions are calls of tools."""

    tools: Any = [Tool(name="look", description="", input_schema={})]

    def reset(self) -> Observation:
        return Observation()

    def step(self, action: Action) -> Any:
        if isinstance(action, CallToolAction):
            return Heard(echo=action.tool_name, reward=1.0)
        return ListToolsObservation.model_construct(tools=self.tools)


def test_an_environment_whose_actions_are_calls_of_tools_takes_them_in_its_step() -> None:
    hosted = hosting(Plain())
    assert [each.name for each in list_tools(hosted)] == ["look"]
    outcome = call_tool(hosted, "look", {})
    assert outcome.result is not None
    assert outcome.result["data"] == {"echo": "look", "extra": None}, "an observation of its own is the value"
    assert outcome.reward == 1.0


class ForeignTool:
    name, description, input_schema = "look", None, None


def test_tools_described_by_foreign_classes_are_described_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "tools", [ForeignTool()])
    assert list_tools(hosting(Plain())) == [Tool(name="look", description="", input_schema={})]


def test_a_list_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "tools", None)
    with pytest.raises(EnvironmentExecutionError, match="ListToolsObservation"):
        list_tools(hosting(Plain()))


class Owner:
    """Merely has a FastMCP server."""

    def __init__(self) -> None:
        self.mcp_server = FastMCP("rooms")

        @self.mcp_server.tool
        def double(number: int) -> int:
            """Twice the number."""
            return 2 * number

    def reset(self) -> Heard:
        return Heard(echo="ready")

    def step(self, action: Action) -> Heard:
        raise AssertionError(action)


def test_the_tools_of_a_mere_fastmcp_server_are_looked_up_once_and_called_on_the_environments_loop() -> None:
    loops: list[int] = []

    async def where() -> str:
        loops.append(id(asyncio.get_running_loop()))
        return "here"

    owner = Owner()
    owner.mcp_server.tool(where)
    loop = asyncio.new_event_loop()
    hosted = HostedEnvironment(owner, Models(Say, Heard), loop.run_until_complete)
    with pytest.MonkeyPatch.context() as patch:
        looked_up: list[None] = []
        patch.setattr(
            rpc_tools._Bare, "__init__", lambda bare, server: looked_up.append(MCPEnvironment.__init__(bare, server))
        )
        assert [call_tool(hosted, "where", {}).error for _ in range(3)] == [None] * 3
        assert len(looked_up) == 1
        owner.mcp_server = FastMCP("other rooms")
        assert error_of(call_tool(hosted, "where", {}))[0] == "tool_not_found"
    loop.close()
    assert loops == [id(loop)] * 3


def test_an_environment_that_merely_has_a_fastmcp_server_offers_its_tools() -> None:
    hosted = hosting(Owner(), models=Models(Say, Heard))
    (double,) = list_tools(hosted)
    assert isinstance(double, DescribedTool)
    assert double.output_schema is not None
    outcome = call_tool(hosted, "double", {"number": 4})
    assert outcome.result is not None
    assert outcome.result["data"] == 8
    assert hosted.steps == 1
    assert error_of(call_tool(hosted, "treble", {}))[0] == "tool_not_found"
    assert error_of(call_tool(hosted, "double", {"number": "x"}))[0] == "invalid_args"
