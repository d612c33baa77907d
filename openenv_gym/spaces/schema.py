"""A Space as JSON Schema: what any client of the wire, Gymnasium or not, learns about a value's JSON form.

Draft 2020-12, with the exact Space in the annotation ``x-gymnasium-space``. Not for the way back from a schema
without the annotation (``mapping.py``), nor for whole action and observation objects: those are the server's, who put
this inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple

from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.serialize import space_to_json
from openenv_gym.spaces.text import UnicodeText

__all__ = ["ANNOTATION", "schema_from_space"]

ANNOTATION = "x-gymnasium-space"
"""The keyword that holds the exact Space of a value."""

MAX_PATTERN_CHARACTERS = 256
"""A charset above it is not written as a pattern."""


def schema_from_space(space: Space[Any]) -> JSONObject:
    """The JSON Schema of a Space's values, in the JSON form of ``ValueCodec``.

    Every encoded member of the Space validates. Bounds that differ from element to element are given as the widest of
    them; the annotation at the top level has the exact ones.

    Args:
        space: one of the ten built-in Spaces or ``UnicodeText``, nested at will.

    Raises:
        SpaceMappingError: as ``space_to_json``.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> from openenv_gym.spaces import schema_from_space
        >>> schema = schema_from_space(Discrete(3))
        >>> schema.pop("x-gymnasium-space")
        {'type': 'Discrete', 'n': 3, 'start': 0, 'dtype': 'int64'}
        >>> schema
        {'type': 'integer', 'minimum': 0, 'maximum': 2}
    """
    annotation = space_to_json(space)
    return {**_schema(space), ANNOTATION: annotation}


def _schema(space: Space[Any]) -> JSONObject:
    if isinstance(space, Dict):
        return _closed({key: _schema(part) for key, part in space.spaces.items()})
    if isinstance(space, Tuple):
        return _positions([_schema(part) for part in space.spaces])
    if isinstance(space, OneOf):
        return {"oneOf": [_positions([{"const": i}, _schema(part)]) for i, part in enumerate(space.spaces)]}
    if isinstance(space, Sequence):
        return {"type": "array", "items": _schema(space.feature_space)}
    if isinstance(space, Graph):
        return _graph(space)
    return _leaf(space)


def _closed(properties: dict[str, JSON]) -> JSONObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _positions(parts: list[JSON]) -> JSONObject:
    lengths: JSONObject = {"type": "array", "minItems": len(parts), "maxItems": len(parts)}
    return {**lengths, "prefixItems": parts, "items": False} if parts else lengths


def _graph(space: Graph) -> JSONObject:
    link = _nested({"type": "integer", "minimum": 0}, (2,))
    null: JSONObject = {"type": "null"}
    edges: JSONObject = null
    if space.edge_space is not None:
        edges = {"anyOf": [{"type": "array", "items": _schema(space.edge_space)}, null]}
    links: JSONObject = {"anyOf": [{"type": "array", "items": link}, null]}
    return _closed(
        {"nodes": {"type": "array", "items": _schema(space.node_space)}, "edges": edges, "edge_links": links}
    )


def _nested(leaf: JSONObject, shape: tuple[int, ...]) -> JSONObject:
    for length in reversed(shape):
        leaf = {"type": "array", "items": leaf, "minItems": length, "maxItems": length}
    return leaf


def _leaf(space: Space[Any]) -> JSONObject:
    if isinstance(space, Discrete):
        return _integers(int(space.start), int(space.start) + int(space.n) - 1)
    if isinstance(space, MultiBinary):
        return _nested(_integers(0, 1), space.shape)
    if isinstance(space, MultiDiscrete):
        if space.nvec.size == 0:
            return _nested({"type": "integer"}, space.shape)
        lowest = [int(start) for start in space.start.flat]
        highest = [start + int(n) - 1 for start, n in zip(lowest, space.nvec.flat, strict=True)]
        return _nested(_integers(min(lowest), max(highest)), space.shape)
    if isinstance(space, Box):
        return _nested(_box_element(space), space.shape)
    assert isinstance(space, Text)
    return _text(space)


def _integers(lowest: int, highest: int) -> JSONObject:
    return {"type": "integer", "minimum": lowest, "maximum": highest}


def _box_element(space: Box) -> JSONObject:
    kind = space.dtype.kind
    if kind == "b":
        return {"type": "boolean"}
    element: JSONObject = {"type": "number" if kind == "f" else "integer"}
    if space.low.size == 0:
        return element
    lowest, highest = space.low.min().item(), space.high.max().item()
    if kind != "f":
        return {**element, "minimum": lowest, "maximum": highest}
    if np.isfinite(lowest):
        element["minimum"] = lowest
    if np.isfinite(highest):
        element["maximum"] = highest
    if len(element) == len(("type", "minimum", "maximum")):
        return element
    return {"anyOf": [element, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def _text(space: Text) -> JSONObject:
    schema: JSONObject = {"type": "string", "minLength": space.min_length, "maxLength": space.max_length}
    if isinstance(space, UnicodeText):
        return schema
    characters = space.character_list
    # Regular expressions of JSON Schema and of Python agree on \\uXXXX and on nothing beyond the basic plane.
    if 0 < len(characters) <= MAX_PATTERN_CHARACTERS and all(ord(character) < 0x10000 for character in characters):
        listed = "".join(c if c.isascii() and c.isalnum() else f"\\u{ord(c):04x}" for c in characters)
        schema["pattern"] = f"^[{listed}]*$"
    return schema
