"""Values and messages as JSON text, and back: what JSON cannot say is an error and never a silent null.

Not for what a value means (``spaces``, ``exact.py``) nor for which messages there are (``messages.py``). No I/O here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from openenv_gym.errors import ProtocolError, ValueMappingError

__all__ = ["JSON", "JSONObject", "decode_json", "encode_json", "excerpt", "require_distinct_keys", "shown"]

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
JSONObject: TypeAlias = "dict[str, JSON]"

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode_json(value: Any, *, finite: bool = False) -> bytes:
    """The compact JSON text of a value, in UTF-8.

    Args:
        value: JSON values and messages; tuples and sets are written as lists.
        finite: whether it is known that no float in it is NaN or an infinity. Such a one would be written as null.

    Raises:
        ValueMappingError: a NaN or an infinity (JSON has neither and the encoder would write null), a string with a
            lone surrogate, or an object that has no JSON form; ``path`` says where.
    """
    try:
        text = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        path = _find(value, _has_no_json_form)
        raise ValueMappingError(
            f"expected a value with a JSON form at {path or '$'}: {error}", path=path or "$"
        ) from error
    # The encoder writes non-finite floats as null. A text without null has none, so the walk is rarely needed.
    if not finite and b"null" in text:
        path = _find(value, _is_not_finite)
        if path is not None:
            raise ValueMappingError(
                f"expected a finite number at {path}, got NaN or an infinity, which JSON does not have; "
                'where the Space is floating they travel as the strings "NaN", "Infinity", "-Infinity"',
                path=path,
            )
    return text


def require_distinct_keys(value: Any, path: str = "$") -> None:
    """Make sure that no two keys of one dictionary are the same in JSON: of such two only one would arrive.

    For values that a caller gives; what was decoded or made by a codec has keys that are text.

    Args:
        value: anything that ``encode_json`` takes.
        path: its place, for the error.

    Raises:
        ValueMappingError: they are; ``path`` says where.

    Example:
        >>> require_distinct_keys({1: "one", 2: "two"})
        >>> require_distinct_keys({"x": {1: "one", "1": "another"}})
        Traceback (most recent call last):
            ...
        openenv_gym.errors.ValueMappingError: expected keys that differ in JSON at $.x, ...
    """
    if _keys_are_text(value):
        return
    place = _find(value, _has_equal_keys)
    if place is None:
        return
    place = path + place.removeprefix("$")
    raise ValueMappingError(
        f"expected keys that differ in JSON at {place}, got two of which one would replace the other, such as 1 and "
        "'1'; give one of them another name",
        path=place,
    )


def _keys_are_text(value: Any) -> bool:
    """Whether it is plain to see that all keys in a value are text; nearly always it is."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict and _TEXT.issuperset(map(type, item)):
                if not _PLAIN.issuperset(map(type, item.values())):
                    below += [entry for entry in item.values() if type(entry) not in _PLAIN]
            elif kind is list or kind is tuple:
                if not _PLAIN.issuperset(map(type, item)):
                    below += [entry for entry in item if type(entry) not in _PLAIN]
            else:
                return kind in _PLAIN
        if not below:
            return True
        level = below
    return False


def _has_equal_keys(value: Any) -> bool:
    if not isinstance(value, Mapping) or all(type(key) is str for key in value):
        return False
    return len({_key_text(key) for key in value}) < len(value)


def _key_text(key: Any) -> object:
    """A key as it is in JSON; of one that has no JSON form the key itself."""
    try:
        return _encoder.encode({key: 0})
    except (TypeError, ValueError):
        return (key,)


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _has_no_json_form(value: Any) -> bool:
    if isinstance(value, dict | list | tuple | msgspec.Struct):
        return False
    try:
        _encoder.encode(value)
    except (TypeError, ValueError):
        return True
    return False


def _find(value: Any, fault: Callable[[Any], bool]) -> str | None:
    """The JSON path of the first value that has the fault, or None. Depth-first, without recursion; cycles end."""
    stack = [("$", value)]
    seen: set[int] = set()
    while stack:
        place, item = stack.pop()
        if fault(item):
            return place
        if id(item) in seen or (fault is _is_not_finite and type(item) is list and _is_finite_list(item)):
            continue
        seen.add(id(item))
        stack.extend((f"{place}{step}", entry) for step, entry in reversed(_parts(item)))
    return None


def _is_finite_list(items: list[Any]) -> bool:
    """Whether it is plain to see that nested lists hold finite numbers and text alone; frames are such.

    A level at a time, without a loop of Python's over its items.
    """
    for _ in range(_MOST_LEVELS):
        if set(map(type, items)) != {list}:
            break
        items = list(chain.from_iterable(items))
    try:
        # Far cheaper than the set of the types.
        msgspec.convert(items, list[int])
    except msgspec.ValidationError:
        kinds = set(map(type, items))
        floats = items if kinds == {float} else [item for item in items if type(item) is float]
        return kinds <= _PLAIN and math.isfinite(sum(floats))
    return True


_MOST_LEVELS = 32
_TEXT = frozenset({str})
_PLAIN = {int, bool, str, float, type(None)}


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, msgspec.Struct):
        return [(f".{name}", getattr(value, name)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(f".{key}", entry) for key, entry in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", entry) for index, entry in enumerate(value)]
    return []


def decode_json(text: bytes | str) -> JSON:
    """The value of a JSON text.

    Raises:
        ProtocolError: the text is not JSON (bare NaN and Infinity included), not UTF-8, or nested too deeply.
    """
    try:
        return _decoder.decode(text)  # type: ignore[no-any-return]  # any JSON, as the decoder says
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"expected JSON: {error}", received=excerpt(text)) from error


def excerpt(text: bytes | str) -> str:
    """The beginning of a text, for an error."""
    start = text[:200]
    return start.encode("utf-8", "replace").decode() if isinstance(start, str) else start.decode("utf-8", "replace")


def shown(value: JSON) -> str:
    """The beginning of a value's text, for an error; never fails, however a peer has nested it."""
    try:
        return str(value)[:200]
    except (RecursionError, ValueError):
        return f"a {type(value).__name__} that is nested too deeply to show"
