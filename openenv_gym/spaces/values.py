"""Sample ⇄ JSON for every built-in Space and ``UnicodeText``, nested at will.

``codec_for`` makes the codec of a Space once; the codec then takes each sample to JSON values and back. Not for JSON
text (``openenv_gym.messages``), nor for the Space itself as JSON (``serialize.py``), nor for bytes (``buffers.py``).

The composite codecs are here; they take the codecs of their parts, so that ``fields.py`` can put its own parts into
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as PySequence
from typing import Any

import numpy as np
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from typing_extensions import override

from openenv_gym.errors import SpaceMappingError
from openenv_gym.json_text import JSON
from openenv_gym.spaces.arrays import array_codec
from openenv_gym.spaces.batches import stack, unstack
from openenv_gym.spaces.codec import Fault, ValueCodec, describe, each, every, length, under
from openenv_gym.spaces.leaves import DiscreteCodec, TextCodec
from openenv_gym.spaces.text import UnicodeText

__all__ = [
    "LINK",
    "DictCodec",
    "GraphCodec",
    "OneOfCodec",
    "SequenceCodec",
    "TupleCodec",
    "ValueCodec",
    "codec_for",
    "unstacked",
]


def codec_for(space: Space[Any], path: str = "$") -> ValueCodec:
    """The codec of a Space.

    Args:
        space: one of the ten built-in Spaces or ``UnicodeText``, nested at will.
        path: the place of the Space, for the error.

    Raises:
        SpaceMappingError: a type of Space that is none of these (a subclass may mean more than its base says), a
            floating dtype wider than 64 bits, or a ``Dict`` key that is not a string.
    """
    kind = type(space)
    if kind in (Dict, Tuple, OneOf):
        return _codec_of_many(space, path)
    if isinstance(space, Sequence) and kind is Sequence:
        return SequenceCodec(space, codec_for(space.feature_space, f"{path}.space"))
    if isinstance(space, Graph) and kind is Graph:
        edges = None if space.edge_space is None else codec_for(space.edge_space, f"{path}.edge_space")
        return GraphCodec(space, codec_for(space.node_space, f"{path}.node_space"), edges)
    return _codec_of_leaf(space, path)


def _codec_of_many(space: Space[Any], path: str) -> ValueCodec:
    if isinstance(space, Dict):
        for key in space.spaces:
            if type(key) is not str:
                raise SpaceMappingError(f"expected string keys in the Dict at {path}, got {key!r}", path=path)
        return DictCodec(space, {key: codec_for(part, f"{path}.{key}") for key, part in space.spaces.items()})
    assert isinstance(space, Tuple | OneOf)
    parts = [codec_for(part, f"{path}[{index}]") for index, part in enumerate(space.spaces)]
    return TupleCodec(space, parts) if isinstance(space, Tuple) else OneOfCodec(space, parts)


def _codec_of_leaf(space: Space[Any], path: str) -> ValueCodec:
    kind = type(space)
    if isinstance(space, Box) and kind is Box:
        return _codec_of_box(space, path)
    if isinstance(space, Discrete) and kind is Discrete:
        return DiscreteCodec(space)
    if isinstance(space, MultiDiscrete) and kind is MultiDiscrete:
        return array_codec(space, space.start, space.start + (space.nvec - 1))
    if isinstance(space, MultiBinary) and kind is MultiBinary:
        return array_codec(space, np.zeros((), np.int8), np.ones((), np.int8))
    if isinstance(space, Text) and kind in (Text, UnicodeText):
        return TextCodec(space)
    name = f"{kind.__module__}.{kind.__qualname__}"
    raise SpaceMappingError(
        f"expected one of Gymnasium's built-in Spaces or UnicodeText at {path}, got {name}; "
        "wrap the environment so that its Spaces are built in",
        path=path,
    )


def _codec_of_box(space: Box, path: str) -> ValueCodec:
    if space.dtype.itemsize > np.dtype(np.float64).itemsize:
        raise SpaceMappingError(f"expected a Box of at most 64 bits at {path}, got {space.dtype}", path=path)
    return array_codec(space, space.low, space.high)


class DictCodec(ValueCodec):
    """A ``Dict``: an object in the Space's key order, whatever order the sample has."""

    __slots__ = ("_parts",)

    def __init__(self, space: Dict, parts: Mapping[str, ValueCodec]) -> None:
        self.space = space
        self._parts = tuple(parts.items())

    @override
    def write(self, sample: Any) -> JSON:
        if not isinstance(sample, Mapping):
            raise Fault("a mapping", describe(sample))
        if len(sample) != len(self._parts):
            raise self._keys(sample)
        encoded: dict[str, JSON] = {}
        key = ""
        try:
            for key, part in self._parts:
                encoded[key] = part.write(sample[key])
        except KeyError:
            raise self._keys(sample) from None
        except Fault as fault:
            raise fault.under(f".{key}") from None
        return encoded

    def _keys(self, given: Mapping[Any, Any]) -> Fault:
        missing = [key for key, _ in self._parts if key not in given]
        unknown = [key for key in given if key not in dict(self._parts)]
        faults = [f"no {missing[0]!r}"] if missing else []
        faults += [f"an unknown {unknown[0]!r}"] if unknown else []
        return Fault(f"the keys {[key for key, _ in self._parts]}", " and ".join(faults))

    @override
    def read(self, value: JSON) -> dict[str, Any]:
        if type(value) is not dict:
            raise Fault("an object", describe(value))
        if len(value) != len(self._parts):
            raise self._keys(value)
        decoded: dict[str, Any] = {}
        key = ""
        try:
            for key, part in self._parts:
                decoded[key] = part.read(value[key])
        except KeyError:
            raise self._keys(value) from None
        except Fault as fault:
            raise fault.under(f".{key}") from None
        return decoded

    @override
    def exact(self, sample: Any) -> dict[str, Any]:
        if not isinstance(sample, Mapping) or sample.keys() != dict(self._parts).keys():
            self.write(sample)  # explains
        return {key: under(f".{key}", part.exact, sample[key]) for key, part in self._parts}

    @override
    def check(self, sample: dict[str, Any]) -> None:
        for key, part in self._parts:
            try:
                part.check(sample[key])
            except Fault as fault:
                raise fault.under(f".{key}") from None

    @override
    def note(self, sample: Any, path: str) -> str | None:
        return next(filter(None, (part.note(sample[key], f"{path}.{key}") for key, part in self._parts)), None)


