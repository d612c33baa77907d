"""The codecs of Spaces without parts: ``Box``, ``MultiBinary``, ``MultiDiscrete``, ``Discrete``, ``Text``.

Not for composite Spaces (``values.py``). The fast ways come first in each method: an array of the Space's own dtype
and shape out, a flat list of plain numbers in. Everything else takes the slow way, which accepts more and explains
what it refuses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Text
from typing_extensions import override

from openenv_gym.messages import JSON
from openenv_gym.spaces.codec import Fault, ValueCodec, describe
from openenv_gym.spaces.text import UnicodeText, is_scalar_text

__all__ = [
    "ArrayCodec",
    "BoolArrayCodec",
    "DiscreteCodec",
    "FloatArrayCodec",
    "IntArrayCodec",
    "TextCodec",
    "spell_float",
]

_LISTS = {list}
_FLOATS = {float}
_INTS = {int}
_BOOLS = {bool}
_SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INDEXED = 2**53  # beyond it a float has no single integer to stand for


def spell_float(number: float) -> float | str:
    """The number itself, or the string that stands for what JSON has no number for."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


class ArrayCodec(ValueCodec):
    """What all array Spaces share: the shape both ways, and bounds per element."""

    __slots__ = ("_bounds", "_dtype", "_inner", "_shape", "_size")

    def __init__(self, space: Box | MultiBinary | MultiDiscrete, low: np.ndarray, high: np.ndarray) -> None:
        self.space = space
        self._dtype: np.dtype[Any] = space.dtype
        self._shape: tuple[int, ...] = space.shape
        self._size = math.prod(self._shape)
        self._inner = self._shape[1:]
        self._bounds = (low, high)

    @override
    def write(self, sample: Any) -> JSON:
        if type(sample) is not np.ndarray or sample.dtype is not self._dtype or sample.shape != self._shape:
            sample = self._cast(self._as_array(sample))
        return sample.tolist()  # type: ignore[no-any-return]

    def _as_array(self, sample: Any) -> np.ndarray:
        try:
            values = np.asarray(sample)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise Fault(f"an array of shape {self._shape}", f"{describe(sample)}, which is none: {error}") from None
        if values.shape != self._shape:
            raise Fault(f"shape {self._shape}", f"shape {values.shape}")
        if values.dtype.kind not in "biuf":
            if values.size == 0:
                return values.astype(self._dtype)
            raise Fault("numbers", f"dtype {values.dtype}")
        return values

    @abstractmethod
    def _cast(self, values: np.ndarray) -> np.ndarray:
        """The array in the Space's dtype, the shape being right already."""

    @override
    def read(self, value: JSON) -> np.ndarray:
        flat = self._flatten(value)
        values = self._build(flat)
        return values if len(self._shape) == 1 else values.reshape(self._shape)

    def _flatten(self, value: JSON) -> list[Any]:
        """The leaves of nested lists in C order; every list must have the length the shape says."""
        if not self._shape:
            return [value]
        if type(value) is not list or len(value) != self._shape[0]:
            raise Fault(f"a list of {self._shape[0]}", describe(value))
        level: list[Any] = value
        for depth, length in enumerate(self._inner, 1):
            if not (set(map(type, level)) <= _LISTS and set(map(len, level)) <= {length}):
                raise self._ragged(level, depth, length)
            level = list(chain.from_iterable(level))
        return level

    def _ragged(self, level: list[Any], depth: int, length: int) -> Fault:
        place, wrong = next(
            (place, item) for place, item in enumerate(level) if type(item) is not list or len(item) != length
        )
        return Fault(f"a list of {length}", describe(wrong)).under(self._place(place, self._shape[:depth]))

    def _place(self, index: int, shape: tuple[int, ...]) -> str:
        """The path of a flat index."""
        steps: list[str] = []
        for length in reversed(shape):
            index, step = divmod(index, length)
            steps.append(f"[{step}]")
        return "".join(reversed(steps))

    @abstractmethod
    def _build(self, flat: list[Any]) -> np.ndarray:
        """The one-dimensional array of the leaves."""

    def _wrong(self, flat: list[Any], accept: Callable[[Any], bool], expected: str) -> Fault:
        """The fault of the first leaf that is not accepted."""
        place, leaf = next((place, leaf) for place, leaf in enumerate(flat) if not accept(leaf))
        return Fault(expected, describe(leaf)).under(self._place(place, self._shape))

    @override
    def check(self, sample: np.ndarray) -> None:
        low, high = self._bounds
        inside = (sample >= low) & (sample <= high)
        if not inside.all():
            place = int(np.argmin(inside))
            bounds = f"a value from {low.flat[place]} to {high.flat[place]}"
            raise Fault(bounds, f"{sample.flat[place]}").under(self._place(place, self._shape))

    @override
    def note(self, sample: Any, path: str) -> str | None:
        if isinstance(sample, np.ndarray | np.generic):
            # A scalar has no byte order, which is what one gets of a big-endian array.
            own = self._dtype if isinstance(sample, np.ndarray) else self._dtype.newbyteorder("=")
            return None if sample.dtype == own else f"{sample.dtype} where the Space says {self._dtype} at {path}"
        return f"a {type(sample).__name__} where the Space says an array of {self._dtype} at {path}"


