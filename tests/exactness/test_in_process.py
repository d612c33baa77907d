"""What a served environment gives equals what the local one gives, bit for bit: everything but the transport."""

import gymnasium
import numpy as np
import pytest

from openenv_gym_server.gym_environment import GymEnvironment
from tests.exactness.compare import assert_same_reset, assert_same_transition, assert_same_value
from tests.exactness.in_process import InProcessEnv
from tests.exactness.synthetic import LEGACY_IDS, SPACE_IDS, VALUE_IDS, MiddleApi, NewestApi, OldestApi

GYMNASIUM_IDS = [
    "CartPole-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Acrobot-v1",
    "Blackjack-v1",
    "FrozenLake-v1",
    "CliffWalking-v1",
    "Taxi-v4",
    "InvertedPendulum-v5",
    "HalfCheetah-v5",
    "Hopper-v5",
    "LunarLander-v3",
]
SEEDS = (0, 1, 2**31 - 1)
STEPS = 100


def play(local, served, seed, steps=STEPS):
    """Random steps on both, each compared; an episode that ends is followed by the next."""
    space = local.observation_space
    local.action_space.seed(seed)
    assert_same_reset(local.reset(seed=seed), served.reset(seed=seed), space, "reset")
    for step in range(steps):
        action = local.action_space.sample()
        transition = local.step(action)
        assert_same_transition(transition, served.step(action), space, f"step {step}")
        if transition[2] or transition[3]:
            assert_same_reset(local.reset(), served.reset(), space, f"reset after step {step}")


@pytest.mark.parametrize("env_id", GYMNASIUM_IDS + SPACE_IDS + VALUE_IDS)
def test_a_served_environment_equals_the_local_one(env_id):
    local, served = gymnasium.make(env_id, disable_env_checker=True), InProcessEnv(env_id)
    assert served.observation_space == local.observation_space
    assert served.action_space == local.action_space
    for seed in SEEDS:
        play(local, served, seed)
    local.close()
    served.close()


@pytest.mark.parametrize("env_id", ["CartPole-v1", "synthetic/BoxFloat32-v0", "synthetic/RichInfo-v0"])
def test_the_server_leaves_the_environment_checker_out_without_changing_a_result(env_id):
    local, served = gymnasium.make(env_id, disable_env_checker=False), InProcessEnv(env_id)
    play(local, served, 5)
    local.close()
    served.close()


@pytest.mark.parametrize("dtype_id", ["synthetic/OddArrays-v0"])
def test_a_cast_is_noted_once_a_session(dtype_id):
    served = InProcessEnv(dtype_id)
    for seed in SEEDS:
        served.reset(seed=seed)
        for _ in range(20):
            served.step(np.int64(0))
    assert len(served.warnings) <= 1
    served.close()


@pytest.mark.parametrize("kind", [OldestApi, MiddleApi, NewestApi])
@pytest.mark.parametrize("by_id", [True, False])
def test_a_served_old_environment_equals_the_class_itself(kind, by_id):
    served = InProcessEnv(f"synthetic/{kind.__name__}-v0" if by_id else kind)
    old = kind()
    actions = np.random.default_rng(0)
    for seed in SEEDS:
        first = old.reset(seed=seed, return_info=True) if kind is MiddleApi else None
        if kind is OldestApi:
            old.seed(seed)
            first = old.reset(), {}
        assert_same_reset(first or old.reset(seed=seed), served.reset(seed=seed), served.observation_space)
        for _ in range(20):
            action = np.int64(actions.integers(3))
            result = old.step(action)
            if len(result) == 4:
                obs, reward, done, info = result
                truncated = bool(info.get("TimeLimit.truncated"))
                result = obs, reward, done and not truncated, truncated, info
            assert_same_transition(result, served.step(action), served.observation_space)
            if result[2] or result[3]:
                break
    served.close()


@pytest.mark.parametrize("env_id", LEGACY_IDS)
def test_a_registered_old_environment_is_made_with_its_time_limit(env_id):
    environment = GymEnvironment(env_id, limit=10_000)
    assert environment.get_metadata().gymnasium["max_episode_steps"] == 30
    environment.reset(seed=0)
    while not (end := environment.step(0)).terminated and not end.truncated:
        pass
    assert end.truncated or environment.state["step_count"] <= 30
    environment.close()


def test_an_action_arrives_with_its_exact_type():
    served = InProcessEnv("synthetic/DictNested-v0")
    served.reset(seed=0)
    served.action_space.seed(0)
    action = served.action_space.sample()
    assert_same_value(action, served.step(action)[4]["action"])
    served.close()
