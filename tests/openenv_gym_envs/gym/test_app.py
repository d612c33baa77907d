"""The application whose environment is named by environment variables."""

import gymnasium
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from openenv_gym.errors import SettingsError
from openenv_gym_envs.gym.app import app, create_app


def metadata_of(application):
    with TestClient(application, base_url="http://127.0.0.1:8000") as client:
        return client.get("/metadata").json()


def test_there_is_an_app_for_uvicorn_which_serves_cartpole():
    assert isinstance(app, FastAPI)
    assert metadata_of(app)["name"] == "CartPole-v1"


def test_the_variable_names_the_environment(monkeypatch):
    monkeypatch.setenv("OPENENV_GYM_ENV_ID", "FrozenLake-v1")
    monkeypatch.setenv("OPENENV_GYM_ENV_KWARGS", '{"map_name": "8x8", "max_episode_steps": 7}')
    metadata = metadata_of(create_app())
    assert metadata["gymnasium"]["env_id"] == "FrozenLake-v1"
    assert metadata["gymnasium"]["max_episode_steps"] == 7


def test_an_unknown_environment_is_an_error_at_once(monkeypatch):
    monkeypatch.setenv("OPENENV_GYM_ENV_ID", "CartPol-v1")
    with pytest.raises(gymnasium.error.Error, match="CartPole"):
        create_app()


@pytest.mark.parametrize("text", ["[1]", "{", "NaN", "3"])
def test_arguments_that_are_no_object_are_an_error_that_names_the_variable(monkeypatch, text):
    monkeypatch.setenv("OPENENV_GYM_ENV_KWARGS", text)
    with pytest.raises(SettingsError) as caught:
        create_app()
    assert caught.value.setting == "OPENENV_GYM_ENV_KWARGS"
