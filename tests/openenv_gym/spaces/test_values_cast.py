"""Samples cast to their Space's dtypes without the way through JSON, to the same bits and with the same refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, GraphInstance, OneOf, Sequence, Space, Text, Tuple
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import codec_for
from tests.openenv_gym.spaces.strategies import assert_same_sample, samples, spaces


@settings(max_examples=60, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_a_sample_that_fits_is_cast_to_itself(space: Space[Any], seed: int) -> None:
    sample = samples(space, np.random.default_rng(seed))
    assert_same_sample(codec_for(space).cast(sample), sample, payloads=False)


@pytest.mark.parametrize(
    ("space", "sample"),
    [
        (Box(-1, 1, (2,), np.float32), [1, 0.1]),
        (Discrete(3), 2.0),
        (Dict(b=Discrete(3), a=Box(-1, 1, (1,), np.float16)), {"a": np.array([0.1]), "b": 1}),
        (Tuple([Discrete(3), Tuple([])]), [np.int8(1), ()]),
        (Tuple([Discrete(3), Discrete(3)]), np.array([1, 2])),
        (Sequence(Discrete(3), stack=True), np.array([1.0, 2.0])),
        (OneOf([Discrete(3)]), [0, 2.0]),
    ],
)
def test_a_cast_gives_what_the_json_of_the_sample_gives(space: Space[Any], sample: Any) -> None:
    codec = codec_for(space)
    assert_same_sample(codec.cast(sample), codec.decode(codec.encode(sample)))


@pytest.mark.parametrize(
    ("space", "sample", "path"),
    [
        (Box(-1, 1, (2,), np.float32), [1], "$.x"),
        (Box(0, 255, (2,), np.uint8), [1, 256], "$.x[1]"),
        (Dict(a=Discrete(3)), {"b": 1}, "$.x"),
        (Dict(a=Discrete(3)), {"a": 1, "b": 1}, "$.x"),
        (Dict(a=Discrete(3)), 3, "$.x"),
        (Dict(a=Discrete(3)), {"a": None}, "$.x.a"),
        (Tuple([Discrete(3)]), (), "$.x"),
        (Tuple([Discrete(3)]), 3, "$.x"),
        (Tuple([Discrete(3)]), (0.5,), "$.x[0]"),
    ],
)
def test_what_has_no_json_is_not_cast_and_the_error_is_the_same(space: Space[Any], sample: Any, path: str) -> None:
    codec = codec_for(space)
    with pytest.raises(ValueMappingError) as caught:
        codec.cast(sample, "$.x")
    assert caught.value.path == path
    with pytest.raises(ValueMappingError) as encoded:
        codec.encode(sample, "$.x")
    assert str(caught.value) == str(encoded.value)


def test_a_member_is_required_in_the_words_of_its_decoding() -> None:
    codec = codec_for(Dict(a=Discrete(3)))
    codec.require_member({"a": np.int64(2)})
    with pytest.raises(ValueMappingError) as caught:
        codec.require_member({"a": np.int64(7)}, "$.x")
    assert caught.value.path == "$.x.a"
    with pytest.raises(ValueMappingError) as decoded:
        codec.decode_member({"a": 7}, "$.x")
    assert str(caught.value) == str(decoded.value)


@pytest.mark.parametrize(
    ("space", "sample"),
    [
        (Text(3, charset="ab"), "aba"),
        (Graph(Discrete(3), Discrete(2)), GraphInstance(np.array([2]), None, None)),
        (Graph(Discrete(3), Discrete(2)), GraphInstance(np.array([2, 0]), np.array([1]), np.array([[0, 1]], np.int32))),
        (OneOf([Discrete(3), Text(2)]), (np.int64(1), "xy")),
    ],
)
def test_a_member_is_none_that_is_refused(space: Space[Any], sample: Any) -> None:
    codec_for(space).require_member(codec_for(space).cast(sample))
