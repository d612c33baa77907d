"""Tests of ``openenv_gym_server.routes.description``."""

from __future__ import annotations

import numpy as np
from starlette.testclient import TestClient

from openenv_gym.types import EnvironmentMetadata, Observation, State
from openenv_gym_server.app import create_app
from openenv_gym_server.gym_app import create_gym_app
from openenv_gym_server.settings import ServerSettings
from tests.text_envs import Bare, Echo, Heard, Say


def test_metadata_of_a_bare_class_are_the_references_defaults() -> None:
    with TestClient(create_app(Bare, Say, Heard)) as client:
        assert client.get("/metadata").json() == {
            "name": "Bare",
            "description": "Bare environment",
            "readme_content": None,
            "version": "1.0.0",
            "author": None,
            "documentation_url": None,
        }


def test_metadata_are_asked_of_one_environment_that_is_then_closed() -> None:
    made: list[Echo] = []

    class Described(Echo):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

        def get_metadata(self) -> EnvironmentMetadata:
            return EnvironmentMetadata(name="mine", description="of mine", author="me")

    with TestClient(create_app(Described, Say, Heard)) as client:
        for _ in range(3):
            assert client.get("/metadata").json()["author"] == "me"
            client.get("/schema")
    assert [env.closed for env in made] == [1]


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


def test_the_processes_that_serve_together_are_said_at_the_top_where_nothing_is_said_to_gymnasium() -> None:
    settings = ServerSettings(shards=(":8001", "https://host/two"))
    with TestClient(create_app(Bare, Say, Heard, settings=settings)) as client:
        assert client.get("/metadata").json()["shards"] == [":8001", "https://host/two"]


def test_the_processes_that_serve_together_are_said_among_what_is_said_to_gymnasium() -> None:
    with TestClient(create_gym_app("CartPole-v1", settings=ServerSettings(shards=(":8001",)))) as client:
        metadata = client.get("/metadata").json()
    assert metadata["gymnasium"]["shards"] == [":8001"]
    assert "shards" not in metadata
