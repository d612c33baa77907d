"""An environment with tools, as an object."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from openenv_gym.errors import InvalidActionError
from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation, ToolErrorType
from openenv_gym.types import Action, Observation
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.doors import Doors, call


def test_tools_are_listed_and_called() -> None:
    env = Doors()
    listed = env.step(ListToolsAction())
    assert isinstance(listed, ListToolsObservation)
    names = [each.name for each in listed.tools]
    assert names[:2] == ["look", "listen"]
    assert "who" in names
    assert "serious" not in names
    assert listed.tools[0].description == "Look around."
    for name, text in (("look", "a door to the south"), ("listen", "a noise from the south")):
        observation = call(env, name, direction="south")
        assert observation.result["data"] == text
        assert (observation.error, observation.reward, observation.done) == (None, None, False)


def test_a_tool_may_be_awaited_where_a_loop_is_running_already() -> None:
    async def main() -> None:
        env = Doors()
        assert call(env, "listen").error is None
        assert (await env.step_async(CallToolAction(tool_name="listen"))).error is None
        assert (await env.step_async(CallToolAction(tool_name="look"))).error is None
        assert (await env.step_async(ListToolsAction())).tools
        with pytest.raises(InvalidActionError):
            await env.step_async(Action())

    asyncio.run(main())


def test_another_action_is_refused_unless_the_author_takes_it() -> None:
    class Walking(Doors):
        def _step_impl(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
            return Observation(reward=float(kwargs["speed"]), metadata={"timeout_s": timeout_s})

    with pytest.raises(InvalidActionError, match=r"list_tools or call_tool.*got Action"):
        Doors().step(Action())
    observation = Walking().step(Action(), timeout_s=2.0, speed=3)
    assert (observation.reward, observation.metadata) == (3.0, {"timeout_s": 2.0})


def test_the_author_gives_reward_and_done_after_each_call() -> None:
    class Scored(Doors):
        def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> CallToolObservation:
            observation.reward = -1.0 if observation.error else 1.0
            observation.done = action.tool_name == "listen"
            return observation

    class InPlace(Doors):
        async def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> None:
            observation.reward = 2.0

    env = Scored()
    assert [call(env, name).reward for name in ("look", "unknown")] == [1.0, -1.0]
    assert call(env, "listen").done
    assert call(InPlace(), "look").reward == 2.0
    assert asyncio.run(InPlace().step_async(CallToolAction(tool_name="look"))).reward == 2.0


@pytest.mark.parametrize(("given", "reward"), [(0.5, 0.5), (np.float32(0.5), 0.5), (True, True), (None, None)])
def test_a_rubric_rewards_each_call(given: Any, reward: Any) -> None:
    async def later(action: CallToolAction, observation: CallToolObservation) -> Any:
        return given

    for rubric in (lambda action, observation: given, later):
        assert call(Doors(rubric=rubric), "look").reward == reward


def test_a_transform_is_applied_to_each_call() -> None:
    def marked(observation: CallToolObservation) -> CallToolObservation:
        observation.metadata["marked"] = True
        return observation

    assert call(Doors(transform=marked), "look").metadata == {"marked": True}


def test_functions_are_registered_before_and_after_the_base_class_is_initialised() -> None:
    class Registering(MCPEnvironment):
        def __init__(self) -> None:
            @self.tool(mode="production")
            def who(a: int = 1) -> str:
                return "production"

            @self.tool(mode="simulation")  # type: ignore[no-redef]
            def who(a: int = 1) -> str:  # noqa: F811
                return "simulation"

            super().__init__()

            @self.tool()
            def both(a: int) -> int:
                """Double it."""
                return 2 * a

            self.both = both
            self.tool("simulation", name="other", timeout_s=2.0)(lambda: 1)

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
            return Observation()

    env = Registering()
    assert env.both(2) == 4
    assert [each.name for each in env.step(ListToolsAction()).tools] == ["who", "both", "other"]
    assert call(env, "who").result["data"] == "simulation"
    assert call(env, "both", a=2).result["data"] == 4
    assert env.tool_caller.limit_s("other") == 2.0
    with pytest.raises(ValueError, match="'both' in every mode"):
        env.tool(name="both")(lambda: 1)


def test_the_base_class_need_not_be_initialised() -> None:
    class Lazy(Doors):
        def __init__(self) -> None:
            return

    assert call(Lazy(), "look").error is None


@pytest.mark.parametrize("name", ["reset", "step", "state", "close"])
def test_reserved_names_are_refused_at_construction(name: str) -> None:
    class Wrong(Doors):
        pass

    setattr(Wrong, name, tool(lambda self: None))
    with pytest.raises(ValueError, match=f"{name!r}"):
        Wrong()
    with pytest.raises(ValueError, match=f"{name!r}"):
        Doors().tool(name=name)(lambda: 1)


def test_modes_and_limits_of_registered_functions_are_checked() -> None:
    with pytest.raises(ValueError, match="'simulation', 'production' or None"):
        Doors().tool(mode="training")
    with pytest.raises(ValueError, match="above 0"):
        Doors().tool(timeout_s=0)


def test_code_may_call_the_tools_as_functions() -> None:
    env = Doors()
    assert env.supports_code_mode
    assert env.get_callables()["look"]("west") == "a door to the west"
    assert "serious" not in env.get_callables()
    assert env.execute_code("result = look('east')").metadata == {"result": "a door to the east"}
    assert env.execute_code("look()").metadata == {"result": "a door to the north"}
    assert "Syntax error" in env.execute_code("look(").metadata["error"]
    assert env.execute_code("1 / 0").metadata["error"] == "ZeroDivisionError: division by zero (line 1)"
    printed = env.execute_code("print('a' * 2**16)").metadata
    assert printed == {"result": None, "output": "a" * 2**16, "output_left_out": 1}


def test_an_environment_without_a_fastmcp_server_has_no_client_of_it() -> None:
    async def main() -> None:
        async with Doors().mcp_session():
            pass

    assert Doors().mcp_client is None
    with pytest.raises(RuntimeError, match="no FastMCP server"):
        asyncio.run(main())


def test_no_environment_of_its_own_needs_fastmcp() -> None:
    code = (
        "import sys; sys.modules['fastmcp'] = sys.modules['mcp'] = None\n"
        "from openenv_gym_envs.echo import EchoEnvironment, CallToolAction\n"
        "said = CallToolAction(tool_name='echo_message', arguments={'message': 'x'})\n"
        "assert EchoEnvironment().step(said).result['data'] == 'x'\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_kinds_of_failure_are_the_protocols() -> None:
    assert {each.value for each in ToolErrorType} == {
        "execution_error",
        "invalid_args",
        "transport_error",
        "tool_not_found",
        "timeout",
    }


def test_an_authors_attributes_meet_nothing_of_the_base_class() -> None:
    class Crowded(Doors):
        def __init__(self) -> None:
            super().__init__()
            self.mode = self.timeout_s = self._tools = self._now = self.tools = self.timed_out = "mine"

    assert call(Crowded(), "look").error is None
    assert call(Crowded(), "listen").error is None


def test_what_an_author_does_to_a_list_stays_in_that_list() -> None:
    class Hinting(Doors):
        def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
            observation = super().step(action, timeout_s, **kwargs)
            look = observation.tools[0]
            look.description += " Twice."
            look.input_schema["properties"].clear()
            return observation

    assert Hinting().step(ListToolsAction()).tools[0].description == "Look around. Twice."
    for env in (Hinting(), Doors()):
        look = MCPEnvironment.step(env, ListToolsAction()).tools[0]
        assert look.description == "Look around."
        assert set(look.input_schema["properties"]) == {"direction"}
