"""Space ⇄ JSON: one object a Space, exact enough to build an equal one on the other side.

For ``/schema`` and everything else that publishes a Space. Not for samples (``values.py``), nor for JSON Schema
(``schema.py``).

Equal means more than ``==`` here: the same key order at every level, the same dtype of every leaf, the same order of
a charset. Field names are Minari's where it has one: ``type``, ``dtype``, ``shape``, ``low``, ``high``, ``n``,
``start``, ``nvec``, ``subspaces``, ``max_length``, ``min_length``, ``charset``. Uniform bounds are written once
instead of per element; infinities are the strings ``"Infinity"`` and ``"-Infinity"``, also for the unbounded sides of
a signed integer ``Box``, which Gymnasium stores as the limits of the dtype. The random state of a Space does not
travel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple

from openenv_gym.errors import SpaceMappingError
from openenv_gym.messages import JSON, JSONObject
from openenv_gym.spaces.leaves import spell_float
from openenv_gym.spaces.text import UnicodeText, is_scalar_text
from openenv_gym.spaces.values import codec_for

__all__ = ["bounded_box", "space_from_json", "space_to_json"]

MAX_SIZE = 2**27
"""Elements a Space of a document may have in one array; one that says more is refused before anything is allocated."""

MAX_DIMENSIONS = 32
"""Dimensions an array of a document may have."""

MAX_DEPTH = 64
"""How deep the Spaces of a document may nest."""


def space_to_json(space: Space[Any]) -> JSONObject:
    """The JSON of a Space.

    Args:
        space: one of the ten built-in Spaces or ``UnicodeText``, nested at will.

    Raises:
        SpaceMappingError: a Space of another type (subclasses included, since they may mean more than their base), or
            one with a part JSON cannot carry: a floating dtype wider than 64 bits, keys that are not strings, lone
            surrogates.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> from openenv_gym.spaces import space_from_json, space_to_json
        >>> space_to_json(Discrete(3, start=-1))
        {'type': 'Discrete', 'n': 3, 'start': -1, 'dtype': 'int64'}
        >>> space_from_json(space_to_json(Discrete(3, start=-1)))
        Discrete(3, start=-1)
    """
    codec_for(space)  # refuses every Space that is not carried, with its path
    return _write(space, "$")


def _write(space: Space[Any], path: str) -> JSONObject:
    return {"type": type(space).__name__, **_WRITERS[type(space)](space, path)}


def _write_box(space: Box, _: str) -> JSONObject:
    unbounded = space.dtype.kind == "i"
    low = _write_bound(space.low, ~space.bounded_below if unbounded else None, "-Infinity")
    high = _write_bound(space.high, ~space.bounded_above if unbounded else None, "Infinity")
    return {"low": low, "high": high, "shape": list(space.shape), "dtype": str(space.dtype)}


def _write_bound(bound: np.ndarray, unbounded: np.ndarray | None, infinity: str) -> JSON:
    values: list[JSON] = [spell_float(v) if isinstance(v, float) else v for v in bound.ravel().tolist()]
    if unbounded is not None:
        values = [
            infinity if endless else value for value, endless in zip(values, unbounded.ravel().tolist(), strict=True)
        ]
    # repr tells -0.0 from 0.0, which == does not.
    if values and len(set(map(repr, values))) == 1:
        return values[0]
    return _nest(values, bound.shape)


def _nest(values: list[Any], shape: tuple[int, ...]) -> JSON:
    nested = np.empty(len(values), dtype=object)
    nested[:] = values
    return nested.reshape(shape).tolist()  # type: ignore[no-any-return]


def _write_discrete(space: Discrete, _: str) -> JSONObject:
    return {"n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}


def _write_multi_discrete(space: MultiDiscrete, _: str) -> JSONObject:
    document: JSONObject = {"nvec": space.nvec.tolist(), "start": space.start.tolist(), "dtype": str(space.dtype)}
    if space.nvec.size == 0:
        document["shape"] = list(space.shape)
    return document


def _write_multi_binary(space: MultiBinary, _: str) -> JSONObject:
    return {"n": space.n if isinstance(space.n, int) else list(space.n)}


def _write_text(space: Text, path: str) -> JSONObject:
    lengths: JSONObject = {"min_length": space.min_length, "max_length": space.max_length}
    if isinstance(space, UnicodeText):
        return lengths
    if not all(len(character) == 1 and is_scalar_text(character) for character in space.character_list):
        raise SpaceMappingError(f"expected a charset of Unicode scalar values in the Text at {path}", path=path)
    return {**lengths, "charset": "".join(space.character_list)}


def _write_dict(space: Dict, path: str) -> JSONObject:
    for key in space.spaces:
        if not is_scalar_text(key):
            raise SpaceMappingError(
                f"expected keys of Unicode scalar values in the Dict at {path}, got {key!r}", path=path
            )
    document: JSONObject = {"subspaces": [[key, _write(part, f"{path}.{key}")] for key, part in space.spaces.items()]}
    # Gymnasium has it from 1.4 on; it decides the key order of batches made of the Space.
    if getattr(space, "sort_keys", True) is False:
        document["sort_keys"] = False
    return document


def _write_many(space: Tuple[Any] | OneOf[Any], path: str) -> JSONObject:
    return {"subspaces": [_write(part, f"{path}[{index}]") for index, part in enumerate(space.spaces)]}


def _write_sequence(space: Sequence, path: str) -> JSONObject:
    return {"space": _write(space.feature_space, f"{path}.space"), "stack": bool(space.stack)}


def _write_graph(space: Graph, path: str) -> JSONObject:
    edges = None if space.edge_space is None else _write(space.edge_space, f"{path}.edge_space")
    return {"node_space": _write(space.node_space, f"{path}.node_space"), "edge_space": edges}


_WRITERS: dict[type[Space[Any]], Callable[[Any, str], JSONObject]] = {
    Box: _write_box,
    Discrete: _write_discrete,
    MultiDiscrete: _write_multi_discrete,
    MultiBinary: _write_multi_binary,
    Text: _write_text,
    UnicodeText: _write_text,
    Dict: _write_dict,
    Tuple: _write_many,
    OneOf: _write_many,
    Sequence: _write_sequence,
    Graph: _write_graph,
}


def space_from_json(document: JSON, path: str = "$") -> Space[Any]:
    """The Space of a JSON object.

    Args:
        document: what ``space_to_json`` gives.
        path: the place of the document in its message, for the error.

    Raises:
        SpaceMappingError: an unknown type, a missing field, or a field the Space cannot have; ``path`` says where.
    """
    return _read(document, path, 0)


def _read(document: JSON, path: str, depth: int) -> Space[Any]:
    if not isinstance(document, dict):
        raise SpaceMappingError(f"expected an object with a type at {path}, got a {type(document).__name__}", path=path)
    if depth > MAX_DEPTH:
        raise SpaceMappingError(f"expected Spaces nested at most {MAX_DEPTH} deep, got more at {path}", path=path)
    kind = document.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise SpaceMappingError(f"expected one of the types {sorted(_READERS)} at {path}, got {kind!r}", path=path)
    try:
        return reader(document, path, depth + 1)
    except SpaceMappingError:
        raise
    except KeyError as error:
        raise SpaceMappingError(f"expected the field {error} of a {kind} at {path}", path=path) from error
    # Gymnasium says what a Space cannot have by any of these, from version to version differently.
    except (AssertionError, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise SpaceMappingError(
            f"expected the fields of a {kind} at {path}, got what it cannot have: {error}", path=path
        ) from error


def _read_box(document: JSONObject, _: str, __: int) -> Box:
    dtype = _dtype(document["dtype"])
    shape = _shape(document["shape"])
    low, endless_below = _read_bound(document["low"], shape, dtype)
    high, endless_above = _read_bound(document["high"], shape, dtype)
    return bounded_box(low, high, endless_below, endless_above)


def _dtype(value: JSON) -> np.dtype[Any]:
    dtype = _DTYPES.get(value) if isinstance(value, str) else None
    if dtype is None:
        raise TypeError(f"the dtype {value!r}")
    return dtype


def _shape(value: JSON) -> tuple[int, ...]:
    lengths = value if isinstance(value, list) else []
    shape = tuple(length for length in lengths if type(length) is int and length >= 0)
    if not isinstance(value, list) or len(shape) != len(lengths) or len(shape) > MAX_DIMENSIONS:
        raise TypeError("a shape that is no list of lengths")
    if math.prod(shape) > MAX_SIZE:
        raise ValueError(f"the shape {shape} of more than {MAX_SIZE} elements")
    return shape


def _read_bound(value: JSON, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The bound in the dtype, and where it is endless; a signed integer dtype holds its limit there."""
    written = shape if isinstance(value, list) else ()
    endless = np.zeros(shape, np.bool_)
    if dtype.kind == "i":
        limits = {"-Infinity": int(np.iinfo(dtype).min), "Infinity": int(np.iinfo(dtype).max)}
        flags = _map(value, len(written), lambda leaf: isinstance(leaf, str) and leaf in limits)
        endless |= _read_array(flags, written, np.dtype(np.bool_))
        value = _map(value, len(written), lambda leaf: limits.get(leaf, leaf) if isinstance(leaf, str) else leaf)
    bound = np.empty(shape, dtype)
    bound[...] = _read_array(value, written, dtype)
    return bound, endless


