"""Calls of tools: their failures, their limits, their mode."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from openenv_gym.tools import CallToolAction
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.doors import Doors, call, error_of
from tests.text_envs import MISBEHAVIOUR


@pytest.mark.parametrize("how", [name for name in MISBEHAVIOUR if name != "interrupt"])
@pytest.mark.parametrize("name", ["misbehave", "misbehave_later"])
def test_whatever_a_tool_raises_is_an_error_of_the_call(name: str, how: str) -> None:
    env = Doors()
    kind, message = error_of(call(env, name, how=how))
    assert kind == "execution_error"
    assert message.startswith(f"Error calling tool {name!r}: ")
    message.encode()
    assert call(env, "look").error is None


def test_an_interrupt_from_the_keyboard_ends_the_program_and_one_that_a_tool_raises_elsewhere_does_not() -> None:
    with pytest.raises(KeyboardInterrupt):
        call(Doors(), "misbehave", how="interrupt")
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call(Doors(), "misbehave", how="interrupt")))
    thread.start()
    thread.join(10)
    assert error_of(found[0])[0] == "execution_error"


def test_an_exceptions_arguments_need_be_no_text() -> None:
    class Odd(Doors):
        def look(self, direction: str = "north") -> str:
            raise ValueError({"direction": direction}, 3)

    assert "'direction': 'north'" in error_of(call(Odd(), "look"))[1]


class Key(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def looked_up(cls, number: int) -> int:
        raise FileNotFoundError("/srv/keys.json")


class Locked(Doors):
    @tool
    def unlock(self, key: Key) -> str:
        return "open"


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_what_reading_the_arguments_raised_is_told_in_simulation_alone(mode: str, caplog: Any) -> None:
    env = Locked()
    env.tool_caller.mode = mode
    kind, message = error_of(call(env, "unlock", key={"number": 1}))
    assert kind == "invalid_args"
    assert message.startswith("the arguments of 'unlock' cannot be read: ")
    assert ("/srv/keys.json" in message) is (mode == "simulation")
    assert ("/srv/keys.json" in caplog.text) is (mode == "production")
    assert error_of(call(env, "unlock", key={"number": "x"}))[1].startswith("invalid arguments for 'unlock': ")


def test_a_tools_traceback_is_in_the_log_for_who_wants_it(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "openenv_gym_server"):
        call(Doors(), "misbehave", how="raise")
    assert "RuntimeError" in caplog.text
    assert "in misbehave" in caplog.text


def test_wrong_arguments_do_not_reach_the_tool() -> None:
    kind, message = error_of(call(Doors(), "look", direction=3))
    assert (kind, message) == (
        "invalid_args",
        "invalid arguments for 'look': direction: Input should be a valid string",
    )


def test_an_unknown_tool_is_told_with_those_there_are() -> None:
    kind, message = error_of(call(Doors(), "lok"))
    assert kind == "tool_not_found"
    assert "'lok'" in message
    assert "'look'" in message


def test_a_tool_of_another_mode_is_not_found_and_its_mode_is_told() -> None:
    env = Doors()
    assert call(env, "who").result["data"] == "simulation"
    kind, message = error_of(call(env, "serious"))
    assert (kind, message) == (
        "tool_not_found",
        "Tool 'serious' not available in simulation mode; it is in production mode",
    )
    env.tool_caller.mode = "production"
    assert call(env, "who").result["data"] == "production"
    assert call(env, "serious").result["data"] == "yes"


def test_an_author_may_say_the_mode_where_no_server_does() -> None:
    env = Doors()
    env._mode = "production"
    assert call(env, "who").result["data"] == "production"
    env.tool_caller.mode = "simulation"
    assert call(env, "who").result["data"] == "simulation"


def test_a_call_that_is_awaited_too_long_is_cancelled() -> None:
    env = Doors()
    kind, message = error_of(call(env, "wait"))
    assert kind == "timeout"
    assert "0.05 seconds" in message
    assert env.tasks[0].cancelled()
    assert call(env, "listen").error is None


def test_a_tool_that_does_not_heed_its_cancellation_is_left_behind() -> None:
    env = Doors()
    assert error_of(call(env, "wait_in_spite", timeout_s=0.05))[0] == "timeout"
    assert "cancelled" in env.tasks
    assert call(env, "look").error is None


def test_a_tool_that_cancels_itself_or_times_out_by_itself_has_failed() -> None:
    assert error_of(call(Doors(), "cancel_itself"))[0] == "execution_error"
    kind, message = error_of(call(Doors(), "raise_timeout"))
    assert (kind, message) == ("execution_error", "Error calling tool 'raise_timeout': of its own")


def test_a_result_that_comes_too_late_is_dropped() -> None:
    assert error_of(call(Doors(), "spend", timeout_s=0.01, seconds=0.05))[0] == "timeout"
    assert call(Doors(), "spend", timeout_s=5.0, seconds=0.0).error is None


def test_the_limit_is_the_steps_within_the_tools_own_else_the_classs() -> None:
    class Patient(Doors):
        TOOL_TIMEOUT_S = None

    env = Doors()
    assert env.tool_caller.limit_s("look") == 30.0
    assert env.tool_caller.limit_s("look", 3.0) == 3.0
    assert env.tool_caller.limit_s("look", 300.0) == 300.0
    assert env.tool_caller.limit_s("wait") == 0.05
    assert env.tool_caller.limit_s("wait", 300.0) == 0.05
    assert env.tool_caller.limit_s("unknown") == 30.0
    assert Patient().tool_caller.limit_s("look") is None
    assert Patient().tool_caller.limit_s("look", 3.0) == 3.0
    assert call(Patient(), "look").error is None
    assert call(Patient(), "listen").error is None


def test_a_call_runs_on_the_callers_thread() -> None:
    assert call(Doors(), "where").result["data"] == threading.get_ident()


def test_a_call_whose_awaiter_is_cancelled_is_cancelled_too() -> None:
    async def main() -> None:
        env = Doors()
        waiting = asyncio.create_task(env.step_async(CallToolAction(tool_name="wait"), timeout_s=20.0))
        while not env.tasks:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait([env.tasks[0]], timeout=5)
        assert env.tasks[0].cancelled()

    asyncio.run(main())
