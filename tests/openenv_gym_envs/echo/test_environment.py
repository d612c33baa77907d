"""The echo environment as an object."""

import pytest
from pydantic import ValidationError

from openenv_gym.errors import InvalidActionError
from openenv_gym.tools import CallToolAction
from openenv_gym.types import Action
from openenv_gym_envs.echo.environment import EchoAction, EchoEnvironment
from openenv_gym_server.tool_functions import tool


def said(message):
    return CallToolAction(tool_name="echo_message", arguments={"message": message})


def test_reset_greets():
    observation = EchoEnvironment().reset()
    assert observation.echoed_message == "Echo environment ready!"
    assert (observation.reward, observation.done) == (0.0, False)


@pytest.mark.parametrize("message", ["Hello, World!", "", "ünï ☃ \U0001f600", "x" * 10_000])
def test_step_repeats_the_message_and_rewards_its_length(message):
    observation = EchoEnvironment().step(said(message))
    assert observation.result["data"] == message
    assert observation.reward == 0.1 * len(message)
    assert observation.done is False
    older = EchoEnvironment().step(EchoAction(message=message))
    assert (older.echoed_message, older.message_length) == (message, len(message))
    assert older.reward == observation.reward


def test_an_action_that_is_neither_a_call_nor_a_message_is_refused():
    environment = EchoEnvironment()
    with pytest.raises(InvalidActionError, match="call_tool"):
        environment.step(Action())
    assert environment.state.step_count == 0


def test_state_counts_the_messages_of_the_episode():
    environment = EchoEnvironment()
    environment.reset(seed=1, episode_id="mine")
    environment.step(EchoAction(message="a"))
    environment.step(said("b"))
    assert (environment.state.episode_id, environment.state.step_count) == ("mine", 2)
    environment.reset()
    assert environment.state.step_count == 0
    assert environment.state.episode_id not in {None, "mine"}


def test_an_action_has_a_message_and_nothing_unknown():
    for fields in ({}, {"message": 1}, {"message": "a", "volume": 3}):
        with pytest.raises(ValidationError):
            EchoAction(**fields)


def test_it_may_be_served_to_many_and_on_the_loop():
    assert EchoEnvironment.SUPPORTS_CONCURRENT_SESSIONS
    assert EchoEnvironment.INLINE


def test_a_subclass_may_have_tools_that_take_no_message():
    class Louder(EchoEnvironment):
        @tool
        def shout(self) -> str:
            return "!"

    observation = Louder().step(CallToolAction(tool_name="shout"))
    assert (observation.result["data"], observation.reward) == ("!", 0.0)
