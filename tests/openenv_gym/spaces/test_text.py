"""UnicodeText: any text, cheaply, and at home in Gymnasium's own utilities."""

from __future__ import annotations

import copy
import pickle
import time
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Dict, Text, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten
from gymnasium.vector.utils import (
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from openenv_gym.spaces import DEFAULT_MAX_LENGTH, UnicodeText


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=40))
def test_any_text_within_the_length_is_contained(text: str) -> None:
    assert text in UnicodeText(40)
    assert (text in UnicodeText(20, min_length=5)) is (5 <= len(text) <= 20)


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", b"abc", 3, None, ["a"]])
def test_what_is_no_text_of_scalar_values_is_not_contained(value: Any) -> None:
    assert value not in UnicodeText()


def test_samples_are_seeded_printable_of_modest_length_and_not_all_ascii() -> None:
    space, same = UnicodeText(seed=7), UnicodeText(seed=7)
    texts = [space.sample() for _ in range(200)]
    assert texts == [same.sample() for _ in range(200)]
    assert all(text in space and text.isprintable() and len(text) <= 32 for text in texts)
    assert not all(text.isascii() for text in texts)
    assert {len(UnicodeText(3, min_length=2, seed=seed).sample()) for seed in range(30)} == {2, 3}


def test_a_sample_can_have_its_length_fixed_as_for_text() -> None:
    space = UnicodeText(100, seed=1)
    assert len(space.sample(mask=(50, None))) == 50
    assert len(space.sample(probability=(60, None))) == 60
    assert space.sample(mask=(None, None)) in space


@pytest.mark.parametrize(
    "arguments",
    [
        {"mask": (3, np.ones(3, np.int8))},
        {"probability": (3, np.ones(3))},
        {"mask": (11, None)},
        {"mask": (3, None), "probability": (3, None)},
    ],
)
def test_a_mask_it_cannot_honour_is_a_value_error(arguments: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        UnicodeText(10).sample(**arguments)


@pytest.mark.parametrize("lengths", [(True, 0), (3.0, 0), ("3", 0), (3, None), (3, False)])
def test_a_length_that_is_no_integer_is_a_type_error(lengths: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        UnicodeText(lengths[0], min_length=lengths[1])


@pytest.mark.parametrize("lengths", [(3, -1), (3, 4), (-1, 0)])
def test_lengths_that_contradict_each_other_are_a_value_error(lengths: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="min_length"):
        UnicodeText(lengths[0], min_length=lengths[1])


def test_numpy_integers_are_lengths_and_become_plain() -> None:
    space = UnicodeText(np.int32(5), min_length=np.int64(2))  # type: ignore[arg-type]
    assert (type(space.max_length), type(space.min_length)) == (int, int)


def test_equality_is_by_lengths_and_never_with_a_plain_text() -> None:
    assert UnicodeText(5) == UnicodeText(5)
    assert UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != UnicodeText(5, min_length=1)
    assert UnicodeText(5) != Text(5, min_length=0, charset="")
    assert Text(5, min_length=0, charset="") != UnicodeText(5)
    assert len({UnicodeText(5), UnicodeText(5), UnicodeText(6)}) == 2


def test_it_survives_pickling_and_copying_with_its_random_state() -> None:
    space = UnicodeText(50, min_length=1, seed=3)
    for back in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert back == space
        assert back.sample() == copy.deepcopy(space).sample()


def test_making_and_printing_one_is_cheap() -> None:
    began = time.perf_counter()
    for _ in range(100):
        repr(UnicodeText())
    assert time.perf_counter() - began < 1.0
    assert repr(UnicodeText()) == f"UnicodeText({DEFAULT_MAX_LENGTH})"
    assert eval(repr(UnicodeText(9, min_length=2))) == UnicodeText(9, min_length=2)


@pytest.mark.parametrize("text", ["", "plain", "日本🚀\U0010ffff\x00\ue000\ud7ff"])
def test_flattening_and_back_keeps_every_character(text: str) -> None:
    space = Dict(text=UnicodeText(12))
    assert flatdim(space) == 12
    flat = flatten(space, {"text": text})
    assert flat in flatten_space(space)
    assert unflatten(space, flat) == {"text": text}


def test_batches_are_tuples_as_for_text() -> None:
    space = UnicodeText(8, seed=0)
    batched = batch_space(space, 2)
    assert batched == Tuple([space, space])
    assert list(iterate(batched, ("a", "é"))) == ["a", "é"]
    assert concatenate(space, ["a", "é"], create_empty_array(space, 2)) == ("a", "é")
    assert batched.sample() in batched


def test_shared_memory_carries_it_as_it_does_text() -> None:
    space = UnicodeText(4)
    memory = create_shared_memory(space, 2)
    for index, text in enumerate(("ab", "🚀é日x")):
        write_to_shared_memory(space, index, text, memory)
    assert read_from_shared_memory(space, memory, 2) == ("ab", "🚀é日x")


def test_its_characters_are_all_scalar_values_without_holding_them() -> None:
    space = UnicodeText()
    characters = space.character_list
    assert len(characters) == len(space.character_set) == 0x110000 - 0x800
    assert (characters[0], characters[-1], characters[0xD800]) == ("\x00", "\U0010ffff", "\ue000")
    assert characters[65:68] == ("A", "B", "C")
    assert next(iter(space.character_set)) == "\x00"
    assert "é" in space.character_set
    assert all(strange not in space.character_set for strange in ("\ud800", "ab", "", 3))
    assert space.character_set == UnicodeText(3).character_set
    assert space.character_set != {"a"}
    assert hash(space.character_set) == hash(UnicodeText(3).character_set)
    assert [space.character_index(character) for character in ("A", "\ue000")] == [65, 0xD800]
    assert space.characters == "".join(characters)


def test_a_character_outside_is_an_index_or_key_error() -> None:
    space = UnicodeText()
    with pytest.raises(IndexError):
        space.character_list[0x110000]
    with pytest.raises(KeyError):
        space.character_index("\ud800")