class TupleCodec(ValueCodec):
    """A ``Tuple``: a list."""

    __slots__ = ("_parts",)

    def __init__(self, space: Tuple[Any], parts: PySequence[ValueCodec]) -> None:
        self.space = space
        self._parts = tuple(parts)

    @override
    def write(self, sample: Any) -> JSON:
        if not isinstance(sample, tuple | list | np.ndarray) or len(sample) != len(self._parts):
            raise Fault(f"a tuple of {len(self._parts)}", length(sample))
        return each([part.write for part in self._parts], sample)

    @override
    def read(self, value: JSON) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(self._parts):
            raise Fault(f"a list of {len(self._parts)}", describe(value))
        return tuple(each([part.read for part in self._parts], value))

    @override
    def exact(self, sample: Any) -> tuple[Any, ...]:
        if not isinstance(sample, tuple | list | np.ndarray) or len(sample) != len(self._parts):
            raise Fault(f"a tuple of {len(self._parts)}", length(sample))
        return tuple(each([part.exact for part in self._parts], sample))

    @override
    def check(self, sample: tuple[Any, ...]) -> None:
        each([part.check for part in self._parts], sample)

    @override
    def note(self, sample: Any, path: str) -> str | None:
        notes = (
            part.note(item, f"{path}[{i}]") for i, (part, item) in enumerate(zip(self._parts, sample, strict=True))
        )
        return next(filter(None, notes), None)


class SequenceCodec(ValueCodec):
    """A ``Sequence``: a list of its elements, whether Gymnasium stacks them or not."""

    __slots__ = ("_part", "_stacked")

    def __init__(self, space: Sequence, part: ValueCodec) -> None:
        self.space = space
        self._part = part
        self._stacked = space.stack

    @override
    def write(self, sample: Any) -> JSON:
        return every(self._part.write, self._items(sample))

    def _items(self, sample: Any) -> Any:
        if self._stacked:
            return unstacked(self._part.space, sample)
        if not isinstance(sample, tuple | list | np.ndarray):
            raise Fault("a tuple", describe(sample))
        return sample

    @override
    def read(self, value: JSON) -> Any:
        if type(value) is not list:
            raise Fault("a list", describe(value))
        items = every(self._part.read, value)
        return stack(self._part.space, items) if self._stacked else tuple(items)

    @override
    def check(self, sample: Any) -> None:
        every(self._part.check, self._items(sample))

    @override
    def note(self, sample: Any, path: str) -> str | None:
        items = enumerate(self._items(sample))
        return next(filter(None, (self._part.note(item, f"{path}[{index}]") for index, item in items)), None)


def unstacked(space: Space[Any], batch: Any) -> list[Any]:
    """The samples of a batch, or a ``Fault`` where it is none of this Space."""
    try:
        return unstack(space, batch)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise Fault("a batch of samples", f"{describe(batch)}, which cannot be taken apart: {error}") from None


LINK = array_codec(
    Box(np.iinfo(np.int32).min, np.iinfo(np.int32).max, (2,), np.int32),
    np.zeros((), np.int32),
    np.array(np.iinfo(np.int32).max, np.int32),
)
"""One edge link: the indices of two nodes, int32 as in Gymnasium's own samples."""


