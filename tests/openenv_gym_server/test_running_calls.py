"""Tests of ``openenv_gym_server.running_calls``."""

from __future__ import annotations

from openenv_gym.tools import CallToolAction
from openenv_gym_server.running_calls import RunningCalls


def call(name: str) -> CallToolAction:
    return CallToolAction(tool_name=name)


def test_a_call_that_ends_in_time_is_waited_for() -> None:
    calls, look = RunningCalls(), call("look")
    calls.begin(look)
    assert calls.end(look)
    assert calls.give_up() is None


def test_of_calls_within_calls_the_innermost_is_given_up_and_none_is_waited_for() -> None:
    calls, outer, inner = RunningCalls(), call("execute_code"), call("hang")
    calls.begin(outer)
    calls.begin(inner)
    assert calls.give_up() is inner
    assert not calls.end(inner)
    assert not calls.end(outer)


def test_an_equal_call_is_another_one() -> None:
    calls, first, second = RunningCalls(), call("look"), call("look")
    calls.begin(first)
    calls.give_up()
    calls.begin(second)
    assert not calls.end(first)
    assert calls.end(second)
