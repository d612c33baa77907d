"""Tests of ``openenv_gym_server.routes.metadata``."""

from __future__ import annotations

from starlette.testclient import TestClient

from openenv_gym.types import EnvironmentMetadata
from openenv_gym_server.app import create_app
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
