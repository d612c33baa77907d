"""``GenericEnvClient`` and ``GenericAction``."""

import dataclasses
from typing import Any

import pytest

from openenv_gym.errors import ValueMappingError
from openenv_gym.generic_client import GenericAction, GenericEnvClient
from openenv_gym.types import Action
from tests.openenv_gym.talking import Say


@dataclasses.dataclass
class Spoken:
    message: str


class OwnAction(Action):
    message: str
    data: bytes = b"x"


@pytest.fixture
def client(talk):
    with GenericEnvClient(talk).sync() as client:
        client.reset()
        yield client


@pytest.mark.parametrize("action", [{"message": "hi"}, GenericAction(message="hi"), Say(message="hi"), Spoken("hi")])
def test_actions_are_dictionaries_models_or_dataclasses(client, action):
    result = client.step(action)
    assert result.observation["text"] == "hi"
    assert (result.reward, result.done, result.metadata) == (0.5, False, None)


def test_models_are_written_as_their_json():
    client = GenericEnvClient("http://host")
    assert client._step_payload(OwnAction(message="hi")) == {"message": "hi", "data": "x", "metadata": {}}


@pytest.mark.parametrize("action", ["text", 3, None, Spoken])
def test_other_actions_are_refused_by_their_type(client, action):
    with pytest.raises(ValueMappingError, match=type(action).__name__):
        client.step(action)


def test_states_and_metadata_are_plain(client):
    assert client.state()["step_count"] == 0
    assert client.reset(episode_id="e").metadata == {"hint": "speak"}
    assert client.state()["episode_id"] == "e"


def test_a_generic_action_is_a_dictionary_that_shows_its_fields():
    action = GenericAction(code="x = 1", timeout=30)
    assert action == {"code": "x = 1", "timeout": 30}
    assert repr(action) == "GenericAction(code='x = 1', timeout=30)"


class Table(Action):
    table: dict[Any, Any]


@pytest.mark.parametrize("action", [Table(table={1: "a", "1": "b"}), {"message": {1: "a", "1": "b"}}])
def test_keys_that_are_one_in_json_are_refused(client, action):
    with pytest.raises(ValueMappingError, match="keys that differ"):
        client.step(action)