class FloatArrayCodec(ArrayCodec):
    """A floating ``Box``."""

    __slots__ = ("_largest",)

    def __init__(self, space: Box) -> None:
        super().__init__(space, space.low, space.high)
        self._largest = float(np.finfo(self._dtype).max)

    @override
    def write(self, sample: Any) -> JSON:
        if type(sample) is not np.ndarray or sample.dtype is not self._dtype or sample.shape != self._shape:
            sample = self._cast(self._as_array(sample))
        values: Any = sample.tolist()
        # A sum is finite only where all are; where it overflows, the slow way finds nothing and nothing is lost.
        finite = math.isfinite(sum(values)) if len(self._shape) == 1 else np.isfinite(sample).all()
        return values if finite else self._spell(sample)

    def _spell(self, sample: np.ndarray) -> JSON:
        spelled = np.empty(self._size, dtype=object)
        spelled[:] = [spell_float(number) for number in sample.ravel().tolist()]
        return spelled.reshape(self._shape).tolist()  # type: ignore[no-any-return]

    def _cast(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(self._dtype)

    def _build(self, flat: list[Any]) -> np.ndarray:
        if set(map(type, flat)) != _FLOATS:
            flat = self._spoken(flat)
        # Not a NaN, not an infinity and no overflow in the cast, all in one comparison; a NaN compares as False.
        elif sum(map(abs, flat)) <= self._largest:
            return np.array(flat, self._dtype)
        with np.errstate(over="ignore"):
            values = np.array(flat, self._dtype)
        overflowed = np.isinf(values)
        if overflowed.any():
            for place in np.flatnonzero(overflowed).tolist():
                if math.isfinite(flat[place]):
                    raise Fault(f"a number that fits {self._dtype}", describe(flat[place])).under(
                        self._place(place, self._shape)
                    )
        return values

    def _spoken(self, flat: list[Any]) -> list[float]:
        """The leaves as floats, where some are integers or the strings that stand for non-finite numbers."""
        try:
            return [float(leaf) if type(leaf) in (int, float) else _SPELLED[leaf] for leaf in flat]
        except (KeyError, TypeError, OverflowError):
            expected = f'a number that fits {self._dtype}, or "NaN", "Infinity", "-Infinity"'
            raise self._wrong(flat, _is_spoken, expected) from None


def _is_spoken(leaf: Any) -> bool:
    try:
        return leaf in _SPELLED or (type(leaf) in (int, float) and isinstance(float(leaf), float))
    except (TypeError, OverflowError):
        return False


class IntArrayCodec(ArrayCodec):
    """An integer ``Box``, a ``MultiBinary`` or a ``MultiDiscrete``."""

    __slots__ = ("_code", "_limits")

    def __init__(self, space: Box | MultiBinary | MultiDiscrete, low: np.ndarray, high: np.ndarray) -> None:
        super().__init__(space, low, high)
        self._limits = _limits(self._dtype)
        self._code = self._dtype.newbyteorder("=").char

    @override
    def _as_array(self, sample: Any) -> np.ndarray:
        values = super()._as_array(sample)
        if values.dtype.kind == "f" and isinstance(sample, list | tuple):
            # NumPy makes floats of integers that lie on both sides of 2**63.
            exact = np.array(sample, dtype=object)
            if all(isinstance(number, int) for number in exact.flat):
                return exact
        return values

    def _cast(self, values: np.ndarray) -> np.ndarray:
        if not np.can_cast(values.dtype, self._dtype):
            # As Python numbers, because NumPy compares uint64 with negative integers, and floats with int64 limits,
            # inexactly.
            lowest, highest = self._limits
            for place, number in enumerate(values.ravel().tolist()):
                if not (lowest <= number <= highest and number == int(number)):
                    expected = f"an integer that fits {self._dtype}"
                    raise Fault(expected, describe(number)).under(self._place(place, self._shape))
        return values.astype(self._dtype)

    def _build(self, flat: list[Any]) -> np.ndarray:
        if not set(map(type, flat)) <= _INTS:
            flat = self._whole(flat)
        try:
            # An array refuses what overflows, in every version of NumPy; the buffer is ours, so the result can be
            # written to.
            values = np.frombuffer(array(self._code, flat), self._code) if flat else np.empty(0, self._dtype)
        except OverflowError:
            lowest, highest = self._limits
            raise self._wrong(
                flat, lambda leaf: lowest <= leaf <= highest, f"an integer that fits {self._dtype}"
            ) from None
        return values.astype(self._dtype, copy=False)

    def _whole(self, flat: list[Any]) -> list[int]:
        """The leaves as integers, where some are floats without a fraction."""
        if not all(map(_is_whole, flat)):
            raise self._wrong(flat, _is_whole, "an integer")
        return [int(leaf) for leaf in flat]


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _is_whole(leaf: Any) -> bool:
    return type(leaf) is int or (type(leaf) is float and leaf.is_integer() and abs(leaf) <= _INDEXED)


class BoolArrayCodec(ArrayCodec):
    """A ``Box`` of dtype bool: true and false, never 0 and 1."""

    __slots__ = ()

    def _cast(self, values: np.ndarray) -> np.ndarray:
        cast = values.astype(self._dtype)
        if not np.array_equal(cast, values):
            place = int(np.argmin(cast == values))
            raise Fault("a boolean", f"{values.flat[place]}").under(self._place(place, self._shape))
        return cast

    def _build(self, flat: list[Any]) -> np.ndarray:
        if not set(map(type, flat)) <= _BOOLS:
            raise self._wrong(flat, lambda leaf: type(leaf) is bool, "true or false")
        return np.array(flat, self._dtype)


class DiscreteCodec(ValueCodec):
    """A ``Discrete``: its true value, ``start`` included."""

    __slots__ = ("_dtype", "_first", "_highest", "_last", "_lowest", "_scalar")

    def __init__(self, space: Discrete) -> None:
        self.space = space
        self._dtype: np.dtype[Any] = space.dtype
        self._scalar = space.dtype.type
        self._lowest, self._highest = _limits(space.dtype)
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
            if not _is_whole(value):
                raise Fault("an integer", describe(value))
            value = int(value)  # type: ignore[arg-type]
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
