"""Every environment that Gymnasium's extras bring, and three ALE games, equal the local ones over a real socket."""

import gc
import warnings

import ale_py
import gymnasium
import pytest

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym_server import create_gym_app
from tests.exactness.rollout import assert_same_rollouts
from tests.serving import serve

gymnasium.register_envs(ale_py)
ALE_IDS = ["ALE/Pong-v5", "ALE/Breakout-v5", "ALE/SpaceInvaders-v5"]
# What the extras do not bring: jax, mujoco before 3, and the bridges to old gym that live in another package.
UNAVAILABLE = {
    *("phys2d/CartPole-v0", "phys2d/CartPole-v1", "phys2d/Pendulum-v0", "tabular/Blackjack-v0"),
    *("tabular/CliffWalking-v0", "Pusher-v4", "GymV21Environment-v0", "GymV26Environment-v0"),
}
OTHERS = ("openenv/", "synthetic/", "ALE/")


def gymnasium_ids():
    """The ids of Gymnasium's own registry that can be made here; those of ale_py's older interface have their own."""
    for env_id, spec in gymnasium.registry.items():
        own = isinstance(spec.entry_point, str) and spec.entry_point.startswith("gymnasium.")
        moved = "mujoco" in str(spec.entry_point) and env_id.endswith(("-v2", "-v3"))
        if own and not moved and env_id not in UNAVAILABLE and not env_id.startswith(OTHERS):
            yield env_id


IDS = sorted(gymnasium_ids())


def test_the_extras_are_installed():
    assert len(IDS) >= 35
    for env_id in IDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gymnasium.make(env_id).close()


@pytest.fixture(autouse=True)
def rare_collections():
    """A frame as JSON is tens of thousands of lists; the default thresholds would spend most of the time collecting."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 50)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:UserWarning")
@pytest.mark.parametrize("env_id", [*IDS, *ALE_IDS])
def test_a_served_environment_equals_the_local_one_bit_for_bit(env_id):
    local = gymnasium.make(env_id)
    with serve(create_gym_app(env_id)) as url:
        served = gymnasium.make("openenv/gym-v0", env_id=env_id, base_url=url)
        try:
            assert served.observation_space == local.observation_space
            assert served.action_space == local.action_space
            assert_same_rollouts(local, served, seeds=range(3), steps=300)
        finally:
            served.close()
            local.close()
