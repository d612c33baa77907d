"""The tagged JSON of ``exact.py``, read back into the values it was written from.

Not for writing it. What is read comes from a peer, so the work is bounded by its length: no number is computed from a
short text that says a huge one, no array is made that its data does not fill, no path is built for a value that is
fine.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from openenv_gym.exact import MAX_DIGITS, RAW_DTYPE, TAG, Opaque
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.atoms import integer_of, list_of, spoken_float, text_of
from openenv_gym.spaces.codec import Fault, describe, every, under
from openenv_gym.spaces.limits import MAX_DEPTH

__all__ = ["decode_exact"]

MAX_ARRAY_DIMENSIONS = 64
"""Dimensions an array may have: NumPy's own limit, which was 32 before 2.0."""

MAX_EMPTY_ITEM = 2**16
"""Bytes an element of an empty array may have: NumPy allocates one element even where there is none."""

MAX_EQUAL_HASHES = 64
"""Members of one set, or keys of one dictionary, that may share a hash: each is compared with all the others."""

_HEX = re.compile(r"-?0x[0-9a-f]+")
_FRACTION = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}(/[0-9]{{1,{MAX_DIGITS}}})?")


def decode_exact(value: JSON) -> object:
    """The value of its tagged JSON, with the types it had; arrays are writable.

    Raises:
        ValueMappingError: a tag is unknown, or its fields are none of it; ``path`` says where.
    """
    try:
        return _read(0, value)
    except Fault as fault:
        raise fault.error("$") from None


def _read(depth: int, value: JSON) -> Any:
    if depth > MAX_DEPTH:
        raise Fault(f"values nested at most {MAX_DEPTH} deep", "more")
    if isinstance(value, list):
        return every(partial(_read, depth + 1), value)
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return _read_fields(depth + 1, value)
    tag = value[TAG]
    reader = _READERS.get(tag) if isinstance(tag, str) else None
    if reader is None:
        raise Fault(f"one of the tags {sorted(_READERS)}", describe(tag))
    try:
        return reader(value, depth)
    except KeyError as error:
        keys = [str(key)[:40] for key in value][:8]
        raise Fault(f"the field {error} of a tagged {tag}", f"the fields {keys}") from None
    # What a type cannot be made of is said by any of these; ArithmeticError is overflow, and what Decimal refuses.
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Fault(f"the fields of a tagged {tag}", f"what is none: {str(error)[:200]}") from None


def _read_fields(depth: int, value: JSONObject) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    key = ""
    try:
        for key, item in value.items():
            fields[key] = _read(depth, item)
    except Fault as fault:
        raise fault.under(f".{key}") from None
    return fields


def _items(value: JSONObject, depth: int) -> list[Any]:
    return every(partial(_read, depth + 1), list_of(value["items"]))


def _data(value: JSONObject) -> bytes:
    return base64.b64decode(text_of(value["data"]), validate=True)


def _read_dict(value: JSONObject, depth: int) -> dict[Any, Any]:
    pairs = every(partial(_pair, depth + 1), list_of(value["items"]))
    _refuse_equal_hashes(key for key, _ in pairs)
    return dict(pairs)


def _pair(depth: int, value: JSON) -> tuple[Any, Any]:
    key, item = list_of(value)
    return _read(depth, key), _read(depth, item)


def _members(value: JSONObject, depth: int) -> list[Any]:
    items = _items(value, depth)
    _refuse_equal_hashes(items)
    return items


def _refuse_equal_hashes(keys: Iterable[Any]) -> None:
    # The hashes of numbers are no secret: a peer can choose any number of different ones with the same.
    most = Counter(map(hash, keys)).most_common(1)
    if most and most[0][1] > MAX_EQUAL_HASHES:
        raise ValueError(f"{most[0][1]} keys of one hash")


def _read_int(value: JSONObject, _: int) -> int:
    # Of sixteen digits Python makes a number in linear time, of ten it does not.
    text = text_of(value["value"])
    if not _HEX.fullmatch(text):
        raise ValueError("an integer that is not written in hexadecimal")
    return int(text, 16)


