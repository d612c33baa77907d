"""Stable-Baselines3 on remote environments: its own check, and rollouts equal to those of local ``DummyVecEnv``."""

from __future__ import annotations

import itertools
import warnings

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from openenv_gym import sb3
from openenv_gym.errors import SettingsError
from openenv_gym.sb3 import make_vec_env
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.endings import Endings
from tests.openenv_gym.interrupting import interrupted
from tests.openenv_gym.same import assert_same, assert_same_rollouts
from tests.serving import serve

COUNT = 3


@pytest.fixture(scope="module")
def endings():
    settings = ServerSettings(
        max_concurrent_envs=64,
        allowed_env_kwargs=frozenset({"kind", "talkative"}),
        remote_names=frozenset({"sum", "colour"}),
    )
    with serve(create_gym_app(Endings, settings=settings)) as url:
        yield url


def test_the_check_of_stable_baselines3_passes():
    with gymnasium.make("openenv/gym-v0", env_id="CartPole-v1") as env, warnings.catch_warnings():
        check_env(env)


@pytest.mark.parametrize("talkative", [True, False])
@pytest.mark.parametrize("kind", ["box", "discrete", "dict"])
def test_rollouts_equal_those_of_a_local_dummy_vec_env(endings, kind, talkative):
    keywords = {"kind": kind, "talkative": talkative}
    ours = make_vec_env("openenv/remote-v0", COUNT, base_url=endings, env_kwargs=keywords, monitor=False)
    assert_same_rollouts(ours, DummyVecEnv([lambda: Endings(**keywords)] * COUNT), steps=20)
    ours.close()


@pytest.mark.parametrize("sharded", [False, True])
def test_rollouts_of_a_time_limit_equal_those_of_a_local_dummy_vec_env(sharded):
    more = {"envs_per_session": 2} if sharded else {}
    ours = make_vec_env(
        "openenv/gym-v0", COUNT, env_id="CartPole-v1", env_kwargs={"max_episode_steps": 25}, monitor=False, **more
    )
    theirs = DummyVecEnv([lambda: gymnasium.make("CartPole-v1", max_episode_steps=25)] * COUNT)
    assert_same_rollouts(ours, theirs, steps=120)
    ours.close()


def test_attributes_and_methods_are_those_that_the_server_allows(endings):
    envs = make_vec_env("openenv/remote-v0", COUNT, base_url=endings, monitor=False)
    envs.reset()
    assert envs.get_attr("render_mode") == [None] * COUNT
    assert envs.get_attr("colour") == ["grey"] * COUNT
    assert envs.env_method("sum", 2, right=3) == [5] * COUNT
    assert envs.has_attr("colour")
    assert not envs.has_attr("talkative")
    envs.set_attr("colour", "red", indices=[0, 2])
    assert envs.get_attr("colour", [0, 1]) == ["red", "grey"]
    with pytest.raises(SettingsError):
        envs.env_method("sum", 2, indices=1)
    envs.close()
    envs.close()


def test_options_of_its_own_reach_each_environment(endings):
    ours = make_vec_env("openenv/remote-v0", COUNT, base_url=endings, monitor=False)
    theirs = DummyVecEnv([Endings] * COUNT)
    for envs in (ours, theirs):
        envs.seed(2)
        envs.set_options([{"level": 1}, {}, {"level": 2}])
    assert_same(ours.reset(), theirs.reset())
    assert [info["asked"] for info in ours.reset_infos] == ["{'level': 1}", "{}", "{'level': 2}"]
    ours.close()


def test_pictures_come_from_every_environment(endings):
    envs = make_vec_env("openenv/remote-v0", 2, base_url=endings, render_mode="rgb_array")
    envs.reset()
    assert [image.shape for image in envs.get_images()] == [(4, 6, 3)] * 2
    assert envs.render().shape == (8, 6, 3)
    envs.close()


@pytest.mark.parametrize("algorithm", [PPO, DQN])
def test_a_policy_learns_the_same_on_remote_environments_as_on_local_ones(algorithm):
    settings = {
        PPO: {"n_steps": 32, "batch_size": 64, "n_epochs": 2},
        DQN: {"learning_starts": 64, "batch_size": 16, "target_update_interval": 50},
    }[algorithm]

    def learned(envs):
        model = algorithm("MlpPolicy", VecNormalize(envs), seed=3, device="cpu", **settings)
        model.learn(384)
        score = evaluate_policy(model, envs, 4, warn=False)
        envs.close()
        return model.get_parameters()["policy"], score

    local = VecMonitor(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 4))
    weights, score = learned(make_vec_env("openenv/gym-v0", 4, env_id="CartPole-v1"))
    expected, expected_score = learned(local)
    assert score == expected_score
    assert all(np.array_equal(weights[name], expected[name]) for name in expected)


def test_a_reset_works_after_a_step_that_was_interrupted_anywhere(endings):
    envs = make_vec_env("openenv/gym-v0", 2, base_url=endings, monitor=False)
    envs.seed(3)
    first = envs.reset()
    for nth in itertools.count(1):
        came = interrupted(lambda: envs.step(np.zeros(2, np.int64)), nth, sb3.__file__)
        envs.seed(3)
        np.testing.assert_array_equal(envs.reset(), first)
        envs.step(np.zeros(2, np.int64))
        if not came:
            break
    assert nth > 10
    envs.close()
