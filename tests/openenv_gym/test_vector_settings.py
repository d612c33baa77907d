"""The keywords of a vector environment."""

import gymnasium
import pytest

from openenv_gym.errors import ModeError, SettingsError, UnreachableError
from openenv_gym.providers.embedded import EmbeddedProvider
from openenv_gym.vector import RemoteVectorEnv

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": True}, "num_envs"),
        ({"num_envs": 1.0}, "num_envs"),
        ({"envs_per_session": 0}, "envs_per_session"),
        ({"max_episode_steps": -1}, "max_episode_steps"),
        ({"autoreset_mode": None}, "autoreset_mode"),
        ({"vectorization": "parallel"}, "vectorization"),
        ({"render_mode": "human"}, "render_mode"),
        ({"env_id": 5}, "env_id"),
        ({"env_id": "CartPole-v1", "target": "Pendulum-v1"}, "env_id"),
        ({"base_url": []}, "base_url"),
        ({"base_url": None}, "base_url"),
        ({"provider": EmbeddedProvider("CartPole-v1")}, "provider"),
        ({"base_url": [URL, URL], "provider": EmbeddedProvider("CartPole-v1")}, "provider"),
        ({"base_urls": URL}, "base_urls"),
        ({"step_timeout_s": -1}, "step_timeout_s"),
        ({"mode": "training"}, "mode"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(settings, setting):
    with pytest.raises(SettingsError) as caught:
        RemoteVectorEnv(**{"num_envs": 2, "base_url": URL, **settings})
    assert caught.value.setting == setting


def test_production_is_no_mode_of_a_vector_whoever_asks_for_it(monkeypatch):
    for mode in ("production", "PRODUCTION"):
        with pytest.raises(ModeError) as caught:
            gymnasium.make_vec("openenv/remote-v0", num_envs=2, base_url=URL, mode=mode)
        assert caught.value.mode == "production"
    monkeypatch.setenv("OPENENV_CLIENT_MODE", "production")
    with pytest.raises(ModeError, match="OPENENV_CLIENT_MODE"):
        gymnasium.make_vec("openenv/echo-v0", num_envs=2, base_url=URL)
    with pytest.raises(UnreachableError):
        gymnasium.make_vec("openenv/remote-v0", num_envs=2, base_url=URL, mode="simulation")
