"""What registered environments seldom do (every Space, odd numbers and arrays, rich infos) arrives exactly too."""

import gymnasium
import pytest

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym_server import create_gym_app
from tests.exactness import synthetic
from tests.exactness.rollout import assert_same_rollouts
from tests.serving import serve


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("env_id", [*synthetic.SPACE_IDS, *synthetic.VALUE_IDS])
def test_a_synthetic_environment_equals_the_local_one_bit_for_bit(env_id):
    local = gymnasium.make(env_id, disable_env_checker=True)
    with serve(create_gym_app(env_id)) as url:
        served = gymnasium.make("openenv/gym-v0", env_id=env_id, base_url=url, disable_env_checker=True)
        try:
            assert_same_rollouts(local, served, seeds=range(2), steps=60)
        finally:
            served.close()
            local.close()
