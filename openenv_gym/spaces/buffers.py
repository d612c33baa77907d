"""Sample ⇄ bytes, laid out by the Space that both sides know: no tags, no schema, no objects.

For binary messages. Not for JSON (``values.py``), nor for several samples at once (``batch_buffers.py``), nor for
framing: what surrounds a value is the message's business (``openenv_gym.frames``).

The layout, everything little-endian, nothing aligned, NaN payloads and the sign of zero kept:

=================================  ==================================================================================
Box, MultiBinary, MultiDiscrete    the elements in C order, in the Space's dtype; bool is one byte, 0 or 1
Discrete                           one element of the Space's dtype: the true value, ``start`` included
Text, UnicodeText                  uint32 length in bytes, then UTF-8
Dict, Tuple                        the parts one after another, in the Space's order
Sequence                           uint32 number of elements, then the elements one after another, stacked or not
Graph                              uint8 of flags (1: edges, 2: edge links), then the nodes as a Sequence of them; the
                                   edges likewise where flagged; the links likewise where flagged, two int32 for each
OneOf                              uint32 index of the Space, then the value
=================================  ==================================================================================

An element of a Sequence or Graph whose Space may take no bytes at all is preceded by one zero byte: so no count can
exceed the bytes that follow, and every length is checked against the buffer before anything is allocated.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium.spaces import (
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)

from openenv_gym.errors import ValueMappingError
from openenv_gym.frames import Part
from openenv_gym.spaces.batches import ArraySpace, stack
from openenv_gym.spaces.codec import Fault
from openenv_gym.spaces.quick_buffers import QuickBuffer, require_booleans, wire_dtype
from openenv_gym.spaces.text import is_scalar_text
from openenv_gym.spaces.values import LINK, codec_for, unstacked

__all__ = ["BufferCodec", "Reader", "least_bytes", "pack", "unpack", "write_sample"]

_COUNT = struct.Struct("<I")
_LINK = LINK.space
_EDGES, _LINKS = 1, 2


class BufferCodec:
    r"""Packs and unpacks the samples of one Space, which is looked at once.

    Args:
        space: one of the ten built-in Spaces or ``UnicodeText``, nested at will.

    Raises:
        SpaceMappingError: a Space of another type.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> from openenv_gym.spaces import BufferCodec
        >>> codec = BufferCodec(Discrete(3))
        >>> codec.unpack(codec.pack(2))
        np.int64(2)
    """

    __slots__ = ("_quick", "space")

    def __init__(self, space: Space[Any]) -> None:
        codec_for(space)  # refuses every Space that is not carried, with its path
        self.space = space
        self._quick = QuickBuffer(space) if isinstance(space, ArraySpace) else None

    def pack(self, sample: Any) -> bytes:
        """The bytes of a sample, which must have the Space's dtypes and shapes; bounds are not checked.

        Raises:
            ValueMappingError: the sample has another structure, shape or dtype.
        """
        return b"".join(self.pack_parts(sample))  # type: ignore[arg-type]  # an array gives its bytes

    def pack_parts(self, sample: Any) -> list[Part]:
        """``pack`` in pieces, for a frame around them; an array that is as it must be is not copied."""
        if self._quick is not None and (part := self._quick.pack(sample)) is not None:
            return [part]
        parts: list[Part] = []
        write_sample(self.space, sample, "$", parts.append)
        return parts

    def unpack(self, buffer: bytes | bytearray | memoryview) -> Any:
        """The sample of all of its bytes; arrays are its own, writable, in the Space's dtype and byte order.

        Raises:
            ValueMappingError: bytes are missing or left over, or are none of this Space.
        """
        if self._quick is not None and len(buffer) == self._quick.size:
            return self._quick.unpack(buffer)
        reader = Reader(buffer)
        sample = reader.read(self.space, "$")
        reader.finish()
        return sample


def pack(space: Space[Any], sample: Any) -> bytes:
    r"""The bytes of one sample; ``BufferCodec`` is for many.

    Args:
        space: one of the ten built-in Spaces or ``UnicodeText``, nested at will.
        sample: a value of it, with its dtypes and shapes (bounds are not checked).

    Raises:
        SpaceMappingError: a Space of another type.
        ValueMappingError: the sample has another structure, shape or dtype.

    Example:
        >>> from gymnasium.spaces import MultiBinary
        >>> from openenv_gym.spaces import pack, unpack
        >>> pack(MultiBinary(2), [1, 0])
        Traceback (most recent call last):
        ...
        openenv_gym.errors.ValueMappingError: expected the dtype int8, not int64, at $
        >>> unpack(MultiBinary(2), b"\x01\x00")
        array([1, 0], dtype=int8)
    """
    return BufferCodec(space).pack(sample)


def unpack(space: Space[Any], buffer: bytes | bytearray | memoryview) -> Any:
    """The sample of its bytes; ``BufferCodec`` is for many.

    Args:
        space: the Space the bytes were packed by.
        buffer: all of the sample's bytes and none more.

    Raises:
        SpaceMappingError: a Space of another type.
        ValueMappingError: bytes are missing or left over, or are none of this Space.
    """
    return BufferCodec(space).unpack(buffer)


def write_sample(space: Space[Any], sample: Any, path: str, out: Callable[[Part], None]) -> None:
    """Give the bytes of a sample to ``out``, piece by piece; see ``BufferCodec.pack``."""
    if isinstance(space, ArraySpace):
        out(_raw(space, sample, path))
    elif isinstance(space, Text):
        _require(isinstance(sample, str) and is_scalar_text(sample), "a string of Unicode scalar values", path)
        encoded = sample.encode()
        out(_COUNT.pack(len(encoded)))
        out(encoded)
    elif isinstance(space, Dict):
        _require(
            isinstance(sample, dict) and sample.keys() == space.spaces.keys(), f"the keys {list(space.spaces)}", path
        )
        for key, part in space.spaces.items():
            write_sample(part, sample[key], f"{path}.{key}", out)
    elif isinstance(space, Tuple):
        _require(
            isinstance(sample, tuple | list) and len(sample) == len(space.spaces),
            f"a tuple of {len(space.spaces)}",
            path,
        )
        for index, part in enumerate(space.spaces):
            write_sample(part, sample[index], f"{path}[{index}]", out)
    else:
        _write_counted(space, sample, path, out)


def _write_counted(space: Space[Any], sample: Any, path: str, out: Callable[[Part], None]) -> None:
    if isinstance(space, OneOf):
        _require(isinstance(sample, tuple | list) and len(sample) == 2, "a pair of index and value", path)
        index = sample[0]
        _require(
            isinstance(index, int | np.integer)
            and not isinstance(index, bool)
            and bool(0 <= index < len(space.spaces)),
            "the index of a Space",
            f"{path}[0]",
        )
        out(_COUNT.pack(index))
        write_sample(space.spaces[index], sample[1], f"{path}[1]", out)
    elif isinstance(space, Sequence):
        _require(space.stack or isinstance(sample, tuple | list), "a tuple", path)
        _write_items(
            space.feature_space, _items(space.feature_space, sample, path) if space.stack else sample, path, out
        )
    else:
        assert isinstance(space, Graph)
        _write_graph(space, sample, path, out)


def _require(condition: bool, expected: str, path: str) -> None:
    if not condition:
        raise ValueMappingError(f"expected {expected} at {path}", path=path)


def _raw(space: ArraySpace, sample: Any, path: str) -> np.ndarray:
    plain = isinstance(sample, int) or (isinstance(sample, float) and space.dtype.kind == "f")
    array = _as_array(sample, space.dtype if plain else None, path)
    # Only the byte order may differ: a cast could lose bits, and this is the exact way.
    wire = wire_dtype(space.dtype)
    if array.shape != space.shape or (array.dtype != wire and array.dtype.newbyteorder("<") != wire):
        shape_fits = array.shape == space.shape
        expected = (
            f"the dtype {space.dtype}, not {array.dtype},"
            if shape_fits
            else f"the shape {space.shape}, not {array.shape},"
        )
        raise ValueMappingError(f"expected {expected} at {path}", path=path)
    return np.ascontiguousarray(array, wire)


def _as_array(sample: Any, dtype: np.dtype[Any] | None, path: str) -> np.ndarray:
    try:
        if dtype is None:
            return np.asarray(sample)
        with np.errstate(over="ignore"):
            return np.asarray(sample, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueMappingError(f"expected an array at {path}: {error}", path=path) from error


def _links(links: Any, path: str) -> np.ndarray:
    """Edge links as int32, Gymnasium's own dtype for them; the Space says none."""
    given = _as_array(links, None, path)
    cast = given.astype(np.int32) if given.dtype.kind in "iu" else np.empty(0, np.int32)
    _require(np.array_equal(cast, given), "pairs of int32", path)
    return cast


