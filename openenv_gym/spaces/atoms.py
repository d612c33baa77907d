"""Single JSON values: how a float is spelled, and what is a list, a text, an integer.

For every reader and writer of JSON here and in ``openenv_gym.exact``. Not for values of a Space (``values.py``).
"""

from __future__ import annotations

import math

from openenv_gym.json_text import JSON

__all__ = ["SPELLED", "integer_of", "list_of", "spell_float", "spoken_float", "text_of"]

SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The strings that stand for what JSON has no number for."""


def spell_float(number: float) -> float | str:
    """The number itself, or the string that stands for what JSON has no number for."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def spoken_float(value: JSON) -> float:
    """The number that ``spell_float`` gave; an integer is a number too.

    Raises:
        TypeError: the value is neither a number nor such a string.
        OverflowError: it is an integer that no float can hold.
    """
    if type(value) in (float, int):
        return float(value)  # type: ignore[arg-type]  # the line above says what it is
    if isinstance(value, str) and value in SPELLED:
        return SPELLED[value]
    raise TypeError(f"a {type(value).__name__} where a number or one of {list(SPELLED)} is due")


def list_of(value: JSON) -> list[JSON]:
    """The value, which must be a list.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list is due")
    return value


def text_of(value: JSON) -> str:
    """The value, which must be a string.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where a string is due")
    return value


def integer_of(value: JSON) -> int:
    """The value, which must be an integer and no boolean.

    Raises:
        TypeError: it is none.
    """
    if type(value) is not int:
        raise TypeError(f"a {type(value).__name__} where an integer is due")
    return value