def _map(value: JSON, depth: int, change: Callable[[JSON], JSON]) -> JSON:
    """The nested lists with their leaves changed, no deeper than the shape says."""
    if depth == 0 or not isinstance(value, list):
        return change(value)
    return [_map(item, depth - 1, change) for item in value]


def _read_array(value: JSON, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "f":
        low, high = np.full(shape, -np.inf, dtype), np.full(shape, np.inf, dtype)
    else:
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        low, high = np.full(shape, limits[0], dtype), np.full(shape, limits[1], dtype)
    return codec_for(Box(low, high, shape, dtype)).decode(value)  # type: ignore[no-any-return]


def _read_discrete(document: JSONObject, _: str, __: int) -> Discrete:
    return Discrete(_integer(document["n"]), start=_integer(document["start"]), dtype=_dtype(document["dtype"]))


def _integer(value: JSON) -> int:
    if type(value) is not int:
        raise TypeError(f"a {type(value).__name__} where an integer is due")
    return value


def _read_multi_discrete(document: JSONObject, _: str, __: int) -> MultiDiscrete:
    dtype = _dtype(document["dtype"])
    nvec = document["nvec"]
    shape = _shape(document["shape"]) if "shape" in document else _shape_of(nvec)
    counts, starts = _read_array(nvec, shape, dtype), _read_array(document["start"], shape, dtype)
    return MultiDiscrete(counts, dtype, start=starts)


def _shape_of(value: JSON) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list) and value and len(shape) < MAX_DIMENSIONS:
        shape.append(len(value))
        value = value[0]
    return tuple(shape)


