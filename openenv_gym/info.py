"""``info`` dictionaries on the wire, for two kinds of peers at once.

A stock peer gets plain JSON, which says most of it; a peer of this project gets, where that would lose something, the
exact form too. Not for samples of a Space (``openenv_gym.spaces``). The tagged JSON itself is described in
``exact.py``, whose names and those of ``exact_reader.py`` are part of this module's face.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from openenv_gym.errors import ValueMappingError
from openenv_gym.exact import Opaque, Writer, base64_text, brief, encode_exact, readable
from openenv_gym.exact_reader import decode_exact
from openenv_gym.json_text import JSON, JSONObject
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.spaces.codec import describe

__all__ = ["Opaque", "decode_exact", "decode_info", "encode_exact", "encode_info"]

_LONGEST_INT = 1_000
"""Bits of an integer in the plain form; Python refuses to print what is much longer."""


def encode_info(info: Mapping[Any, Any]) -> tuple[JSONObject, JSON | None]:
    """An info dictionary for both kinds of peers.

    An object that cannot travel does not fail the step: it is left out of the plain form (null inside a list), and in
    the exact form becomes an ``Opaque``. A subclass of one of Python's own types travels as that type: a named tuple as
    a tuple.

    Returns:
        The plain JSON for a peer that knows no tags (arrays as nested lists, non-finite floats as strings, bytes as
        base64), and the exact form, or None where the plain one loses nothing.
    """
    writer = Writer(opaque=True)
    exact = writer.write(dict(info))
    if writer.plain:
        assert isinstance(exact, dict)
        return exact, None
    # What came to an end in the exact form only because it holds itself or is too deep must not be walked again.
    plain = _plain(decode_exact(exact) if writer.cut else dict(info))
    assert isinstance(plain, dict)
    return plain, exact


def decode_info(plain: JSON, exact: JSON) -> dict[Any, Any]:
    """The info dictionary of its two forms.

    Args:
        plain: the plain form, or None where the peer sent none.
        exact: the exact form, or None where the plain one is exact.

    Raises:
        ValueMappingError: a form is malformed, or none of a dictionary; ``path`` says where.
    """
    info = decode_exact(exact) if exact is not None else {} if plain is None else plain
    if not isinstance(info, Mapping):
        raise ValueMappingError(f"expected an info dictionary at $, got {describe(info)}", path="$")
    return dict(info)


class _Missing:
    """What has no plain form."""


def _plain(value: Any) -> JSON | _Missing:
    """The JSON that says most of a value without tags."""
    if isinstance(value, float):  # np.float64 is one too
        return spell_float(float(value))
    if isinstance(value, np.generic | np.ndarray):
        return _plain(_unpacked(value))
    if isinstance(value, Mapping):
        parts = {_key(key): _plain(item) for key, item in value.items()}
        return {key: item for key, item in parts.items() if not isinstance(item, _Missing)}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(item) for item in value]
        return [None if isinstance(item, _Missing) else item for item in items]
    if value is None or isinstance(value, bool):
        return value
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> JSON | _Missing:
    for base, text in _PLAIN_LEAVES:
        if isinstance(value, base):
            return text(value)
    return _Missing()


def _plain_int(value: int) -> JSON:
    return int(value) if value.bit_length() <= _LONGEST_INT else hex(value)


def _plain_complex(value: complex) -> JSON:
    return [spell_float(value.real), spell_float(value.imag)]


_PLAIN_LEAVES: tuple[tuple[Any, Callable[[Any], JSON]], ...] = (
    (str, readable),
    (int, _plain_int),
    (bytes | bytearray, lambda value: base64_text(bytes(value))),
    (complex, _plain_complex),
    (datetime.timedelta, datetime.timedelta.total_seconds),
    (datetime.date | datetime.time, lambda value: str(value.isoformat())),
    (Decimal | Fraction | uuid.UUID, str),
)


def _unpacked(value: np.generic | np.ndarray) -> Any:
    """A NumPy value in Python's own types."""
    # What is wider than 64 bits has no type of Python's: it is cast, and may overflow to an infinity.
    with np.errstate(over="ignore", invalid="ignore"):
        if value.dtype.kind in "fc":
            value = value.astype(np.float64 if value.dtype.kind == "f" else np.complex128)
    return value.tolist()


def _key(key: Any) -> str:
    """A dictionary key as JSON must have it."""
    if isinstance(key, np.generic):
        key = key.item()
    return readable(key) if isinstance(key, str) else brief(key)
