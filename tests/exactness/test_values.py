"""Samples of random nested Spaces through JSON text: to the last bit, or a typed error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import decode_json, encode_json
from openenv_gym.spaces import codec_for, schema_from_space
from tests.openenv_gym.spaces.strategies import assert_same_sample, samples, spaces, typed_error


def through_text(space: Space[Any], sample: Any) -> Any:
    codec = codec_for(space)
    return codec.decode(decode_json(encode_json(codec.encode(sample))))


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_any_sample_comes_back_through_json_text_to_the_last_bit(space: Space[Any], seed: int) -> None:
    sample = samples(space, np.random.default_rng(seed))
    assert_same_sample(through_text(space, sample), sample, payloads=False)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_a_member_is_decoded_as_one_and_validates_against_the_schema(space: Space[Any], seed: int) -> None:
    sample = samples(space, np.random.default_rng(seed), member=True)
    codec = codec_for(space)
    encoded = codec.encode(sample)
    assert_same_sample(codec.decode_member(encoded), sample, payloads=False)
    assert codec.dtype_note(sample) is None
    schema = schema_from_space(space)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(encoded)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32))
def test_a_decoded_value_is_a_member_exactly_where_gymnasium_says_so(space: Space[Any], seed: int) -> None:
    codec = codec_for(space)
    value = codec.encode(samples(space, np.random.default_rng(seed)))
    with warnings.catch_warnings():
        # Gymnasium warns of the scalars it makes itself of a Graph's zero-dimensional nodes.
        warnings.simplefilter("ignore")
        try:
            contained = codec.decode(value) in space
        except ValueError:
            reject()  # it cannot take a batch of empty Dicts apart
    try:
        codec.decode_member(value)
    except ValueMappingError:
        assert not contained
    else:
        assert contained


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-300, 300),
        st.integers(),
        st.floats(),
        st.sampled_from(["", "NaN", "Infinity", "-Infinity", "nan", "1", "\ud800", 10**400, 1.0, -0.0]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "nodes", "edges", "edge_links"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(spaces(), JUNK)
def test_any_other_json_is_a_sample_or_a_typed_error(space: Space[Any], value: Any) -> None:
    codec = codec_for(space)
    for decode in (codec.decode, codec.decode_member):
        with typed_error(ValueMappingError, under="$.obs"):
            decode(value, "$.obs")


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 2**32), st.data())
def test_a_value_with_one_part_replaced_is_a_sample_or_a_typed_error(
    space: Space[Any], seed: int, data: st.DataObject
) -> None:
    codec = codec_for(space)
    value: Any = [codec.encode(samples(space, np.random.default_rng(seed)))]
    holder, key = value, 0
    while isinstance(holder[key], list | dict) and holder[key] and data.draw(st.booleans()):
        holder = holder[key]
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[key] = data.draw(JUNK)
    with typed_error(ValueMappingError):
        codec.decode_member(value[0])
