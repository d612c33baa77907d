"""Type-exact comparison of what a local and a served environment gave for the same calls.

Stricter than ``==``: arrays by dtype, shape and bytes, floats by their 64 bits, containers by type and order. Raises
``AssertionError`` that names the path of the first difference.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

with warnings.catch_warnings():
    # SWIG's types warn while Box2D is imported, and that warning raised as an error ends the interpreter.
    warnings.simplefilter("ignore")
    import Box2D  # noqa: F401

Transition = tuple[Any, Any, Any, Any, Any]


def assert_same_transition(local: Transition, served: Transition, space: gymnasium.Space[Any], where: str = "") -> None:
    """Both steps are the same: the local observation after its cast to the Space's dtype, reward, flags, info."""
    assert_same_value(as_the_space_holds_it(space, local[0]), served[0], f"{where} observation")
    assert type(served[1]) is float, f"{where} reward is {type(served[1]).__name__}"
    assert _bits(reward_as_float(local[1])) == _bits(served[1]), f"{where} reward: {local[1]!r}, {served[1]!r}"
    for index, name in ((2, "terminated"), (3, "truncated")):
        assert type(served[index]) is bool, f"{where} {name} is {type(served[index]).__name__}"
        assert bool(local[index]) is served[index], f"{where} {name}: {local[index]!r}, {served[index]!r}"
    assert_same_value(local[4], served[4], f"{where} info")


def assert_same_reset(
    local: tuple[Any, Any], served: tuple[Any, Any], space: gymnasium.Space[Any], where: str = ""
) -> None:
    """Both resets are the same: the local observation after its cast to the Space's dtype, and info."""
    assert_same_value(as_the_space_holds_it(space, local[0]), served[0], f"{where} observation")
    assert_same_value(local[1], served[1], f"{where} info")


def reward_as_float(reward: Any) -> float:
    """Every scalar-like reward as float64; None is 0.0."""
    return 0.0 if reward is None else float(np.asarray(reward).reshape(()))


def as_the_space_holds_it(space: gymnasium.Space[Any], sample: Any) -> Any:
    """The sample with the types the Space itself samples: a local environment may return others (an int for Discrete).

    Written without the codec under test, leaf by leaf.
    """
    match space:
        case gymnasium.spaces.Discrete():
            return space.dtype.type(sample)
        case gymnasium.spaces.Text():
            return str(sample)
        case gymnasium.spaces.Dict():
            return {name: as_the_space_holds_it(part, sample[name]) for name, part in space.items()}
        case gymnasium.spaces.Tuple():
            return tuple(as_the_space_holds_it(part, sample[i]) for i, part in enumerate(space.spaces))
        case gymnasium.spaces.OneOf():
            return np.int64(sample[0]), as_the_space_holds_it(space.spaces[int(sample[0])], sample[1])
        case gymnasium.spaces.Graph():
            return _graph_as_the_space_holds_it(space, sample)
        case gymnasium.spaces.Sequence() if not space.stack:
            return tuple(as_the_space_holds_it(space.feature_space, item) for item in sample)
        case gymnasium.spaces.Sequence():
            return sample
    return np.asarray(sample).astype(space.dtype)


def _graph_as_the_space_holds_it(space: gymnasium.spaces.Graph, sample: Any) -> Any:
    edges = None if sample.edges is None else np.asarray(sample.edges, space.edge_space.dtype)
    links = None if sample.edge_links is None else np.asarray(sample.edge_links)
    return gymnasium.spaces.GraphInstance(np.asarray(sample.nodes, space.node_space.dtype), edges, links)


def assert_same_value(local: Any, served: Any, where: str = "value") -> None:
    """Both are of one type and hold the same bits, at every depth."""
    for path, left, right in _leaves(local, served, where):
        assert type(left) is type(right), f"{path}: {type(left).__name__} {left!r}, {type(right).__name__} {right!r}"
        if isinstance(left, np.ndarray | np.generic):
            assert left.dtype == right.dtype, f"{path}: {left.dtype}, {right.dtype}"
            assert left.shape == right.shape, f"{path}: {left.shape}, {right.shape}"
            assert left.tobytes() == right.tobytes(), f"{path}: {left!r}, {right!r}"
        elif isinstance(left, float):
            assert _bits(left) == _bits(right), f"{path}: {left!r}, {right!r}"
        elif isinstance(left, complex):
            assert (_bits(left.real), _bits(left.imag)) == (_bits(right.real), _bits(right.imag)), path
        else:
            assert left == right, f"{path}: {left!r}, {right!r}"


def _leaves(local: Any, served: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(local, dict) and type(local) is type(served):
        # The keys as tuples: their order and their types count.
        yield f"{path} keys", _typed(local), _typed(served)
        for key in local:
            yield from _leaves(local[key], served[key], f"{path}[{key!r}]")
    elif isinstance(local, list | tuple) and type(local) is type(served):
        yield f"{path} length", len(local), len(served)
        for index, (left, right) in enumerate(zip(local, served, strict=True)):
            yield from _leaves(left, right, f"{path}[{index}]")
    elif isinstance(local, np.ndarray) and local.dtype.hasobject and type(local) is type(served):
        yield f"{path} shape", local.shape, served.shape
        yield from _leaves(local.tolist(), served.tolist(), path)
    else:
        yield path, local, served


def _typed(keys: Any) -> list[tuple[str, Any]]:
    return [(type(key).__name__, key) for key in keys]


def _bits(number: float) -> bytes:
    return struct.pack("<d", number)
