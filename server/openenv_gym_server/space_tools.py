"""A Gymnasium environment's Spaces as an agent reads them: a sentence for each, and the JSON Schemas of its tools.

Not for the tools themselves (``gym_tools.py``), nor for how a Space becomes a schema (``openenv_gym.spaces``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple

from openenv_gym.json_text import JSONObject

__all__ = ["arguments_schema", "is_picture", "words_for"]

MAX_WORDS = 2_000
"""Characters of a sentence; above, it says where the rest is."""

_SMALLEST_PICTURE = 8
"""Pixels of a picture's shorter side: an array of fewer is read as numbers."""


def words_for(space: Space[Any]) -> str:
    """What a value of the Space is, as part of a sentence.

    Example:
        >>> words_for(Discrete(4))
        'an integer from 0 to 3'
        >>> words_for(Dict(aim=Box(-1, 1, (2,), np.float32), fire=Discrete(2)))
        'an object of "aim": an array of 2 numbers from -1.0 to 1.0; and "fire": an integer from 0 to 1'
    """
    text = _words(space)
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]} … (the JSON Schema has the rest)"


def arguments_schema(name: str, value: JSONObject, description: str) -> JSONObject:
    """The input schema of a tool with one argument.

    Args:
        name: the argument.
        value: the JSON Schema of its values.
        description: what it is.
    """
    return {
        "type": "object",
        "properties": {name: {**value, "description": description}},
        "required": [name],
        "additionalProperties": False,
    }


def is_picture(space: Space[Any]) -> bool:
    """Whether the values of a Space are pictures, which say more as such than as numbers.

    Example:
        >>> is_picture(Box(0, 255, (210, 160, 3), np.uint8)), is_picture(Box(0, 255, (128,), np.uint8))
        (True, False)
    """
    if not isinstance(space, Box) or space.dtype != np.uint8:
        return False
    grey = len(space.shape) == 2
    coloured = len(space.shape) == 3 and space.shape[2] in {1, 3, 4}
    return (grey or coloured) and min(space.shape[:2]) >= _SMALLEST_PICTURE


def _words(space: Space[Any]) -> str:
    for kind, describe in _DESCRIBED:
        if isinstance(space, kind):
            return describe(space)
    return "a value"


def _discrete(space: Discrete) -> str:
    return f"an integer from {int(space.start)} to {int(space.start) + int(space.n) - 1}"


def _box(space: Box) -> str:
    kind = {"b": "boolean", "f": "number"}.get(space.dtype.kind, "integer")
    if space.low.size == 0:
        return f"an array of shape {space.shape}, which is empty"
    if not space.shape:
        return f"{'an' if kind == 'integer' else 'a'} {kind}{_bounds(space)}"
    return f"{_array(space.shape)} {_several(kind, space.shape)}{_bounds(space)}"


def _bounds(space: Box) -> str:
    if space.dtype.kind == "b":
        return ""
    alike = bool((space.low == space.low.flat[0]).all() and (space.high == space.high.flat[0]).all())
    if alike or space.low.size > _LISTED:
        return _between(space.low.min(), space.high.max())
    return f", at least {_numbers(space.low)} and at most {_numbers(space.high)}"


def _numbers(bounds: Any) -> str:
    """The bounds as they are written in their own precision."""
    return f"[{', '.join(str(bound) for bound in bounds.flat)}]"


_LISTED = 16
"""Elements whose bounds are listed, where they differ."""


def _between(low: Any, high: Any) -> str:
    if np.isinf(low):
        return "" if np.isinf(high) else f" of at most {high}"
    return f" of at least {low}" if np.isinf(high) else f" from {low} to {high}"


def _array(shape: tuple[int, ...]) -> str:
    return f"an array of {shape[0]}" if len(shape) == 1 else f"a nested array of shape {shape} of"


def _several(kind: str, shape: tuple[int, ...]) -> str:
    return kind if shape == (1,) else f"{kind}s"


def _multi_binary(space: MultiBinary) -> str:
    return f"{_array(space.shape)} {_several('integer', space.shape)}, each 0 or 1"


def _multi_discrete(space: MultiDiscrete) -> str:
    words = f"{_array(space.shape)} {_several('integer', space.shape)}"
    return f"{words}, at least {space.start.tolist()} and at most {(space.start + space.nvec - 1).tolist()}"


def _text(space: Text) -> str:
    return f"a text of {space.min_length} to {space.max_length} characters"


def _dict(space: Dict) -> str:
    return "an object of " + _joined([f'"{name}": {_words(part)}' for name, part in space.spaces.items()])


def _tuple(space: Tuple[Any]) -> str:
    return f"an array of {len(space.spaces)} in order: " + _joined([_words(part) for part in space.spaces])


def _one_of(space: OneOf[Any]) -> str:
    parts = [f"[{number}, value] with {_words(part)}" for number, part in enumerate(space.spaces)]
    return "one of these arrays: " + _joined(parts, "or")


def _sequence(space: Sequence) -> str:
    return f"an array of any length, each element {_words(space.feature_space)}"


def _graph(space: Graph) -> str:
    edges = "null" if space.edge_space is None else f"an array, each edge {_words(space.edge_space)}, or null"
    return (
        f'an object of "nodes": an array, each node {_words(space.node_space)}; "edges": {edges}; and "edge_links": an '
        "array of [from, to], the numbers of two nodes, or null"
    )


def _joined(parts: list[str], word: str = "and") -> str:
    return "; ".join([*parts[:-1], f"{word} {parts[-1]}"]) if len(parts) > 1 else "".join(parts)


_DESCRIBED = cast(
    "tuple[tuple[type[Space[Any]], Callable[[Space[Any]], str]], ...]",
    (
        (Discrete, _discrete),
        (Box, _box),
        (MultiBinary, _multi_binary),
        (MultiDiscrete, _multi_discrete),
        (Text, _text),
        (Dict, _dict),
        (Tuple, _tuple),
        (OneOf, _one_of),
        (Sequence, _sequence),
        (Graph, _graph),
    ),
)
