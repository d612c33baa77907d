"""What a docstring says of a function and of each parameter, for those who call it without seeing it.

Reads the three usual styles (Google, NumPy, Sphinx), the first in which a parameter is described. Not for types, which
the signature has (``tool_functions.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import NamedTuple

__all__ = ["Described", "described"]

_GOOGLE_SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]*):\s*$")
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s?(?P<text>.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_SPHINX_FIELD = re.compile(r"^:(?P<kind>\w+)(?:\s+(?P<rest>[^:]*))?:\s?(?P<text>.*)$")
_PARAMETERS = frozenset({"Args", "Arguments", "Parameters", "Params"})


class Described(NamedTuple):
    """A docstring taken apart.

    Attributes:
        summary: what it says of the function; all of it where it describes no parameter.
        parameters: what it says of each parameter.
    """

    summary: str
    parameters: dict[str, str]


def described(docstring: str | None) -> Described:
    """Take a docstring apart.

    Example:
        >>> described('''Add two numbers.
        ...
        ...     Args:
        ...         a: the first
        ... ''')
        Described(summary='Add two numbers.', parameters={'a': 'the first'})
    """
    text = cleandoc(docstring or "").strip()
    lines = text.split("\n")
    for read in _STYLES:
        summary, parameters = read(lines)
        if parameters:
            return Described(summary, parameters)
    return Described(text, {})


def _google(lines: list[str]) -> Described:
    heads = [index for index, line in enumerate(lines) if _is_section(lines, index, line)]
    for start in heads:
        if lines[start].strip().rstrip(":") in _PARAMETERS:
            return Described(_joined(lines[: heads[0]]), _entries(_block(lines[start + 1 :])))
    return Described("", {})


def _is_section(lines: list[str], index: int, line: str) -> bool:
    """A title such as ``Args:`` with an indented line below it."""
    below = lines[index + 1] if index + 1 < len(lines) else ""
    return _GOOGLE_SECTION.match(line) is not None and below.startswith((" ", "\t"))


def _block(lines: list[str]) -> list[str]:
    """The lines that belong to a section, without their common indent."""
    block: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        block.append(line)
    # The first line's indent is no part of what ``cleandoc`` compares, so it gets an empty one.
    return cleandoc("\n" + "\n".join(block)).split("\n")


def _entries(block: list[str]) -> dict[str, str]:
    """``name (type): text`` each, with indented lines that continue the text."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in block:
        entry = None if line.startswith((" ", "\t")) else _GOOGLE_ENTRY.match(line)
        if entry is None:
            current.append(line)
        else:
            current = found.setdefault(entry["name"], [])
            current.append(entry["text"])
    return {name: _joined(text) for name, text in found.items()}


def _numpy(lines: list[str]) -> Described:
    heads = [index for index, line in enumerate(lines[1:]) if re.fullmatch(r"-{3,}", line)]
    for start in heads:
        if lines[start].strip() in _PARAMETERS:
            end = next((index for index in heads if index > start), len(lines))
            return Described(_joined(lines[: heads[0]]), _numpy_entries(lines[start + 2 : end]))
    return Described("", {})


def _numpy_entries(lines: list[str]) -> dict[str, str]:
    """``name : type`` each, with indented lines below that are the text."""
    found: dict[str, str] = {}
    for index, line in enumerate(lines):
        entry = _NUMPY_ENTRY.match(line)
        if entry is not None:
            text = _joined(_block(lines[index + 1 :]))
            found |= dict.fromkeys(re.split(r"\s*,\s*", entry["names"]), text)
    return found


def _sphinx(lines: list[str]) -> Described:
    parameters: dict[str, str] = {}
    first = len(lines)
    for index, line in enumerate(lines):
        field = _SPHINX_FIELD.match(line)
        if field is None:
            continue
        first = min(first, index)
        if field["kind"] in {"param", "parameter", "arg", "argument"} and field["rest"]:
            more = _block(lines[index + 1 :])
            parameters[field["rest"].split()[-1]] = _joined([field["text"], *more])
    return Described(_joined(lines[:first]), parameters)


def _joined(lines: list[str]) -> str:
    return cleandoc("\n".join(lines)).strip()


_STYLES: tuple[Callable[[list[str]], Described], ...] = (_google, _numpy, _sphinx)
