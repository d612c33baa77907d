"""Space to JSON and back: equal to the last bit, or refused by name."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import SpaceMappingError
from openenv_gym.messages import decode_json, encode_json
from openenv_gym.spaces import UnicodeText, space_from_json, space_to_json
from openenv_gym.spaces.serialize import MAX_DEPTH, MAX_SIZE
from tests.openenv_gym.spaces.strategies import assert_same_space, spaces, typed_error


def through_text(space: Space[Any]) -> Space[Any]:
    return space_from_json(decode_json(encode_json(space_to_json(space))))


@settings(max_examples=80, deadline=None)
@given(spaces())
def test_any_space_comes_back_equal_to_the_last_bit(space: Space[Any]) -> None:
    back = through_text(space)
    assert_same_space(space, back)
    assert space_to_json(back) == space_to_json(space)


@pytest.mark.parametrize(
    ("space", "document"),
    [
        (Box(-1, 1, (2,)), {"type": "Box", "low": -1.0, "high": 1.0, "shape": [2], "dtype": "float32"}),
        (
            Box(np.array([0, -np.inf]), np.array([1, np.inf]), dtype=np.float64),
            {"type": "Box", "low": [0.0, "-Infinity"], "high": [1.0, "Infinity"], "shape": [2], "dtype": "float64"},
        ),
        (Box(0, np.inf, (), np.int8), {"type": "Box", "low": 0, "high": "Infinity", "shape": [], "dtype": "int8"}),
        (Discrete(3, start=-1), {"type": "Discrete", "n": 3, "start": -1, "dtype": "int64"}),
        (MultiDiscrete([2, 3]), {"type": "MultiDiscrete", "nvec": [2, 3], "start": [0, 0], "dtype": "int64"}),
        (MultiBinary(3), {"type": "MultiBinary", "n": 3}),
        (MultiBinary([3]), {"type": "MultiBinary", "n": [3]}),
        (Text(3, charset="ba"), {"type": "Text", "min_length": 1, "max_length": 3, "charset": "ba"}),
        (UnicodeText(3), {"type": "UnicodeText", "min_length": 0, "max_length": 3}),
        (Tuple([]), {"type": "Tuple", "subspaces": []}),
        (
            Dict([("b", Tuple([])), ("a", MultiBinary(1))]),
            {
                "type": "Dict",
                "subspaces": [["b", {"type": "Tuple", "subspaces": []}], ["a", {"type": "MultiBinary", "n": 1}]],
            },
        ),
        (OneOf([MultiBinary(1)]), {"type": "OneOf", "subspaces": [{"type": "MultiBinary", "n": 1}]}),
        (
            Sequence(MultiBinary(1), stack=True),
            {"type": "Sequence", "space": {"type": "MultiBinary", "n": 1}, "stack": True},
        ),
        (
            Graph(Discrete(2), None),
            {
                "type": "Graph",
                "node_space": {"type": "Discrete", "n": 2, "start": 0, "dtype": "int64"},
                "edge_space": None,
            },
        ),
    ],
)
def test_a_space_is_written_in_these_words(space: Space[Any], document: Any) -> None:
    assert space_to_json(space) == document
    assert_same_space(through_text(space), space)


def test_a_negative_zero_bound_is_not_taken_for_a_uniform_zero() -> None:
    box = Box(np.array([0.0, -0.0]), np.array([1.0, 1.0]), dtype=np.float64)
    assert np.signbit(through_text(box).low).tolist() == [False, True]  # type: ignore[attr-defined]


def test_an_unbounded_integer_box_still_samples_as_one() -> None:
    back = through_text(Box(-np.inf, np.inf, (3,), np.int32))
    back.seed(0)
    assert np.abs(back.sample()).max() < 100


def test_key_sorting_of_a_dict_is_kept() -> None:
    space = Dict([("b", Discrete(2)), ("a", Discrete(2))])
    space.sort_keys = False
    assert space_to_json(space)["sort_keys"] is False
    assert through_text(space).sort_keys is False  # type: ignore[attr-defined]
    assert "sort_keys" not in space_to_json(Dict([("b", Discrete(2))]))


class Fancy(Discrete):
    """A subclass, which may mean more than its base says."""


class Strange(Space[Any]):
    """A Space of one's own."""


@pytest.mark.parametrize(
    ("space", "path", "word"),
    [
        (Fancy(3), "$", "Fancy"),
        (Dict(a=Tuple([Discrete(2), Strange()])), "$.a[1]", "Strange"),
        (Sequence(Fancy(2)), "$.space", "Fancy"),
        (Dict(cast(Any, {1: Discrete(2)})), "$", "1"),
        (Dict({"\ud800": Discrete(2)}), "$", "ud800"),
        (Tuple([Text(3, charset="\ud800")]), "$[0]", "charset"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_path(space: Space[Any], path: str, word: str) -> None:
    with pytest.raises(SpaceMappingError, match=word) as caught:
        space_to_json(space)
    assert caught.value.path == path


def test_floats_wider_than_64_bits_are_refused() -> None:
    box = Box(0, 1, (2,), np.float64)
    box.dtype = np.dtype(np.longdouble)
    with pytest.raises(SpaceMappingError, match="64 bits"):
        space_to_json(box)


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
        ({**BOX, "shape": [MAX_SIZE + 1]}, "$"),
        ({**BOX, "low": [0.0]}, "$"),
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
