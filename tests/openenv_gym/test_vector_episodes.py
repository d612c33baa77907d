"""Episodes that begin in new sessions where the last ones were lost."""

import contextlib
import time

import gymnasium
import numpy as np
import pytest

from openenv_gym.errors import SessionLostError, SpaceMappingError, UnreachableError
from openenv_gym.providers.process import ProcessProvider
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.serving import serve


@pytest.fixture(scope="module")
def cartpole():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=16))) as url:
        yield url


def drop_sessions(envs, *places):
    for place in places:
        envs._episodes.rollout.sessions[place].shell._transport.drop("a cable was pulled")


@pytest.mark.parametrize("settings", [{}, {"envs_per_session": 1}])
def test_a_server_that_dies_ends_all_at_once_and_reset_begins_anew(settings):
    envs = RemoteVectorEnv(4, target="CartPole-v1", **settings)
    from openenv_gym.providers import process

    first = envs.reset(seed=0)[0]
    envs.step_async([0, 1, 0, 1])
    child = process._shared["CartPole-v1", "simulation"].provider._process
    child.kill()
    child.wait()
    begun = time.monotonic()
    with contextlib.suppress(SessionLostError):
        envs.step_wait()  # which may have been answered before
    with pytest.raises(SessionLostError):
        envs.step([0, 1, 0, 1])
    assert time.monotonic() - begun < 10
    with pytest.raises(SessionLostError):
        envs.step([0, 1, 0, 1])
    np.testing.assert_array_equal(envs.reset(seed=0)[0], first)
    envs.close()


def test_where_one_server_of_two_dies_all_is_lost(cartpole):
    with ProcessProvider("CartPole-v1") as provider:
        other = provider.start()
        provider.wait_for_ready(other)
        envs = RemoteVectorEnv(4, base_url=[cartpole, other])
        envs.reset(seed=0)
        provider._process.kill()
        provider._process.wait()
        with pytest.raises(SessionLostError):
            envs.step([0, 1, 0, 1])
        with pytest.raises(SessionLostError):
            envs.step([0, 1, 0, 1])
        with pytest.raises(UnreachableError):
            envs.reset()
        envs.close()


@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)])
def test_a_loss_that_was_not_noticed_is_no_matter_to_a_reset(cartpole, places):
    envs = RemoteVectorEnv(2, base_url=cartpole, envs_per_session=1)
    first = envs.reset(seed=3)[0]
    drop_sessions(envs, *places)
    np.testing.assert_array_equal(envs.reset(seed=3)[0], first)
    envs.step([0, 1])
    envs.close()


def test_a_loss_while_the_reset_is_under_way_is_mended_once(cartpole):
    envs = RemoteVectorEnv(2, base_url=cartpole, envs_per_session=1)
    first = envs.reset(seed=3)[0]
    envs.reset_async(seed=3)
    drop_sessions(envs, 0)
    np.testing.assert_array_equal(envs.reset_wait()[0], first)
    envs.step([0, 1])
    envs.close()


def test_a_loss_in_new_sessions_is_told(cartpole):
    envs = RemoteVectorEnv(2, base_url=cartpole)
    envs.reset(seed=3)
    drop_sessions(envs, 0)
    envs.reset_async(seed=3)
    drop_sessions(envs, 0)
    with pytest.raises(SessionLostError):
        envs.reset_wait()
    envs.reset(seed=3)
    envs.close()


def test_a_reset_of_some_needs_the_sessions_there_were(cartpole):
    envs = RemoteVectorEnv(2, base_url=cartpole)
    envs.reset(seed=3)
    drop_sessions(envs, 0)
    for _ in range(2):
        with pytest.raises(SessionLostError):
            envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=3)
    envs.reset(options={"reset_mask": np.array([True, False])})
    envs.close()


def test_a_server_that_serves_another_environment_now_is_told():
    spaces = [2, 3]

    class Other(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)

        def __init__(self):
            self.action_space = gymnasium.spaces.Discrete(spaces[0])

        def reset(self, *, seed=None, options=None):
            return 0, {}

    with serve(create_gym_app(Other, settings=ServerSettings(max_concurrent_envs=4))) as url:
        envs = RemoteVectorEnv(1, base_url=url)
        envs.reset()
        drop_sessions(envs, 0)
        spaces.pop(0)
        with pytest.raises(SpaceMappingError, match="another"):
            envs.reset()
        envs.close()


def test_seeds_are_remembered_of_those_that_were_reset(cartpole):
    envs = RemoteVectorEnv(3, base_url=cartpole)
    assert envs.np_random_seed == (-1, -1, -1)
    envs.reset(seed=4)
    envs.reset(seed=10, options={"reset_mask": np.array([False, True, False])})
    assert envs.np_random_seed == (4, 11, 6)
    envs.close()
