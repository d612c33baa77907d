"""What keywords a callable takes, told by its signature. Not for calling it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Keywords", "keywords_of"]

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Keywords(NamedTuple):
    """The keywords a callable takes by name, and whether it takes any other as well."""

    names: frozenset[str]
    any_other: bool

    def takes(self, name: str) -> bool:
        """Whether a call may have this keyword."""
        # A method's own first parameter is hidden from its signature, and taken all the same.
        return name in self.names or (self.any_other and name != "self")


def keywords_of(call: Callable[..., Any], *, unknown: bool = False) -> Keywords:
    """The keywords of a callable.

    Args:
        call: the callable, a class among them.
        unknown: what ``any_other`` is for a callable of a C extension, which says nothing of itself.

    Example:
        >>> keywords_of(lambda first, *, second=1, **rest: None).takes("third")
        True
    """
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return Keywords(frozenset(), unknown)
    return Keywords(
        frozenset(parameter.name for parameter in parameters if parameter.kind in _NAMED),
        any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters),
    )
