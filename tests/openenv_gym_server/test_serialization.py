"""Tests of ``openenv_gym_server.serialization``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from openenv_gym.errors import InvalidActionError, ValueMappingError
from openenv_gym.tools import CallToolAction, ListToolsAction
from openenv_gym.types import Action, Observation
from openenv_gym_server.serialization import deserialize_action, serialize_observation
from tests.text_envs import Heard, Say


@dataclass
class Move:
    by: int


def test_an_action_is_of_its_class() -> None:
    assert deserialize_action({"message": "a"}, Say) == Say(message="a")
    assert deserialize_action({"by": 3}, Move).by == 3


@pytest.mark.parametrize("data", [{}, {"message": 1}, {"message": "rude"}, {"message": "a", "more": 1}])
def test_an_action_that_is_none_is_refused_with_its_faults(data: dict[str, object]) -> None:
    with pytest.raises(InvalidActionError) as caught:
        deserialize_action(data, Say)
    assert caught.value.errors


def test_an_action_of_tools_is_told_by_its_type_where_no_other_class_is_asked_for() -> None:
    call = {"type": "call_tool", "tool_name": "echo", "arguments": {"a": 1}}
    assert deserialize_action(call, Action) == CallToolAction(tool_name="echo", arguments={"a": 1})
    assert deserialize_action({"type": "list_tools"}, CallToolAction) == ListToolsAction()
    assert deserialize_action({"metadata": {"a": 1}}, Action) == Action(metadata={"a": 1})
    for data, kind in ((call, Say), ({"type": ["list_tools"]}, Action), ({"type": "dance"}, Action)):
        with pytest.raises(InvalidActionError):
            deserialize_action(data, kind)


def test_an_observation_is_in_the_envelope() -> None:
    assert serialize_observation(Heard(echo="a", extra=np.arange(2), reward=0.5, done=True)) == {
        "observation": {"metadata": {}, "echo": "a", "extra": [0, 1]},
        "reward": 0.5,
        "done": True,
    }
    assert serialize_observation(Observation(metadata={"a": 1}))["metadata"] == {"a": 1}


@pytest.mark.parametrize("observation", [None, "text", Heard, Heard(extra=object())])
def test_what_has_no_json_form_is_refused(observation: object) -> None:
    with pytest.raises(ValueMappingError):
        serialize_observation(observation)
