"""Random nested Spaces, random samples of them, and equality to the last bit."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from hypothesis import strategies as st

from openenv_gym.errors import SpaceMappingError, ValueMappingError
from openenv_gym.spaces import UnicodeText
from openenv_gym.spaces.batches import stack

DTYPES = (
    *(
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
    ),
    *(">f2", ">f4", ">f8", ">i4", ">u8"),
)
DISCRETE_HAS_DTYPE = "dtype" in inspect.signature(Discrete).parameters
"""Gymnasium has it from 1.2.2 on; before, every Discrete is int64."""

TEXT = 'aZ9 é日🚀\n"\\\x00~-]^'


@contextmanager
def typed_error(kind: type[SpaceMappingError | ValueMappingError], under: str = "$") -> Iterator[None]:
    """Nothing may be raised but this error, and it must say where."""
    try:
        yield
    except kind as error:
        if not (error.path or "").startswith(under):
            raise


def shapes() -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(shapes())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype.kind == "b":
        return Box(np.zeros(shape, bool), np.ones(shape, bool), dtype=bool)
    one, two = _bits(rng, dtype, shape), _bits(rng, dtype, shape)
    uniform = draw(st.booleans())
    if uniform:
        one, two = (np.full(shape, _bits(rng, dtype, ()), dtype) for _ in "ab")
    if dtype.kind == "f":
        one, two = (
            np.nan_to_num(one, nan=-0.0, posinf=np.inf, neginf=-np.inf),
            np.nan_to_num(two, nan=0.0, posinf=np.inf, neginf=-np.inf),
        )
        one, two = one.astype(dtype), two.astype(dtype)
    swap = one > two
    low, high = np.where(swap, two, one).astype(dtype), np.where(swap, one, two).astype(dtype)
    box = Box(low, high, shape, dtype)
    if dtype.kind == "i" and draw(st.booleans()):
        low[...], high[...] = np.iinfo(dtype).min, np.iinfo(dtype).max
        box = Box(-np.inf, np.inf, shape, dtype)
    return box


def _bits(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Any bit patterns of the dtype, the special ones often."""
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    values = np.ascontiguousarray(raw).reshape(-1).view(dtype).reshape(shape).copy()
    if dtype.kind == "f":
        info = np.finfo(dtype)
        special = np.array(
            [0.0, -0.0, np.nan, np.inf, -np.inf, info.max, info.min, info.smallest_subnormal, 1.0]
        ).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        special = np.array([limits.min, limits.max, 0, 1], dtype)
    chosen = rng.random(shape) < 0.4
    return np.where(chosen, rng.choice(special, shape), values).astype(dtype)


@st.composite
def discretes(draw: st.DrawFn) -> Discrete:
    names = [name for name in DTYPES if np.dtype(name).kind in "iu"] if DISCRETE_HAS_DTYPE else ["int64"]
    dtype = np.dtype(draw(st.sampled_from(names)))
    limits = np.iinfo(dtype)
    n = draw(st.integers(1, min(limits.max - 1, 2**40)))
    # One less than could be: Gymnasium 1.2 overflows when it compares with start + n.
    start = draw(st.sampled_from([0, limits.min, 1, limits.max - n]))
    start = max(start, limits.min)
    return Discrete(n, start=start, dtype=dtype) if DISCRETE_HAS_DTYPE else Discrete(n, start=start)


