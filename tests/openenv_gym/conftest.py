"""Servers that the tests of the client share."""

import pytest

from openenv_gym.env import RemoteEnv
from openenv_gym.vector import RemoteVectorEnv
from openenv_gym_server import ServerSettings, create_gym_app
from tests.openenv_gym.sleepy import Sleepy, release
from tests.openenv_gym.talking import serve_talk
from tests.serving import serve


@pytest.fixture(scope="module")
def cartpole():
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=8))) as url:
        yield url


@pytest.fixture(scope="module")
def sleepy():
    settings = ServerSettings(
        max_concurrent_envs=2, remote_names=frozenset({"add", "colour"}), allowed_env_kwargs=frozenset({"start"})
    )
    with serve(create_gym_app(Sleepy, settings=settings)) as url:
        yield url


@pytest.fixture
def env(cartpole):
    env = RemoteEnv(cartpole, env_id="CartPole-v1")
    yield env
    env.close()


@pytest.fixture(scope="module", params=["ours", "stock"])
def talk(request):
    with serve_talk(request.param) as url:
        yield url


@pytest.fixture(scope="module")
def roomy():
    """For vector environments."""
    with serve(create_gym_app("CartPole-v1", settings=ServerSettings(max_concurrent_envs=32))) as url:
        yield url


@pytest.fixture(scope="module")
def several():
    settings = ServerSettings(
        max_concurrent_envs=32, remote_names=frozenset({"add", "colour"}), allowed_env_kwargs=frozenset({"start"})
    )
    with serve(create_gym_app(Sleepy, settings=settings)) as url:
        yield url


@pytest.fixture
def envs(roomy):
    envs = RemoteVectorEnv(3, base_url=roomy)
    yield envs
    envs.close()


@pytest.fixture
def pairs(several):
    """Three environments in two sessions."""
    envs = RemoteVectorEnv(3, base_url=several, envs_per_session=2, render_mode="ansi")
    envs.reset()
    yield envs
    release.set()
    envs.close()
    release.clear()
