"""Gymnasium's vector wrappers give the same numbers on a remote vector environment as on ``SyncVectorEnv``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as wrappers

from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.exactness.vector_rollout import MODES
from tests.serving import serve_all
from tests.trainers import TRAINERS

NUM_ENVS = 4
LIMIT = 20

WRAPPERS: dict[str, Callable[[VectorEnv], VectorEnv]] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "DictInfoToList": lambda envs: wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(envs)),
    "TransformObservation": lambda envs: wrappers.TransformObservation(envs, lambda obs: obs * 2),
    "VectorizeTransformObservation": lambda envs: wrappers.VectorizeTransformObservation(
        envs, gymnasium.wrappers.TransformObservation, func=lambda obs: obs + 1, observation_space=None
    ),
    "FlattenObservation": wrappers.FlattenObservation,
    "RescaleObservation": lambda envs: wrappers.RescaleObservation(envs, -1.0, 1.0),
    "RescaleAction": lambda envs: wrappers.RescaleAction(envs, -0.5, 0.5),
    "ClipAction": wrappers.ClipAction,
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1.0, -0.5),
    "TransformReward": lambda envs: wrappers.TransformReward(envs, lambda reward: reward / 3),
}

if TRAINERS:  # it stands on torch
    WRAPPERS["NumpyToTorch"] = wrappers.NumpyToTorch


@pytest.fixture(scope="module")
def urls():
    app = [create_gym_app("Pendulum-v1", settings=ServerSettings(max_concurrent_envs=NUM_ENVS)) for _ in range(2)]
    with serve_all(app) as urls:
        yield urls


def plain(value: Any) -> Any:
    """What a wrapper gave, in NumPy's and Python's own types, without the times that an episode took."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in {"t", "_t"}}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    array = np.asarray(value)
    return [plain(item) for item in array] if array.dtype.hasobject and array.ndim else array


@pytest.mark.filterwarnings("ignore:.*precision lowered:UserWarning")  # of Gymnasium's own Spaces
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_gives_the_same_numbers(urls, name, mode):
    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make("Pendulum-v1", max_episode_steps=LIMIT)

    local = SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=mode)
    remote = RemoteVectorEnv(NUM_ENVS, base_url=urls, autoreset_mode=mode, max_episode_steps=LIMIT)
    try:
        here = WRAPPERS[name](local)
    except ValueError:  # some refuse a mode
        with pytest.raises(ValueError, match="autoreset_mode"):
            WRAPPERS[name](remote)
        remote.close()
        return
    there = WRAPPERS[name](remote)
    try:
        assert there.observation_space == here.observation_space
        np.testing.assert_equal(plain(there.reset(seed=1)), plain(here.reset(seed=1)))
        here.action_space.seed(0)
        for _ in range(2 * LIMIT + 5):
            actions = here.action_space.sample()
            if name == "NumpyToTorch":
                actions = importlib.import_module("torch").from_numpy(actions)
            try:
                wanted = here.step(actions)
            except BufferError:  # torch has nothing for arrays of objects, as final_obs is one
                with pytest.raises(BufferError):
                    there.step(actions)
                return
            came = there.step(actions)
            np.testing.assert_equal(plain(came), plain(wanted))
            over = plain(came[2]) | plain(came[3])
            if over.any() and mode is AutoresetMode.DISABLED:
                options = [{"reset_mask": over.copy()} for _ in range(2)]
                wanted, came = here.reset(options=options[0]), there.reset(options=options[1])
                np.testing.assert_equal(plain(came), plain(wanted))
    finally:
        there.close()
        here.close()
