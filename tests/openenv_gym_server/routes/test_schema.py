"""Tests of ``openenv_gym_server.routes.schema``."""

from __future__ import annotations

import numpy as np
from starlette.testclient import TestClient

from openenv_gym.types import Observation, State
from openenv_gym_server.app import create_app
from tests.text_envs import Echo, Heard, Say


class Score(State):
    points: int = 0


def test_the_schema_describes_all_four() -> None:
    with TestClient(create_app(Echo, Say, Heard, reset_observation_cls=Observation)) as client:
        schema = client.get("/schema").json()
    assert schema["action"]["required"] == ["message"]
    assert "echo" in schema["observation"]["properties"]
    assert "echo" not in schema["reset_observation"]["properties"]
    assert "step_count" in schema["state"]["properties"]


def test_the_state_an_environment_declares_is_in_the_schema_without_an_argument() -> None:
    class Scored(Echo):
        @property
        def state(self) -> Score:
            return Score(points=3)

    with TestClient(create_app(Scored, Say, Heard)) as client:
        assert "points" in client.get("/schema").json()["state"]["properties"]
        assert client.get("/state").json()["points"] == 3


def test_a_field_without_a_schema_does_not_take_the_others_along() -> None:
    class Pixels(Observation):
        frame: np.ndarray
        caption: str = ""

    with TestClient(create_app(Echo, Say, Pixels)) as client:
        properties = client.get("/schema").json()["observation"]["properties"]
    assert properties["caption"]["type"] == "string"
    assert "type" not in properties["frame"]
