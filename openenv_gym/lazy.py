"""Public names of a package that load when they are first used (PEP 562).

For the ``__init__.py`` of packages whose names would otherwise bring pydantic, a web server, or both. Not for optional
extras, whose absence has an error of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: the package's ``__name__``.
        homes: the module of each name.

    Example:
        >>> load, names = lazy_names("openenv_gym.lazy", {"Thread": "threading"})
        >>> load("Thread").__module__
        'threading'
        >>> "Thread" in names()
        True
    """

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
