"""Any value as JSON with its exact type: the tagged form of values that no Space describes.

Not for the way back (``exact_reader.py``), nor for samples of a Space (``openenv_gym.spaces``), which need no tags.
``info.py`` is the face of both: it puts the plain form beside the exact one.

What JSON itself keeps (null, booleans, strings, finite floats, integers of 64 bits, lists, objects with string keys)
stays as it is. Everything else is an object with the key ``"$"``, which names the type:

===================  ===============================================================================================
``array``            ``dtype``, ``shape`` and base64 ``data``, little or big-endian as the array is; object arrays
                     have ``items``
``scalar``           a NumPy scalar: ``dtype`` and ``data``; NumPy's own strings are ``str_`` and ``bytes_``
``tuple`` ``set``    ``items``; ``frozenset`` likewise
``dict``             ``items``, pairs of key and value: keys that are not strings, or a key ``"$"``
``bytes``            base64 ``data``; ``bytearray`` likewise
``int`` ``float``    ``value`` as a string: integers above 64 bits, NaN and the infinities
``complex``          ``value``: the two floats
``str``              ``data``, base64 of the UTF-8 with surrogates: strings with lone surrogates
``datetime`` …       ``value`` as text; ``date``, ``time``, ``decimal``, ``fraction``, ``uuid`` likewise
``timedelta``        ``value``: days, seconds, microseconds
``opaque``           ``type`` and ``text``: an object that cannot travel, see ``Opaque``
===================  ===============================================================================================

A subclass of a plain type travels as that type: a named tuple as a tuple, an ``IntEnum`` as an int. A subclass of
NumPy's array, and a structured one, is no value. A time zone travels as its offset from UTC, a
scalar of C's ``long long`` as the ``int64`` it is.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from openenv_gym.json_text import JSON
from openenv_gym.messages import CallSettings
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.spaces.codec import Fault, every
from openenv_gym.spaces.limits import MAX_DEPTH
from openenv_gym.spaces.text import is_scalar_text

__all__ = [
    "MAX_DIGITS",
    "RAW_DTYPE",
    "TAG",
    "Opaque",
    "Writer",
    "base64_text",
    "brief",
    "encode_exact",
    "exact_call",
    "readable",
]

TAG = "$"
"""The key that names the type."""

MAX_DIGITS = 4_300
"""Decimal digits of a fraction's parts: to read more takes time that grows with their square, and Python by default
refuses to print more."""

MAX_TEXT = 1_000
"""Characters of an object's repr that an ``Opaque`` keeps."""

