"""A Space for a JSON Schema alone: every rule, both ways, on schemas that pydantic and OpenEnv really make."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Sequence, Space, Tuple
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from openenv_gym.errors import SpaceMappingError, ValueMappingError
from openenv_gym.spaces import UnicodeText, mapping_from_schema, schema_from_space
from openenv_gym.spaces.limits import MAX_BYTES
from openenv_gym.spaces.mapping import MAX_DISCRETE
from tests.openenv_gym.spaces.strategies import assert_same_space

INF = math.inf
TEXT, NULL, ANY = {"type": "string"}, {"type": "null"}, UnicodeText()
INT64 = Box(-INF, INF, (), np.int64)
FLOAT64 = Box(-INF, INF, (), np.float64)


def value(schema: Any) -> Any:
    """The mapping of a value: of the only field of an action."""
    return mapping_from_schema({"type": "object", "properties": {"v": schema}, "required": ["v"]})


def floats(low: Any, high: Any) -> Box:
    return Box(np.array(low, np.float64), np.array(high, np.float64), dtype=np.float64)


@pytest.mark.parametrize(
    ("schema", "space"),
    [
        (TEXT, UnicodeText()),
        ({"type": "string", "minLength": 1, "maxLength": 9}, UnicodeText(9, min_length=1)),
        ({"type": "string", "minLength": 2_000_000}, UnicodeText(2_000_000, min_length=2_000_000)),
        ({"type": "string", "maxLength": 9.0, "format": "binary", "contentEncoding": "base64"}, UnicodeText(9)),
        ({"minLength": 1, "maxLength": 2}, UnicodeText(2, min_length=1)),
        ({"enum": ["a", 1, None]}, Discrete(3)),
        ({"const": "a"}, Discrete(1)),
        ({"type": "string", "enum": ["a", "b"]}, Discrete(2)),
        (NULL, Discrete(1)),
        ({"type": "boolean"}, Discrete(2)),
        ({"type": "integer"}, INT64),
        ({"type": "integer", "minimum": 0}, Box(0, INF, (), np.int64)),
        ({"type": "integer", "minimum": -1, "maximum": 3}, Discrete(5, start=-1)),
        ({"type": "integer", "minimum": 0, "maximum": MAX_DISCRETE - 1}, Discrete(MAX_DISCRETE)),
        ({"type": "integer", "minimum": 0, "maximum": MAX_DISCRETE}, Box(0, MAX_DISCRETE, (), np.int64)),
        ({"type": "number"}, FLOAT64),
        ({"minimum": 0, "maximum": 1}, floats(0, 1)),
        (
            {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2},
            Box(0, INF, (2,), np.float64),
        ),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 0, "maxItems": 0}, Box(-INF, INF, (0,), np.int64)),
        (
            {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": 9},
                    "minItems": 3,
                    "maxItems": 3,
                },
            },
            Box(0, 9, (2, 3), np.int64),
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "number", "maximum": 1}, {"type": "number", "minimum": 0}],
                "items": False,
            },
            floats([-INF, 0], [1, INF]),
        ),
        ({"type": "array", "items": [{"type": "number"}], "additionalItems": False}, Box(-INF, INF, (1,), np.float64)),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, TEXT], "minItems": 2, "maxItems": 2},
            Tuple([FLOAT64, UnicodeText()]),
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "integer"}], "minItems": 2, "maxItems": 2},
            Tuple([FLOAT64, INT64]),
        ),
        ({"type": "array", "items": False}, Tuple([])),
        ({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}, Sequence(UnicodeText())),
        ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2}, Sequence(Discrete(2))),
        (
            {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2},
            Sequence(OneOf([Discrete(1), FLOAT64])),
        ),
        (
            {"type": "array", "items": {"type": "array", "items": TEXT}, "minItems": 1, "maxItems": 1},
            Sequence(Sequence(UnicodeText())),
        ),
        ({"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3}, Sequence(FLOAT64)),
        ({"type": "array"}, Sequence(ANY)),
        ({"items": TEXT}, Sequence(UnicodeText())),
        ({"type": "object"}, ANY),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, ANY),
        ({"type": "object", "additionalProperties": False}, Dict([])),
        ({"properties": {"b": TEXT, "a": {"type": "boolean"}}}, Dict([("b", UnicodeText()), ("a", Discrete(2))])),
        ({}, ANY),
        (True, ANY),
        ({"anyOf": [TEXT, NULL]}, OneOf([Discrete(1), UnicodeText()])),
        ({"anyOf": [NULL, TEXT, {"type": "boolean"}]}, OneOf([Discrete(1), UnicodeText(), Discrete(2)])),
        ({"anyOf": [NULL]}, Discrete(1)),
        ({"anyOf": [TEXT]}, UnicodeText()),
        ({"type": ["string", "null"]}, OneOf([Discrete(1), UnicodeText()])),
        ({"type": "string", "nullable": True}, OneOf([Discrete(1), UnicodeText()])),
        ({"oneOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}]}, FLOAT64),
        ({"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 3}]}, INT64),
        ({"anyOf": [{"type": "boolean"}, {"type": "boolean"}]}, Discrete(2)),
        ({"anyOf": [{"type": "integer"}, {"enum": [0.5]}]}, OneOf([INT64, Discrete(1)])),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, Discrete(2)),
        (
            {"minLength": 2, "anyOf": [{"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}]},
            OneOf([UnicodeText(5, min_length=2), UnicodeText(9, min_length=2)]),
        ),
        ({"allOf": [{"type": "integer", "minimum": 0}, {"type": "number", "maximum": 4}]}, Discrete(5)),
        (
            {"type": "object", "properties": {"g": schema_from_space(Discrete(4, start=2))}},
            Dict(g=Discrete(4, start=2)),
        ),
        ({"anyOf": [schema_from_space(Discrete(4)), {"type": "integer"}]}, OneOf([Discrete(4), INT64])),
    ],
    ids=lambda case: str(case)[:60],
)
def test_a_schema_has_this_space(schema: Any, space: Space[Any]) -> None:
    assert_same_space(value(schema).space, space)


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, math.nextafter(0, 1), math.nextafter(1, 0)),
        ({"minimum": 0, "exclusiveMinimum": 0.0, "maximum": 2, "exclusiveMaximum": 3}, math.nextafter(0, 1), 2),
        ({"minimum": 2**53 + 1, "maximum": 2**53 + 3}, 2.0**53 + 2, 2.0**53 + 2),
        ({"minimum": -(10**400), "maximum": 10**400}, -INF, INF),
    ],
)
def test_bounds_of_numbers_are_exact(bounds: Any, low: float, high: float) -> None:
    assert_same_space(value({"type": "number", **bounds}).space, floats(low, high))


@pytest.mark.parametrize(
    ("bounds", "space"),
    [
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 3}, Discrete(2, start=1)),
        ({"minimum": 0.5, "maximum": 2.5}, Discrete(2, start=1)),
        ({"exclusiveMinimum": 0.5, "exclusiveMaximum": 2.5}, Discrete(2, start=1)),
        ({"minimum": 2**53 + 1, "maximum": 2**53 + 2}, Discrete(2, start=2**53 + 1)),
        ({"minimum": -(2**70), "maximum": 2**70}, INT64),
        ({"minimum": -(2**63), "maximum": 5}, Box(-INF, 5, (), np.int64)),
    ],
)
def test_bounds_of_integers_are_exact(bounds: Any, space: Space[Any]) -> None:
    assert_same_space(value({"type": "integer", **bounds}).space, space)


@pytest.mark.parametrize(
    ("schema", "sample", "json"),
    [
        (TEXT, "hello", "hello"),
        ({"enum": ["a", 1, None, [1, {"k": 2}]]}, np.int64(3), [1, {"k": 2}]),
        ({"type": "boolean"}, np.int64(1), True),
        ({"type": "integer"}, np.array(5), 5),
        ({"type": "number"}, np.array(0.5), 0.5),
        (NULL, np.int64(0), None),
        ({"anyOf": [TEXT, NULL]}, (np.int64(0), np.int64(0)), None),
        ({"anyOf": [TEXT, NULL]}, (np.int64(1), "x"), "x"),
        ({"anyOf": [{"type": "boolean"}, {"type": "integer"}, {"type": "number"}]}, np.array(2.0), 2.0),
        ({"anyOf": [{"type": "integer", "maximum": 3, "minimum": 0}, TEXT]}, (np.int64(0), np.int64(2)), 2),
        ({"type": "object"}, '{"b":1,"a":[null]}', {"b": 1, "a": [None]}),
        ({}, "3", 3),
        ({"type": "array", "items": TEXT}, ("a", "b"), ["a", "b"]),
        ({"properties": {"b": TEXT, "a": {"type": "boolean"}}}, {"b": "x", "a": np.int64(0)}, {"b": "x", "a": False}),
        (
            {"type": "array", "prefixItems": [TEXT, {"type": "boolean"}], "items": False},
            ("x", np.int64(1)),
            ["x", True],
        ),
    ],
)
def test_a_sample_travels_as_the_schema_asks(schema: Any, sample: Any, json: Any) -> None:
    mapping = value(schema)
    assert mapping.encode(sample) == {"v": json}
    assert type(mapping.encode(sample)["v"]) is type(json)
    assert mapping.decode({"v": json}) == sample
    assert mapping.decode_member({"v": json, "unknown": 1}) == sample
    Draft202012Validator(schema).validate(json)


def test_true_and_one_are_told_apart_in_enumerations_and_alike_in_numbers() -> None:
    listed = value({"enum": [1, True]})
    assert [listed.decode({"v": json}) for json in (1, True, 1.0)] == [0, 1, 0]
    assert value({"anyOf": [{"type": "boolean"}, {"type": "number"}]}).decode({"v": True}) == 1.0
    with pytest.raises(ValueMappingError):
        value({"type": "number"}).decode({"v": True})


def test_a_union_takes_the_first_alternative_whose_space_has_the_value() -> None:
    mapping = value({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "maxLength": 5}]})
    assert mapping.decode({"v": "abc"}) == (1, "abc")
    assert mapping.decode({"v": "abcdefg"}) == (0, "abcdefg")
    with pytest.raises(ValueMappingError):
        mapping.decode_member({"v": "abcdefg"})
    with pytest.raises(ValueMappingError) as caught:
        mapping.decode({"v": 3})
    assert caught.value.path == "$.v"


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        ({"enum": ["a"]}, 1),
        ({"enum": ["a"]}, "b"),
        ({"enum": ["a"]}, None),
        ({"type": "object"}, "[1]"),
        ({}, "no json"),
        ({}, 3),
        ({"anyOf": [TEXT, NULL]}, 3),
        ({"anyOf": [TEXT, NULL]}, (1, 3)),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}, {"b": "x"}),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}, {"a": "x", "c": "y"}),
    ],
)
def test_a_sample_that_is_none_is_refused_with_its_path(schema: Any, sample: Any) -> None:
    with pytest.raises(ValueMappingError) as caught:
        value(schema).encode(sample)
    assert caught.value.path is not None
    assert caught.value.path.startswith("$.v")


DEEP: Any = 1
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("schema", "json"),
    [
        ({"enum": ["a"]}, "b"),
        ({"enum": ["a"]}, DEEP),
        ({"type": "object"}, []),
        ({"type": "object"}, {"x": math.nan}),
        ({"type": "object"}, None),
        ({"properties": {"a": TEXT}}, []),
        ({"properties": {"a": TEXT}}, {}),
        ({"type": "number"}, None),
        ({"properties": {"a": TEXT}}, {"a": 3}),
    ],
)
def test_json_that_is_none_is_refused_with_its_path(schema: Any, json: Any) -> None:
    with pytest.raises(ValueMappingError) as caught:
        value(schema).decode({"v": json})
    assert caught.value.path is not None
    assert caught.value.path.startswith("$.v")


def test_absent_fields_have_their_default_or_are_an_error() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "default": 7}, "b": TEXT}, "required": ["b"]}
    mapping = mapping_from_schema(schema, role="observation")
    assert mapping.decode({"b": "x"}) == {"a": 7, "b": "x"}
    with pytest.raises(ValueMappingError):
        mapping.decode({"a": 1})
    assert mapping_from_schema({"properties": {"a": {"type": "integer", "default": 7}}}).decode({}) == 7


SCHEMA: Any = {
    "type": "object",
    "properties": {"text": TEXT, "speed": {"type": "number", "default": 1.0}, "metadata": {}, "done": {}, "reward": {}},
    "required": ["text", "metadata"],
}


def test_an_action_with_one_required_field_is_that_field() -> None:
    mapping = mapping_from_schema(SCHEMA)
    assert mapping.space == UnicodeText()
    assert mapping.encode("x") == {"text": "x"}


def test_an_observation_with_two_fields_is_both() -> None:
    both = Dict([("text", UnicodeText()), ("speed", FLOAT64)])
    assert_same_space(mapping_from_schema(SCHEMA, role="observation").space, both)
    assert_same_space(mapping_from_schema(SCHEMA, flatten=False).space, both)


def test_one_field_is_flat_whether_required_or_not() -> None:
    schema = {"type": "object", "properties": {"text": TEXT, "metadata": {}}}
    for role in ("action", "observation"):
        assert mapping_from_schema(schema, role=role).space == UnicodeText()  # type: ignore[arg-type]
    assert mapping_from_schema(schema, flatten=False).space == Dict(text=UnicodeText())


def test_a_field_that_is_not_sent_need_not_have_a_space() -> None:
    schema = {"type": "object", "properties": {"text": TEXT, "odd": {"type": "odd"}}, "required": ["text"]}
    assert mapping_from_schema(schema).space == UnicodeText()
    with pytest.raises(SpaceMappingError) as caught:
        mapping_from_schema(schema, flatten=False)
    assert caught.value.path == "$.properties.odd"


def test_a_top_level_that_is_no_object_is_a_value() -> None:
    assert mapping_from_schema({"type": "boolean"}).encode(1) is True
    assert mapping_from_schema({"type": "object"}).encode("{}") == {}


REFERENCE = {"$ref": "#/$defs/Node"}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (3, "$.properties.v"),
        (False, "$.properties.v"),
        ({"type": "odd"}, "$.properties.v"),
        ({"type": {}}, "$.properties.v"),
        ({"type": ["odd"]}, "$.properties.v"),
        ({"enum": []}, "$.properties.v.enum"),
        ({"enum": 3}, "$.properties.v.enum"),
        ({"anyOf": []}, "$.properties.v"),
        ({"anyOf": [TEXT, {"type": "odd"}]}, "$.properties.v.anyOf[1]"),
        ({"allOf": 3}, "$.properties.v"),
        ({"$ref": "#/$defs/Missing"}, "$.properties.v"),
        ({"$ref": "http://other/schema"}, "$.properties.v"),
        ({"$ref": 3}, "$.properties.v"),
        (REFERENCE, "$.properties.v.$ref.properties.next"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "$.properties.v"),
        ({"type": "string", "minLength": 10**10}, "$.properties.v"),
        ({"type": "string", "minLength": -1}, "$.properties.v.minLength"),
        ({"type": "string", "maxLength": "3"}, "$.properties.v.maxLength"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "$.properties.v"),
        ({"type": "integer", "minimum": 2**64}, "$.properties.v"),
        ({"type": "number", "exclusiveMinimum": True}, "$.properties.v.exclusiveMinimum"),
        ({"type": "array", "items": {"type": "odd"}}, "$.properties.v.items"),
        ({"type": "array", "prefixItems": [TEXT]}, "$.properties.v"),
        ({"type": "array", "prefixItems": [{"type": "odd"}], "items": False}, "$.properties.v.prefixItems[0]"),
        (
            {"type": "array", "items": {"type": "number"}, "minItems": MAX_BYTES + 1, "maxItems": MAX_BYTES + 1},
            "$.properties.v",
        ),
        ({"type": "object", "properties": 3}, "$.properties.v.properties"),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["b"]}, "$.properties.v.required"),
        ({"type": "object", "properties": {"a": TEXT}, "required": "a"}, "$.properties.v.required"),
        ({"x-gymnasium-space": {"type": "UnicodeText", "min_length": 10**10, "max_length": 10**11}}, "$"),
        ({"x-gymnasium-space": {"type": "odd"}}, "$.properties.v.x-gymnasium-space"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_what_cannot_be_mapped_is_refused_with_its_path(schema: Any, path: str) -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [REFERENCE, NULL]}}}
    document: Any = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"Node": node}}
    with pytest.raises(SpaceMappingError) as caught:
        mapping_from_schema(document)
    assert caught.value.path is not None
    assert caught.value.path.startswith(path)
    assert path in str(caught.value)


def test_schemas_nested_too_deeply_are_refused() -> None:
    schema: Any = TEXT
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SpaceMappingError, match="deep"):
        value(schema)


def test_values_nested_too_deeply_to_compare_are_refused() -> None:
    with pytest.raises(SpaceMappingError, match="ordinary size and depth"):
        value({"enum": [DEEP]})


def test_a_document_that_is_no_schema_is_refused() -> None:
    with pytest.raises(SpaceMappingError) as caught:
        mapping_from_schema([], path="$.action")  # type: ignore[arg-type]
    assert caught.value.path == "$.action"


def test_a_recursive_model_is_refused() -> None:
    class Tree(BaseModel):
        children: list[Tree]

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    with pytest.raises(SpaceMappingError, match="recursive"):
        mapping_from_schema(
            {"type": "object", "properties": {"t": Tree.model_json_schema()}, **Tree.model_json_schema()}
        )
