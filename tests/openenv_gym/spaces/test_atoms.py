"""Single JSON values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openenv_gym.spaces.atoms import integer_of, list_of, spell_float, spoken_float, text_of


@pytest.mark.parametrize(
    ("value", "spelled"), [(1.5, 1.5), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_what_json_has_no_number_for_is_spelled_and_read_again(value: float, spelled: Any) -> None:
    assert spell_float(value) == spelled
    assert repr(spoken_float(spelled)) == repr(value)


def test_an_integer_is_spoken_as_a_float_where_one_can_hold_it() -> None:
    assert repr(spoken_float(3)) == "3.0"
    with pytest.raises(OverflowError):
        spoken_float(10**400)


@pytest.mark.parametrize("value", [None, True, "nan", "1", [], {}])
def test_nothing_else_is_a_float(value: Any) -> None:
    with pytest.raises(TypeError):
        spoken_float(value)


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [(list_of, [1], "x"), (text_of, "x", ["x"]), (integer_of, 3, True), (integer_of, 0, 1.0)],
)
def test_a_json_value_of_another_type_is_refused(read: Any, good: Any, bad: Any) -> None:
    assert read(good) is good
    with pytest.raises(TypeError, match=type(bad).__name__):
        read(bad)
