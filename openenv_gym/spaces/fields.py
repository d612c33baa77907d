"""The codecs of values whose Space was found in a JSON Schema alone: their JSON is the schema's, not the Space's own.

For ``mapping.py``. Where a Space publishes itself (``x-gymnasium-space``) the codecs of ``values.py`` are used
instead.

What is written may be said more plainly than the Space has it, where only one thing can be meant: a listed text by
itself beside its index, a value of a union without the index of its alternative, and fields that are not required may
be left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from collections.abc import Sequence as PySequence
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, OneOf
from typing_extensions import override

from openenv_gym.errors import ProtocolError, ValueMappingError
from openenv_gym.json_text import JSON, decode_json, encode_json, shown
from openenv_gym.spaces.codec import Fault, ValueCodec, describe, under
from openenv_gym.spaces.text import UnicodeText
from openenv_gym.spaces.values import DictCodec, OneOfCodec, codec_for

__all__ = ["BooleanCodec", "EnumCodec", "FieldCodec", "FieldsCodec", "JsonTextCodec", "UnionCodec"]


class EnumCodec(ValueCodec):
    """One of listed JSON values: a ``Discrete`` over their places."""

    __slots__ = ("_index", "_places", "_values")

    def __init__(self, values: PySequence[JSON]) -> None:
        self.space = Discrete(len(values))
        self._index = codec_for(self.space)
        self._values = tuple(values)
        self._places = {_identity(value): place for place, value in reversed(list(enumerate(values)))}

    @override
    def write(self, sample: Any) -> JSON:
        if sample is None or isinstance(sample, str):
            # Neither is an index.
            place = self._place(sample)
            if place is None:
                raise self._none_of_them(sample)
            return self._values[place]
        try:
            index = self._index.write(sample)
            self._index.check(index)
        except Fault:
            raise self._none_of_them(sample) from None
        return self._values[index]  # type: ignore[index]  # a Discrete writes integers

    def plain(self, value: Any) -> JSON:
        """A listed value itself, or by its index where that can mean no other; for a union, which may leave one out.

        Raises:
            Fault: it is neither, or each of two values.
        """
        value = bool(value) if isinstance(value, np.bool_) else value
        places = {self._place(value)}
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and not self.is_null:
            places.add(int(value) if 0 <= value < len(self._values) else None)
        places -= {None}
        if len(places) != 1:
            raise self._none_of_them(value)
        return self._values[places.pop() or 0]

    @property
    def is_null(self) -> bool:
        """Whether null is all there is."""
        return self._values == (None,)

    def _place(self, value: Any) -> int | None:
        try:
            return self._places.get(_identity(value))
        except (RecursionError, TypeError):
            return None

    def _none_of_them(self, sample: Any) -> Fault:
        return Fault(f"an index below {len(self._values)} or a text of {self}", describe(sample))

    def __str__(self) -> str:
        """The values by their indices."""
        listed = ", ".join(f"{index}: {_short(value)}" for index, value in enumerate(self._values[:_SHOWN]))
        return f"{{{listed}{', …' * (len(self._values) > _SHOWN)}}}"

    @override
    def read(self, value: JSON) -> Any:
        place = self._place(value)
        if place is None:
            listed = ", ".join(describe(known) for known in self._values[:_SHOWN])
            raise Fault(
                f"one of {len(self._values)} values ({listed}{' …' * (len(self._values) > _SHOWN)})", describe(value)
            )
        return np.int64(place)

    @override
    def check(self, sample: Any) -> None:
        self._index.check(sample)


_SHOWN = 8
"""Values and alternatives that a message lists."""


def _short(value: JSON) -> str:
    """A value in a list of them."""
    return "null" if value is None else repr(value)[:40] if isinstance(value, str) else shown(value)[:40]


def _identity(value: JSON) -> Any:
    """A key that is equal where JSON values are: 1 is 1.0, and true is neither."""
    if isinstance(value, list):
        return ("list", tuple(map(_identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, _identity(item)) for key, item in value.items()))
    return (isinstance(value, bool), value)


class BooleanCodec(ValueCodec):
    """A number where the schema also allows true and false: they are read as 1 and 0."""

    __slots__ = ("_number",)

    def __init__(self, number: ValueCodec) -> None:
        self.space = number.space
        self._number = number

    @override
    def write(self, sample: Any) -> JSON:
        return self._number.write(sample)

    @override
    def read(self, value: JSON) -> Any:
        return self._number.read(int(value) if isinstance(value, bool) else value)

    @override
    def check(self, sample: Any) -> None:
        self._number.check(sample)


_SAMPLES = ("null", "true", "0", "-1.5", '"text"', "[]", "[1,2]", "{}", '{"key":"value"}')


class JsonTextCodec(ValueCodec):
    """Any JSON value, or any JSON object: a ``UnicodeText`` that holds its JSON text."""

    __slots__ = ("_objects", "_text")

    def __init__(self, *, objects: bool) -> None:
        # A sample has to be JSON text; of objects, the one that no schema of their values can refuse.
        self.space = UnicodeText.sampling("{}") if objects else UnicodeText.sampling(*_SAMPLES)
        self._text = codec_for(self.space)
        self._objects = objects

    @override
    def write(self, sample: Any) -> JSON:
        text = self._text.write(sample)
        try:
            value = decode_json(str(text))
        except ProtocolError as error:
            raise Fault("JSON text", f"{describe(text)}, which is none: {error}") from None
        return self._of_kind(value, "the JSON text of an object")

    def _of_kind(self, value: JSON, expected: str) -> JSON:
        if self._objects and not isinstance(value, dict):
            raise Fault(expected, describe(value))
        return value

    @override
    def read(self, value: JSON) -> str:
        try:
            return encode_json(self._of_kind(value, "an object")).decode()
        except ValueMappingError as error:
            raise Fault("a JSON value", f"{describe(value)}, which is none: {error}") from None

    @override
    def check(self, sample: str) -> None:
        self._text.check(sample)


class UnionCodec(OneOfCodec):
    """One of several schemas: a ``OneOf``, whose index is not on the wire. A value is the first that it fits.

    Written may also be what an alternative writes, without the index, where all that take it write the same. A tuple of
    two that begins with an index is always a pair of index and value; of a list of two, it must be the only reading.
    """

    __slots__ = ()

    def __init__(self, parts: PySequence[ValueCodec]) -> None:
        super().__init__(OneOf([part.space for part in parts]), parts)

    @override
    def write(self, sample: Any) -> JSON:
        paired: Fault | None = None
        readings: list[JSON] = []
        if isinstance(sample, tuple | list) and len(sample) == 2 and self._is_index(sample[0]):
            try:
                readings.append(super().write(sample)[1])  # type: ignore[index]  # a OneOf writes pairs
            except Fault as fault:
                paired = fault
            if isinstance(sample, tuple):
                if paired is not None:
                    raise paired
                return readings[0]
        for part in self._parts:
            with contextlib.suppress(Fault):
                readings.append(_plain(part, sample))
        if readings and len({_identity(reading) for reading in readings}) == 1:
            return readings[0]
        if paired is not None and not readings:
            raise paired
        raise Fault(f"{'one meaning: ' * bool(readings)}a pair of index and value of {self}", describe(sample))

    def _is_index(self, index: Any) -> bool:
        whole = isinstance(index, int | np.integer) and not isinstance(index, bool)
        return whole and 0 <= index < len(self._parts)

    def __str__(self) -> str:
        """The alternatives by their indices."""
        listed = ", ".join(f"{index}: {_alternative(part)}" for index, part in enumerate(self._parts[:_SHOWN]))
        return f"{{{listed}{', …' * (len(self._parts) > _SHOWN)}}} or a value alone that only one of them takes"

    @override
    def read(self, value: JSON) -> tuple[np.int64, Any]:
        outside: tuple[np.int64, Any] | None = None
        for index, part in enumerate(self._parts):
            try:
                sample = part.read(value)
                outside = outside or (np.int64(index), sample)
                part.check(sample)
            except Fault:
                continue
            return np.int64(index), sample
        if outside is None:
            raise Fault(f"one of {len(self._parts)} alternatives", describe(value))
        return outside


def _plain(part: ValueCodec, value: Any) -> JSON:
    """What an alternative writes of a value without its index."""
    if isinstance(part, EnumCodec):
        return part.plain(value)
    if isinstance(value, bool | np.bool_):
        # Elsewhere true is 1; here that would make another value of it.
        if isinstance(part, BooleanCodec):
            return bool(value)
        raise Fault("a value", describe(value))
    return part.write(value)


def _alternative(part: ValueCodec) -> str:
    if isinstance(part, EnumCodec):
        return "null" if part.is_null else f"one of {part}"
    return "JSON text" if isinstance(part, JsonTextCodec) else str(part.space)[:80]


class FieldsCodec(DictCodec):
    """An object with declared fields: a ``Dict``. Unknown fields are passed over; absent ones have their default.

    Args:
        parts: the codec of each field.
        defaults: the JSON default of each field that has one.
        required: the fields that are written in any case; None: all.
    """

    __slots__ = ("_defaults", "_optional")

    def __init__(
        self,
        parts: Mapping[str, ValueCodec],
        defaults: Mapping[str, JSON],
        required: Collection[str] | None = None,
    ) -> None:
        super().__init__(Dict([(key, part.space) for key, part in parts.items()]), parts)
        self._defaults = dict(defaults)
        self._optional = frozenset(() if required is None else parts.keys() - set(required))

    @override
    def _keys(self, given: Mapping[Any, Any]) -> Fault:
        return super()._keys({**dict.fromkeys(self._optional), **given})

    @override
    def write(self, sample: Any) -> JSON:
        if isinstance(sample, Mapping) and len(sample) < len(self._parts):
            given = {key: part for key, part in self._parts if key in sample or key not in self._optional}
            if len(given) == len(sample):
                return DictCodec(Dict(), given).write(sample)
        return super().write(sample)

    @override
    def read(self, value: JSON) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Fault("an object", describe(value))
        present = {**self._defaults, **value}
        return super().read({key: present[key] for key, _ in self._parts if key in present})


class FieldCodec(ValueCodec):
    """The one field of an object that matters: its own Space. Every other field keeps its default.

    Args:
        key: the field's name.
        part: its codec.
        defaults: its JSON default, where it has one.
    """

    __slots__ = ("_fields", "_part", "field")

    def __init__(self, key: str, part: ValueCodec, defaults: Mapping[str, JSON]) -> None:
        self.space = part.space
        self.field = key
        self._part = part
        self._fields = FieldsCodec({key: part}, defaults)

    @override
    def write(self, sample: Any) -> JSON:
        try:
            return {self.field: self._part.write(sample)}
        except Fault as fault:
            raise fault.under(f".{self.field}") from None

    @override
    def read(self, value: JSON) -> Any:
        if type(value) is not dict or self.field not in value:
            return self._fields.read(value)[self.field]  # its default, or an explanation
        try:
            return self._part.read(value[self.field])
        except Fault as fault:
            raise fault.under(f".{self.field}") from None

    @override
    def check(self, sample: Any) -> None:
        under(f".{self.field}", self._part.check, sample)
