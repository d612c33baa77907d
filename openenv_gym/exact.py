"""Any value as JSON with its exact type, and back: the tagged form of values that no Space describes.

Not for samples of a Space (``openenv_gym.spaces``), which need no tags. ``info.py`` is the face of this module: it
puts the plain form beside the exact one.

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

A subclass of a plain type travels as that type: a named tuple as a tuple, an ``IntEnum`` as an int.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
import sys
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from openenv_gym.errors import ValueMappingError
from openenv_gym.messages import JSON, JSONObject
from openenv_gym.spaces.leaves import spell_float
from openenv_gym.spaces.text import is_scalar_text

__all__ = ["Opaque", "Writer", "base64_text", "brief", "decode_exact", "encode_exact", "readable"]

TAG = "$"
MAX_DEPTH = 64
"""How deep values may nest."""

MAX_TEXT = 1_000
"""Characters of an object's repr that an ``Opaque`` keeps."""

_RAW_DTYPE = re.compile(r"[<>|][biufcSUmM][0-9]+(\[[0-9]*[A-Za-zμ]+\])?")


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
    return Writer(opaque=False).write(value)


def decode_exact(value: JSON) -> object:
    """The value of its tagged JSON, with the types it had; arrays are writable.

    Raises:
        ValueMappingError: a tag is unknown, or its fields are none of it; ``path`` says where.
    """
    return _read(value, "$", 0)


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

    def write(self, value: Any, path: str = "$") -> JSON:
        """The tagged JSON of a value.

        Raises:
            ValueMappingError: as ``encode_exact``, unless objects become opaque.
        """
        if value is None or value is True or value is False:
            return value
        leaf = _LEAVES.get(type(value))
        if leaf is not None:
            return leaf(self, value)
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        for base, container in _CONTAINERS:
            if isinstance(value, base):
                return self._nested(container, value, path)
        for base in _BASES:
            if isinstance(value, base):
                return _LEAVES[base](self, value)
        return self._give_up(value, path, "no value")

    def tag(self, name: str, **fields: JSON) -> JSON:
        """The object of a tag."""
        self.plain = False
        return {TAG: name, **fields}

    def items(self, values: Iterable[Any], path: str) -> list[JSON]:
        """Each of several values."""
        return [self.write(item, f"{path}[{index}]") for index, item in enumerate(values)]

    def _give_up(self, value: Any, path: str, reason: str) -> JSON:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if not self._opaque:
            raise ValueMappingError(f"expected a value at {path}, got a {name}, which is {reason}", path=path)
        return self.tag("opaque", type=name, text=brief(value))

    def _nested(self, container: Callable[[Writer, Any, str], JSON], value: Any, path: str) -> JSON:
        if id(value) in self._within or len(self._within) >= MAX_DEPTH:
            self.cut = True
            return self._give_up(value, path, f"inside itself or nested more than {MAX_DEPTH} deep")
        self._within.add(id(value))
        try:
            return container(self, value, path)
        finally:
            self._within.discard(id(value))

    def _array(self, value: np.ndarray, path: str) -> JSON:
        if type(value) is not np.ndarray:
            return self._give_up(value, path, "an array with a meaning of its own; np.asarray gives a plain one")
        if value.dtype == object:
            return self._nested(_object_array, value, path)
        if not _has_plain_bytes(value.dtype):
            return self._give_up(value, path, f"of dtype {value.dtype}, which has no plain bytes")
        data = base64_text(value.tobytes())
        return self.tag("array", dtype=value.dtype.str, shape=list(value.shape), data=data)

    def _scalar(self, value: np.generic, path: str) -> JSON:
        if not _has_plain_bytes(value.dtype):
            return self._give_up(value, path, f"of dtype {value.dtype}, which has no plain bytes")
        return self.tag("scalar", dtype=value.dtype.str, data=base64_text(value.tobytes()))


def _has_plain_bytes(dtype: np.dtype[Any]) -> bool:
    return _RAW_DTYPE.fullmatch(dtype.str) is not None and dtype.itemsize > 0


def _object_array(writer: Writer, value: np.ndarray, path: str) -> JSON:
    return writer.tag("array", shape=list(value.shape), items=writer.items(value.ravel(), path))


def _mapping(writer: Writer, value: dict[Any, Any], path: str) -> JSON:
    if TAG not in value and all(type(key) is str and is_scalar_text(key) for key in value):
        return {key: writer.write(item, f"{path}.{key}") for key, item in value.items()}
    pairs = [[writer.write(key, path), writer.write(item, f"{path}.{brief(key)}")] for key, item in value.items()]
    return writer.tag("dict", items=list[JSON](pairs))


