"""Integers of a call that its tool would get as another number: those that no float is.

JSON has one kind of number, so an integer is good for a parameter that is a ``float``; but above 2**53 not every
integer is one, and from about 1.8e308 on none. Such a one is refused, since the tool would see what nobody gave. A
decimal fraction is the nearest float, as everywhere. Not for what else is wrong with arguments (``tool_functions.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from openenv_gym.json_text import JSON

__all__ = ["changed_integers", "may_change"]

_LONG = re.compile(rb"[0-9]{16}")


def may_change(text: bytes) -> bool:
    """Whether the JSON text may have such an integer at all, each of which has 16 digits or more.

    Example:
        >>> may_change(b"[9007199254740993]"), may_change(b"[1.5, 7]")
        (True, False)
    """
    return _LONG.search(text) is not None


def changed_integers(given: JSON, got: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """The integers that were read as floats and are none, each with its place.

    Args:
        given: the JSON value.
        got: what was read from it: the same containers, or objects with attributes of the same names.
        path: the place of the value.

    Example:
        >>> list(changed_integers({"a": [1, 2**53 + 1]}, {"a": [1.0, 2.0**53]}))
        [(('a', '1'), 9007199254740993)]
    """
    if isinstance(given, int):
        if isinstance(got, float) and not _is_float(given):
            yield path, given
    elif isinstance(given, Mapping):
        for name, item in given.items():
            yield from changed_integers(item, _part(got, name), (*path, name))
    elif isinstance(given, list):
        for index, (item, part) in enumerate(zip(given, _parts(got, len(given)), strict=True)):
            yield from changed_integers(item, part, (*path, str(index)))


def _is_float(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def _part(got: Any, name: str) -> Any:
    if isinstance(got, Mapping):
        return got.get(name)
    return getattr(got, _fields_by_alias(got).get(name, name), None)


def _fields_by_alias(got: Any) -> Mapping[str, str]:
    fields = getattr(type(got), "__pydantic_fields__", {})
    return {each.alias: name for name, each in fields.items() if isinstance(getattr(each, "alias", None), str)}


def _parts(got: Any, count: int) -> list[Any]:
    """The items of what a list was read as; of a set, which has no order, any float stands for each."""
    if isinstance(got, list | tuple) and len(got) == count:
        return list(got)
    if isinstance(got, set | frozenset):
        return [next((item for item in got if isinstance(item, float)), None)] * count
    return [None] * count
