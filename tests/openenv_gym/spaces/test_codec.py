"""Faults, their paths, and the words for values in error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openenv_gym.spaces.codec import Fault, describe, each, every, length, under


def fail(_: Any) -> Any:
    raise Fault("a thing", "another")


def test_a_fault_collects_its_path_on_the_way_up() -> None:
    with pytest.raises(Fault) as caught:
        under(".a", every, lambda item: item if item < 1 else fail(item), [0, 1])
    error = caught.value.error("$.obs")
    assert error.path == "$.obs.a[1]"
    assert str(error) == "expected a thing at $.obs.a[1], got another"


def test_each_item_goes_through_its_own_call() -> None:
    assert each([str, int], [1, "2"]) == ["1", 2]
    with pytest.raises(Fault) as caught:
        each([str, fail], [1, 2])
    assert caught.value.path == "[1]"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "the integer 3"),
        pytest.param(10**5000, "an integer of 16610 bits", id="huge"),
        (0.5, "the number 0.5"),
        ("a", "the string 'a'"),
        ("a" * 100, "the string '" + "a" * 60 + "'…"),
        ([1], "a list of 1"),
        ({"a": 1}, "an object of 1"),
        (np.zeros((2, 3)), "an array of shape (2, 3) and dtype float64"),
        (print, "a builtin_function_or_method"),
    ],
)
def test_a_value_is_described_in_a_few_words(value: Any, words: str) -> None:
    assert describe(value) == words


def test_a_tuple_is_described_by_its_length() -> None:
    assert length((1, 2)) == "a tuple of 2"
    assert length(3) == "the integer 3"
