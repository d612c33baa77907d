"""Space to JSON: one object a Space, exact enough to build an equal one on the other side.

For ``/schema`` and everything else that publishes a Space. Not for the way back (``deserialize.py``), nor for samples
(``values.py``), nor for JSON Schema (``schema.py``).

Equal means more than ``==`` here: the same key order at every level, the same dtype of every leaf, the same order of
a charset. Field names are Minari's where it has one: ``type``, ``dtype``, ``shape``, ``low``, ``high``, ``n``,
``start``, ``nvec``, ``subspaces``, ``max_length``, ``min_length``, ``charset``. Uniform bounds are written once
instead of per element; infinities are the strings ``"Infinity"`` and ``"-Infinity"``, also for the unbounded sides of
a signed integer ``Box``, which Gymnasium stores as the limits of the dtype. The random state of a Space does not
travel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.spaces.text import UnicodeText, is_scalar_text
from openenv_gym.spaces.values import codec_for

__all__ = ["space_to_json"]


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
    # A frame has a hundred thousand bounds, all alike: they are not to be listed first.
    if bound.size and unbounded is not None and unbounded.all():
        return infinity
    if _is_uniform(bound) and (unbounded is None or not unbounded.any()):
        value = bound.flat[0].item()
        return spell_float(value) if isinstance(value, float) else value
    values: list[JSON] = [spell_float(v) if isinstance(v, float) else v for v in bound.ravel().tolist()]
    if unbounded is not None:
        values = [
            infinity if endless else value for value, endless in zip(values, unbounded.ravel().tolist(), strict=True)
        ]
    return _nest(values, bound.shape)


def _is_uniform(bound: np.ndarray) -> bool:
    if bound.size == 0:
        return False
    first = bound.flat[0]
    if not (bound == first).all():
        return False
    # -0.0 is equal to 0.0, and is not the same bound.
    return first != 0 or bound.dtype.kind != "f" or bool((np.signbit(bound) == np.signbit(first)).all())


def _nest(values: list[Any], shape: tuple[int, ...]) -> JSON:
    nested = np.empty(len(values), dtype=object)
    nested[:] = values
    return nested.reshape(shape).tolist()  # type: ignore[no-any-return]  # NumPy says Any


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