def _items(space: Space[Any], batch: Any, path: str) -> list[Any]:
    try:
        return unstacked(space, batch)
    except Fault as fault:
        raise fault.error(path) from None


def _write_items(space: Space[Any], items: Iterable[Any], path: str, out: Callable[[Part], None]) -> None:
    listed = list(items)
    padding = b"" if least_bytes(space) else b"\0"
    out(_COUNT.pack(len(listed)))
    for index, item in enumerate(listed):
        out(padding)
        write_sample(space, item, f"{path}[{index}]", out)


def least_bytes(space: Space[Any]) -> int:
    """The fewest bytes a sample of the Space takes."""
    if isinstance(space, ArraySpace):
        return math.prod(space.shape or ()) * space.dtype.itemsize
    if isinstance(space, Dict):
        return sum(map(least_bytes, space.spaces.values()))
    if isinstance(space, Tuple):
        return sum(map(least_bytes, space.spaces))
    return _COUNT.size


def _write_graph(space: Graph, sample: Any, path: str, out: Callable[[Part], None]) -> None:
    _require(isinstance(sample, tuple) and len(sample) == 3, "a GraphInstance", path)
    nodes, edges, links = sample
    _require(edges is None or space.edge_space is not None, "no edges, since the Space has none,", f"{path}.edges")
    out(bytes([_EDGES * (edges is not None) + _LINKS * (links is not None)]))
    links = None if links is None else _links(links, f"{path}.edge_links")
    columns = (
        ("nodes", space.node_space, nodes),
        ("edges", space.edge_space, edges),
        ("edge_links", _LINK, links),
    )
    for key, part, batch in columns:
        if batch is not None or key == "nodes":
            assert part is not None
            _write_items(part, _items(part, batch, f"{path}.{key}"), f"{path}.{key}", out)


