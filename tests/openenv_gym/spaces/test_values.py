"""Sample to JSON and back, for every Space: exact, strict, and fast enough to be said here."""

from __future__ import annotations

import math
import pickle
import re
from typing import Any

import numpy as np
import pytest
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

from openenv_gym.errors import SpaceMappingError, ValueMappingError
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces import UnicodeText, codec_for
from tests.openenv_gym.spaces.strategies import DISCRETE_HAS_DTYPE, assert_same_sample, samples

NAN, INF = math.nan, math.inf
F32 = Box(-1, 1, (2,), np.float32)


def through_text(space: Space[Any], sample: Any) -> Any:
    codec = codec_for(space)
    return codec.decode(decode_json(encode_json(codec.encode(sample))))


@pytest.mark.parametrize(
    ("space", "sample", "encoded"),
    [
        (F32, np.array([NAN, -INF], np.float32), ["NaN", "-Infinity"]),
        (F32, np.array([1e308, 1e308]), ["Infinity", "Infinity"]),
        (F32, [0.1, 2], [0.10000000149011612, 2.0]),
        (F32, np.array([True, False]), [1.0, 0.0]),
        (Box(0, 1, (2, 2)), np.arange(4.0).reshape(2, 2).T, [[0.0, 2.0], [1.0, 3.0]]),
        (Box(0, 1, (2, 1)), [[INF], (0,)], [["Infinity"], [0.0]]),
        (Box(-INF, INF, (2,), np.float64), np.array([1e308, 1e308]), [1e308, 1e308]),
        (Box(0, 1, ()), 0.5, 0.5),
        (Box(0, 1, ()), np.float64(NAN), "NaN"),
        (Box(0, 1, (0,)), [], []),
        (Box(0, 1, (3, 0)), np.zeros((3, 0)), [[], [], []]),
        (Box(0, 1, (0,)), np.array([], dtype=object), []),
        (Box(0, 255, (2,), np.uint8), [np.int64(255), 0.0], [255, 0]),
        (Box(0, 255, (2,), np.uint8), np.array([True, False]), [1, 0]),
        (Box(0, 1, (2,), bool), [True, False], [True, False]),
        (Box(0, 1, (2,), bool), [1.0, 0], [True, False]),
        (Box(0, 2**64 - 1, (1,), np.uint64), [2**64 - 1], [2**64 - 1]),
        (Box(-INF, INF, (1,), np.int64), np.array([-(2**63)]), [-(2**63)]),
        (Box(-INF, INF, (2,), ">i2"), np.array([-2, 3], ">i4"), [-2, 3]),
        (Discrete(2), True, 1),
        (Discrete(2), np.bool_(True), 1),
        (Discrete(2), 1.0, 1),
        (Discrete(2), np.float32(1), 1),
        (Discrete(2), np.array(1, np.uint8), 1),
        (Discrete(3, start=5), np.int64(6), 6),
        (MultiDiscrete([2, 2]), (1, 0), [1, 0]),
        (MultiBinary(2), np.array([True, False]), [1, 0]),
        (Text(5), np.str_("abc"), "abc"),
        (UnicodeText(5), "日本🚀", "日本🚀"),
        (Tuple([Discrete(2), Discrete(3)]), [1, 2], [1, 2]),
        (Tuple([Discrete(2), Discrete(3)]), np.array([1, 2]), [1, 2]),
        (Dict([("b", Discrete(2)), ("a", Discrete(2))]), {"a": 0, "b": 1}, {"b": 1, "a": 0}),
        (Sequence(Discrete(3)), [1, 2], [1, 2]),
        (Sequence(Discrete(3), stack=True), np.array([1, 2]), [1, 2]),
        (
            Sequence(Dict({"a": Discrete(3), "t": Text(1)}), stack=True),
            {"a": np.array([1]), "t": ("x",)},
            [{"a": 1, "t": "x"}],
        ),
        (OneOf([Discrete(2), Text(3)]), (1, "abc"), [1, "abc"]),
        (
            Graph(Discrete(3), None),
            GraphInstance(np.array([1]), None, None),
            {"nodes": [1], "edges": None, "edge_links": None},
        ),
        (
            Graph(Box(0, 1, (1,)), Discrete(3)),
            GraphInstance(np.zeros((2, 1)), np.array([2]), np.array([[0, 1]])),
            {"nodes": [[0.0], [0.0]], "edges": [2], "edge_links": [[0, 1]]},
        ),
    ],
)
def test_a_sample_is_written_so(space: Space[Any], sample: Any, encoded: Any) -> None:
    codec = codec_for(space)
    written = codec.encode(sample)
    assert repr(written) == repr(encoded)
    encode_json(written)
    assert codec.encode(codec.decode(written)) == written


