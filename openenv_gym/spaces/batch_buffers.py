"""Batches of samples ⇄ bytes: what the environments of one message have observed or are to do.

Not for one sample (``buffers.py``), nor for the message around it (``openenv_gym.frames``). A batch is laid out in
memory as ``gymnasium.vector.utils.batch_space`` says, and on the wire so that arrays stay whole:

============================================  =======================================================================
Box, Discrete, MultiBinary, MultiDiscrete     the rows one after another, each in C order, in the Space's dtype
Dict, Tuple                                   the parts one after another, each a batch
Text, Sequence, Graph, OneOf                  the values one after another, each as ``buffers.py`` lays it out
============================================  =======================================================================

So a batch of one is the value's own layout.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Space, Tuple
from typing_extensions import override

from openenv_gym.errors import ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.spaces.batches import ArraySpace
from openenv_gym.spaces.buffers import Reader, write_sample
from openenv_gym.spaces.codec import Fault, ValueCodec, describe
from openenv_gym.spaces.quick_buffers import require_booleans, wire_dtype
from openenv_gym.spaces.values import codec_for

__all__ = ["BatchCodec"]

_CASTABLE = frozenset(("ff", "ii", "iu", "ui", "uu"))
"""Kinds of dtypes, from and to, between which a whole array is cast as each of its rows would be."""


class BatchCodec:
    r"""Packs and unpacks batches of samples of one Space, which is looked at once.

    Args:
        space: the Space of a single sample: one of the ten built-in Spaces or ``UnicodeText``, nested at will.

    Raises:
        SpaceMappingError: a Space of another type.

    Example:
        >>> import numpy as np
        >>> from gymnasium.spaces import Discrete
        >>> from openenv_gym.spaces import BatchCodec
        >>> codec = BatchCodec(Discrete(3))
        >>> data = b"".join(codec.pack(np.array([2, 0]), 2))
        >>> codec.unpack(data, 2)
        array([2, 0])
    """

    __slots__ = ("_rows", "space")

    def __init__(self, space: Space[Any]) -> None:
        self.space = space
        self._rows = _rows_of(space, codec_for(space))

    def pack(self, batch: Any, count: int) -> list[Part]:
        """The bytes of a batch in pieces; an array that is as it must be is its own piece, and not copied.

        Args:
            batch: ``count`` samples in the layout of ``batch_space``, with the Space's dtypes; bounds are not checked.
            count: how many there are.

        Raises:
            ValueMappingError: the batch has another structure, shape or dtype; ``conform`` makes it fit.
        """
        parts: list[Part] = []
        self._rows.write(batch, count, "$", parts)
        return parts

    def pack_fitting(self, batch: Any, count: int) -> list[Part]:
        """``pack`` of the batch, or of what ``conform`` makes of it where it is not as it must be.

        Args:
            batch: as ``conform`` takes it.
            count: how many samples there are.

        Raises:
            ValueMappingError: a sample does not fit; the path begins with the path of its part and its row.
        """
        rows = self._rows
        if type(rows) is _ArrayRows and rows.fits(batch, count):
            return [batch]
        return self.pack(self.conform(batch, count), count)

    def unpack(self, buffer: bytes | bytearray | memoryview, count: int, out: Any = None) -> Any:
        """The batch of all of its bytes.

        Args:
            buffer: the bytes of ``count`` samples.
            count: how many there are; the sender's word for it must have been checked.
            out: a batch of the same layout, whose dictionaries and arrays are written to instead of fresh ones being
                made. What is neither is made anew all the same.

        Returns:
            ``count`` samples in the layout of ``batch_space``: arrays of their own, writable, with the Space's
            dtype, within the Space's Dicts and Tuples; tuples for Text, Sequence, Graph and OneOf.

        Raises:
            ValueMappingError: bytes are missing or left over, or are none of this Space.
        """
        rows = self._rows
        if type(rows) is _ArrayRows and memoryview(buffer).nbytes == count * rows.row_bytes:
            return rows.array(buffer, count, "$", out)
        reader = Reader(buffer)
        batch = self._rows.read(reader, count, "$", out)
        reader.finish()
        return batch

    def conform(self, batch: Any, count: int) -> Any:
        """The batch with the Space's dtypes and shapes, cast where the JSON codec of a sample would cast.

        Args:
            batch: ``count`` samples in the layout of ``batch_space``; lists for arrays, and arrays of other dtypes.
            count: how many there are.

        Raises:
            ValueMappingError: a sample does not fit; the path begins with the path of its part and its row.
        """
        try:
            return self._rows.conform(batch, count)
        except Fault as fault:
            raise fault.error("$") from None


class _Rows(ABC):
    """What a Space's batches are made of."""

    __slots__ = ()

    @abstractmethod
    def write(self, batch: Any, count: int, path: str, parts: list[Part]) -> None:
        """Add the bytes to the parts."""

    @abstractmethod
    def read(self, reader: Reader, count: int, path: str, out: Any) -> Any:
        """The next batch."""

    @abstractmethod
    def conform(self, batch: Any, count: int) -> Any:
        """The batch as ``write`` wants it; raises ``Fault``."""


