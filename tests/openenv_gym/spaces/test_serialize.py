"""Space to JSON and back: equal to the last bit, or refused by name."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, MultiDiscrete, OneOf, Sequence, Space, Text, Tuple
from hypothesis import given, settings

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces import UnicodeText, space_from_json, space_to_json
from tests.openenv_gym.spaces.strategies import assert_same_space, spaces


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
        (Dict(cast("Any", {1: Discrete(2)})), "$", "1"),
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


def test_bounds_that_are_all_alike_are_not_listed_to_see_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openenv_gym.spaces.serialize._nest", None)
    for box in (
        Box(0, 255, (3, 4), np.uint8),
        Box(-np.inf, np.inf, (3, 4), np.int16),
        Box(-np.inf, 0.5, (3,), np.float64),
        Box(np.full(3, -0.0), np.full(3, 1.0), dtype=np.float64),
        Box(0, 1, (3,), bool),  # type: ignore[call-overload]
    ):
        assert_same_space(through_text(box), box)


def test_bounds_of_which_some_are_endless_are_listed() -> None:
    box = Box(np.array([-np.inf, -128]), np.array([1, 2]), dtype=np.int8)
    assert space_to_json(box)["low"] == ["-Infinity", -128]
    assert_same_space(through_text(box), box)