class Reader:
    """A buffer and the place in it."""

    def __init__(self, buffer: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(buffer).cast("B")
        self._place = 0

    def finish(self) -> None:
        """Raise ``ValueMappingError`` where bytes are left."""
        left = len(self._view) - self._place
        if left:
            raise ValueMappingError(f"expected the sample to end after {self._place} bytes, got {left} more", path="$")

    def take(self, size: int, path: str) -> memoryview:
        """The next bytes, or ``ValueMappingError`` where there are not so many."""
        left = len(self._view) - self._place
        if size > left:
            raise ValueMappingError(f"expected {size} bytes more at {path}, got {left}", path=path)
        self._place += size
        return self._view[self._place - size : self._place]

    def _count(self, path: str) -> int:
        return int(_COUNT.unpack(self.take(_COUNT.size, path))[0])

    def read(self, space: Space[Any], path: str) -> Any:
        """The next sample of the Space."""
        if isinstance(space, ArraySpace):
            return self._array(space, path)
        if isinstance(space, Dict):
            return {key: self.read(part, f"{path}.{key}") for key, part in space.spaces.items()}
        if isinstance(space, Tuple):
            return tuple(self.read(part, f"{path}[{index}]") for index, part in enumerate(space.spaces))
        return self._counted(space, path)

    def _counted(self, space: Space[Any], path: str) -> Any:
        if isinstance(space, Text):
            return self._string(path)
        if isinstance(space, OneOf):
            index = self._count(path)
            _require(index < len(space.spaces), f"an index below {len(space.spaces)}, not {index},", f"{path}[0]")
            return np.int64(index), self.read(space.spaces[index], f"{path}[1]")
        if isinstance(space, Sequence):
            items = self._items(space.feature_space, path)
            return stack(space.feature_space, items) if space.stack else tuple(items)
        assert isinstance(space, Graph)
        return self._graph(space, path)

    def _array(self, space: ArraySpace, path: str) -> Any:
        raw = self.take(least_bytes(space), path)
        if space.dtype.kind == "b":
            require_booleans(raw, path)
        array: np.ndarray[Any, Any] = np.ndarray(space.shape or (), wire_dtype(space.dtype), bytearray(raw))
        if isinstance(space, Discrete):
            return space.dtype.type(array[()])
        return array.astype(space.dtype, copy=False)

    def _string(self, path: str) -> str:
        try:
            return str(self.take(self._count(path), path), "utf-8")
        except UnicodeDecodeError as error:
            raise ValueMappingError(f"expected UTF-8 at {path}: {error}", path=path) from error

    def _items(self, space: Space[Any], path: str) -> list[Any]:
        count = self._count(path)
        least = least_bytes(space)
        left = len(self._view) - self._place
        _require(count * max(least, 1) <= left, f"at least {count * max(least, 1)} bytes, not {left},", path)
        items: list[Any] = []
        for index in range(count):
            if not least:
                _require(self.take(1, path)[0] == 0, "a zero byte before each element", f"{path}[{index}]")
            items.append(self.read(space, f"{path}[{index}]"))
        return items

    def _graph(self, space: Graph, path: str) -> GraphInstance:
        flags = self.take(1, path)[0]
        _require(flags <= _EDGES + _LINKS, f"the flags of a graph, not {flags},", path)
        _require(
            not flags & _EDGES or space.edge_space is not None, "no edges, since the Space has none,", f"{path}.edges"
        )
        nodes = self._batch(space.node_space, f"{path}.nodes")
        edges = self._batch(space.edge_space, f"{path}.edges") if flags & _EDGES else None
        links = self._batch(_LINK, f"{path}.edge_links") if flags & _LINKS else None
        return GraphInstance(nodes, edges, links)

    def _batch(self, space: Space[Any] | None, path: str) -> Any:
        assert space is not None
        return stack(space, self._items(space, path))