def _rows_of(space: Space[Any], codec: ValueCodec) -> _Rows:
    if isinstance(space, ArraySpace):
        return _ArrayRows(space, codec)
    if isinstance(space, Dict):
        return _DictRows({key: _rows_of(part, codec_for(part)) for key, part in space.spaces.items()})
    if isinstance(space, Tuple):
        return _TupleRows([_rows_of(part, codec_for(part)) for part in space.spaces])
    return _Values(space, codec)


class _ArrayRows(_Rows):
    """An array: one row a sample."""

    __slots__ = ("_boolean", "_codec", "_dtype", "_plain", "_shape", "_wire", "row_bytes")

    def __init__(self, space: ArraySpace, codec: ValueCodec) -> None:
        self._codec = codec
        self._dtype: np.dtype[Any] = space.dtype
        self._wire = wire_dtype(space.dtype)
        self._plain = self._wire == self._dtype
        self._shape: tuple[int, ...] = space.shape or ()
        self._boolean = self._dtype.kind == "b"
        self.row_bytes = math.prod(self._shape) * self._dtype.itemsize

    @override
    def write(self, batch: Any, count: int, path: str, parts: list[Part]) -> None:
        array = self._as_array(batch, count, path)
        if not self._plain:
            array = array.astype(self._wire)
        parts.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))

    def _as_array(self, batch: Any, count: int, path: str) -> np.ndarray:
        try:
            array = np.asarray(batch)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueMappingError(f"expected an array at {path}: {error}", path=path) from error
        if array.shape != (count, *self._shape):
            raise ValueMappingError(
                f"expected the shape {(count, *self._shape)}, not {array.shape}, at {path}", path=path
            )
        if array.dtype != self._dtype:
            if array.dtype.newbyteorder("=") != self._dtype.newbyteorder("="):
                raise ValueMappingError(f"expected the dtype {self._dtype}, not {array.dtype}, at {path}", path=path)
            array = array.astype(self._dtype)
        return array

    @override
    def read(self, reader: Reader, count: int, path: str, out: Any) -> np.ndarray:
        return self.array(reader.take(count * self.row_bytes, path), count, path, out)

    def array(self, raw: bytes | bytearray | memoryview, count: int, path: str, out: Any) -> np.ndarray:
        """The batch of its bytes, which are as many as they must be."""
        if self._boolean:
            require_booleans(raw, path)
        shape = (count, *self._shape)
        if out is not None:
            assert isinstance(out, np.ndarray)
            out[...] = np.ndarray(shape, self._wire, raw)
            return out
        array: np.ndarray[Any, Any] = np.ndarray(shape, self._wire, bytearray(raw))
        return array if self._plain else array.astype(self._dtype)

    def fits(self, batch: Any, count: int) -> bool:
        """Whether the batch is its own bytes already."""
        return (
            type(batch) is np.ndarray
            and batch.dtype == self._wire
            and batch.shape == (count, *self._shape)
            and batch.flags.c_contiguous
        )

    @override
    def conform(self, batch: Any, count: int) -> np.ndarray:
        if type(batch) is np.ndarray and batch.dtype == self._dtype and batch.shape == (count, *self._shape):
            return batch
        array = self._cast(batch, count)
        return self._row_by_row(batch, count) if array is None else array

    def _cast(self, batch: Any, count: int) -> np.ndarray | None:
        """The whole batch at once, where it is plain to see that each row fits; else None."""
        try:
            array = np.asarray(batch)
        except (TypeError, ValueError, OverflowError):
            return None
        kinds = array.dtype.kind + self._dtype.kind
        if array.shape != (count, *self._shape) or kinds not in _CASTABLE:
            return None
        if kinds != "ff":
            limits = np.iinfo(self._dtype)
            if array.size and not (limits.min <= int(array.min()) and int(array.max()) <= limits.max):
                return None
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(self._dtype)

    def _row_by_row(self, batch: Any, count: int) -> np.ndarray:
        rows = np.empty((count, *self._shape), self._dtype)
        for index, sample in enumerate(_samples(batch, count)):
            try:
                rows[index] = self._codec.exact(sample)
            except Fault as fault:
                raise fault.under(f"[{index}]") from None
        return rows