def test_the_key_order_of_the_space_wins_over_the_sample_both_ways() -> None:
    codec = codec_for(Dict([("b", Discrete(2)), ("a", Discrete(2))]))
    assert list(codec.encode({"a": 0, "b": 1})) == ["b", "a"]
    assert list(codec.decode({"a": 0, "b": 1})) == ["b", "a"]


@pytest.mark.parametrize(
    ("space", "sample", "path"),
    [
        (F32, [1, 2, 3], "$"),
        (F32, 3, "$"),
        (F32, None, "$"),
        (F32, ["1", "2"], "$"),
        (F32, [[1], [2, 3]], "$"),
        (F32, np.array([1j, 2]), "$"),
        (Box(0, 255, (2,), np.uint8), [0.5, 1], "$[0]"),
        (Box(0, 255, (2,), np.uint8), np.array([0, 256]), "$[1]"),
        (Box(0, 255, (1, 2), np.uint8), np.array([[0, -1]]), "$[0][1]"),
        (Box(0, 255, (2,), np.uint8), np.array([0, NAN]), "$[1]"),
        (Box(0, 9, (2,), np.int64), np.array([0, 2.0**63]), "$[1]"),
        (Box(0, 9, (2,), np.int64), np.array([0, 2**63], np.uint64), "$[1]"),
        (Box(0, 9, (1,), np.int64), [2**70], "$"),
        (Box(0, 1, (2,), bool), [True, 2], "$[1]"),
        (Discrete(2), 0.5, "$"),
        (Discrete(2), INF, "$"),
        (Discrete(2), "1", "$"),
        (Discrete(2), np.array([1]), "$"),
        (Discrete(2), np.array("1"), "$"),
        (Discrete(2), 2**63, "$"),
        (Box(0, 9, (), np.uint8), -1, "$"),
        *([(Discrete(2, dtype="uint8"), -1, "$")] if DISCRETE_HAS_DTYPE else []),
        (Text(3), 3, "$"),
        (UnicodeText(3), "\ud800", "$"),
        (Dict(a=Discrete(2)), [1], "$"),
        (Dict(a=Discrete(2)), {}, "$"),
        (Dict(a=Discrete(2)), {"b": 1}, "$"),
        (Dict(a=Discrete(2)), {"a": 1, "b": 1}, "$"),
        (Dict(a=Dict(b=Discrete(2))), {"a": {"b": None}}, "$.a.b"),
        (Tuple([Discrete(2)]), (1, 2), "$"),
        (Tuple([Discrete(2)]), 1, "$"),
        (Tuple([Discrete(2), Discrete(2)]), (1, None), "$[1]"),
        (Sequence(Discrete(2)), {1}, "$"),
        (Sequence(Discrete(2)), (0, "x"), "$[1]"),
        (Sequence(Discrete(2), stack=True), 3, "$"),
        (Sequence(Dict(a=Discrete(2)), stack=True), {}, "$"),
        (OneOf([Discrete(2)]), 1, "$"),
        (OneOf([Discrete(2)]), (1, 2, 3), "$"),
        (OneOf([Discrete(2)]), (1, 0), "$[0]"),
        (OneOf([Discrete(2)]), (True, 0), "$[0]"),
        (OneOf([Discrete(2)]), (0, None), "$[1]"),
        (Graph(Discrete(2), None), 3, "$"),
        (Graph(Discrete(2), None), (np.array([1]), np.array([1]), None), "$.edges"),
        (Graph(Discrete(2), None), (None, None, None), "$.nodes"),
        (Graph(Discrete(2), Discrete(2)), (np.array([1]), np.array([1]), 3), "$.edge_links"),
        (Graph(Discrete(2), Discrete(2)), (np.array([1]), np.array([1]), np.array([[0.5, 0]])), "$.edge_links[0][0]"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused_with_its_path(space: Space[Any], sample: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        codec_for(space).encode(sample)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("space", "value", "path"),
    [
        (F32, [1.0], "$"),
        (F32, {"0": 1.0}, "$"),
        (F32, [1.0, None], "$[1]"),
        (F32, [1.0, True], "$[1]"),
        (F32, [1.0, "nan"], "$[1]"),
        (F32, [1.0, "1"], "$[1]"),
        (F32, [1.0, [1.0]], "$[1]"),
        (F32, [1, 1e39], "$[1]"),
        (F32, [1, 10**400], "$[1]"),
        (Box(0, 1, ()), None, "$"),
        (Box(0, 1, (2, 2)), [[1.0, 2.0], [3.0]], "$[1]"),
        (Box(0, 1, (2, 2)), [[1.0, 2.0], 3.0], "$[1]"),
        (Box(0, 1, (1, 2, 2)), [[[1.0, 2.0], [1.0, None]]], "$[0][1][1]"),
        (Box(0, 255, (2,), np.uint8), [0, 256], "$[1]"),
        (Box(0, 255, (2,), np.uint8), [0, -1], "$[1]"),
        (Box(0, 255, (2,), np.uint8), [0, 1.5], "$[1]"),
        (Box(0, 255, (2,), np.uint8), [0, True], "$[1]"),
        (Box(0, 255, (2,), np.uint8), [0, "NaN"], "$[1]"),
        (Box(0, 255, (2,), np.uint8), [0, None], "$[1]"),
        (Box(0, 9, (1,), np.int64), [2**63], "$[0]"),
        (Box(0, 9, (1,), np.int64), [1e300], "$[0]"),
        (Box(0, 1, (2,), bool), [True, 1], "$[1]"),
        (Discrete(2), True, "$"),
        (Discrete(2), None, "$"),
        (Discrete(2), 0.5, "$"),
        (Discrete(2), [1], "$"),
        (Discrete(2), 2**64, "$"),
        (Text(3), None, "$"),
        (Text(3), "\ud800", "$"),
        (Dict(a=Discrete(2)), [], "$"),
        (Dict(a=Discrete(2)), {}, "$"),
        (Dict(a=Discrete(2)), {"b": 0}, "$"),
        (Dict(a=Discrete(2)), {"a": 0, "b": 0}, "$"),
        (Dict(a=Discrete(2)), {"a": None}, "$.a"),
        (Tuple([Discrete(2)]), [0, 1], "$"),
        (Tuple([Discrete(2), Discrete(2)]), [0, "1"], "$[1]"),
        (Sequence(Discrete(2)), {}, "$"),
        (Sequence(Discrete(2), stack=True), [0, 0.5], "$[1]"),
        (OneOf([Discrete(2)]), [0], "$"),
        (OneOf([Discrete(2)]), [1, 0], "$[0]"),
        (OneOf([Discrete(2)]), [False, 0], "$[0]"),
        (OneOf([Discrete(2)]), [0, None], "$[1]"),
        (Graph(Discrete(2), None), [], "$"),
        (Graph(Discrete(2), None), {"nodes": []}, "$"),
        (Graph(Discrete(2), None), {"nodes": None, "edges": None, "edge_links": None}, "$.nodes"),
        (Graph(Discrete(2), None), {"nodes": [], "edges": [1], "edge_links": None}, "$.edges"),
        (Graph(Discrete(2), None), {"nodes": [], "edges": None, "edge_links": 3}, "$.edge_links"),
        (Graph(Discrete(2), None), {"nodes": [], "edges": None, "edge_links": [[0]]}, "$.edge_links[0]"),
        (Graph(Discrete(2), None), {"nodes": [0, None], "edges": None, "edge_links": None}, "$.nodes[1]"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_path(space: Space[Any], value: Any, path: str) -> None:
    codec = codec_for(space)
    for decode in (codec.decode, codec.decode_member):
        with pytest.raises(ValueMappingError) as caught:
            decode(value)
        assert caught.value.path == path
        with pytest.raises(ValueMappingError) as caught:
            decode(value, "$.data")
        assert caught.value.path == path.replace("$", "$.data", 1)


@pytest.mark.parametrize(
    ("space", "value", "path", "words"),
    [
        (F32, [0.0, 1.5], "$[1]", "from -1.0 to 1.0"),
        (F32, [0.0, "NaN"], "$[1]", "nan"),
        (Box(0, 1, ()), 2.0, "$", "2.0"),
        (Box(0, 9, (1, 2), np.int8), [[0, 10]], "$[0][1]", "from 0 to 9"),
        (MultiBinary(2), [1, 2], "$[1]", "from 0 to 1"),
        (MultiDiscrete([2, 3], start=[0, 5]), [0, 8], "$[1]", "from 5 to 7"),
        (Discrete(3, start=2), 5, "$", "from 2 to 4"),
        (Text(3, charset="ab"), "abc", "$", "'c'"),
        (Text(3), "abcd", "$", "1 to 3 characters"),
        (UnicodeText(3), "abcd", "$", "0 to 3 characters"),
        (Dict(a=Discrete(2)), {"a": 2}, "$.a", "from 0 to 1"),
        (Tuple([Discrete(2), Discrete(2)]), [0, 2], "$[1]", "from 0 to 1"),
        (Sequence(Discrete(2)), [0, 2], "$[1]", "from 0 to 1"),
        (Sequence(Discrete(2), stack=True), [0, 2], "$[1]", "from 0 to 1"),
        (OneOf([Discrete(2)]), [0, 2], "$[1]", "from 0 to 1"),
        (Graph(Discrete(2), None), {"nodes": [0, 2], "edges": None, "edge_links": None}, "$.nodes[1]", "from 0 to 1"),
        (Graph(Discrete(2), None), {"nodes": [0], "edges": None, "edge_links": []}, "$", "together"),
        (
            Graph(Discrete(2), Discrete(2)),
            {"nodes": [0], "edges": [2], "edge_links": [[0, 0]]},
            "$.edges[0]",
            "from 0 to 1",
        ),
        (Graph(Discrete(2), Discrete(2)), {"nodes": [0], "edges": [1], "edge_links": []}, "$.edge_links", "as many"),
        (
            Graph(Discrete(2), Discrete(2)),
            {"nodes": [0], "edges": [1], "edge_links": [[0, 1]]},
            "$.edge_links[0][1]",
            "1 nodes",
        ),
        (
            Graph(Discrete(2), Discrete(2)),
            {"nodes": [0], "edges": [1], "edge_links": [[0, -1]]},
            "$.edge_links[0][1]",
            "from 0",
        ),
    ],
)
def test_a_value_outside_the_space_is_decoded_but_no_member(
    space: Space[Any], value: Any, path: str, words: str
) -> None:
    codec = codec_for(space)
    codec.decode(value)
    with pytest.raises(ValueMappingError, match=words) as caught:
        codec.decode_member(value)
    assert caught.value.path == path


def test_integers_and_floats_stand_for_each_other_where_nothing_is_lost() -> None:
    assert_same_sample(codec_for(F32).decode([1, 0.5]), np.array([1, 0.5], np.float32))
    assert_same_sample(codec_for(Discrete(3)).decode(2.0), np.int64(2))
    assert_same_sample(codec_for(MultiBinary(2)).decode([1.0, 0]), np.array([1, 0], np.int8))


def test_floats_that_round_into_the_dtype_are_not_an_overflow() -> None:
    largest = float(np.finfo(np.float16).max)
    codec = codec_for(Box(-INF, INF, (2,), np.float16))
    assert_same_sample(codec.decode([largest, largest]), np.array([largest] * 2, np.float16))
    assert_same_sample(codec.decode([largest + 5, 0.0]), np.array([largest, 0], np.float16))
    with pytest.raises(ValueMappingError) as caught:
        codec.decode(["Infinity", 65520.0])
    assert caught.value.path == "$[1]"


def test_decoded_arrays_can_be_written_to() -> None:
    for space in (F32, Box(0, 255, (2, 2), np.uint8), MultiBinary(2), Box(0, 1, (2,), bool), Box(0, 9, (0,), np.int8)):
        codec = codec_for(space)
        codec.decode(codec.encode(np.zeros(space.shape))).fill(0)


@pytest.mark.parametrize(
    ("space", "sample", "words"),
    [
        (F32, np.zeros(2), "float64 where the Space says float32 at \\$"),
        (F32, [0.0, 0.0], "a list where the Space says an array of float32"),
        (F32, np.zeros(2, ">f4"), ">f4"),
        (Discrete(2), np.int32(1), "int32 where the Space says int64"),
        (Discrete(2), 1.0, "float"),
        (Dict(b=Discrete(2), a=F32), {"a": np.zeros(2), "b": 1}, "at \\$.a"),
        (Tuple([Discrete(2), F32]), (1, np.zeros(2)), "at \\$\\[1\\]"),
        (Sequence(F32), (np.zeros(2, np.float32), np.zeros(2)), "at \\$\\[1\\]"),
        (OneOf([F32]), (0, np.zeros(2)), "at \\$\\[1\\]"),
        (Graph(F32, None), (np.zeros((1, 2)), None, None), "at \\$.nodes\\[0\\]"),
        (Graph(Discrete(2), F32), (np.array([1]), np.zeros((1, 2)), np.array([[0, 0]])), "at \\$.edges\\[0\\]"),
    ],
)
def test_a_sample_of_another_dtype_has_a_note(space: Space[Any], sample: Any, words: str) -> None:
    codec = codec_for(space)
    codec.encode(sample)
    note = codec.dtype_note(sample)
    assert note is not None
    assert re.search(words, note)


def test_plain_integers_for_a_discrete_have_no_note() -> None:
    assert codec_for(Tuple([Discrete(2), Text(3), Sequence(Discrete(2))])).dtype_note((1, "a", (True,))) is None
    assert codec_for(Graph(Discrete(2), Discrete(2))).dtype_note((np.array([1]), None, None)) is None


def test_a_codec_survives_pickling() -> None:
    space = Dict(a=F32, b=Graph(Discrete(2), None), c=Sequence(Box(0, 1, (), bool)), d=OneOf([Text(3)]))
    sample = samples(space, np.random.default_rng(0))
    back = pickle.loads(pickle.dumps(codec_for(space)))
    assert back.encode(sample) == codec_for(space).encode(sample)


class Fancy(Box):
    """A subclass, which may mean more than its base says."""


def test_an_unknown_space_is_refused_by_name() -> None:
    with pytest.raises(SpaceMappingError, match="Fancy") as caught:
        codec_for(Tuple([Sequence(Fancy(0, 1))]), "$.action")
    assert caught.value.path == "$.action[0].space"


def test_a_graph_of_composite_nodes_is_carried() -> None:
    space = Graph(Discrete(2), None)
    space.node_space = Tuple([Discrete(2), Text(2)])
    sample = GraphInstance((np.array([0, 1]), ("a", "b")), None, None)
    assert codec_for(space).encode(sample) == {"nodes": [[0, "a"], [1, "b"]], "edges": None, "edge_links": None}
    assert_same_sample(through_text(space, sample), sample)
