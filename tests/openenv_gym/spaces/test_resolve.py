"""References followed, parts merged, alternatives listed."""

from __future__ import annotations

from typing import Any

import pytest

from openenv_gym.errors import SpaceMappingError
from openenv_gym.spaces.resolve import Place, alternatives, resolve


def resolved(schema: Any, root: Any = None) -> Any:
    return resolve(schema, Place(root or {}, "$"))[0]


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ({"minimum": 1, "maximum": 5}, {"minimum": 2, "maximum": 9}, {"minimum": 2, "maximum": 5}),
        ({"minLength": 1}, {"maxLength": 2}, {"minLength": 1, "maxLength": 2}),
        ({"title": "a"}, {"title": "b"}, {"title": "b"}),
        ({"format": "a"}, {"format": "b"}, {"format": "b"}),
        ({"enum": [1, 2, 3]}, {"enum": [3, 2]}, {"enum": [2, 3]}),
        ({"type": "integer"}, {"type": "number"}, {"type": "integer"}),
        ({"type": ["string", "null"]}, {"type": "null"}, {"type": "null"}),
        ({"type": ["string", "null"]}, {"type": ["null", "string", "object"]}, {"type": ["null", "string"]}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        (
            {"items": {"type": "string"}},
            {"items": {"minLength": 1}},
            {"items": {"allOf": [{"type": "string"}, {"minLength": 1}]}},
        ),
        ({"additionalProperties": False}, {"additionalProperties": True}, {"additionalProperties": False}),
        (
            {"properties": {"a": {"minimum": 1}, "b": {}}},
            {"properties": {"a": {"minimum": 2}, "c": {}}},
            {"properties": {"a": {"allOf": [{"minimum": 1}, {"minimum": 2}]}, "b": {}, "c": {}}},
        ),
    ],
)
def test_parts_are_merged_to_what_both_allow(first: Any, second: Any, merged: Any) -> None:
    assert resolved({"allOf": [first, second]}) == merged
    assert resolved({"allOf": [first], **second}) == merged


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"type": "string"}, {"type": "number"}),
        ({"enum": [1]}, {"enum": [2]}),
        ({"const": 1}, {"const": 2}),
        ({"anyOf": [{}]}, {"anyOf": [True]}),
    ],
)
def test_parts_that_contradict_each_other_are_refused(first: Any, second: Any) -> None:
    with pytest.raises(SpaceMappingError) as caught:
        resolved({"allOf": [first, second]})
    assert caught.value.path == "$"


def test_references_are_followed_with_escapes_and_into_lists() -> None:
    root = {"$defs": {"a/b~c d": {"type": "string"}, "list": [{}, {"type": "null"}]}}
    assert resolved({"$ref": "#/$defs/a~1b~0c%20d"}, root) == {"type": "string"}
    assert resolved({"$ref": "#/$defs/list/1", "title": "t"}, root) == {"type": "null", "title": "t"}
    for reference in ("#/$defs/list/2", "#/$defs/list/x", "#/$defs/list/1/type/x"):
        with pytest.raises(SpaceMappingError):
            resolved({"$ref": reference}, root)


def test_a_reference_to_itself_is_refused() -> None:
    with pytest.raises(SpaceMappingError, match="recursive"):
        resolved({"$ref": "#"}, {"$ref": "#"})


def test_one_schema_has_no_alternatives() -> None:
    place = Place({}, "$")
    assert alternatives({"type": "string"}, place) is None
    assert alternatives({"type": "string", "nullable": False}, place) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"required": 5}, {"required": ["a"]}]},
        {"allOf": [{"required": [[]]}, {"required": ["a"]}]},
        {"allOf": [{"properties": []}, {"properties": {"a": {}}}]},
        {"allOf": [{"enum": 3}, {"enum": [3]}]},
        {"allOf": [{"type": [{}]}, {"type": "string"}]},
        {"allOf": [{"minimum": "a"}, {"minimum": 1}]},
        {"allOf": [{"maxItems": True}, {"maxItems": 3}]},
    ],
)
def test_keywords_with_values_of_another_kind_are_refused_where_they_are_merged(schema: Any) -> None:
    with pytest.raises(SpaceMappingError):
        resolved(schema)
