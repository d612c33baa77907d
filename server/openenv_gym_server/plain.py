"""Any Python value as plain JSON, for observations and states that are models, dataclasses or dicts.

Not for samples of a Gymnasium Space (``openenv_gym.spaces.values``) nor for values that must come back with their types
(``openenv_gym.info``). What JSON cannot say is said in a fixed way, never as null: NaN and the infinities are the
strings ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; bytes are base64; arrays and their scalars are lists and numbers.
"""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSON
from openenv_gym.spaces.atoms import spell_float

__all__ = ["drained", "plain_flag", "plain_json", "plain_record", "plain_reward"]

MAX_YIELDED = 1_000_000
"""Values that are taken from an iterator; one without an end would take all memory, and the server with it."""

_AS_THEY_ARE = frozenset({str, bool, int, type(None)})
_FLOAT = {float}


def plain_json(value: object) -> JSON:
    """The value in plain JSON.

    Raises:
        ValueMappingError: something in it has no JSON form; ``path`` says where.
    """
    try:
        return _plain(value)
    except _FaultError as fault:
        path = "$" + "".join(reversed(fault.steps))
        raise ValueMappingError(f"expected {fault.expected} at {path}, got {fault.got}", path=path) from fault.__cause__
    except RecursionError as error:
        raise ValueMappingError("expected a value of finite depth at $, got one nested too deeply", path="$") from error


def plain_record(value: object) -> JSON:
    """The same, for values that may be, or hold in lists and dicts, plain objects: these are their attributes.

    Raises:
        ValueMappingError: something in it has no JSON form.
    """
    if isinstance(value, list | tuple):
        return [plain_record(item) for item in value]
    if type(value) is dict:
        value = {key: plain_record(item) for key, item in value.items()}
    try:
        return plain_json(value)
    except ValueMappingError:
        if isinstance(value, type) or not hasattr(value, "__dict__") or not vars(value):
            raise
        return plain_record(dict(vars(value)))


def drained(value: object) -> object:
    """The list of what an iterator gives; any other value is itself.

    Raises:
        ValueMappingError: it gives more than ``MAX_YIELDED`` values.
    """
    if not isinstance(value, Iterator):
        return value
    items = list(islice(value, MAX_YIELDED + 1))
    if len(items) > MAX_YIELDED:
        raise ValueMappingError(f"expected at most {MAX_YIELDED} values of {_describe(value)}; give a list", path="$")
    return items


class _FaultError(Exception):
    """What has no JSON form. Its path grows on the way out, so that values without fault cost no text."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected = expected
        self.got = got
        self.steps: list[str] = []

    def under(self, step: str) -> _FaultError:
        self.steps.append(step)
        return self


def plain_reward(value: object) -> tuple[bool | int | float | None, str | None]:
    """A reward as it travels, and the name of a reward that is not finite (which then travels as null).

    Arrays of one element are their element.

    Raises:
        ValueMappingError: it is not a number.
    """
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, float):
        spelled = spell_float(float(value))
        return (None, spelled) if isinstance(spelled, str) else (spelled, None)
    if value is None or isinstance(value, bool | int):
        return value, None
    raise ValueMappingError(f"expected a number or None as reward, got {_describe(value)}", path="$.reward")


def plain_flag(value: object) -> bool:
    """A flag as it travels: true, false, what compares equal to one of them, or None, which is false.

    Arrays of one element are their element.

    Raises:
        ValueMappingError: it is nothing of the kind; ``"false"`` is none, and would be true to Python.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if value is None or (isinstance(value, bool | int | float) and value in {0, 1}):
        return bool(value)
    raise ValueMappingError(f"expected true or false at $.done, got {_describe(value)}", path="$.done")


def _plain(value: Any) -> JSON:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value  # type: ignore[no-any-return]
    if kind is float:
        return spell_float(value)
    if kind is dict:
        return _object(value)
    if kind is list or kind is tuple:
        return _items(value)
    return _uncommon(value)


def _uncommon(value: Any) -> JSON:
    """What is not a plain Python value already."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _object({field.name: getattr(value, field.name) for field in fields(value)})
    return _foreign(value)


def _items(values: Collection[Any]) -> JSON:
    # A frame is long lists of integers, or of floats that are finite if their sum is: told without a look at each.
    kinds = set(map(type, values))
    if kinds <= _AS_THEY_ARE or (kinds == _FLOAT and math.isfinite(sum(values))):
        return list(values)
    items: list[JSON] = []
    for value in values:
        try:
            items.append(_plain(value))
        except _FaultError as fault:
            raise fault.under(f"[{len(items)}]")  # noqa: B904 - the same fault, with more of its path
    return items


def _object(value: Mapping[Any, Any]) -> JSON:
    result: dict[str, JSON] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key)
        try:
            result[name] = _plain(item)
        except _FaultError as fault:
            raise fault.under(f".{key}")  # noqa: B904 - the same fault, with more of its path
    if len(result) != len(value):
        raise _FaultError("keys that differ as JSON strings", f"{list(value)!r:.200}")
    return result


def _key(key: object) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return key
    if isinstance(key, np.generic):
        key = key.item()
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return str(key)
    raise _FaultError("keys of strings or numbers", _describe(key))


def _array(value: np.ndarray[Any, Any] | np.generic) -> JSON:
    kind = value.dtype.kind
    if kind in "biu":
        return value.tolist()  # type: ignore[no-any-return]
    if kind == "f":
        # A long double gives itself back from tolist(); the rest of JSON's readers have float64.
        numbers = value.astype(np.float64).tolist()
        return numbers if np.isfinite(value).all() else _plain(numbers)
    if kind in "OSU":
        return _plain(value.tolist())
    if kind in "mM":
        return _plain(value.astype(str).tolist())
    raise _FaultError("numbers or text", f"an array of dtype {value.dtype}")


def _foreign(value: Any) -> JSON:
    """Tensors of other libraries, dates, paths, UUIDs, decimals and whatever else pydantic knows."""
    as_list = getattr(value, "tolist", None)
    if callable(as_list):
        return _plain(as_list())
    if isinstance(value, Iterator):
        return _iterated(value)
    try:
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as error:
        raise _FaultError("a value with a JSON form", _describe(value)) from error
    return _plain(plain)


def _iterated(value: Iterator[Any]) -> JSON:
    try:
        return _plain(drained(value))
    except ValueMappingError as error:
        raise _FaultError(f"an iterator of at most {MAX_YIELDED} values", _describe(value)) from error


def _describe(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# The order matters: an Enum may be a str, numpy's float64 is a float, its bool_ is no int.
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], JSON]], ...] = (
    (Enum, lambda value: _plain(value.value)),
    (str, str.__str__),
    (int, int),
    ((np.ndarray, np.generic), _array),
    (float, lambda value: spell_float(float(value))),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode("ascii")),
    (BaseModel, lambda value: _object(value.model_dump(warnings=False))),
    (Mapping, _object),
    ((list, tuple, set, frozenset, deque), _items),
)
