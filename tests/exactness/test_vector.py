"""A vector environment over this project's servers gives what ``SyncVectorEnv`` gives over the same environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.exactness.compare import assert_same_value
from tests.exactness.vector_rollout import MODES, all_masks, assert_same_vector_rollouts
from tests.exactness.vector_synthetic import BATCHED
from tests.serving import serve, serve_all

NUM_ENVS = 4
WAYS: dict[str, dict[str, Any]] = {
    "binary": {},
    "text": {"binary": False},
    "singly": {"envs_per_session": 1},
    "in pairs, as text": {"envs_per_session": 2, "binary": False},
    "on threads": {"vectorization": "threads"},
}
"""How the environments may be spread over sessions, and how their values may travel."""

MODULE = "tests.exactness.vector_synthetic"


def served(env_id: str) -> Any:
    return create_gym_app(env_id, settings=ServerSettings(max_concurrent_envs=4 * NUM_ENVS))


def local(env_id: str, mode: AutoresetMode, **keywords: Any) -> SyncVectorEnv:
    return SyncVectorEnv(
        [lambda: gymnasium.make(env_id, disable_env_checker=True, **keywords)] * NUM_ENVS, autoreset_mode=mode
    )


def compare(here: SyncVectorEnv, there: RemoteVectorEnv, *, seed: Any, steps: int) -> int:
    try:
        assert there.single_observation_space == here.single_observation_space
        assert there.observation_space == here.observation_space
        assert there.action_space == here.action_space
        return assert_same_vector_rollouts(here, there, seed=seed, steps=steps)
    finally:
        there.close()
        here.close()


@pytest.fixture(scope="module")
def cartpoles():
    with serve_all([served("CartPole-v1"), served("CartPole-v1")]) as urls:
        yield urls


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_every_autoreset_mode_is_as_here(cartpoles, mode, way, servers):
    there = RemoteVectorEnv(NUM_ENVS, base_url=cartpoles[:servers], autoreset_mode=mode, **WAYS[way])
    assert compare(local("CartPole-v1", mode), there, seed=11, steps=120) > 10


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_a_time_limit_is_as_here(cartpoles, mode, way):
    there = RemoteVectorEnv(NUM_ENVS, base_url=cartpoles, autoreset_mode=mode, max_episode_steps=7, **WAYS[way])
    assert compare(local("CartPole-v1", mode, max_episode_steps=7), there, seed=[4, 4, 1, 0], steps=60) > 20


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_any_pattern_of_resets_is_as_here(cartpoles, mode, way):
    here = local("CartPole-v1", mode)
    there = RemoteVectorEnv(NUM_ENVS, base_url=cartpoles, autoreset_mode=mode, **WAYS[way])
    try:
        assert_same_value(here.reset(seed=0), there.reset(seed=0))
        for mask in all_masks(NUM_ENVS):
            actions = there.action_space.sample()
            assert_same_value(here.step(actions), there.step(actions))
            for envs in (here, there):
                envs.reset(seed=3)
            options = {"reset_mask": mask}
            assert_same_value(here.reset(seed=8, options=dict(options)), there.reset(seed=8, options=options))
    finally:
        there.close()


@pytest.mark.parametrize("name", BATCHED)
def test_every_space_is_batched_as_here(name):
    env_id = f"vectored/{name}-v0"
    with serve(served(f"{MODULE}:{env_id}")) as url:
        for way in ("binary", "text", "singly"):
            for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
                here = local(env_id, mode, max_episode_steps=5)
                there = RemoteVectorEnv(NUM_ENVS, base_url=url, autoreset_mode=mode, max_episode_steps=5, **WAYS[way])
                compare(here, there, seed=2, steps=12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["NonFinite", "NonFiniteFloat32", "NumpyFlags"])
def test_odd_values_are_as_here(name, way):
    env_id = f"synthetic/{name}-v0"
    with serve(served(f"{MODULE}:{env_id}")) as url:
        there = RemoteVectorEnv(NUM_ENVS, base_url=url, **WAYS[way])
        compare(local(env_id, AutoresetMode.NEXT_STEP), there, seed=1, steps=30)


@pytest.mark.parametrize("way", WAYS)
def test_infos_of_every_kind_are_batched_as_here(way):
    with serve(served(f"{MODULE}:vectored/Info-v0")) as url:
        for mode in MODES:
            there = RemoteVectorEnv(NUM_ENVS, base_url=url, autoreset_mode=mode, **WAYS[way])
            assert compare(local("vectored/Info-v0", mode), there, seed=1, steps=60) > 20


def test_frames_of_a_game_are_as_here():
    pytest.importorskip("ale_py")
    gymnasium.register_envs(__import__("ale_py"))
    with serve(served("ale_py:ALE/Pong-v5")) as url:
        there = RemoteVectorEnv(NUM_ENVS, base_url=url)
        compare(local("ALE/Pong-v5", AutoresetMode.NEXT_STEP), there, seed=1, steps=20)


def test_both_ways_of_travel_give_the_same_values(cartpoles):
    binary, text = (RemoteVectorEnv(3, base_url=cartpoles[0], binary=binary) for binary in (True, False))
    try:
        assert_same_vector_rollouts(binary, text, seed=5, steps=80)
        assert np.array_equal(binary.np_random_seed, text.np_random_seed)
    finally:
        binary.close()
        text.close()
