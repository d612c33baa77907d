"""One session of several environments: what it asks, and what an answer may be."""

import contextlib

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from openenv_gym import frames, messages
from openenv_gym.errors import (
    EnvironmentExecutionError,
    ProtocolError,
    SessionLostError,
    ToolCallError,
    ValueMappingError,
)
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.vector_rows import Actions
from openenv_gym.vector_sessions import VectorSession, located, read_observation
from openenv_gym_server import ServerSettings, create_gym_app
from tests.serving import serve


@pytest.fixture(scope="module")
def cartpole():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=8))) as url:
        yield url


@contextlib.contextmanager
def session_at(url, *, binary, first=0, count=3):
    settings = messages.OpenSettings(num_envs=count, autoreset_mode="NextStep")
    shell = Shell(url, ConnectionSettings(), settings)
    shell.open()
    interface = Interface.of(shell.opened, url, shell.settings, SpaceOverrides())
    try:
        yield VectorSession(shell, interface, first, binary=binary)
    finally:
        shell.close()


def ask(session, send):
    send()
    return session.finish(10.0)


@pytest.mark.parametrize("binary", [True, False])
def test_rows_bear_the_ids_of_the_vector_environment(cartpole, binary):
    with session_at(cartpole, binary=binary, first=10) as session:
        assert (session.count, session.partial) == (3, True)
        rows = ask(session, session.prepare_reset(None, [1, 2, 3], None))
        assert rows.env_ids.tolist() == [10, 11, 12]
        assert rows.rewards is None
        some = ask(session, session.prepare_step(Actions(Discrete(2), [0, 1], 2), None, np.array([2, 0])))
        assert some.env_ids.tolist() == [12, 10]
        assert some.rewards.tolist() == [1.0, 1.0]
        np.testing.assert_array_equal(
            session.latest(), np.stack([some.observations[1], rows.observations[1], some.observations[0]])
        )


@pytest.mark.parametrize("binary", [True, False])
def test_rows_of_a_larger_batch_are_taken(cartpole, binary):
    with session_at(cartpole, binary=binary) as session:
        ask(session, session.prepare_reset(None, [1, 2, 3], None))
        batch = Actions(Discrete(2), np.array([9, 1, 0, 1, 9]), 5)
        sliced = ask(session, session.prepare_step(batch, slice(1, 4), None))
        ask(session, session.prepare_reset(None, [1, 2, 3], None))
        picked = ask(session, session.prepare_step(batch, np.array([3, 2, 1]), None))
        np.testing.assert_array_equal(sliced.observations, picked.observations)


def answers_with(session, reply):
    """Let the answer to the request under way be this one."""

    def finish(timeout_s):
        return reply

    session.shell.finish = finish


def outcome(count, env_ids=None):
    observations = np.zeros((count, 4), np.float32)
    return messages.PackedReply(frames.read_frame(frames.write_outcome(1, count, env_ids, observations=[observations])))


@pytest.mark.parametrize(
    "reply",
    [
        outcome(2),
        outcome(3, [0, 1, 2]),
        messages.VectorReply(data=messages.VectorOutcome(observations=[{"obs": [0] * 4}] * 2)),
        messages.VectorReply(data=messages.VectorOutcome(observations=[{"obs": [0] * 4}] * 3, rewards=[1.0])),
    ],
)
def test_an_answer_about_others_ends_the_session(cartpole, reply):
    with session_at(cartpole, binary=isinstance(reply, messages.PackedReply)) as session:
        session.prepare_reset(None, None, None)()
        answers_with(session, reply)
        with pytest.raises(ProtocolError):
            session.finish(1.0)
        del session.shell.finish
        with pytest.raises(SessionLostError):
            session.shell.request(messages.State, 1.0)


def test_rewards_that_are_not_finite_come_as_words(cartpole):
    with session_at(cartpole, binary=False) as session:
        ask(session, session.prepare_reset(None, None, None))
        stepped = {
            "rewards": ["NaN", "-Infinity", 2.5],
            "terminations": [True, False, False],
            "truncations": [False] * 3,
        }
        data = messages.VectorOutcome(observations=[{"obs": [0] * 4}] * 3, final={2: {"obs": [1] * 4}}, **stepped)
        answers_with(session, messages.VectorReply(data=data))
        rows = session.finish(1.0)
        np.testing.assert_array_equal(rows.rewards, [np.nan, -np.inf, 2.5])
        assert rows.terminations.tolist() == [True, False, False]
        assert rows.infos["final_obs"][2].tolist() == [1.0] * 4
        assert rows.infos["_final_obs"].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("error", "index", "message"),
    [
        (EnvironmentExecutionError("the environment failed in step: no"), 5, "environment 5 failed in step: no"),
        (
            EnvironmentExecutionError("environment 2 failed in step: no", env_index=2),
            7,
            "environment 7 failed in step: no",
        ),
        (EnvironmentExecutionError("no", env_index=1), 6, "environment 6: no"),
    ],
)
def test_an_error_names_the_environment_of_the_whole(error, index, message):
    found = located(error, 5)
    assert (found.env_index, found.message) == (index, message)


def test_an_observation_that_tells_of_a_failure_is_located(cartpole):
    class Broken:
        def decode_observation(self, fields):
            raise fields["error"]

    with pytest.raises(ToolCallError) as caught:
        read_observation(Broken(), {"error": ToolCallError("no result")}, 4)
    assert caught.value.env_index == 4
    with pytest.raises(ValueMappingError, match="observation of environment 4 does not fit: odd") as other:
        read_observation(Broken(), {"error": ValueMappingError("odd", path="$.a")}, 4)
    assert other.value.path == "$.a"


@pytest.mark.parametrize("rewards", [None, ["x", 1.0, 1.0]])
def test_a_text_answer_without_rewards_that_are_numbers_is_malformed(cartpole, rewards):
    with session_at(cartpole, binary=False) as session:
        ask(session, session.prepare_reset(None, None, None))
        session.prepare_step(Actions(session._interface.action_space, [0, 0, 0], 3), None, None)()
        session.shell.finish(5.0)
        flags = {"terminations": [False] * 3, "truncations": [False] * 3}
        data = messages.VectorOutcome(observations=[{"obs": [0] * 4}] * 3, rewards=rewards, **flags)
        answers_with(session, messages.VectorReply(data=data))
        with pytest.raises(ProtocolError):
            session.finish(1.0)
        assert not session.shell.alive
