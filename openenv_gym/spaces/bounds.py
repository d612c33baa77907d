"""The bounds and lengths of a JSON Schema, exactly: the ``Box`` of a number, the length of a string or array.

For ``mapping.py``. Bounds may be integers or floats whatever the type is, inclusive, exclusive or both, and need not be
representable in the dtype; what comes out is the outermost value of the dtype that is within them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box

from openenv_gym.json_text import JSONObject
from openenv_gym.spaces.deserialize import bounded_box
from openenv_gym.spaces.resolve import Place

__all__ = ["length_of", "number_box"]

_INT64 = np.iinfo(np.int64)


def number_box(schema: JSONObject, place: Place) -> Box:
    """The zero-dimensional ``Box`` of an integer or a number.

    Raises:
        SpaceMappingError: a bound is no number, or nothing is between the bounds that 64 bits can hold.
    """
    whole = schema.get("type") == "integer"
    low, high = (
        _bound(schema, "minimum", "exclusiveMinimum", place),
        _bound(schema, "maximum", "exclusiveMaximum", place),
    )
    lowest, highest = _inside(low, upward=True, whole=whole), _inside(high, upward=False, whole=whole)
    if not lowest <= highest:
        raise place.fault(f"expected bounds with a value between them, got {lowest} and {highest}")
    # Of integers not by math, which makes floats of them: 10**400 is none.
    endless = np.array(lowest == -math.inf), np.array(highest == math.inf)
    if not whole:
        return bounded_box(np.array(lowest, np.float64), np.array(highest, np.float64), *endless)
    least = int(_INT64.min) if endless[0] else int(lowest)
    most = int(_INT64.max) if endless[1] else int(highest)
    if least > _INT64.max or most < _INT64.min:
        raise place.fault(f"expected bounds that 64 bits can reach, got {lowest} and {highest}")
    below, above = np.array(least <= _INT64.min), np.array(most >= _INT64.max)
    least, most = max(least, int(_INT64.min)), min(most, int(_INT64.max))
    return bounded_box(np.array(least, np.int64), np.array(most, np.int64), below, above)


@dataclass(frozen=True, slots=True)
class _Bound:
    value: int | float
    exclusive: bool


def _bound(schema: JSONObject, inclusive: str, exclusive: str, place: Place) -> list[_Bound]:
    bounds: list[_Bound] = []
    for keyword in (inclusive, exclusive):
        value = schema.get(keyword)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.down(keyword).fault(f"expected a number, got {value!r}")
        bounds.append(_Bound(value, keyword == exclusive))
    return bounds


def _inside(bounds: list[_Bound], *, upward: bool, whole: bool) -> int | float:
    """The outermost value that is within all the bounds; an infinity where there are none."""
    step = 1 if upward else -1
    values = [_whole(bound, step) if whole else _floating(bound, step) for bound in bounds]
    return (max if upward else min)(values, default=-math.inf if upward else math.inf)


def _whole(bound: _Bound, step: int) -> int:
    nearest = math.ceil(bound.value) if step > 0 else math.floor(bound.value)
    return nearest + step if bound.exclusive and nearest == bound.value else nearest


def _floating(bound: _Bound, step: int) -> float:
    try:
        nearest = float(bound.value)
    except OverflowError:
        return math.inf if bound.value > 0 else -math.inf
    # An integer above 2**53 may have been rounded outwards.
    outside = nearest < bound.value if step > 0 else nearest > bound.value
    return (
        math.nextafter(nearest, step * math.inf) if outside or (bound.exclusive and nearest == bound.value) else nearest
    )


def length_of(schema: JSONObject, keyword: str, place: Place) -> int | None:
    """The length a keyword says, or None.

    Raises:
        SpaceMappingError: it is no whole number from 0 on.
    """
    length = schema.get(keyword)
    if length is None:
        return None
    if isinstance(length, bool) or not isinstance(length, int | float) or length < 0 or length % 1 != 0:
        raise place.down(keyword).fault(f"expected a length, got {length!r}")
    return int(length)
