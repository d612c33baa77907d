"""A vector environment over stock servers gives what ``SyncVectorEnv`` gives over the same environments here."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from openenv_gym.vector import RemoteVectorEnv
from tests.exactness.compare import assert_same_value
from tests.exactness.stock_gym import SPACES, Walk, stock_walks
from tests.exactness.vector_rollout import MODES, all_masks, assert_same_vector_rollouts
from tests.serving import serve_all

NUM_ENVS = 5


@pytest.fixture(scope="module")
def urls():
    with serve_all([stock_walks(NUM_ENVS), stock_walks(NUM_ENVS)]) as urls:
        yield urls


def local(mode: AutoresetMode, limit: int | None = None) -> SyncVectorEnv:
    def make() -> gymnasium.Env[Any, Any]:
        return Walk() if limit is None else TimeLimit(Walk(), limit)

    return SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=mode)


def remote(urls: list[str], mode: AutoresetMode, **settings: Any) -> RemoteVectorEnv:
    return RemoteVectorEnv(NUM_ENVS, base_url=urls, autoreset_mode=mode, **SPACES, **settings)


@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_is_as_here(urls, mode):
    here, there = local(mode), remote(urls[:1], mode)
    try:
        for seed in (0, [5, None, 7, 8, 5]):
            seeds = seed if seed == 0 else [5, 6, 7, 8, 5]
            assert assert_same_vector_rollouts(here, there, seed=seeds, steps=60) > 10
    finally:
        there.close()


@pytest.mark.parametrize("mode", MODES)
def test_two_servers_are_as_one(urls, mode):
    here, there = local(mode), remote(urls, mode)
    try:
        assert assert_same_vector_rollouts(here, there, seed=9, steps=60) > 10
    finally:
        there.close()


@pytest.mark.parametrize("mode", MODES)
def test_the_time_limit_is_kept_here(urls, mode):
    here, there = local(mode, limit=4), remote(urls, mode, max_episode_steps=4)
    try:
        assert assert_same_vector_rollouts(here, there, seed=1, steps=40) > 30
    finally:
        there.close()


@pytest.mark.parametrize("mode", MODES)
def test_any_pattern_of_resets_is_as_here(urls, mode):
    here, there = local(mode), remote(urls, mode)
    try:
        assert_same_value(here.reset(seed=0), there.reset(seed=0))
        for mask in all_masks(NUM_ENVS):
            actions = there.action_space.sample()
            if mode is AutoresetMode.DISABLED:
                everyone = {"reset_mask": np.ones(NUM_ENVS, np.bool_)}
                assert_same_value(here.reset(seed=4, options=dict(everyone)), there.reset(seed=4, options=everyone))
            assert_same_value(here.step(actions), there.step(actions))
            options = {"reset_mask": mask, "given": 3}
            assert_same_value(here.reset(seed=2, options=dict(options)), there.reset(seed=2, options=options))
            assert set(options) == {"reset_mask", "given"}
    finally:
        there.close()