def _read_float(value: JSONObject, _: int) -> float:
    return spoken_float(value["value"])


def _read_complex(value: JSONObject, _: int) -> complex:
    real, imaginary = list_of(value["value"])
    return complex(spoken_float(real), spoken_float(imaginary))


def _read_fraction(value: JSONObject, _: int) -> Fraction:
    text = text_of(value["value"])
    if not _FRACTION.fullmatch(text):
        raise ValueError(f"a fraction that is not two integers of at most {MAX_DIGITS} digits")
    return Fraction(text)


def _read_timedelta(value: JSONObject, _: int) -> datetime.timedelta:
    days, seconds, microseconds = map(integer_of, list_of(value["value"]))
    return datetime.timedelta(days, seconds, microseconds)


def _read_string(value: JSONObject, _: int) -> str:
    return _data(value).decode("utf-8", "surrogatepass")


def _read_numpy_string(value: JSONObject, depth: int) -> np.str_:
    return np.str_(text_of(under(".value", _read, depth + 1, value["value"])))


def _read_array(value: JSONObject, depth: int) -> np.ndarray:
    shape = _shape(value["shape"])
    if "items" not in value:
        return _from_bytes(text_of(value["dtype"]), shape, _data(value))
    if len(list_of(value["items"])) != math.prod(shape):
        raise ValueError(f"{len(list_of(value['items']))} items for the shape {shape}")
    items = _items(value, depth)
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array.reshape(shape)


def _shape(value: JSON) -> list[int]:
    lengths = list_of(value)
    if len(lengths) > MAX_ARRAY_DIMENSIONS:
        raise ValueError(f"{len(lengths)} dimensions, which are more than {MAX_ARRAY_DIMENSIONS}")
    shape = [length for length in lengths if type(length) is int and 0 <= length < 2**63]
    if len(shape) != len(lengths):
        raise TypeError("a shape that is no list of lengths")
    return shape


def _from_bytes(name: str, shape: list[int], data: bytes) -> np.ndarray:
    if not RAW_DTYPE.fullmatch(name):
        raise TypeError(f"the dtype {name[:40]!r}")
    dtype = np.dtype(name)
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes for the shape {shape} of {name[:40]}")
    if dtype.itemsize > max(len(data), MAX_EMPTY_ITEM):
        raise ValueError(f"an empty array of elements of {dtype.itemsize} bytes")
    array = np.empty(shape, dtype)
    if not data:
        return array
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    if dtype.kind == "b" and max(data) > 1:
        raise ValueError("booleans that are neither 0 nor 1")
    if dtype.kind == "U" and np.frombuffer(data, f"{name[0]}u4").max() > sys.maxunicode:
        raise ValueError("text with what is no character")
    return array


def _read_scalar(value: JSONObject, _: int) -> Any:
    return _from_bytes(text_of(value["dtype"]), [], _data(value))[()]


def _textual(base: Callable[[str], Any]) -> Callable[[JSONObject, int], Any]:
    return lambda value, _: base(text_of(value["value"]))


_READERS: dict[str, Callable[[JSONObject, int], Any]] = {
    "array": _read_array,
    "scalar": _read_scalar,
    "str_": _read_numpy_string,
    "bytes_": lambda value, _: np.bytes_(_data(value)),
    "tuple": lambda value, depth: tuple(_items(value, depth)),
    "set": lambda value, depth: set(_members(value, depth)),
    "frozenset": lambda value, depth: frozenset(_members(value, depth)),
    "dict": _read_dict,
    "bytes": lambda value, _: _data(value),
    "bytearray": lambda value, _: bytearray(_data(value)),
    "int": _read_int,
    "float": _read_float,
    "complex": _read_complex,
    "str": _read_string,
    "timedelta": _read_timedelta,
    "datetime": _textual(datetime.datetime.fromisoformat),
    "date": _textual(datetime.date.fromisoformat),
    "time": _textual(datetime.time.fromisoformat),
    "decimal": _textual(Decimal),
    "fraction": _read_fraction,
    "uuid": _textual(uuid.UUID),
    "opaque": lambda value, _: Opaque(text_of(value["type"]), text_of(value["text"])),
}
