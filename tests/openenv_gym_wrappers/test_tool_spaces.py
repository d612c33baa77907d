"""Spaces of calls, from the tools' input schemas."""

import copy
import json
import pickle
from typing import Any

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


@pytest.mark.parametrize(
    ("said", "meant"),
    [({"note": None}, None), ({"note": "hm"}, "hm"), ({"note": (1, "hm")}, "hm"), ({"note": (0, 0)}, None)],
)
def test_names_and_plain_values_are_what_they_say(said, meant):
    at = {"x": 2, "names": ("a",)}
    assert ToolSpace(TOOLS[0]).encode({"direction": "south", "at": at, **said}) == {
        "direction": "south",
        "note": meant,
        "at": {"x": 2, "names": ["a"]},
    }


def test_a_plain_value_that_fits_nothing_is_refused_with_what_there_is():
    with pytest.raises(ValueMappingError, match=r"0: null, 1: UnicodeText\(5\)") as caught:
        ToolSpace(TOOLS[0]).encode({"direction": 0, "at": AT, "note": 5})
    assert caught.value.path == "$.arguments.note"


def test_fields_inside_an_argument_may_be_left_out_too():
    person = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 3}}}
    schema = {"properties": {"p": {**person, "required": ["name"]}}}
    assert ToolSpace({"name": "greet", "input_schema": schema}).encode({"p": {"name": "A"}}) == {"p": {"name": "A"}}


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


@pytest.mark.parametrize(
    "schema", [{"properties": [1]}, {"required": 5}, {"required": [[]]}, {"properties": {}, "required": "a"}, 3]
)
def test_an_input_schema_that_is_none_is_refused(schema):
    with pytest.raises(SpaceMappingError, match="'odd'"):
        ToolSpace({"name": "odd", "input_schema": schema})


DEEP: dict[str, Any] = {}
for _ in range(2000):
    DEEP = {"enum": [DEEP]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "integer", "maximum": 10**400},
        {"type": "number", "minimum": -(10**400)},
        {"type": "string", "minLength": 10**10},
        {"type": "string", "minLength": 10**400},
        {"type": "array", "items": {"type": "integer"}, "minItems": 10**12, "maxItems": 10**12},
        {"allOf": [{"minimum": "a"}, {"minimum": 1}]},
        {"allOf": [{"required": 5}, {"required": ["a"]}]},
        {"x-gymnasium-space": {"type": "UnicodeText", "min_length": 10**10, "max_length": 10**10}},
        {"x-gymnasium-space": {"type": "Text", "min_length": 0, "max_length": 10**10, "charset": "a"}},
        {"enum": [DEEP]},
        DEEP,
        {"type": [["x"]]},
    ],
    ids=lambda part: str(part.keys()),
)
@pytest.mark.parametrize("required", [[], ["x"]])
def test_an_argument_of_a_monstrous_schema_can_be_sampled_and_written_all_the_same(part, required):
    calls = CallSpaces([{"name": "odd", "input_schema": {"properties": {"x": part}, "required": required}}])
    calls.space.seed(1)
    for _ in range(20):
        call = calls.encode(calls.space.sample())
        assert call.arguments.keys() == {"x"}
    assert required or calls.encode((0, {})).arguments == {}


def test_tools_that_ask_for_too_much_together_are_refused():
    frames = {"type": "array", "items": {"type": "integer"}, "minItems": 2**22, "maxItems": 2**22}
    tools = [{"name": f"t{n}", "input_schema": {"properties": {"x": frames}}} for n in range(8)]
    CallSpaces(tools[:1])
    seen = CallSpaces(tools).space.spaces
    assert seen[-1]["x"] == UnicodeText()
    with pytest.raises(SpaceMappingError, match="in all"):
        CallSpaces([{"name": f"t{n}"} for n in range(40_000)])


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