class _DictRows(_Rows):
    """A dictionary of batches, in the Space's key order."""

    __slots__ = ("_parts",)

    def __init__(self, parts: dict[str, _Rows]) -> None:
        self._parts = parts

    @override
    def write(self, batch: Any, count: int, path: str, parts: list[Part]) -> None:
        if not isinstance(batch, dict) or batch.keys() != self._parts.keys():
            raise ValueMappingError(f"expected the keys {list(self._parts)} at {path}", path=path)
        for key, rows in self._parts.items():
            rows.write(batch[key], count, f"{path}.{key}", parts)

    @override
    def read(self, reader: Reader, count: int, path: str, out: Any) -> dict[str, Any]:
        batch = dict.fromkeys(self._parts) if out is None else out
        for key, rows in self._parts.items():
            batch[key] = rows.read(reader, count, f"{path}.{key}", batch[key])
        return batch

    @override
    def conform(self, batch: Any, count: int) -> dict[str, Any]:
        if not isinstance(batch, dict) or batch.keys() != self._parts.keys():
            got = f"the keys {list(batch)}" if isinstance(batch, dict) else describe(batch)
            raise Fault(f"the keys {list(self._parts)}", got)
        fitting: dict[str, Any] = {}
        for key, rows in self._parts.items():
            try:
                fitting[key] = rows.conform(batch[key], count)
            except Fault as fault:
                raise fault.under(f".{key}") from None
        return fitting


class _TupleRows(_Rows):
    """A tuple of batches."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[_Rows]) -> None:
        self._parts = parts

    @override
    def write(self, batch: Any, count: int, path: str, parts: list[Part]) -> None:
        if not isinstance(batch, tuple | list) or len(batch) != len(self._parts):
            raise ValueMappingError(f"expected a tuple of {len(self._parts)} at {path}", path=path)
        for index, rows in enumerate(self._parts):
            rows.write(batch[index], count, f"{path}[{index}]", parts)

    @override
    def read(self, reader: Reader, count: int, path: str, out: Any) -> tuple[Any, ...]:
        return tuple(
            rows.read(reader, count, f"{path}[{index}]", None if out is None else out[index])
            for index, rows in enumerate(self._parts)
        )

    @override
    def conform(self, batch: Any, count: int) -> tuple[Any, ...]:
        if not isinstance(batch, tuple | list) or len(batch) != len(self._parts):
            raise Fault(f"a tuple of {len(self._parts)} batches", describe(batch))
        fitting: list[Any] = []
        for index, rows in enumerate(self._parts):
            try:
                fitting.append(rows.conform(batch[index], count))
            except Fault as fault:
                raise fault.under(f"[{index}]") from None
        return tuple(fitting)


class _Values(_Rows):
    """A tuple of samples, whose sizes differ."""

    __slots__ = ("_codec", "_space")

    def __init__(self, space: Space[Any], codec: ValueCodec) -> None:
        self._space = space
        self._codec = codec

    @override
    def write(self, batch: Any, count: int, path: str, parts: list[Part]) -> None:
        if not isinstance(batch, tuple | list) or len(batch) != count:
            raise ValueMappingError(f"expected a tuple of {count} at {path}", path=path)
        for index, sample in enumerate(batch):
            write_sample(self._space, sample, f"{path}[{index}]", parts.append)

    @override
    def read(self, reader: Reader, count: int, path: str, out: Any) -> tuple[Any, ...]:
        del out
        return tuple([reader.read(self._space, f"{path}[{index}]") for index in range(count)])

    @override
    def conform(self, batch: Any, count: int) -> tuple[Any, ...]:
        fitting: list[Any] = []
        for index, sample in enumerate(_samples(batch, count)):
            try:
                fitting.append(self._codec.exact(sample))
            except Fault as fault:
                raise fault.under(f"[{index}]") from None
        return tuple(fitting)


def _samples(batch: Any, count: int) -> Any:
    if not isinstance(batch, tuple | list | np.ndarray) or len(batch) != count:
        got = describe(batch) if not isinstance(batch, tuple) else f"a tuple of {len(batch)}"
        raise Fault(f"{count} samples", got)
    return batch
