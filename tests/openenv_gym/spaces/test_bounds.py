"""Bounds and lengths of a schema, one by one; ``test_mapping.py`` has them in their schemas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openenv_gym.errors import SpaceMappingError
from openenv_gym.spaces.bounds import length_of, number_box
from openenv_gym.spaces.resolve import Place

PLACE = Place({}, "$.p")


@pytest.mark.parametrize(
    ("schema", "low", "high"),
    [
        ({"type": "number"}, -math.inf, math.inf),
        ({"type": "number", "minimum": 1e308, "maximum": 10**400}, 1e308, math.inf),
        ({"type": "number", "maximum": -(2**53) - 1}, -math.inf, -(2.0**53) - 2),
        ({"type": "number", "maximum": 2**53 + 1}, -math.inf, 2.0**53),
        ({"type": "number", "exclusiveMinimum": 2**53 + 1}, 2.0**53 + 2, math.inf),
    ],
)
def test_a_bound_is_the_outermost_float_within(schema: Any, low: float, high: float) -> None:
    box = number_box(schema, PLACE)
    assert (float(box.low), float(box.high)) == (low, high)


def test_a_lower_bound_no_float_reaches_leaves_nothing() -> None:
    with pytest.raises(SpaceMappingError) as caught:
        number_box({"type": "number", "minimum": 10**400, "maximum": 5}, PLACE)
    assert caught.value.path == "$.p"


@pytest.mark.parametrize("length", [-1, 1.5, "1", True, [1], math.inf])
def test_a_length_that_is_none_is_refused_with_its_path(length: Any) -> None:
    with pytest.raises(SpaceMappingError) as caught:
        length_of({"maxLength": length}, "maxLength", PLACE)
    assert caught.value.path == "$.p.maxLength"


def test_a_length_may_be_absent_or_a_whole_float() -> None:
    assert length_of({}, "maxLength", PLACE) is None
    assert length_of({"maxLength": 3.0}, "maxLength", PLACE) == 3


def test_integers_that_no_float_can_hold_are_bounds_like_any_other() -> None:
    box = number_box({"type": "integer", "minimum": 3, "maximum": 10**400}, Place({}, "$"))
    assert (int(box.low), bool(box.bounded_above)) == (3, False)
    with pytest.raises(SpaceMappingError):
        number_box({"type": "integer", "minimum": 10**400}, Place({}, "$"))
