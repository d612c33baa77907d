"""JSON to Space: what ``serialize.py`` writes, read from a peer that is not trusted.

For ``/schema`` and everything else that publishes a Space. Not for JSON Schema (``mapping.py``).

A document of a few bytes can ask for arrays of any size, so what its Spaces take is counted before anything is
allocated (``limits.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.arrays import ArrayCodec, array_codec
from openenv_gym.spaces.atoms import integer_of, list_of, text_of
from openenv_gym.spaces.codec import Fault, describe
from openenv_gym.spaces.limits import (
    BYTES_PER_CHARACTER,
    BYTES_PER_SAMPLED,
    BYTES_PER_SPACE,
    MAX_DEPTH,
    MAX_DIMENSIONS,
    Budget,
)
from openenv_gym.spaces.text import UnicodeText

__all__ = ["bounded_box", "bytes_of_box", "space_from_json"]


def space_from_json(document: JSON, path: str = "$", *, budget: Budget | None = None) -> Space[Any]:
    """The Space of a JSON object.

    Args:
        document: what ``space_to_json`` gives.
        path: the place of the document in its message, for the error.
        budget: the bytes its Spaces may take, where it is part of a larger document; None gives it ``MAX_BYTES``.

    Raises:
        SpaceMappingError: an unknown type, a missing field, a field the Space cannot have, or more memory than a
            document may ask for; ``path`` says where.
    """
    return _read(document, _Place(path, 0, budget or Budget()))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the document a Space stands, and what the document may still ask for."""

    path: str
    depth: int
    budget: Budget

    def down(self, step: str) -> _Place:
        return _Place(self.path + step, self.depth + 1, self.budget)

    def take(self, size: int) -> None:
        self.budget.take(size, self.path)


