"""JSON Schemas made flat: references followed, ``allOf`` merged, alternatives listed.

For ``mapping.py``, which then sees one plain schema at a time. Only what shapes a value is kept right here;
annotations (titles, descriptions) may get lost on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.limits import BYTES_PER_SPACE, MAX_DEPTH, Budget

__all__ = ["Place", "alternatives", "resolve"]

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "discriminator"}
    | {"$defs", "definitions", "$schema", "$id", "$comment", "$anchor"}
)
"""Keywords that do not shape a value."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the document a schema stands.

    Attributes:
        root: the whole document, for its references.
        path: the JSON path, for errors.
        references: those that were followed on the way here; meeting one again is a recursion.
        depth: how deep the schema is nested.
        budget: the bytes the document may still ask for.
    """

    root: JSONObject
    path: str
    references: frozenset[str] = frozenset()
    depth: int = 0
    budget: Budget = field(default_factory=Budget)

    def down(self, step: str) -> Place:
        """The place of a part.

        Raises:
            SpaceMappingError: the schema nests too deeply.
        """
        if self.depth >= MAX_DEPTH:
            raise self.fault(f"expected schemas nested at most {MAX_DEPTH} deep")
        return replace(self, path=f"{self.path}.{step}", depth=self.depth + 1)

    def fault(self, message: str) -> SpaceMappingError:
        """The error of this place."""
        return SpaceMappingError(
            f"{message}, at {self.path}; pass the Space and its conversion yourself to override", path=self.path
        )


def resolve(schema: JSON, place: Place) -> tuple[JSONObject, Place]:
    """The schema without ``$ref`` and ``allOf``, and its place with the references followed.

    Raises:
        SpaceMappingError: a reference leads nowhere, elsewhere or back to itself; parts contradict each other; or
            nothing at all is valid.
    """
    # Counted because references may repeat a part of the document as often as they like.
    place.budget.take(BYTES_PER_SPACE, place.path)
    if schema is True:
        return {}, place
    if not isinstance(schema, dict):
        raise place.fault(
            "expected a schema that allows a value, got false" if schema is False else "expected a schema"
        )
    merged: JSONObject = {}
    if "$ref" in schema:
        place = _follow(schema["$ref"], place)
        merged, place = resolve(_target(schema["$ref"], place), place.down("$ref"))
    parts = schema.get("allOf", [])
    if not isinstance(parts, list):
        raise place.fault("expected a list of schemas in allOf")
    for index, part in enumerate(parts):
        resolved, there = resolve(part, place.down(f"allOf[{index}]"))
        merged = _merge(merged, resolved, place)
        place = replace(place, references=there.references)
    own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
    return _merge(merged, own, place), place


def _follow(reference: JSON, place: Place) -> Place:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise place.fault(f"expected a reference inside the document, got {reference!r}")
    if reference in place.references:
        raise place.fault(f"expected a schema of finite depth, got the recursive reference {reference!r}")
    return replace(place, references=place.references | {reference})


def _target(reference: Any, place: Place) -> JSON:
    target: JSON = place.root
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            raise place.fault(f"expected {reference!r} to lead to a schema, but there is no {name!r}")
    return target


def _merge(first: JSONObject, second: JSONObject, place: Place) -> JSONObject:
    """What both schemas allow."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] == value or key in _ANNOTATIONS:
            merged[key] = value
        elif key in _MERGERS:
            if not all(_fits(key, each) for each in (merged[key], value)):
                raise place.down(key).fault("expected a keyword with a value of its kind")
            merged[key] = _MERGERS[key](merged[key], value, place)
        else:
            raise place.fault(f"expected schemas that can be merged, got two different {key!r}")
    return merged


def _fits(key: str, value: JSON) -> bool:
    """Whether a keyword's value is of the kind that its merger takes."""
    if key in ("type", "required"):
        names = [value] if key == "type" and isinstance(value, str) else value
        return isinstance(names, list) and all(isinstance(name, str) for name in names)
    if key.startswith(("min", "max", "exclusive")):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _KINDS.get(key, object))


_KINDS: dict[str, type] = {"properties": dict, "enum": list}


def _merge_properties(first: Any, second: Any, _: Place) -> JSON:
    both = {key: {"allOf": [first[key], second[key]]} for key in first if key in second}
    return {**first, **second, **both}


def _merge_required(first: Any, second: Any, _: Place) -> JSON:
    return list(dict.fromkeys([*first, *second]))


def _merge_enum(first: Any, second: Any, place: Place) -> JSON:
    common = [value for value in first if value in second]
    if not common:
        raise place.fault("expected a value that both enumerations have")
    return common


def _merge_type(first: Any, second: Any, place: Place) -> JSON:
    kinds = [set(kind) if isinstance(kind, list) else {kind} for kind in (first, second)]
    common = kinds[0] & kinds[1]
    if "integer" in kinds[0] | kinds[1] and all(kind & {"integer", "number"} for kind in kinds):
        common.add("integer")
    if not common:
        raise place.fault(f"expected a type that both schemas allow, got {first!r} and {second!r}")
    return sorted(common) if len(common) > 1 else common.pop()


def _merge_schemas(first: Any, second: Any, _: Place) -> JSON:
    return {"allOf": [first, second]}


def _merge_additional(first: Any, second: Any, _: Place) -> JSON:
    return first is not False and second is not False


def _latter(_: Any, second: Any, __: Place) -> JSON:
    return second  # type: ignore[no-any-return]  # any JSON


_MERGERS: dict[str, Callable[[Any, Any, Place], JSON]] = {
    "properties": _merge_properties,
    "required": _merge_required,
    "enum": _merge_enum,
    "type": _merge_type,
    "items": _merge_schemas,
    "additionalProperties": _merge_additional,
    # Only narrow what is a Space of its own already.
    **dict.fromkeys(("format", "pattern", "multipleOf", "uniqueItems", "contentEncoding", "contentMediaType"), _latter),
    **dict.fromkeys(
        ("minimum", "exclusiveMinimum", "minLength", "minItems"), lambda first, second, _: max(first, second)
    ),
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "maxLength", "maxItems"), lambda first, second, _: min(first, second)
    ),
}


def alternatives(schema: JSONObject, place: Place) -> list[tuple[JSONObject, Place]] | None:
    """The schemas a value may be one of, each resolved; None where there is but one."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            branches = schema[key]
            if not isinstance(branches, list) or not branches:
                raise place.fault(f"expected a list of schemas in {key}")
            rest = {name: value for name, value in schema.items() if name != key and name not in _ANNOTATIONS}
            whole: list[JSON] = [{"allOf": [rest, branch]} if rest else branch for branch in branches]
            return [resolve(branch, place.down(f"{key}[{index}]")) for index, branch in enumerate(whole)]
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return [({**schema, "type": kind}, place) for kind in kinds]
    if schema.get("nullable") is True:
        return [({key: value for key, value in schema.items() if key != "nullable"}, place), ({"type": "null"}, place)]
    return None