def _read_multi_binary(document: JSONObject, _: str, __: int) -> MultiBinary:
    n = document["n"]
    shape = _shape(n if isinstance(n, list) else [n])
    return MultiBinary(shape if isinstance(n, list) else shape[0])


def _read_text(document: JSONObject, _: str, __: int) -> Text:
    charset = document["charset"]
    if not isinstance(charset, str):
        raise TypeError("a charset that is no string")
    return Text(_integer(document["max_length"]), min_length=_integer(document["min_length"]), charset=charset)


def _read_unicode_text(document: JSONObject, _: str, __: int) -> UnicodeText:
    return UnicodeText(_integer(document["max_length"]), min_length=_integer(document["min_length"]))


def _list(value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list is due")
    return value


def _read_dict(document: JSONObject, path: str, depth: int) -> Dict:
    parts: dict[str, Space[Any]] = {}
    for pair in _list(document["subspaces"]):
        key, part = _list(pair)
        if not isinstance(key, str) or key in parts:
            raise ValueError(f"the key {key!r}, which is no string or there twice")
        parts[key] = _read(part, f"{path}.{key}", depth)
    space = Dict(list(parts.items()))
    if document.get("sort_keys") is False:
        space.sort_keys = False
    return space


def _read_tuple(document: JSONObject, path: str, depth: int) -> Tuple[Any]:
    return Tuple(_read_many(document, path, depth))


def _read_one_of(document: JSONObject, path: str, depth: int) -> OneOf[Any]:
    return OneOf(_read_many(document, path, depth))


def _read_many(document: JSONObject, path: str, depth: int) -> list[Space[Any]]:
    return [_read(part, f"{path}[{index}]", depth) for index, part in enumerate(_list(document["subspaces"]))]


def _read_sequence(document: JSONObject, path: str, depth: int) -> Sequence:
    stacked = document["stack"]
    if not isinstance(stacked, bool):
        raise TypeError("a stack flag that is neither true nor false")
    return Sequence(_read(document["space"], f"{path}.space", depth), stack=stacked)


def _read_graph(document: JSONObject, path: str, depth: int) -> Graph:
    edges = document["edge_space"]
    edge_space = None if edges is None else _read(edges, f"{path}.edge_space", depth)
    return Graph(_read(document["node_space"], f"{path}.node_space", depth), edge_space)


_READERS: dict[str, Callable[[JSONObject, str, int], Space[Any]]] = {
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


def bounded_box(low: np.ndarray, high: np.ndarray, endless_below: np.ndarray, endless_above: np.ndarray) -> Box:
    """A ``Box`` of these bounds, with its endless sides marked as Gymnasium marks them.

    Args:
        low: the lower bounds, in the dtype and shape of the Box.
        high: the upper bounds, likewise.
        endless_below: bool, same shape: where there is no lower bound and ``low`` only holds the dtype's limit.
        endless_above: bool, same shape: likewise for ``high``.
    """
    # From arrays of its own dtype a Box loses nothing; only the flags of an integer Box cannot be told from the
    # values.
    box = Box(low, high, low.shape, low.dtype)
    if low.dtype.kind == "i":
        box.bounded_below = ~endless_below
        box.bounded_above = ~endless_above
    return box
