"""The codecs of Spaces that hold one thing: ``Discrete`` and ``Text``.

Not for arrays (``arrays.py``) nor for composite Spaces (``values.py``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Text
from typing_extensions import override

from openenv_gym.json_text import JSON
from openenv_gym.spaces.arrays import is_whole, limits_of
from openenv_gym.spaces.codec import Fault, ValueCodec, describe
from openenv_gym.spaces.text import UnicodeText, is_scalar_text

__all__ = ["DiscreteCodec", "TextCodec"]


class DiscreteCodec(ValueCodec):
    """A ``Discrete``: its true value, ``start`` included."""

    __slots__ = ("_dtype", "_first", "_highest", "_last", "_lowest", "_scalar")

    def __init__(self, space: Discrete) -> None:
        self.space = space
        self._dtype: np.dtype[Any] = space.dtype
        self._scalar = space.dtype.type
        self._lowest, self._highest = limits_of(space.dtype)
        self._first = int(space.start)
        self._last = self._first + int(space.n) - 1

    @override
    def write(self, sample: Any) -> JSON:
        number = int(sample) if isinstance(sample, int | np.integer | np.bool_) else self._unwrap(sample)
        if self._lowest <= number <= self._highest:
            return number
        raise Fault(f"an integer that fits {self._dtype}", describe(number))

    def _unwrap(self, sample: Any) -> int:
        """The integer in a zero-dimensional array, or in a float without a fraction."""
        if isinstance(sample, np.ndarray):
            if sample.shape or sample.dtype.kind not in "biuf":
                raise Fault("an integer", describe(sample))
            sample = sample.item()
        if isinstance(sample, int | float | np.floating) and math.isfinite(sample) and sample == int(sample):
            return int(sample)
        raise Fault("an integer", describe(sample))

    @override
    def read(self, value: JSON) -> Any:
        if type(value) is not int:
            if not is_whole(value):
                raise Fault("an integer", describe(value))
            value = int(value)  # type: ignore[arg-type]  # is_whole says that it is a float
        if self._lowest <= value <= self._highest:
            return self._scalar(value)
        raise Fault(f"an integer that fits {self._dtype}", describe(value))

    @override
    def check(self, sample: Any) -> None:
        if not self._first <= int(sample) <= self._last:
            raise Fault(f"an integer from {self._first} to {self._last}", str(sample))

    @override
    def note(self, sample: Any, path: str) -> str | None:
        if isinstance(sample, np.ndarray | np.generic):
            same = sample.dtype.newbyteorder("=") == self._dtype.newbyteorder("=")
            return None if same else f"{sample.dtype} where the Space says {self._dtype} at {path}"
        # A plain int is what most environments give for a Discrete, and loses nothing.
        if isinstance(sample, int):
            return None
        return f"a {type(sample).__name__} where the Space says {self._dtype} at {path}"


class TextCodec(ValueCodec):
    """A ``Text`` or ``UnicodeText``."""

    __slots__ = ("_characters", "_longest", "_shortest")

    def __init__(self, space: Text) -> None:
        self.space = space
        self._shortest = space.min_length
        self._longest = space.max_length
        self._characters = None if type(space) is UnicodeText else space.character_set

    @override
    def write(self, sample: Any) -> JSON:
        if isinstance(sample, str) and is_scalar_text(sample):
            return str(sample)
        raise _not_text(sample)

    @override
    def read(self, value: JSON) -> str:
        if type(value) is str and is_scalar_text(value):
            return value
        raise _not_text(value)

    @override
    def check(self, sample: str) -> None:
        if not self._shortest <= len(sample) <= self._longest:
            raise Fault(f"a string of {self._shortest} to {self._longest} characters", f"one of {len(sample)}")
        if self._characters is not None:
            strange = next((character for character in sample if character not in self._characters), None)
            if strange is not None:
                raise Fault("a string of the Space's characters", f"the character {strange!r} in {describe(sample)}")


def _not_text(value: Any) -> Fault:
    if isinstance(value, str):
        return Fault("a string of Unicode scalar values", f"a lone surrogate in {describe(value)}")
    return Fault("a string", describe(value))
