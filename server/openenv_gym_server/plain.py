"""Any Python value as plain JSON, for observations and states that are models, dataclasses or dicts.

Not for samples of a Gymnasium Space (``openenv_gym.spaces.values``) nor for values that must come back with their types
(``openenv_gym.info``). What JSON cannot say is said in a fixed way, never as null: NaN and the infinities are the
strings ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; bytes are base64; arrays and their scalars are lists and numbers.
"""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from openenv_gym.errors import ValueMappingError
from openenv_gym.messages import JSON

__all__ = ["plain_json", "plain_reward"]

_AS_THEY_ARE = frozenset({str, bool, int, type(None)})


def plain_json(value: object, path: str = "$") -> JSON:
    """The value in plain JSON.

    Raises:
        ValueMappingError: something in it has no JSON form; ``path`` says where.
    """
    try:
        return _plain(value, path)
    except RecursionError as error:
        raise ValueMappingError(
            f"expected a value of finite depth at {path}, got one nested too deeply", path=path
        ) from error


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
        return (float(value), None) if math.isfinite(value) else (None, _name_of(value))
    if value is None or isinstance(value, bool | int):
        return value, None
    raise ValueMappingError(f"expected a number or None as reward, got {_describe(value)}", path="$.reward")


def _plain(value: Any, path: str) -> JSON:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value  # type: ignore[no-any-return]
    if kind is float:
        return value if math.isfinite(value) else _name_of(value)
    if kind is dict:
        return _object(value, path)
    if kind is list or kind is tuple:
        return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return _uncommon(value, path)


def _uncommon(value: Any, path: str) -> JSON:
    """What is not a plain Python value already."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value, path)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), f"{path}.{field.name}") for field in fields(value)}
    return _foreign(value, path)


def _object(value: Mapping[Any, Any], path: str) -> JSON:
    result = {_key(key, path): _plain(item, f"{path}.{key}") for key, item in value.items()}
    if len(result) != len(value):
        raise ValueMappingError(
            f"expected keys at {path} that differ as JSON strings, got {list(value)!r:.200}", path=path
        )
    return result


def _key(key: object, path: str) -> str:
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
    raise ValueMappingError(f"expected keys of strings or numbers at {path}, got {_describe(key)}", path=path)


def _array(value: np.ndarray[Any, Any] | np.generic, path: str) -> JSON:
    kind = value.dtype.kind
    if kind in "biu":
        return value.tolist()  # type: ignore[no-any-return]
    if kind == "f":
        # A long double gives itself back from tolist(); the rest of JSON's readers have float64.
        numbers = value.astype(np.float64).tolist()
        return numbers if np.isfinite(value).all() else _plain(numbers, path)
    if kind in "OSU":
        return _plain(value.tolist(), path)
    if kind in "mM":
        return _plain(value.astype(str).tolist(), path)
    raise ValueMappingError(f"expected numbers or text at {path}, got an array of dtype {value.dtype}", path=path)


def _foreign(value: Any, path: str) -> JSON:
    """Tensors of other libraries, dates, paths, UUIDs, decimals and whatever else pydantic knows."""
    as_list = getattr(value, "tolist", None)
    if callable(as_list):
        return _plain(as_list(), path)
    try:
        return _plain(to_jsonable_python(value), path)
    except (PydanticSerializationError, ValueError) as error:
        raise ValueMappingError(
            f"expected a value with a JSON form at {path}, got {_describe(value)}", path=path
        ) from error


def _name_of(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _describe(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


# The order matters: an Enum may be a str, numpy's float64 is a float, its bool_ is no int.
_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any, str], JSON]], ...] = (
    (Enum, lambda value, path: _plain(value.value, path)),
    (str, lambda value, _: str.__str__(value)),
    (int, lambda value, _: int(value)),
    ((np.ndarray, np.generic), _array),
    (float, lambda value, path: _plain(float(value), path)),
    ((bytes, bytearray, memoryview), lambda value, _: base64.b64encode(value).decode("ascii")),
    (BaseModel, lambda value, path: _object(value.model_dump(warnings=False), path)),
    (Mapping, _object),
    ((list, tuple, set, frozenset, deque), lambda value, path: _plain(list(value), path)),
)
