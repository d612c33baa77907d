"""The tools of one environment: its class's methods, and the functions registered with it.

Not for a FastMCP server's tools (``fastmcp_tools.py``) nor for calling any (``tool_caller.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from openenv_gym_server.tool_functions import ToolFunction, ToolOptions, options_of

__all__ = ["ToolSet"]


class ToolSet:
    """Tools by name and by the mode in which they exist.

    Args:
        owner: the object whose marked methods are tools.

    Raises:
        ValueError: two tools have one name in one mode, or a name is reserved.
        TypeError: a signature cannot be a tool's.

    Example:
        >>> def look() -> str:
        ...     return "a door"
        >>> tools = ToolSet(object())
        >>> tools.add(ToolFunction(look, ToolOptions(mode="production")))
        >>> tools.find("look", "simulation") is None
        True
    """

    def __init__(self, owner: object) -> None:
        self._by_name: dict[str, dict[str | None, ToolFunction]] = {}
        for function, options, docstring in _marked(owner):
            self.add(ToolFunction(function, options, docstring))

    def add(self, tool: ToolFunction) -> None:
        """Take one more tool in.

        Raises:
            ValueError: there is one of that name in its mode.
        """
        modes = self._by_name.setdefault(tool.name, {})
        if tool.mode in modes or (modes and None in {tool.mode, *modes}):
            where = "every mode" if None in {tool.mode, *modes} else f"{tool.mode} mode"
            raise ValueError(
                f"there are two tools called {tool.name!r} in {where}; give one another name with name=…, or give each "
                "a mode of its own"
            )
        modes[tool.mode] = tool

    def find(self, name: str, mode: str) -> ToolFunction | None:
        """The tool of that name in that mode."""
        modes = self._by_name.get(name)
        return None if modes is None else modes.get(mode) or modes.get(None)

    def modes_of(self, name: str) -> list[str]:
        """The only modes in which there is a tool of that name; empty where there is none in any."""
        return sorted(str(mode) for mode in self._by_name.get(name, {}))

    def in_mode(self, mode: str) -> Iterator[ToolFunction]:
        """The tools that exist in a mode, in the order in which they were defined."""
        for name in self._by_name:
            found = self.find(name, mode)
            if found is not None:
                yield found

    @property
    def names(self) -> frozenset[str]:
        """The names in any mode."""
        return frozenset(self._by_name)

    @property
    def any_async(self) -> bool:
        """Whether a call of some tool has to be awaited."""
        return any(tool.is_async for modes in self._by_name.values() for tool in modes.values())


def _marked(owner: object) -> Iterator[tuple[Callable[..., Any], ToolOptions, str | None]]:
    """The owner's tool methods, with what the nearest marked class said of each, and its docstring.

    A subclass need not mark what overrides a tool; with None in its place it has the tool no more.
    """
    bases = type(owner).__mro__
    # From the root down, so that an inherited tool keeps its place and a dict its first.
    names = dict.fromkeys(name for base in reversed(bases) for name in base.__dict__)
    for name in names:
        for base in bases:
            found = base.__dict__.get(name)
            options = options_of(found)
            if options is not None:
                method = getattr(owner, name)
                if callable(method):
                    own = ToolOptions(options.mode, options.name or name, options.timeout_s)
                    yield method, own, inspect.getdoc(getattr(found, "__func__", found))
                break
