"""The shortest way between one array or number and its bytes, for samples that are just as they must be.

Not for any other sample, nor for saying what is wrong with one: that is ``buffers.py``, which alone uses this.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from openenv_gym.errors import ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.spaces.batches import ArraySpace

__all__ = ["QuickBuffer", "require_booleans", "wire_dtype"]


class QuickBuffer:
    """Packs and unpacks a sample that is an array or a number and nothing else.

    Args:
        space: its Space.

    Attributes:
        size: the bytes that each sample takes.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> quick = QuickBuffer(Discrete(3))
        >>> quick.size, quick.pack(2).hex(), quick.pack(2.0)
        (8, '0200000000000000', None)
    """

    __slots__ = ("_boolean", "_dtype", "_number", "_shape", "_signed", "_type", "_wire", "size")

    def __init__(self, space: ArraySpace) -> None:
        self._number = isinstance(space, Discrete)
        self._dtype: np.dtype[Any] = space.dtype
        self._type = space.dtype.type
        self._wire = wire_dtype(space.dtype)
        self._signed = space.dtype.kind == "i"
        self._boolean = space.dtype.kind == "b"
        self._shape = space.shape or ()
        self.size = math.prod(self._shape) * space.dtype.itemsize

    def pack(self, sample: Any) -> Part | None:
        """The bytes of the sample; None where it takes a closer look."""
        if self._number:
            if type(sample) is not self._type and type(sample) is not int:
                return None
            try:
                return int(sample).to_bytes(self.size, "little", signed=self._signed)
            except OverflowError:
                return None
        fits = type(sample) is np.ndarray and sample.dtype == self._wire and sample.shape == self._shape
        return np.ascontiguousarray(sample) if fits else None

    def unpack(self, buffer: bytes | bytearray | memoryview) -> Any:
        """The sample of its bytes, which are ``size`` many; raises ``ValueMappingError`` where a boolean is none."""
        if self._number:
            return self._type(int.from_bytes(buffer, "little", signed=self._signed))
        if self._boolean:
            require_booleans(buffer, "$")
        array: np.ndarray[Any, Any] = np.ndarray(self._shape, self._wire, bytearray(buffer))
        return array if self._wire == self._dtype else array.astype(self._dtype)


def wire_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with little-endian bytes: the very same object where its own are."""
    wire = dtype.newbyteorder("<")
    # An equal dtype that was made from another prints itself otherwise: dtype('<f4') for dtype('float32').
    return dtype if wire == dtype else wire


def require_booleans(raw: bytes | bytearray | memoryview, path: str) -> None:
    """Raise ``ValueMappingError`` where a byte is neither 0 nor 1."""
    if bytes(raw).translate(None, b"\0\1"):
        raise ValueMappingError(f"expected booleans of 0 or 1 at {path}", path=path)
