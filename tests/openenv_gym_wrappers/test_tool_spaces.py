"""Spaces of calls, from the tools' input schemas."""

import copy
import json
import pickle

import jsonschema
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, OneOf

from openenv_gym.errors import SettingsError, SpaceMappingError, ValueMappingError
from openenv_gym.spaces import UnicodeText
from openenv_gym_wrappers.tool_calls import ToolCall, read_call
from openenv_gym_wrappers.tool_spaces import CallSpaces, CallText, ToolSpace

MOVE = {
    "type": "object",
    "properties": {
        "direction": {"enum": ["north", "south"]},
        "steps": {"type": "integer", "minimum": 1, "maximum": 4, "default": 1},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}], "default": None},
        "at": {"$ref": "#/$defs/Place"},
        "tags": {"type": "object"},
        "odd": {},
        "weights": {"type": "object", "additionalProperties": {"type": "integer"}},
        "reward": {"type": "number"},
    },
    "required": ["direction", "at"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}},
            "required": ["x", "names"],
            "additionalProperties": False,
        }
    },
}
TOOLS = [
    {"name": "move", "description": "Go.", "input_schema": MOVE},
    {"name": "wait", "description": "Do nothing.", "input_schema": {"type": "object", "properties": {}}},
]
AT = {"x": np.int64(2), "names": ()}


@pytest.fixture
def calls():
    return CallSpaces(TOOLS)


def test_there_is_one_dict_of_arguments_a_tool_in_declared_order(calls):
    assert isinstance(calls.space, OneOf)
    move, wait = calls.space.spaces
    assert list(move.spaces) == list(MOVE["properties"])
    assert move["direction"] == Discrete(2)
    assert move["steps"] == Discrete(4, start=1)
    assert move["reward"] == Box(-np.inf, np.inf, (), np.float64)
    assert wait == Dict()
    assert calls.names == ["move", "wait"]


def test_every_sample_is_a_call_that_the_schema_allows(calls):
    schemas = {tool["name"]: tool["input_schema"] for tool in TOOLS}
    calls.space.seed(1)
    seen = set()
    for _ in range(200):
        sample = calls.space.sample()
        call = calls.encode(sample)
        jsonschema.validate(call.arguments, schemas[call.name])
        seen.add(call.name)
    assert seen == {"move", "wait"}


def test_arguments_become_json():
    arguments = {"direction": 1, "steps": 3, "note": (1, "hm"), "at": AT, "tags": '{"a": [1]}', "odd": "null"}
    assert ToolSpace(TOOLS[0]).encode({**arguments, "weights": "{}", "reward": 0.5}) == {
        "direction": "south",
        "steps": 3,
        "note": "hm",
        "at": {"x": 2, "names": []},
        "tags": {"a": [1]},
        "odd": None,
        "weights": {},
        "reward": 0.5,
    }


def test_what_a_tool_does_not_require_may_be_left_out(calls):
    assert calls.encode(("move", {"direction": 0, "at": AT})) == ToolCall(
        "move", {"direction": "north", "at": {"x": 2, "names": []}}
    )


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ((0, {"direction": 0}), "$.arguments"),
        ((0, {"direction": 7, "at": AT}), "$.arguments.direction"),
        ((0, {"direction": 0, "at": AT, "speed": 1}), "$.arguments"),
        ((0, {"direction": 0, "at": AT, "tags": "no"}), "$.arguments.tags"),
        ((0, "north"), "$.arguments"),
        ((2, {}), "$[0]"),
        ((-1, {}), "$[0]"),
        ((True, {}), "$[0]"),
        ((np.array(True), {}), "$[0]"),
        ((np.array(1.5), {}), "$[0]"),
        ((np.array("wait"), {}), "$[0]"),
        ((np.array([1]), {}), "$[0]"),
        (("fly", {}), "$[0]"),
        (("wait",), "$"),
        ("wait", "$"),
    ],
)
def test_what_is_no_member_is_refused_with_its_place(calls, action, path):
    with pytest.raises(ValueMappingError) as caught:
        calls.encode(action)
    assert caught.value.path == path


@pytest.mark.parametrize("index", [1, np.int64(1), np.array(1)])
def test_a_tool_is_named_by_its_index(calls, index):
    assert calls.encode((index, {})) == ToolCall("wait", {})


def test_an_argument_without_a_space_is_json_text():
    schema = {
        "properties": {"good": {"type": "boolean"}, "bad": {"type": "array", "prefixItems": [{}], "items": {}}},
        "required": ["good", "bad"],
    }
    tool = ToolSpace({"name": "odd", "input_schema": schema})
    assert tool.space == Dict(good=Discrete(2), bad=UnicodeText())
    assert tool.encode({"good": 1, "bad": "[1, 2]"}) == {"good": True, "bad": [1, 2]}


def test_an_input_schema_that_is_none_is_refused():
    with pytest.raises(SpaceMappingError, match="'odd'"):
        ToolSpace({"name": "odd", "input_schema": {"properties": [1]}})


def test_no_tools_are_no_space():
    with pytest.raises(SettingsError):
        CallSpaces([])


def test_sampled_texts_are_calls_and_repeat_by_seed():
    text, twin = CallText(TOOLS, seed=3), CallText(TOOLS)
    twin.seed(3)
    samples = [text.sample() for _ in range(20)]
    assert samples == [twin.sample() for _ in range(20)]
    assert {read_call(sample).name for sample in samples} == {"move", "wait"}
    assert all(sample in text for sample in samples)
    assert "anything at all" in text


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))])
def test_a_copy_samples_on(copied):
    text = CallText(TOOLS, seed=3)
    text.sample()
    twin = copied(text)
    assert twin == text
    assert twin.sample() == text.sample()
    assert json.loads(twin.sample())["name"] in {"move", "wait"}


@pytest.mark.parametrize("masks", [{"mask": (3, None)}, {"probability": (3, None)}])
def test_a_call_has_no_mask(masks):
    with pytest.raises(ValueError, match="neither"):
        CallText(TOOLS).sample(**masks)