def _read(document: JSON, place: _Place) -> Space[Any]:
    path = place.path
    if not isinstance(document, dict):
        raise SpaceMappingError(f"expected an object with a type at {path}, got {describe(document)}", path=path)
    if place.depth > MAX_DEPTH:
        raise SpaceMappingError(f"expected Spaces nested at most {MAX_DEPTH} deep, got more at {path}", path=path)
    kind = document.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise SpaceMappingError(
            f"expected one of the types {sorted(_READERS)} at {path}, got {describe(kind)}", path=path
        )
    place.take(BYTES_PER_SPACE)
    try:
        return reader(document, place)
    except SpaceMappingError:
        raise
    except KeyError as error:
        raise SpaceMappingError(f"expected the field {error} of a {kind} at {path}", path=path) from error
    except Fault as fault:
        raise SpaceMappingError(f"expected the numbers of a {kind}: {fault.error(path)}", path=path) from None
    # Gymnasium says what a Space cannot have by any of these, from version to version differently.
    except (AssertionError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise SpaceMappingError(
            f"expected the fields of a {kind} at {path}, got what it cannot have: {str(error)[:300]}", path=path
        ) from error


def _read_box(document: JSONObject, place: _Place) -> Box:
    dtype = _dtype(document["dtype"])
    shape = _shape(document["shape"])
    place.take(bytes_of_box(shape, dtype))
    low, endless_below = _read_bound(document["low"], shape, dtype)
    high, endless_above = _read_bound(document["high"], shape, dtype)
    return bounded_box(low, high, endless_below, endless_above, shape)


def bytes_of_box(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """What a ``Box`` holds: two bounds and two flags for each element."""
    return math.prod(shape) * (2 * dtype.itemsize + 2)


def _dtype(value: JSON) -> np.dtype[Any]:
    dtype = _DTYPES.get(value) if isinstance(value, str) else None
    if dtype is None:
        raise TypeError(f"the dtype {describe(value)}")
    return dtype


def _shape(value: JSON) -> tuple[int, ...]:
    lengths = list_of(value)
    if len(lengths) > MAX_DIMENSIONS:
        raise ValueError(f"{len(lengths)} dimensions, which are more than {MAX_DIMENSIONS}")
    shape = tuple(length for length in lengths if type(length) is int and 0 <= length < 2**63)
    if len(shape) != len(lengths):
        raise TypeError("a shape that is no list of lengths")
    return shape


def _read_bound(value: JSON, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The bound in the dtype, and where it is endless; a signed integer dtype holds its limit there.

    Both have no dimensions where the document says one value for all elements.
    """
    written = shape if isinstance(value, list) else ()
    codec = _array_of(written, dtype)
    if dtype.kind != "i":
        return codec.read(value), np.zeros((), np.bool_)
    limits: dict[JSON, int] = {"-Infinity": int(np.iinfo(dtype).min), "Infinity": int(np.iinfo(dtype).max)}
    leaves = codec.flatten(value)
    flags = [isinstance(leaf, str) and leaf in limits for leaf in leaves]
    finite = [limits[leaf] if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)]
    return codec.build(finite).reshape(written), np.array(flags, np.bool_).reshape(written)


def _array_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> ArrayCodec:
    """The codec of an array without bounds: it allocates nothing until the lists have the shape's lengths."""
    return array_codec(Space(shape, dtype), np.zeros((), dtype), np.zeros((), dtype))


def _read_discrete(document: JSONObject, _: _Place) -> Discrete:
    n, start, dtype = integer_of(document["n"]), integer_of(document["start"]), _dtype(document["dtype"])
    # Before Gymnasium 1.2.2 a Discrete has no dtype but this one.
    return Discrete(n, start=start) if dtype == np.int64 else Discrete(n, start=start, dtype=dtype)


def _read_multi_discrete(document: JSONObject, place: _Place) -> MultiDiscrete:
    dtype = _dtype(document["dtype"])
    nvec = document["nvec"]
    shape = _shape(document["shape"]) if "shape" in document else _shape_of(nvec)
    place.take(math.prod(shape) * 4 * dtype.itemsize)
    codec = _array_of(shape, dtype)
    return MultiDiscrete(codec.read(nvec), dtype, start=codec.read(document["start"]))


def _shape_of(value: JSON) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list) and value and len(shape) < MAX_DIMENSIONS:
        shape.append(len(value))
        value = value[0]
    return tuple(shape)


def _read_multi_binary(document: JSONObject, place: _Place) -> MultiBinary:
    n = document["n"]
    shape = _shape(n if isinstance(n, list) else [n])
    place.take(math.prod(shape))
    return MultiBinary(shape if isinstance(n, list) else shape[0])


def _read_text(document: JSONObject, place: _Place) -> Text:
    charset = text_of(document["charset"])
    place.take(len(charset) * BYTES_PER_CHARACTER)
    # Samples are of any length up to it.
    place.take(max(0, integer_of(document["max_length"])) * BYTES_PER_SAMPLED)
    return Text(integer_of(document["max_length"]), min_length=integer_of(document["min_length"]), charset=charset)


def _read_unicode_text(document: JSONObject, place: _Place) -> UnicodeText:
    # Samples are hardly longer than that.
    place.take(max(0, integer_of(document["min_length"])) * BYTES_PER_SAMPLED)
    return UnicodeText(integer_of(document["max_length"]), min_length=integer_of(document["min_length"]))


def _read_dict(document: JSONObject, place: _Place) -> Dict:
    parts: dict[str, Space[Any]] = {}
    for pair in list_of(document["subspaces"]):
        key, part = list_of(pair)
        if not isinstance(key, str) or key in parts:
            raise ValueError(f"the key {describe(key)}, which is no string or there twice")
        parts[key] = _read(part, place.down(f".{key}"))
    space = Dict(list(parts.items()))
    if document.get("sort_keys") is False:
        space.sort_keys = False
    return space


def _read_tuple(document: JSONObject, place: _Place) -> Tuple[Any]:
    return Tuple(_read_many(document, place))


def _read_one_of(document: JSONObject, place: _Place) -> OneOf[Any]:
    return OneOf(_read_many(document, place))


def _read_many(document: JSONObject, place: _Place) -> list[Space[Any]]:
    return [_read(part, place.down(f"[{index}]")) for index, part in enumerate(list_of(document["subspaces"]))]


def _read_sequence(document: JSONObject, place: _Place) -> Sequence:
    stacked = document["stack"]
    if not isinstance(stacked, bool):
        raise TypeError("a stack flag that is neither true nor false")
    return Sequence(_read(document["space"], place.down(".space")), stack=stacked)


def _read_graph(document: JSONObject, place: _Place) -> Graph:
    edges = document["edge_space"]
    edge_space = None if edges is None else _read(edges, place.down(".edge_space"))
    return Graph(_read(document["node_space"], place.down(".node_space")), edge_space)


_READERS: dict[str, Callable[[JSONObject, _Place], Space[Any]]] = {
    "Box": _read_box,
    "Discrete": _read_discrete,
    "MultiDiscrete": _read_multi_discrete,
    "MultiBinary": _read_multi_binary,
    "Text": _read_text,
    "UnicodeText": _read_unicode_text,
    "Dict": _read_dict,
    "Tuple": _read_tuple,
    "OneOf": _read_one_of,
    "Sequence": _read_sequence,
    "Graph": _read_graph,
}

_NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
_NATIVE: list[np.dtype[Any]] = [np.dtype(name) for name in _NAMES]
_DTYPES = {str(dtype): dtype for native in _NATIVE for dtype in (native.newbyteorder("S"), native)}
"""Every dtype a document may name; a byte order that is not the machine's own shows in the name, as in ``">f4"``."""


def bounded_box(
    low: np.ndarray,
    high: np.ndarray,
    endless_below: np.ndarray,
    endless_above: np.ndarray,
    shape: tuple[int, ...] | None = None,
) -> Box:
    """A ``Box`` of these bounds, with its endless sides marked as Gymnasium marks them.

    Args:
        low: the lower bounds, in the dtype of the Box and in a shape that broadcasts to its own.
        high: the upper bounds, likewise.
        endless_below: bool, likewise: where there is no lower bound and ``low`` only holds the dtype's limit.
        endless_above: bool, likewise for ``high``.
        shape: the shape of the Box; None takes that of ``low``.
    """
    whole = low.shape if shape is None else shape
    # From arrays of its own dtype a Box loses nothing, and copies them; only the flags of an integer Box cannot be told
    # from the values.
    box = Box(_spread(low, whole), _spread(high, whole), whole, low.dtype)
    if low.dtype.kind == "i":
        box.bounded_below = np.array(_spread(~endless_below, whole))
        box.bounded_above = np.array(_spread(~endless_above, whole))
    return box


def _spread(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The values in the shape: a view where there is but one, so that the copy of it is the only one."""
    spread = np.broadcast_to(values, shape)
    return spread if values.ndim == 0 else np.ascontiguousarray(spread)
