"""The codecs of arrays: ``Box``, ``MultiBinary``, ``MultiDiscrete``.

Not for single numbers and text (``leaves.py``) nor for composite Spaces (``values.py``). The fast ways come first in
each method: an array of the Space's own dtype and shape out, a flat list of plain numbers in. Everything else takes the
slow way, which accepts more and explains what it refuses.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections.abc import Callable
from itertools import chain
from operator import le
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from msgspec import ValidationError, convert
from typing_extensions import override

from openenv_gym.json_text import JSON
from openenv_gym.spaces.atoms import SPELLED, spell_float, spoken_float
from openenv_gym.spaces.codec import Fault, ValueCodec, describe

__all__ = ["ArrayCodec", "BoolArrayCodec", "FloatArrayCodec", "IntArrayCodec", "array_codec", "is_whole", "limits_of"]

FEW = 32
"""Elements up to which Python's own loops are faster than NumPy's calls."""

_LISTS = {list}
_FLOATS = {float}
_INTS = {int}
_LISTED: dict[type, Any] = {bool: list[bool], float: list[float], int: list[int]}
_INDEXED = 2**53  # beyond it a float has no single integer to stand for


def array_codec(space: Space[Any], low: np.ndarray, high: np.ndarray) -> ArrayCodec:
    """The codec of arrays of the Space's dtype and shape.

    Args:
        space: it must have both.
        low: the lower bounds, in a shape that broadcasts to the Space's.
        high: the upper bounds, likewise.
    """
    assert space.dtype is not None
    kind = space.dtype.kind
    return (FloatArrayCodec if kind == "f" else BoolArrayCodec if kind == "b" else IntArrayCodec)(space, low, high)


class ArrayCodec(ValueCodec):
    """What all array Spaces share: the shape both ways, and bounds per element."""

    __slots__ = ("_bounds", "_dtype", "_few", "_inner", "_shape", "_sides", "_size")

    def __init__(self, space: Space[Any], low: np.ndarray, high: np.ndarray) -> None:
        assert space.dtype is not None
        assert space.shape is not None
        self.space = space
        self._dtype: np.dtype[Any] = space.dtype
        self._shape: tuple[int, ...] = space.shape
        self._size = math.prod(self._shape)
        self._inner = self._shape[1:]
        self._bounds = (low, high)
        self._few: tuple[list[Any], list[Any]] | None = None
        self._sides: list[tuple[np.ufunc, np.ndarray]] = []
        if self._size <= FEW:
            self._few = (self._each(low).ravel().tolist(), self._each(high).ravel().tolist())
        else:
            self._sides = self._worth_comparing()

    def _each(self, bound: np.ndarray) -> np.ndarray:
        return np.broadcast_to(bound, self._shape)

    def _worth_comparing(self) -> list[tuple[np.ufunc, np.ndarray]]:
        """The comparisons that a value of the dtype can fail, with one value for bounds that are all alike."""
        low, high = (bound.ravel()[:1] if (bound == bound.flat[0]).all() else bound for bound in self._bounds)
        sides: list[tuple[np.ufunc, np.ndarray]] = []
        if self._dtype.kind == "f":
            # The lower one also where it is endless: a NaN fails every comparison.
            sides = [(np.greater_equal, low)]
            return sides if np.isposinf(high).all() else [*sides, (np.less_equal, high)]
        least, most = (0, 1) if self._dtype.kind == "b" else limits_of(self._dtype)
        if (low != least).any():
            sides.append((np.greater_equal, low))
        if (high != most).any():
            sides.append((np.less_equal, high))
        return sides

    @override
    def write(self, sample: Any) -> JSON:
        if type(sample) is not np.ndarray or sample.dtype is not self._dtype or sample.shape != self._shape:
            sample = self._cast(self._as_array(sample))
        return sample.tolist()  # type: ignore[no-any-return]  # NumPy says Any

    @override
    def exact(self, sample: Any) -> np.ndarray:
        if type(sample) is np.ndarray and sample.dtype == self._dtype and sample.shape == self._shape:
            return sample
        return self._cast(self._as_array(sample))

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
        values = self.build(self.flatten(value))
        return values if len(self._shape) == 1 else values.reshape(self._shape)

    def flatten(self, value: JSON) -> list[Any]:
        """The leaves of nested lists in C order; every list must have the length the shape says.

        From the outside in, so that a value of another shape costs no more than its outermost wrong level.
        """
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
    def build(self, flat: list[Any]) -> np.ndarray:
        """The one-dimensional array of the leaves."""

    def _wrong(self, flat: list[Any], accept: Callable[[Any], bool], expected: str) -> Fault:
        """The fault of the first leaf that is not accepted."""
        place, leaf = next((place, leaf) for place, leaf in enumerate(flat) if not accept(leaf))
        return Fault(expected, describe(leaf)).under(self._place(place, self._shape))

    @override
    def check(self, sample: np.ndarray) -> None:
        if self._few is not None:
            values = sample.tolist() if len(self._shape) == 1 else sample.ravel().tolist()
            low, high = self._few
            inside = all(map(le, low, values)) and all(map(le, values, high))
        else:
            inside = all(compare(sample, bound).all() for compare, bound in self._sides)
        if not inside:
            raise self._outside(sample)

    def _outside(self, sample: np.ndarray) -> Fault:
        low, high = map(self._each, self._bounds)
        place = int(np.argmin((sample >= low) & (sample <= high)))
        bounds = f"a value from {low.flat[place]} to {high.flat[place]}"
        return Fault(bounds, f"{sample.flat[place]}").under(self._place(place, self._shape))

    @override
    def note(self, sample: Any, path: str) -> str | None:
        if isinstance(sample, np.ndarray | np.generic):
            # A scalar has no byte order, which is what one gets of a big-endian array.
            own = self._dtype if isinstance(sample, np.ndarray) else self._dtype.newbyteorder("=")
            return None if sample.dtype == own else f"{sample.dtype} where the Space says {self._dtype} at {path}"
        return f"a {type(sample).__name__} where the Space says an array of {self._dtype} at {path}"


def _typed(flat: list[Any], kind: type) -> list[Any] | None:
    """The leaves, if all are of the one type; for floats integers have become such. Faster than a set of many types."""
    try:
        return convert(flat, _LISTED[kind])  # type: ignore[no-any-return]  # a list, as the table says
    except ValidationError:
        return None


class FloatArrayCodec(ArrayCodec):
    """A floating ``Box``."""

    __slots__ = ("_largest", "_short")

    def __init__(self, space: Space[Any], low: np.ndarray, high: np.ndarray) -> None:
        super().__init__(space, low, high)
        self._short = self._size <= FEW and len(self._shape) == 1
        self._largest = float(np.finfo(self._dtype).max)

    @override
    def write(self, sample: Any) -> JSON:
        if type(sample) is not np.ndarray or sample.dtype is not self._dtype or sample.shape != self._shape:
            sample = self._cast(self._as_array(sample))
        values: Any = sample.tolist()
        # A sum is finite only where all are; where it overflows, the slow way finds nothing and nothing is lost.
        finite = math.isfinite(sum(values)) if self._short else np.isfinite(sample).all()
        return values if finite else self._spell(sample)

    @override
    def read(self, value: JSON) -> np.ndarray:
        # Many environments have plain numbers for fields; neither a NaN nor an infinity is in the comparison's range.
        if type(value) is float and not self._shape and abs(value) <= self._largest:
            return np.array(value, self._dtype)
        return super().read(value)

    def _spell(self, sample: np.ndarray) -> JSON:
        spelled = np.empty(self._size, dtype=object)
        spelled[:] = [spell_float(number) for number in sample.ravel().tolist()]
        return spelled.reshape(self._shape).tolist()  # type: ignore[no-any-return]  # NumPy says Any

    def _cast(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(self._dtype)

    @override
    def build(self, flat: list[Any]) -> np.ndarray:
        if self._size > FEW:
            flat = _typed(flat, float) or self._spoken(flat)
        elif set(map(type, flat)) != _FLOATS:
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
            return [spoken_float(leaf) for leaf in flat]
        except (TypeError, OverflowError):
            expected = f"a number that fits {self._dtype}, or one of {list(SPELLED)}"
            raise self._wrong(flat, _is_spoken, expected) from None


def _is_spoken(leaf: Any) -> bool:
    try:
        spoken_float(leaf)
    except (TypeError, OverflowError):
        return False
    return True


class IntArrayCodec(ArrayCodec):
    """An integer ``Box``, a ``MultiBinary`` or a ``MultiDiscrete``."""

    __slots__ = ("_code", "_limits")

    def __init__(self, space: Space[Any], low: np.ndarray, high: np.ndarray) -> None:
        super().__init__(space, low, high)
        self._limits = limits_of(self._dtype)
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

    @override
    def build(self, flat: list[Any]) -> np.ndarray:
        if self._size > FEW:
            flat = _typed(flat, int) or self._whole(flat)
        elif set(map(type, flat)) != _INTS:
            flat = self._whole(flat)
        if not flat:
            return np.empty(0, self._dtype)
        try:
            # Both refuse what overflows, in every version of NumPy; the buffer is ours, so the result can be
            # written to.
            values = np.frombuffer(bytearray(flat) if self._code == "B" else array(self._code, flat), self._code)
        except (OverflowError, ValueError):
            lowest, highest = self._limits
            raise self._wrong(
                flat, lambda leaf: lowest <= leaf <= highest, f"an integer that fits {self._dtype}"
            ) from None
        return values.astype(self._dtype, copy=False)

    def _whole(self, flat: list[Any]) -> list[int]:
        """The leaves as integers, where some are floats without a fraction."""
        if not all(map(is_whole, flat)):
            raise self._wrong(flat, is_whole, "an integer")
        return [int(leaf) for leaf in flat]


def limits_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the most an integer dtype holds."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def is_whole(leaf: Any) -> bool:
    """Whether a JSON value is an integer, or a float that stands for exactly one."""
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

    @override
    def build(self, flat: list[Any]) -> np.ndarray:
        if self._size and _typed(flat, bool) is None:
            raise self._wrong(flat, lambda leaf: type(leaf) is bool, "true or false")
        return np.array(flat, self._dtype)
