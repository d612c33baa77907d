"""The echo environment as an object."""

import pytest
from pydantic import ValidationError

from openenv_gym_envs.echo.environment import EchoAction, EchoEnvironment


def test_reset_greets():
    observation = EchoEnvironment().reset()
    assert observation.echoed_message == "Echo environment ready!"
    assert (observation.reward, observation.done) == (0.0, False)


@pytest.mark.parametrize("message", ["Hello, World!", "", "ünï ☃ \U0001f600", "x" * 10_000])
def test_step_repeats_the_message_and_rewards_its_length(message):
    observation = EchoEnvironment().step(EchoAction(message=message))
    assert observation.echoed_message == message
    assert observation.reward == 0.1 * len(message)
    assert observation.done is False


def test_state_counts_the_messages_of_the_episode():
    environment = EchoEnvironment()
    environment.reset(seed=1, episode_id="mine", options={})
    environment.step(EchoAction(message="a"))
    environment.step(EchoAction(message="b"))
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