_CONTAINERS: tuple[tuple[type[Any], Callable[[Writer, Any, str], JSON]], ...] = (
    (dict, _mapping),
    (list, Writer.items),
    (tuple, lambda writer, value, path: writer.tag("tuple", items=writer.items(value, path))),
    (set, lambda writer, value, path: writer.tag("set", items=writer.items(value, path))),
    (frozenset, lambda writer, value, path: writer.tag("frozenset", items=writer.items(value, path))),
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
    Fraction: _texted("fraction", str),
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


def _read(value: JSON, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueMappingError(f"expected values nested at most {MAX_DEPTH} deep, got more at {path}", path=path)
    if isinstance(value, list):
        return [_read(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _read(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    tag = value[TAG]
    reader = _READERS.get(tag) if isinstance(tag, str) else None
    if reader is None:
        raise ValueMappingError(
            f"expected one of the tags {sorted(_READERS)} at {path}, got {str(tag)[:40]!r}", path=path
        )
    try:
        return reader(value, path, depth)
    except ValueMappingError:
        raise
    except KeyError as error:
        raise ValueMappingError(f"expected the field {error} of a tagged {tag} at {path}", path=path) from error
    except (TypeError, ValueError, ArithmeticError, binascii.Error) as error:
        raise ValueMappingError(
            f"expected the fields of a tagged {tag} at {path}, got what is none: {error}", path=path
        ) from error


def _items(value: JSONObject, path: str, depth: int) -> list[Any]:
    return [_read(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(_list(value["items"]))]


def _list(value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list is due")
    return value


def _data(value: JSONObject) -> bytes:
    return base64.b64decode(_text(value["data"]), validate=True)


def _text(value: JSON) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where a string is due")
    return value


def _read_dict(value: JSONObject, path: str, depth: int) -> dict[Any, Any]:
    return dict(tuple(pair) for pair in _items(value, path, depth))


def _read_float(value: JSON) -> float:
    if isinstance(value, float):
        return value
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[_text(value)]


def _read_complex(value: JSONObject) -> complex:
    real, imaginary = _list(value["value"])
    return complex(_read_float(real), _read_float(imaginary))


def _read_timedelta(value: JSONObject) -> datetime.timedelta:
    days, seconds, microseconds = _list(value["value"])
    return datetime.timedelta(days, seconds, microseconds)  # type: ignore[arg-type]


def _read_array(value: JSONObject, path: str, depth: int) -> np.ndarray:
    shape = _list(value["shape"])
    lengths = [length for length in shape if type(length) is int and length >= 0]
    if len(lengths) != len(shape):
        raise TypeError("a shape that is no list of lengths")
    if "items" in value:
        items = _items(value, path, depth)
        array = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            array[index] = item
        return array.reshape(lengths)
    return _from_bytes(_text(value["dtype"]), lengths, _data(value))


def _from_bytes(name: str, shape: list[int], data: bytes) -> np.ndarray:
    if not _RAW_DTYPE.fullmatch(name):
        raise TypeError(f"the dtype {name[:40]!r}")
    dtype = np.dtype(name)
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes for the shape {shape} of {dtype}")
    array = np.empty(shape, dtype)
    if data:
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    if dtype.kind == "b" and any(byte > 1 for byte in data):
        raise ValueError("booleans that are neither 0 nor 1")
    if dtype.kind == "U" and data and np.frombuffer(data, f"{name[0]}u4").max() > sys.maxunicode:
        raise ValueError("text with what is no character")
    return array


def _read_scalar(value: JSONObject) -> Any:
    return _from_bytes(_text(value["dtype"]), [], _data(value))[()]


def _textual(base: Callable[[str], Any]) -> Callable[[JSONObject, str, int], Any]:
    return lambda value, _path, _depth: base(_text(value["value"]))


_READERS: dict[str, Callable[[JSONObject, str, int], Any]] = {
    "array": _read_array,
    "scalar": lambda value, _path, _depth: _read_scalar(value),
    "str_": lambda value, path, depth: np.str_(_text(_read(value["value"], path, depth))),
    "bytes_": lambda value, _path, _depth: np.bytes_(_data(value)),
    "tuple": lambda value, path, depth: tuple(_items(value, path, depth)),
    "set": lambda value, path, depth: set(_items(value, path, depth)),
    "frozenset": lambda value, path, depth: frozenset(_items(value, path, depth)),
    "dict": _read_dict,
    "bytes": lambda value, _path, _depth: _data(value),
    "bytearray": lambda value, _path, _depth: bytearray(_data(value)),
    "int": _textual(lambda text: int(text, 16)),
    "float": lambda value, _path, _depth: _read_float(value["value"]),
    "complex": lambda value, _path, _depth: _read_complex(value),
    "str": lambda value, _path, _depth: _data(value).decode("utf-8", "surrogatepass"),
    "timedelta": lambda value, _path, _depth: _read_timedelta(value),
    "datetime": _textual(datetime.datetime.fromisoformat),
    "date": _textual(datetime.date.fromisoformat),
    "time": _textual(datetime.time.fromisoformat),
    "decimal": _textual(Decimal),
    "fraction": _textual(Fraction),
    "uuid": _textual(uuid.UUID),
    "opaque": lambda value, _path, _depth: Opaque(_text(value["type"]), _text(value["text"])),
}
