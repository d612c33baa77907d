"""Schemas that pydantic and OpenEnv really make: their Spaces, and samples the models themselves accept."""

from __future__ import annotations

import math
import pickle
from enum import StrEnum
from typing import Annotated, Any, Literal

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Sequence, Tuple
from jsonschema import Draft202012Validator
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation
from openenv.core.env_server.types import Action, Observation, State
from pydantic import BaseModel, ConfigDict, Field

from openenv_gym.spaces import UnicodeText, mapping_from_schema
from tests.openenv_gym.spaces.strategies import assert_same_space

INF = math.inf
INT64 = Box(-INF, INF, (), np.int64)
FLOAT64 = Box(-INF, INF, (), np.float64)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    size: Annotated[int, Field(ge=0, lt=4)]
    tag: Literal["inner"] = "inner"


class Other(BaseModel):
    tag: Literal["other"] = "other"


class Everything(BaseModel):
    """Most of what a model of a real environment may have."""

    model_config = ConfigDict(extra="allow")
    name: str
    colour: Colour
    move: Literal["up", "down"]
    score: int | float | None = None
    position: tuple[float, float]
    pair: tuple[int, str]
    grid: Annotated[list[Annotated[list[int], Field(min_length=2, max_length=2)]], Field(min_length=2, max_length=2)]
    history: list[str]
    inner: Inner
    maybe: Inner | None = None
    either: Annotated[Inner | Other, Field(discriminator="tag")]
    free: dict[str, Any]
    counts: dict[str, int]
    anything: Any = None
    blob: bytes = b""
    flag: bool = False


def test_a_pydantic_model_maps_field_by_field_and_its_samples_are_instances() -> None:
    schema = Everything.model_json_schema()
    mapping = mapping_from_schema(schema)
    inner = Dict([("size", Discrete(4)), ("tag", Discrete(1))])
    expected = Dict(
        [
            ("name", UnicodeText()),
            ("colour", Discrete(2)),
            ("move", Discrete(2)),
            ("score", OneOf([Discrete(1), FLOAT64])),
            ("position", Box(-INF, INF, (2,), np.float64)),
            ("pair", Tuple([INT64, UnicodeText()])),
            ("grid", Box(-INF, INF, (2, 2), np.int64)),
            ("history", Sequence(UnicodeText())),
            ("inner", inner),
            ("maybe", OneOf([Discrete(1), inner])),
            ("either", OneOf([inner, Dict(tag=Discrete(1))])),
            ("free", UnicodeText()),
            ("counts", UnicodeText()),
            ("anything", UnicodeText()),
            ("blob", UnicodeText()),
            ("flag", Discrete(2)),
        ]
    )
    assert_same_space(mapping.space, expected)
    mapping.space.seed(0)
    for _ in range(50):
        sample = {**mapping.space.sample(), "free": '{"a":[1,null]}', "counts": '{"b":2}', "anything": "null"}
        encoded = mapping.encode(sample)
        Draft202012Validator(schema).validate(encoded)
        dumped = Everything.model_validate(encoded).model_dump(mode="json")
        again = mapping.decode_member(dumped)
        assert mapping.encode(again) == mapping.encode(mapping.decode(encoded))


def test_actions_of_openenv_itself_are_mapped() -> None:
    call = mapping_from_schema(CallToolAction.model_json_schema())
    assert call.space == UnicodeText()
    assert CallToolAction.model_validate(call.encode("echo")).tool_name == "echo"
    whole = mapping_from_schema(CallToolAction.model_json_schema(), flatten=False)
    assert_same_space(
        whole.space, Dict([("type", Discrete(1)), ("tool_name", UnicodeText()), ("arguments", UnicodeText())])
    )
    action = whole.encode({"type": 0, "tool_name": "echo", "arguments": '{"text":"hi"}'})
    assert CallToolAction.model_validate(action).arguments == {"text": "hi"}
    assert mapping_from_schema(ListToolsAction.model_json_schema()).encode(0) == {"type": "list_tools"}
    assert mapping_from_schema(Action.model_json_schema()).encode({}) == {}


def test_observations_and_states_of_openenv_itself_are_mapped() -> None:
    called = mapping_from_schema(CallToolObservation.model_json_schema(), role="observation")
    dumped = CallToolObservation(tool_name="echo", result={"data": 1}).model_dump(mode="json")
    sample = called.decode_member(dumped)
    assert sample == {"tool_name": "echo", "result": '{"data":1}', "error": (0, 0)}
    assert sample in called.space
    listed = mapping_from_schema(ListToolsObservation.model_json_schema(), role="observation")
    tool = {"name": "t", "description": "d", "input_schema": {"type": "object"}}
    assert listed.decode({"tools": [tool]}) == ({"name": "t", "description": "d", "input_schema": '{"type":"object"}'},)
    assert mapping_from_schema(Observation.model_json_schema(), role="observation").space == Dict([])
    state = mapping_from_schema(State.model_json_schema(), role="observation")
    assert state.decode(State().model_dump()) == {"episode_id": (0, 0), "step_count": 0}


def test_a_mapping_survives_pickling() -> None:
    mapping = pickle.loads(pickle.dumps(mapping_from_schema(Everything.model_json_schema())))
    sample = {**mapping.space.sample(), "free": "{}", "counts": "{}", "anything": "1"}
    assert mapping.decode_member(mapping.encode(sample))["anything"] == "1"