RAW_DTYPE = re.compile(r"[<>|][biufcSUmM][0-9]+(\[[0-9]*[A-Za-zμ]+\])?")
"""The dtypes whose bytes are all there is to a value."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """What is left of an object that cannot travel: its type's name and the start of its repr.

    Example:
        >>> from openenv_gym.info import decode_info, encode_info
        >>> plain, exact = encode_info({"score": 3, "engine": object})
        >>> plain
        {'score': 3}
        >>> decode_info(plain, exact)["engine"]
        Opaque(type_name='builtins.type', text="<class 'object'>")
    """

    type_name: str
    text: str


def encode_exact(value: object) -> JSON:
    """The tagged JSON of a value.

    Raises:
        ValueMappingError: it holds an object that is no value (a generator, a socket …), or nests too deeply, or
            holds itself; ``path`` says where.
    """
    try:
        return Writer(opaque=False).write(value)
    except Fault as fault:
        raise fault.error("$") from None


def exact_call(name: str, args: Iterable[object], keywords: Mapping[str, object]) -> CallSettings:
    """A method by name with its arguments, each in the tagged form.

    Raises:
        ValueMappingError: an argument has none; see ``encode_exact``.
    """
    return CallSettings(
        name=name,
        args=[encode_exact(value) for value in args],
        kwargs={key: encode_exact(value) for key, value in keywords.items()},
    )


class Writer:
    """One pass over a value.

    Args:
        opaque: whether an object that cannot travel becomes an ``Opaque`` instead of an error.

    Attributes:
        plain: afterwards, whether no tag was needed.
        cut: afterwards, whether the value holds itself or was too deep.
    """

    def __init__(self, *, opaque: bool) -> None:
        self.plain = True
        self.cut = False
        self._opaque = opaque
        self._within: set[int] = set()

    def write(self, value: Any) -> JSON:
        """The tagged JSON of a value.

        Raises:
            Fault: where ``encode_exact`` raises, unless objects become opaque.
        """
        if value is None or value is True or value is False:
            return value
        leaf = _LEAVES.get(type(value))
        if leaf is not None:
            return leaf(self, value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self._scalar(value)
        for base, container in _CONTAINERS:
            if isinstance(value, base):
                return self._nested(container, value)
        for base in _BASES:
            if isinstance(value, base):
                return _LEAVES[base](self, value)
        return self.give_up(value, "no value")

    def tag(self, name: str, **fields: JSON) -> JSON:
        """The object of a tag."""
        self.plain = False
        return {TAG: name, **fields}

    def items(self, values: Iterable[Any]) -> list[JSON]:
        """Each of several values."""
        return every(self.write, values)

    def give_up(self, value: Any, reason: str) -> JSON:
        """What stands for an object that cannot travel.

        Raises:
            Fault: unless objects become opaque.
        """
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if not self._opaque:
            raise Fault("a value", f"a {name}, which is {reason}")
        return self.tag("opaque", type=name, text=brief(value))

    def _nested(self, container: Callable[[Writer, Any], JSON], value: Any) -> JSON:
        if id(value) in self._within or len(self._within) >= MAX_DEPTH:
            self.cut = True
            return self.give_up(value, f"inside itself or nested more than {MAX_DEPTH} deep")
        self._within.add(id(value))
        try:
            return container(self, value)
        finally:
            self._within.discard(id(value))

    def _array(self, value: np.ndarray) -> JSON:
        if type(value) is not np.ndarray:
            return self.give_up(value, "an array with a meaning of its own; np.asarray gives a plain one")
        if value.dtype == object:
            return self._nested(_object_array, value)
        if not _has_plain_bytes(value.dtype):
            return self.give_up(value, f"of dtype {value.dtype}, which has no plain bytes")
        data = base64_text(value.tobytes())
        return self.tag("array", dtype=value.dtype.str, shape=list(value.shape), data=data)

    def _scalar(self, value: np.generic) -> JSON:
        if not _has_plain_bytes(value.dtype):
            return self.give_up(value, f"of dtype {value.dtype}, which has no plain bytes")
        return self.tag("scalar", dtype=value.dtype.str, data=base64_text(value.tobytes()))


def _has_plain_bytes(dtype: np.dtype[Any]) -> bool:
    return RAW_DTYPE.fullmatch(dtype.str) is not None and dtype.itemsize > 0


def _object_array(writer: Writer, value: np.ndarray) -> JSON:
    return writer.tag("array", shape=list(value.shape), items=writer.items(value.ravel()))


def _mapping(writer: Writer, value: dict[Any, Any]) -> JSON:
    plain = TAG not in value and all(type(key) is str and is_scalar_text(key) for key in value)
    keys = () if plain else [writer.write(key) for key in value]
    written: list[JSON] = []
    try:
        # extend keeps what came before a fault, and so knows its place.
        written.extend(map(writer.write, value.values()))
    except Fault as fault:
        key = list(value)[len(written)]
        raise fault.under(f".{key if plain else brief(key)}") from None
    if plain:
        return dict(zip(value, written, strict=True))
    return writer.tag("dict", items=[list(pair) for pair in zip(keys, written, strict=True)])


_CONTAINERS: tuple[tuple[type[Any], Callable[[Writer, Any], JSON]], ...] = (
    (dict, _mapping),
    (list, Writer.items),
    (tuple, lambda writer, value: writer.tag("tuple", items=writer.items(value))),
    (set, lambda writer, value: writer.tag("set", items=writer.items(value))),
    (frozenset, lambda writer, value: writer.tag("frozenset", items=writer.items(value))),
)


def _integer(writer: Writer, value: int) -> JSON:
    number = int(value)
    return number if -(2**63) <= number < 2**64 else writer.tag("int", value=hex(number))


def _floating(writer: Writer, value: float) -> JSON:
    number = float(value)
    return number if math.isfinite(number) else writer.tag("float", value=spell_float(number))


def _string(writer: Writer, value: str) -> JSON:
    if is_scalar_text(value):
        return str(value)
    return writer.tag("str", data=base64_text(value.encode("utf-8", "surrogatepass")))


def _fraction(writer: Writer, value: Fraction) -> JSON:
    # A digit is more than three bits: what passes here may still be too long, and str says so or gives it.
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4 * MAX_DIGITS:
        return writer.give_up(value, f"a fraction of more than {MAX_DIGITS} digits")
    try:
        text = str(value)
    except ValueError:
        return writer.give_up(value, "a fraction of more digits than Python prints")
    return writer.tag("fraction", value=text)


def _number(dtype: np.dtype[Any]) -> Callable[[Writer, np.generic], JSON]:
    name = dtype.str
    return lambda writer, value: writer.tag("scalar", dtype=name, data=base64_text(value.tobytes()))


def _texted(name: str, text: Callable[[Any], str]) -> Callable[[Writer, Any], JSON]:
    return lambda writer, value: writer.tag(name, value=text(value))


_LEAVES: dict[type[Any], Callable[[Writer, Any], JSON]] = {
    str: _string,
    int: _integer,
    float: _floating,
    complex: lambda writer, value: writer.tag("complex", value=[spell_float(value.real), spell_float(value.imag)]),
    bytes: lambda writer, value: writer.tag("bytes", data=base64_text(value)),
    bytearray: lambda writer, value: writer.tag("bytearray", data=base64_text(value)),
    np.str_: lambda writer, value: writer.tag("str_", value=_string(writer, str(value))),
    np.bytes_: lambda writer, value: writer.tag("bytes_", data=base64_text(value)),
    datetime.timedelta: lambda writer, value: writer.tag(
        "timedelta", value=[value.days, value.seconds, value.microseconds]
    ),
    datetime.datetime: _texted("datetime", datetime.datetime.isoformat),
    datetime.date: _texted("date", datetime.date.isoformat),
    datetime.time: _texted("time", datetime.time.isoformat),
    Decimal: _texted("decimal", str),
    Fraction: _fraction,
    uuid.UUID: _texted("uuid", str),
    Opaque: lambda writer, value: writer.tag("opaque", type=value.type_name, text=value.text),
    # Most of what infos hold beside plain numbers, hence the short way.
    **{np.dtype(code).type: _number(np.dtype(code)) for code in "?bhilqBHILQefd"},
}
_BASES: tuple[type[Any], ...] = (str, int, float, complex, bytes, bytearray)
"""The types whose subclasses travel as them."""


def base64_text(data: bytes | bytearray) -> str:
    """Strict base64."""
    return base64.b64encode(data).decode()


def readable(text: str) -> str:
    """The text with a question mark for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def brief(value: Any) -> str:
    """The start of a value's repr, whatever the repr does."""
    try:
        text = repr(value)[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - foreign code whose failure must not end the episode
        text = f"<{type(value).__name__} whose repr failed>"
    return readable(text)
