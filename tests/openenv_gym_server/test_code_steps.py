"""What an agent's code is to an episode."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from openenv_gym.tools import CallToolAction, CallToolObservation, ListToolsAction, ToolErrorType
from openenv_gym.types import Action, Observation
from openenv_gym_server.code_act import CodeLimits
from openenv_gym_server.tool_functions import tool
from openenv_gym_server.tool_results import failure
from tests.openenv_gym_server.doors import Doors, call, error_of


class Counted(Doors):
    """Ends with the third step; each is worth 0.5."""

    CODE_LIMITS = CodeLimits(time_s=20.0)

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        observation = super().step(action, timeout_s, **kwargs)
        if isinstance(action, CallToolAction) and action.tool_name != "execute_code":
            self.steps += 1
            observation.reward, observation.done = 0.5, self.steps >= 3
        return observation


def test_each_call_is_a_step_with_its_reward() -> None:
    env = Counted()
    observation = env.execute_code("result = [look(), listen(direction='south')]")
    assert observation.metadata == {"result": ["a door to the north", "a noise from the south"]}
    assert (observation.reward, observation.done, env.steps) == (1.0, False, 2)


def test_after_the_end_of_the_episode_no_tool_is_called() -> None:
    env = Counted()
    observation = env.execute_code("for _ in range(5): look()")
    assert "the episode is over" in observation.metadata["error"]
    assert (observation.reward, observation.done, env.steps) == (1.5, True, 3)


def test_a_failed_call_is_a_step_and_an_exception_in_the_code() -> None:
    env = Counted()
    code = "kinds = []\nfor call in (lambda: look(3), lambda: misbehave('raise')):\n    try: call()\n"
    code += "    except ToolError as error: kinds.append(error.error_type)\nresult = kinds"
    assert env.execute_code(code).metadata["result"] == ["invalid_args", "execution_error"]
    assert env.steps == 2


@pytest.mark.parametrize(("mode", "told"), [("simulation", True), ("production", False)])
def test_of_a_tool_that_raised_code_hears_what_any_caller_hears(mode: str, told: bool) -> None:
    class Secretive(Doors):
        def look(self, direction: str = "north") -> str:
            raise FileNotFoundError("/srv/map.json")

    env = Secretive()
    env.tool_caller.mode = mode
    error = env.execute_code("look()").metadata["error"]
    assert error.startswith("ToolError: Error calling tool 'look': ")
    assert ("/srv/map.json" in error) is told


def test_code_calls_the_tools_of_the_mode_alone() -> None:
    env = Doors()
    assert env.execute_code("result = who()").metadata["result"] == "simulation"
    assert env.execute_code("serious()").metadata["error"] == "NameError: name 'serious' is not defined (line 1)"
    env.tool_caller.mode = "production"
    assert env.execute_code("result = who(), serious()").metadata["result"] == ["production", "yes"]


def test_a_tools_own_limit_holds_within_code() -> None:
    code = "try: wait()\nexcept ToolError as error: result = error.error_type"
    assert Doors().execute_code(code).metadata["result"] == "timeout"


def test_what_code_prints_is_told() -> None:
    assert Doors().execute_code("print(look())").metadata == {"result": None, "output": "a door to the north\n"}


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_a_call_says_how_much_of_what_code_printed_is_left_out(mode: str) -> None:
    class Brief(Doors):
        CODE_LIMITS = CodeLimits(output_kb=4)

    env = allowed(Brief())
    env.tool_caller.mode = mode
    data = call(env, "execute_code", code="print('a' * 9_999); look()").result["data"]
    assert data == {"result": "a door to the north", "output": "a" * 4_096, "output_left_out": 5_904}
    message = error_of(call(env, "execute_code", code="print('a' * 9_999)\nlook(3)"))[1]
    assert message.startswith("ToolError: ")
    note = "(2096 characters before and 5904 characters after this are left out)"
    assert message.endswith(f" (line 2)\nIt had printed {note}:\n" + "a" * 2_000)


@pytest.mark.parametrize(
    ("reward", "total"), [(None, 0.0), (True, 2.0), (float("nan"), math.nan), (math.inf, math.inf)]
)
def test_any_reward_is_counted(reward: Any, total: float) -> None:
    class Worth(Doors):
        def after_tool(self, action: CallToolAction, observation: CallToolObservation) -> Any:
            observation.reward = reward

    assert repr(Worth().execute_code("look(); look()").reward) == repr(total)


def test_an_authors_own_observation_gives_its_error_result_or_itself() -> None:
    class Own(Observation):
        error: Any = None
        result: Any = None

    class Odd(Doors):
        def step(self, action: Action, **kwargs: Any) -> Any:
            observation = super().step(action, **kwargs)
            if isinstance(action, ListToolsAction):
                return observation
            direction = action.arguments.get("direction")
            if direction == "itself":
                return Observation(metadata={"seen": True})
            error = failure("look", ToolErrorType.TIMEOUT, "late").error if direction == "error" else None
            return Own(error=error, result=observation.result if direction == "whole" else 3)

    code = "result = [look('whole'), look('plain'), look('itself')['metadata']]\n"
    code += "try: look('error')\nexcept ToolError as error: result.append(error.error_type)"
    assert Odd().execute_code(code).metadata["result"] == ["a door to the whole", 3, {"seen": True}, "timeout"]


def test_the_steps_twin_is_what_is_called_where_an_author_wrote_it() -> None:
    class Later(Doors):
        async def step_async(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
            observation = await super().step_async(action, timeout_s, **kwargs)
            observation.reward = 4.0
            return observation

    assert Later().execute_code("look()").reward == 4.0


def test_what_a_step_raises_is_raised() -> None:
    class Broken(Doors):
        def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        Broken().execute_code("look()")


def allowed(env: Doors) -> Doors:
    env.tool_caller.allow_code()
    env.tool_caller.allow_code()
    return env


def test_the_code_tool_is_there_where_it_is_allowed_and_nowhere_else() -> None:
    assert error_of(call(Doors(), "execute_code", code="1"))[0] == "tool_not_found"
    env = allowed(Doors())
    listed = {each.name: each for each in env.step(ListToolsAction()).tools}
    assert listed["execute_code"].input_schema["required"] == ["code"]
    assert "else the value of its last expression" in listed["execute_code"].description
    assert "without the names of the last one" in " ".join(listed["execute_code"].description.split())
    assert "execute_code" not in env.get_callables()
    assert env.tool_caller.limit_s("execute_code") == 30.0


def test_a_call_of_the_code_tool_has_the_rewards_of_the_steps_within() -> None:
    env = allowed(Counted())
    observation = call(env, "execute_code", code="print('a'); result = look()")
    assert observation.result["data"] == {"result": "a door to the north", "output": "a\n"}
    assert (observation.reward, observation.done, env.steps) == (0.5, False, 1)
    later = asyncio.run(Counted.step_async(env, CallToolAction(tool_name="execute_code", arguments={"code": "look()"})))
    assert (later.reward, env.steps) == (0.5, 2)
    assert call(env, "execute_code", code="look()").done


def test_code_that_fails_is_a_failed_call_with_what_it_had_printed() -> None:
    env = allowed(Doors())
    assert error_of(call(env, "execute_code", code="1 / 0")) == (
        "execution_error",
        "ZeroDivisionError: division by zero (line 1)",
    )
    message = error_of(call(env, "execute_code", code="print('a' * 9)\n1 / 0"))[1]
    assert message == "ZeroDivisionError: division by zero (line 2)\nIt had printed:\n" + "a" * 9 + "\n"
    message = error_of(call(env, "execute_code", code="print('a' * 9_000)\n1 / 0"))[1]
    assert message.endswith("\nIt had printed (7001 characters before this are left out):\n" + "a" * 1_999 + "\n")
    assert error_of(call(env, "execute_code", code=3))[0] == "invalid_args"


def test_a_calls_own_limit_is_the_codes() -> None:
    kind, message = error_of(call(allowed(Doors()), "execute_code", timeout_s=0.5, code="while True: pass"))
    assert (kind, "0.5 seconds" in message) == ("timeout", True)


def test_code_calls_no_code() -> None:
    env = allowed(Doors())
    assert "not defined" in error_of(call(env, "execute_code", code="execute_code('1')"))[1]
    forged = 'import os\nos.write(4, b\'{"call": "execute_code", "arguments": {"code": ""}}\\n\')\nlook()'
    # Refused either way: its process may end at the answer that it did not expect before the refusal is read.
    told = error_of(call(env, "execute_code", code=forged))[1]
    assert "code cannot call" in told or "ended before its time" in told


def test_an_authors_own_tool_of_that_name_remains() -> None:
    class Own(Doors):
        @tool
        def execute_code(self, code: str) -> str:  # type: ignore[override]
            return code.upper()

    observation = call(allowed(Own()), "execute_code", code="a")
    assert (observation.result["data"], observation.reward) == ("A", None)
