"""Reward, flags, info and notes of any answer."""

import contextlib
import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openenv_gym.errors import OpenEnvGymWarning, ValueMappingError
from openenv_gym.messages import Outcome
from openenv_gym.transition import SeedWatch, own_flags, own_reward, read_flags, read_info, read_notes, read_reward

FLAGS = {"terminated": False, "truncated": True}


def outcome(*, reward=None, done=False, **metadata):
    return Outcome(observation={}, reward=reward, done=done, metadata=metadata)


@pytest.mark.parametrize(("reward", "read"), [(1, 1.0), (True, 1.0), (0.1, 0.1), (None, 0.0)])
def test_a_reward_is_a_python_float(reward, read):
    assert type(read_reward(outcome(reward=reward))) is float
    assert read_reward(outcome(reward=reward)) == read


def test_a_negative_zero_keeps_its_sign():
    assert math.copysign(1.0, read_reward(outcome(reward=-0.0))) == -1.0


def test_rewards_that_are_not_finite_come_in_words():
    assert math.isnan(read_reward(Outcome(observation={}, metadata={"reward": "NaN"})))
    words = {"Infinity": math.inf, "-Infinity": -math.inf}
    assert {word: read_reward(Outcome(observation={}, metadata={"reward": word})) for word in words} == words


def test_a_reward_in_the_metadata_of_another_kind_is_the_environments_own():
    answer = Outcome(observation={}, metadata={"reward": 5})
    assert (read_reward(answer), read_info(answer)) == (0.0, {"reward": 5})
    beside = Outcome(observation={}, reward=1.0, metadata={"reward": "NaN"})
    assert (read_reward(beside), read_info(beside)) == (1.0, {"reward": "NaN"})


@pytest.mark.parametrize(
    ("done", "metadata", "flags"),
    [
        (False, {}, (False, False)),
        (True, {}, (True, False)),
        (True, {"truncated": True}, (False, True)),
        (True, {"TimeLimit.truncated": True}, (False, True)),
        (True, {"terminated": True, "truncated": True}, (True, True)),
        (True, {"terminated": False, "truncated": True}, (False, True)),
        (True, {"terminated": "yes", "truncated": "no"}, (True, False)),
    ],
)
def test_done_is_termination_unless_the_metadata_says_otherwise(done, metadata, flags):
    assert read_flags(outcome(done=done, **metadata)) == flags


def test_an_answer_without_metadata_has_no_info_and_no_notes():
    bare = Outcome(observation={})
    assert (read_info(bare), read_notes(bare), read_flags(bare)) == ({}, [], (False, False))


def test_the_metadata_is_the_info_of_an_environment_that_knows_none():
    assert read_info(outcome(hint="x", score=3)) == {"hint": "x", "score": 3}
    assert read_info(outcome(truncated=True, info={"a": 1})) == {"info": {"a": 1}}
    assert read_info(outcome(**FLAGS, info="hello")) == {"info": "hello"}


def test_info_comes_whole_and_with_its_types():
    exact = {"$": "dict", "items": [["pair", {"$": "tuple", "items": [1, 2]}]]}
    answer = outcome(**FLAGS, info={"pair": [1, 2]}, **{"x-gymnasium-info": exact})
    assert read_info(answer) == {"pair": (1, 2)}
    assert read_info(outcome(**FLAGS, info={"a": 1}, score=3)) == {"a": 1, "score": 3}


def test_a_malformed_exact_form_is_a_typed_error():
    with pytest.raises(ValueMappingError):
        read_info(outcome(**FLAGS, info={}, **{"x-gymnasium-info": {"$": "tuple", "items": 3}}))


def test_notes_are_a_list_of_strings_or_the_environments_own():
    assert read_notes(outcome(**{"x-warnings": ["low"]})) == ["low"]
    assert read_info(outcome(**{"x-warnings": ["low"]})) == {}
    assert read_notes(outcome(**{"x-warnings": "low", "warnings": ["w"]})) == []
    assert read_info(outcome(**{"x-warnings": "low", "warnings": ["w"]})) == {"x-warnings": "low", "warnings": ["w"]}


KEYS = st.sampled_from(
    ["terminated", "truncated", "info", "x-gymnasium-info", "x-warnings", "reward", "TimeLimit.truncated", "other"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("$"), inner, max_size=3),
    max_leaves=8,
)


@given(metadata=st.dictionaries(KEYS, JSON), reward=st.none() | st.floats(allow_nan=False), done=st.booleans())
def test_any_metadata_gives_values_of_the_right_types_or_a_typed_error(metadata, reward, done):
    answer = Outcome(observation={}, reward=reward, done=done, metadata=metadata)
    assert isinstance(read_reward(answer), float)
    assert all(isinstance(flag, bool) for flag in read_flags(answer))
    assert all(isinstance(note, str) for note in read_notes(answer))
    with contextlib.suppress(ValueMappingError):
        assert isinstance(read_info(answer), dict)


def test_two_resets_with_one_seed_that_begin_otherwise_are_told_of_and_no_others():
    watch = SeedWatch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(7, {"text": "a"}, "http://host")
        watch.note(7, {"text": "a"}, "http://host")
        watch.note(8, {"text": "b"}, "http://host")
    with pytest.warns(OpenEnvGymWarning, match="http://host: two resets with seed=8 gave different first observations"):
        watch.note(8, {"text": "c"}, "http://host")


def test_an_own_reward_keeps_its_kind_and_is_none_where_there_is_none():
    assert own_reward(True, {"reward": "NaN"}) is True
    assert own_reward(None, {"reward": "-Infinity"}) == -math.inf
    assert own_reward(None, {"reward": "much"}) is None


def test_own_flags_are_read_without_an_outcome():
    assert own_flags(True, {}) == (True, False)
    assert own_flags(True, {"truncated": True}) == (False, True)
    assert own_flags(True, {"terminated": False, "truncated": False}) == (False, False)