class GraphCodec(ValueCodec):
    """A ``Graph``: three columns, each a batch; edges and edge links may be null."""

    __slots__ = ("_columns",)

    def __init__(self, space: Graph, nodes: ValueCodec, edges: ValueCodec | None) -> None:
        self.space = space
        self._columns: tuple[tuple[str, ValueCodec | None], ...] = (
            ("nodes", nodes),
            ("edges", edges),
            ("edge_links", LINK),
        )

    @override
    def write(self, sample: Any) -> JSON:
        if not isinstance(sample, tuple) or len(sample) != len(self._columns):
            raise Fault("a GraphInstance", length(sample))
        return self._map(_encode_batch, dict(zip(GraphInstance._fields, sample, strict=True)))

    @override
    def read(self, value: JSON) -> GraphInstance:
        if type(value) is not dict or value.keys() != set(GraphInstance._fields):
            got = f"the keys {sorted(value)}" if type(value) is dict else describe(value)
            raise Fault(f"an object of {', '.join(GraphInstance._fields)}", got)
        return GraphInstance(**self._map(_decode_batch, value))

    def _map(self, call: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        mapped: dict[str, Any] = {}
        for key, codec in self._columns:
            value = values[key]
            if value is None and key != "nodes":
                mapped[key] = None
            elif codec is None:
                raise Fault("no edges, since the Space has none", describe(value)).under(f".{key}")
            else:
                mapped[key] = under(f".{key}", call, codec, value)
        return mapped

    @override
    def check(self, sample: GraphInstance) -> None:
        self._map(_check_batch, sample._asdict())
        edges, links = sample.edges, sample.edge_links
        if edges is None or links is None:
            if edges is not links:
                raise Fault("edges and edge_links together", "one of them without the other")
            return
        nodes = _size(self._columns[0][1], sample.nodes)
        if len(links) != _size(self._columns[1][1], edges):
            raise Fault("as many edge_links as edges", f"{len(links)}").under(".edge_links")
        wrong = np.argwhere(links >= nodes).tolist()
        if wrong:
            row, column = wrong[0]
            expected = f"the index of one of {nodes} nodes"
            raise Fault(expected, f"{links[row, column]}").under(f".edge_links[{row}][{column}]")

    @override
    def note(self, sample: Any, path: str) -> str | None:
        for (key, codec), batch in zip(self._columns[:2], sample, strict=False):
            items = [] if codec is None or batch is None else unstacked(codec.space, batch)
            for index, item in enumerate(items):
                assert codec is not None
                note = codec.note(item, f"{path}.{key}[{index}]")
                if note is not None:
                    return note
        return None


def _encode_batch(codec: ValueCodec, batch: Any) -> JSON:
    return every(codec.write, unstacked(codec.space, batch))


def _decode_batch(codec: ValueCodec, value: JSON) -> Any:
    if type(value) is not list:
        raise Fault("a list", describe(value))
    return stack(codec.space, every(codec.read, value))


def _check_batch(codec: ValueCodec, batch: Any) -> None:
    every(codec.check, unstacked(codec.space, batch))


def _size(codec: ValueCodec | None, batch: Any) -> int:
    return 0 if codec is None else len(unstacked(codec.space, batch))


class OneOfCodec(ValueCodec):
    """A ``OneOf``: the index of the Space and the value in it."""

    __slots__ = ("_parts",)

    def __init__(self, space: OneOf[Any], parts: PySequence[ValueCodec]) -> None:
        self.space = space
        self._parts = tuple(parts)

    @override
    def write(self, sample: Any) -> JSON:
        if not isinstance(sample, tuple | list) or len(sample) != 2:
            raise Fault("a pair of index and value", length(sample))
        index, value = sample
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < len(self._parts):
            raise Fault(f"an index below {len(self._parts)}", describe(index)).under("[0]")
        return [int(index), under("[1]", self._parts[index].write, value)]

    @override
    def read(self, value: JSON) -> tuple[np.int64, Any]:
        if type(value) is not list or len(value) != 2:
            raise Fault("a pair of index and value", describe(value))
        index, part = value
        if type(index) is not int or not 0 <= index < len(self._parts):
            raise Fault(f"an index below {len(self._parts)}", describe(index)).under("[0]")
        return np.int64(index), under("[1]", self._parts[index].read, part)

    @override
    def check(self, sample: tuple[np.int64, Any]) -> None:
        under("[1]", self._parts[sample[0]].check, sample[1])

    @override
    def note(self, sample: Any, path: str) -> str | None:
        index, value = sample
        codec: ValueCodec = self._parts[index]
        return codec.note(value, f"{path}[1]")
