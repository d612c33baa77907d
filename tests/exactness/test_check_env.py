"""Gymnasium's own checker says of a remote environment what it says of the local one."""

import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import openenv_gym  # noqa: F401  (registers the ids)
from openenv_gym_server import create_gym_app
from tests.exactness.test_registry import IDS
from tests.serving import serve


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def findings(make, *, skip_render_check):
    """The checker's warnings, and the error it ends with if it does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env = make()
        try:
            check_env(env.unwrapped, skip_render_check=skip_render_check)
            error = None
        except Exception as caught_error:
            error = f"{type(caught_error).__name__}"
        finally:
            env.close()
    return sorted({str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)}), error


def test_echo_passes_without_a_warning():
    with gymnasium.make("openenv/echo-v0") as env:
        check_env(env.unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_the_checker_finds_the_same_as_on_the_local_environment(env_id):
    # MuJoCo's own window and its off-screen rendering need a graphics driver, which a machine for tests need not have.
    skip = "mujoco" in str(gymnasium.spec(env_id).entry_point)
    with serve(create_gym_app(env_id)) as url:
        remote = findings(lambda: gymnasium.make("openenv/gym-v0", env_id=env_id, base_url=url), skip_render_check=skip)
    assert remote == findings(lambda: gymnasium.make(env_id), skip_render_check=skip)