@st.composite
def multi_discretes(draw: st.DrawFn) -> MultiDiscrete:
    shape = draw(shapes())
    dtype = draw(st.sampled_from(["int64", "int8", "uint8", ">i4"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start = rng.integers(0 if dtype == "uint8" else -20, 20, shape)
    return MultiDiscrete(rng.integers(1, 100, shape), dtype=dtype, start=start)


def multi_binaries() -> st.SearchStrategy[MultiBinary]:
    return st.one_of(st.integers(1, 4), st.lists(st.integers(1, 3), max_size=3)).map(MultiBinary)


@st.composite
def texts(draw: st.DrawFn) -> Text:
    shortest, span = draw(st.integers(0, 3)), draw(st.integers(0, 5))
    if draw(st.booleans()):
        return UnicodeText(shortest + span, min_length=shortest)
    charset = "".join(draw(st.permutations(TEXT))[: draw(st.integers(1, len(TEXT)))])
    return Text(shortest + span, min_length=shortest, charset=charset)


def leaves() -> st.SearchStrategy[Space[Any]]:
    return st.one_of(boxes(), discretes(), multi_discretes(), multi_binaries(), texts())


@st.composite
def dicts(draw: st.DrawFn, parts: st.SearchStrategy[Space[Any]]) -> Dict:
    keys = draw(st.lists(st.sampled_from(["b", "a", "z.y", "", "ключ", "$", "nodes"]), unique=True, max_size=3))
    return Dict([(key, draw(parts)) for key in keys])


def composites(parts: st.SearchStrategy[Space[Any]]) -> st.SearchStrategy[Space[Any]]:
    return st.one_of(
        dicts(parts),
        st.lists(parts, max_size=3).map(Tuple),
        st.lists(parts, min_size=1, max_size=3).map(OneOf),
        st.builds(Sequence, parts, stack=st.booleans()),
        st.builds(Graph, st.one_of(boxes(), discretes()), st.one_of(st.none(), boxes(), discretes())),
    )


def spaces() -> st.SearchStrategy[Space[Any]]:
    return st.recursive(leaves(), composites, max_leaves=5)


def samples(space: Space[Any], rng: np.random.Generator, *, member: bool = False) -> Any:
    """A sample with the dtypes and shapes of the Space: of any bits, or inside its bounds."""
    if isinstance(space, Box | MultiBinary | MultiDiscrete):
        return _array(space, rng, member=member)
    if isinstance(space, Discrete):
        offset = int(rng.integers(0, int(space.n)))
        return space.dtype.type(int(space.start) + offset)
    if isinstance(space, Text):
        length = int(rng.integers(space.min_length, space.max_length + 1))
        characters = TEXT if isinstance(space, UnicodeText) else space.character_list
        return "".join(str(rng.choice(list(characters))) for _ in range(length))
    if isinstance(space, Dict):
        return {key: samples(part, rng, member=member) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(samples(part, rng, member=member) for part in space.spaces)
    return _counted(space, rng, member=member)


def _array(space: Box | MultiBinary | MultiDiscrete, rng: np.random.Generator, *, member: bool) -> np.ndarray:
    if isinstance(space, MultiBinary):
        return np.asarray(rng.integers(0, 2, space.shape, dtype=np.int8))
    if isinstance(space, MultiDiscrete):
        return np.asarray(space.start + (rng.random(space.shape) * space.nvec).astype(space.dtype), space.dtype)
    values = _bits(rng, space.dtype, space.shape)
    if member:
        values = np.where(np.isnan(values), space.low, values) if space.dtype.kind == "f" else values
        values = np.asarray(np.minimum(np.maximum(values, space.low), space.high), space.dtype)
    return values


def _counted(space: Space[Any], rng: np.random.Generator, *, member: bool) -> Any:
    if isinstance(space, OneOf):
        index = rng.integers(0, len(space.spaces), dtype=np.int64)
        return index, samples(space.spaces[index], rng, member=member)
    count = int(rng.integers(0, 4))
    if isinstance(space, Sequence):
        items = [samples(space.feature_space, rng, member=member) for _ in range(count)]
        return stack(space.feature_space, items) if space.stack else tuple(items)
    assert isinstance(space, Graph)
    nodes = stack(space.node_space, [samples(space.node_space, rng, member=member) for _ in range(count)])
    if space.edge_space is None or count == 0 or rng.random() < 0.3:
        return GraphInstance(nodes, None, None)
    links = rng.integers(0, count, (int(rng.integers(0, 4)), 2), dtype=np.int32)
    return GraphInstance(
        nodes, stack(space.edge_space, [samples(space.edge_space, rng, member=member) for _ in links]), links
    )


def assert_same_space(first: Space[Any], second: Space[Any]) -> None:
    """Equal as the wire means it: ``==``, key order, dtypes, charset order, bounds to the last bit."""
    assert type(first) is type(second)
    assert first == second
    assert first.dtype == second.dtype
    assert first.shape == second.shape
    if isinstance(first, Box) and isinstance(second, Box):
        for name in ("low", "high", "bounded_below", "bounded_above"):
            one, two = getattr(first, name), getattr(second, name)
            assert (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes()), name
    if isinstance(first, Text) and isinstance(second, Text) and not isinstance(first, UnicodeText):
        assert first.character_list == second.character_list
    if isinstance(first, MultiBinary) and isinstance(second, MultiBinary):
        assert type(first.n) is type(second.n)
    if isinstance(first, Dict) and isinstance(second, Dict):
        assert list(first.spaces) == list(second.spaces)
    for one, two in zip(_parts(first), _parts(second), strict=True):
        assert_same_space(one, two)


def _parts(space: Space[Any]) -> list[Space[Any]]:
    if isinstance(space, Dict):
        return list(space.spaces.values())
    if isinstance(space, Tuple | OneOf):
        return list(space.spaces)
    if isinstance(space, Sequence):
        return [space.feature_space]
    if isinstance(space, Graph):
        return [space.node_space] + ([] if space.edge_space is None else [space.edge_space])
    return []


def assert_same_sample(first: Any, second: Any, *, payloads: bool = True) -> None:
    """Equal in type, dtype, shape and every bit; without ``payloads`` every NaN is alike."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray | np.generic):
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        if not payloads and first.dtype.kind == "f":
            nan = np.isnan(first)
            assert np.array_equal(nan, np.isnan(second))
            first, second = np.where(nan, 0, first), np.where(nan, 0, second)
        assert first.tobytes() == second.tobytes()
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            assert_same_sample(first[key], second[key], payloads=payloads)
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for one, two in zip(first, second, strict=True):
            assert_same_sample(one, two, payloads=payloads)
    else:
        assert first == second
