"""A Space as JSON Schema: valid, and true of every value of the Space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple
from jsonschema import Draft202012Validator

from openenv_gym.errors import SpaceMappingError
from openenv_gym.spaces import UnicodeText, mapping_from_schema, schema_from_space, space_to_json
from openenv_gym.spaces.schema import ANNOTATION

NON_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}
EXAMPLES: list[tuple[Space[Any], Any]] = [
    (Discrete(3, start=-1), {"type": "integer", "minimum": -1, "maximum": 1}),
    (
        MultiBinary(2),
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1}, "minItems": 2, "maxItems": 2},
    ),
    (
        MultiDiscrete([2, 3], start=[5, 0]),
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 6}, "minItems": 2, "maxItems": 2},
    ),
    (MultiDiscrete(np.zeros(0, int)), {"type": "array", "items": {"type": "integer"}, "minItems": 0, "maxItems": 0}),
    (Box(0, 1, ()), {"type": "number", "minimum": 0.0, "maximum": 1.0}),
    (Box(-np.inf, 1, ()), {"anyOf": [{"type": "number", "maximum": 1.0}, NON_FINITE]}),
    (Box(-1, np.inf, ()), {"anyOf": [{"type": "number", "minimum": -1.0}, NON_FINITE]}),
    (Box(0, 255, (), np.uint8), {"type": "integer", "minimum": 0, "maximum": 255}),
    (Box(0, 1, (), bool), {"type": "boolean"}),
    (Box(0, 1, (0,)), {"type": "array", "items": {"type": "number"}, "minItems": 0, "maxItems": 0}),
    (UnicodeText(5), {"type": "string", "minLength": 0, "maxLength": 5}),
    (Text(5, charset="a-z"), {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a\\u002dz]*$"}),
    (Text(5, charset="a🚀"), {"type": "string", "minLength": 1, "maxLength": 5}),
    (Text(0, min_length=0, charset=""), {"type": "string", "minLength": 0, "maxLength": 0}),
    (Tuple([]), {"type": "array", "minItems": 0, "maxItems": 0}),
    (
        Tuple([Discrete(1)]),
        {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "prefixItems": [{"type": "integer", "minimum": 0, "maximum": 0}],
            "items": False,
        },
    ),
    (
        Dict([("b", MultiBinary(1)), ("a", UnicodeText(1))]),
        {
            "type": "object",
            "properties": {
                "b": {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": 1},
                    "minItems": 1,
                    "maxItems": 1,
                },
                "a": {"type": "string", "minLength": 0, "maxLength": 1},
            },
            "required": ["b", "a"],
            "additionalProperties": False,
        },
    ),
    (Sequence(Box(0, 1, (), bool)), {"type": "array", "items": {"type": "boolean"}}),
]


@pytest.mark.parametrize(("space", "expected"), EXAMPLES, ids=lambda value: str(value)[:40])
def test_a_space_is_described_so(space: Space[Any], expected: Any) -> None:
    schema = schema_from_space(space)
    assert schema.pop(ANNOTATION) == space_to_json(space)
    assert schema == expected
    Draft202012Validator.check_schema(schema)


def test_only_the_top_level_is_annotated() -> None:
    schema = schema_from_space(Dict(a=OneOf([Discrete(2), Graph(Discrete(2), Discrete(2))])))
    assert ANNOTATION in schema
    del schema[ANNOTATION]
    assert ANNOTATION not in str(schema)


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (Graph(Discrete(2), None), {"nodes": [0], "edges": [1], "edge_links": None}),
        (Graph(Discrete(2), None), {"nodes": [0]}),
        (OneOf([Discrete(2), UnicodeText()]), [0, "x"]),
        (OneOf([Discrete(2)]), [1, 0]),
        (Tuple([Discrete(2)]), [0, 0]),
        (Dict(a=Discrete(2)), {"a": 0, "b": 0}),
        (Box(0, 1, (2,)), [0.0, "NaN"]),
        (Text(3, charset="ab"), "abc"),
    ],
)
def test_what_is_no_value_of_the_space_does_not_validate(space: Space[Any], value: Any) -> None:
    assert not Draft202012Validator(schema_from_space(space)).is_valid(value)


def test_a_space_that_is_not_carried_has_no_schema() -> None:
    class Fancy(Discrete):
        pass

    with pytest.raises(SpaceMappingError, match="Fancy"):
        schema_from_space(Fancy(2))


def test_the_annotation_gives_the_space_back() -> None:
    space = Dict([("b", Box(0, 1, (2,), ">f4")), ("a", Sequence(Discrete(3, start=1), stack=True))])
    mapping = mapping_from_schema(
        {"type": "object", "properties": {"obs": schema_from_space(space)}, "required": ["obs"]}
    )
    assert mapping.space == space
    value = {"obs": {"b": [0.0, 1.0], "a": [1, 3]}}
    assert mapping.encode(mapping.decode(value)) == value
    assert mapping_from_schema(schema_from_space(space)).space == space
