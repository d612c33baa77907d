"""JSON to Space, from a peer that is not trusted: a Space, or a typed error before anything large is made."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Space
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import SpaceMappingError
from openenv_gym.spaces import mapping_from_schema, space_from_json, space_to_json
from openenv_gym.spaces.deserialize import bytes_of_box
from openenv_gym.spaces.limits import BYTES_PER_CHARACTER, BYTES_PER_SPACE, MAX_BYTES, MAX_DEPTH
from tests.openenv_gym.spaces.strategies import DISCRETE_HAS_DTYPE, spaces, typed_error

BOX = {"type": "Box", "low": 0.0, "high": 1.0, "shape": [2], "dtype": "float32"}
DEEP: Any = {"type": "MultiBinary", "n": 1}
for _ in range(MAX_DEPTH + 1):
    DEEP = {"type": "Tuple", "subspaces": [DEEP]}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (None, "$"),
        ([], "$"),
        ({}, "$"),
        ({"type": "Bax"}, "$"),
        ({"type": []}, "$"),
        ({"type": "Box"}, "$"),
        ({**BOX, "dtype": "float128"}, "$"),
        ({**BOX, "dtype": "object"}, "$"),
        ({**BOX, "dtype": 3}, "$"),
        ({**BOX, "shape": 3}, "$"),
        ({**BOX, "shape": [-1]}, "$"),
        ({**BOX, "shape": [True]}, "$"),
        ({**BOX, "shape": [1] * 40}, "$"),
        ({**BOX, "shape": [MAX_BYTES + 1]}, "$"),
        ({**BOX, "shape": [0, 2**62]}, "$"),
        ({**BOX, "low": [0.0]}, "$"),
        ({**BOX, "dtype": "int8", "low": [[], []], "high": 3}, "$"),
        ({**BOX, "low": None}, "$"),
        ({**BOX, "low": 2.0}, "$"),
        ({**BOX, "low": "NaN"}, "$"),
        ({**BOX, "dtype": "int8", "low": 0, "high": 300}, "$"),
        ({**BOX, "dtype": "int8", "low": [[0]], "high": 3}, "$"),
        ({**BOX, "dtype": "uint8", "low": "-Infinity", "high": 3}, "$"),
        ({"type": "Discrete", "n": 0, "start": 0, "dtype": "int64"}, "$"),
        ({"type": "Discrete", "n": 2.0, "start": 0, "dtype": "int64"}, "$"),
        ({"type": "Discrete", "n": 2, "start": 0, "dtype": "float32"}, "$"),
        ({"type": "Discrete", "n": 2**70, "start": 0, "dtype": "int64"}, "$"),
        ({"type": "MultiDiscrete", "nvec": [1, [2]], "start": [0, 0], "dtype": "int64"}, "$"),
        ({"type": "MultiDiscrete", "nvec": [1], "start": [0, 0], "dtype": "int64"}, "$"),
        ({"type": "MultiBinary", "n": -1}, "$"),
        ({"type": "MultiBinary", "n": "3"}, "$"),
        ({"type": "Text", "min_length": 0, "max_length": 3, "charset": ["a"]}, "$"),
        ({"type": "Text", "min_length": 4, "max_length": 3, "charset": "a"}, "$"),
        ({"type": "UnicodeText", "min_length": None, "max_length": 3}, "$"),
        ({"type": "Dict", "subspaces": {}}, "$"),
        ({"type": "Dict", "subspaces": [["a"]]}, "$"),
        ({"type": "Dict", "subspaces": [[1, {"type": "MultiBinary", "n": 1}]]}, "$"),
        (
            {
                "type": "Dict",
                "subspaces": [["a", {"type": "MultiBinary", "n": 1}], ["a", {"type": "MultiBinary", "n": 1}]],
            },
            "$",
        ),
        ({"type": "Dict", "subspaces": [["a", {"type": "?"}]]}, "$.a"),
        ({"type": "Tuple", "subspaces": [{"type": "MultiBinary", "n": 1}, 3]}, "$[1]"),
        ({"type": "OneOf", "subspaces": []}, "$"),
        ({"type": "Sequence", "space": {"type": "?"}, "stack": False}, "$.space"),
        ({"type": "Sequence", "space": {"type": "MultiBinary", "n": 1}, "stack": 1}, "$"),
        ({"type": "Graph", "node_space": {"type": "MultiBinary"}, "edge_space": None}, "$.node_space"),
        (
            {"type": "Graph", "node_space": {"type": "Discrete", "n": 1, "start": 0, "dtype": "int8"}, "edge_space": 3},
            "$.edge_space",
        ),
    ],
)
def test_a_document_that_is_no_space_is_refused_with_its_path(document: Any, path: str) -> None:
    with pytest.raises(SpaceMappingError) as caught:
        space_from_json(document)
    assert caught.value.path == path


def test_spaces_nested_too_deeply_are_refused() -> None:
    with pytest.raises(SpaceMappingError, match="deep"):
        space_from_json(DEEP)


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 5),
        st.integers(),
        st.floats(allow_nan=False),
        st.sampled_from(["a", "Box", "NaN", "Infinity"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["type", "low", "n"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.data())
def test_a_document_with_one_field_changed_is_a_space_or_a_typed_error(space: Space[Any], data: st.DataObject) -> None:
    document = space_to_json(space)
    document[data.draw(st.sampled_from(sorted(document)))] = data.draw(JUNK)
    with typed_error(SpaceMappingError):
        space_from_json(document)


def test_a_discrete_of_another_dtype_is_read_where_gymnasium_has_it_and_refused_where_not() -> None:
    document: Any = {"type": "Discrete", "n": 3, "start": 1, "dtype": "int8"}
    assert space_from_json({**document, "dtype": "int64"}).dtype == np.int64
    if DISCRETE_HAS_DTYPE:
        assert space_from_json(document).dtype == np.int8
    else:
        with pytest.raises(SpaceMappingError, match="dtype"):
            space_from_json(document)


def box(size: int, dtype: str = "float32") -> Any:
    low, high = (False, True) if dtype == "bool" else (0, 1)
    return {"type": "Box", "low": low, "high": high, "shape": [size], "dtype": dtype}


ROW = MAX_BYTES // 4 // 10
GREEDY: list[Any] = [
    box(MAX_BYTES // bytes_of_box((1,), np.dtype(np.float32)) + 1),
    box(MAX_BYTES // bytes_of_box((1,), np.dtype(np.uint8)) + 1, "uint8"),
    {**box(1), "shape": [2**20, 2**20, 2**20]},
    {"type": "Tuple", "subspaces": [box(ROW)] * 5},
    {"type": "Dict", "subspaces": [[str(index), box(ROW)] for index in range(5)]},
    {"type": "OneOf", "subspaces": [box(ROW)] * 5},
    {"type": "Graph", "node_space": box(3 * ROW), "edge_space": box(3 * ROW)},
    {"type": "Sequence", "space": box(MAX_BYTES), "stack": False},
    {"type": "MultiBinary", "n": MAX_BYTES + 1},
    {"type": "MultiBinary", "n": [2**20, 2**20]},
    {"type": "MultiDiscrete", "nvec": [], "start": [], "dtype": "int8", "shape": [MAX_BYTES]},
    {"type": "Text", "min_length": 0, "max_length": 3, "charset": "a" * (MAX_BYTES // BYTES_PER_CHARACTER + 1)},
    {"type": "Tuple", "subspaces": [{"type": "MultiBinary", "n": 1}] * (MAX_BYTES // BYTES_PER_SPACE + 1)},
]


@pytest.mark.parametrize("document", GREEDY, ids=lambda document: str(document)[:60])
def test_a_document_cannot_ask_for_more_memory_than_all_its_spaces_may_take(document: Any) -> None:
    with pytest.raises(SpaceMappingError, match=str(MAX_BYTES)) as caught:
        space_from_json(document)
    assert caught.value.path is not None


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
def test_uniform_bounds_are_made_without_a_list_of_them(dtype: str) -> None:
    size = 2**20
    tracemalloc.start()
    space = space_from_json(box(size, dtype))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(space, Box)
    assert space.shape == (size,)
    for array in (space.low, space.high, space.bounded_below, space.bounded_above):
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.strides[0] == array.itemsize
    assert peak < 2 * bytes_of_box((size,), np.dtype(dtype))


LAUGHS = {
    "type": "object",
    "properties": {"v": {"$ref": "#/$defs/L0"}},
    "$defs": {
        **{
            f"L{level}": {
                "type": "object",
                "properties": {key: {"$ref": f"#/$defs/L{level + 1}"} for key in "abcd"},
            }
            for level in range(20)
        },
        "L20": {"type": "integer"},
    },
}
FRAME = {"type": "array", "items": {"type": "number"}, "minItems": 4 * ROW // 10, "maxItems": 4 * ROW // 10}


@pytest.mark.parametrize(
    "schema",
    [
        LAUGHS,
        {"type": "object", "properties": {str(index): FRAME for index in range(8)}},
        {"type": "object", "properties": {str(index): {"x-gymnasium-space": box(ROW)} for index in range(5)}},
        {"x-gymnasium-space": box(MAX_BYTES)},
    ],
    ids=lambda schema: str(schema)[:60],
)
def test_all_the_spaces_of_one_schema_share_what_it_may_take(schema: Any) -> None:
    with pytest.raises(SpaceMappingError, match=str(MAX_BYTES)):
        mapping_from_schema(schema)


def test_every_document_has_its_own_share() -> None:
    for _ in range(3):
        assert space_from_json(box(3 * ROW, "int8")).shape == (3 * ROW,)
