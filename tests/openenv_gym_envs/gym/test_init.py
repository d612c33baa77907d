"""What the gym package gives."""

import pytest

import openenv_gym_envs.gym


def test_the_application_is_made_by_the_package():
    assert openenv_gym_envs.gym.create_app().title


def test_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="nothing"):
        _ = openenv_gym_envs.gym.nothing
