"""The Spaces of calls of tools, from the tools' own input schemas.

``CallSpaces`` is a ``OneOf`` of one ``Dict`` of arguments a tool, with the conversion to calls; ``CallText`` holds a
call as text. Not for what travels or comes back (``tool_calls.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, OneOf, Space

from openenv_gym.errors import SettingsError, SpaceMappingError, ValueMappingError
from openenv_gym.json_text import shown
from openenv_gym.spaces import SchemaMapping, UnicodeText, mapping_from_schema
from openenv_gym.spaces.limits import MAX_BYTES, Budget
from openenv_gym_wrappers.tool_calls import ToolCall, call_text

__all__ = ["CallSpaces", "CallText", "ToolSpace"]

_SHARED = ("$defs", "definitions")

_MAX_BYTES = 2 * MAX_BYTES
"""Bytes that the Spaces of all tools together may take."""


class ToolSpace:
    """The arguments of one tool: their Space, and the JSON of its members.

    An argument whose schema has no Space is a text that holds its JSON. Whatever the schema says beyond its Space
    (``pattern``, ``multipleOf`` …) the server checks.

    Args:
        tool: the tool, as ``{"name", "description", "input_schema"}``.
        budget: what its Spaces may take, where it is one tool of several.

    Raises:
        SpaceMappingError: its input schema is none.

    Attributes:
        name: the tool's name.
        space: a ``Dict`` of the arguments, in declared order.

    Example:
        >>> schema = {"properties": {"direction": {"enum": ["north", "south"]}}, "required": ["direction"]}
        >>> look = ToolSpace({"name": "look", "input_schema": schema})
        >>> look.space, look.encode({"direction": 1})
        (Dict('direction': Discrete(2)), {'direction': 'south'})
        >>> look.encode({"direction": "north"})
        {'direction': 'north'}
    """

    def __init__(self, tool: Mapping[str, Any], budget: Budget | None = None) -> None:
        self.name = str(tool["name"])
        self._mapping = _mapping(tool.get("input_schema") or {}, self.name, budget or Budget())
        space = self._mapping.space
        assert isinstance(space, Dict)
        self.space = space

    def encode(self, arguments: Any) -> dict[str, Any]:
        """The JSON of the arguments. Those that the tool does not require may be left out.

        A listed text may stand in place of its index, and a value that may be null or of several kinds without the
        index of its kind, where only one thing can be meant.

        Raises:
            ValueMappingError: they do not fit; ``path`` says where, and the message what there is to choose from.
        """
        if not isinstance(arguments, Mapping):
            raise ValueMappingError(
                f"expected the arguments of {self.name!r} as a dictionary at $.arguments, got "
                f"{type(arguments).__name__}",
                path="$.arguments",
            )
        encoded: Any = self._mapping.encode(arguments)
        written: dict[str, Any] = encoded["arguments"]
        return written


def _mapping(schema: Any, name: str, budget: Budget) -> SchemaMapping:
    """The mapping of an object whose one field is the arguments: at the top, some names have a meaning of their own."""
    properties = schema.get("properties") or {} if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        raise _no_schema(name, "properties", properties)
    required = schema.get("required") or []
    if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
        raise _no_schema(name, "required", required)
    try:
        return _mapping_of(schema, properties, budget)
    except SpaceMappingError:
        parts = {key: part if _has_space(schema, key, part, budget) else {} for key, part in properties.items()}
        return _mapping_of(schema, parts, budget)


def _no_schema(name: str, keyword: str, got: Any) -> SpaceMappingError:
    kind = "an object of schemas" if keyword == "properties" else "a list of names"
    return SpaceMappingError(
        f"expected the input schema of the tool {name!r} to have {keyword} that are {kind}, got {shown(got)}; ask its "
        "author, or leave the tool out",
        path=f"$.arguments.{keyword}",
    )


def _has_space(schema: Mapping[str, Any], key: str, part: Any, budget: Budget) -> bool:
    try:
        _mapping_of(schema, {key: part}, budget)
    except SpaceMappingError:
        return False
    return True


def _mapping_of(schema: Mapping[str, Any], properties: Mapping[str, Any], budget: Budget) -> SchemaMapping:
    required = [key for key in schema.get("required") or () if key in properties]
    arguments = {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
    shared = {key: schema[key] for key in _SHARED if key in schema}
    whole = {"type": "object", "properties": {"arguments": arguments}, "required": ["arguments"], **shared}
    return mapping_from_schema(whole, budget=budget)


class CallSpaces:
    """The Space of all calls, and the conversion of its members.

    A member is ``(index, arguments)``: the place of the tool in the list, and a member of its ``ToolSpace``.

    Args:
        tools: the tools, each ``{"name", "description", "input_schema"}``.

    Attributes:
        space: the ``OneOf``.
        names: the tools' names, by index.

    Raises:
        SettingsError: there is no tool.
        SpaceMappingError: a tool's input schema is none, or all together ask for too much.

    Example:
        >>> calls = CallSpaces([{"name": "wait", "input_schema": {"properties": {"turns": {"type": "boolean"}}}}])
        >>> calls.space
        OneOf(Dict('turns': Discrete(2)))
        >>> calls.encode((0, {"turns": 1}))
        ToolCall(name='wait', arguments={'turns': True})
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        if not tools:
            raise SettingsError("expected an environment with tools, but it lists none in this mode", setting="mode")
        budget = Budget(_MAX_BYTES)
        self._tools = [ToolSpace(tool, budget) for tool in tools]
        self.names = [tool.name for tool in self._tools]
        self.space = OneOf([tool.space for tool in self._tools])

    def encode(self, action: Any) -> ToolCall:
        """The call that a member is; a tool may also be named, as in ``("wait", {"turns": 1})``.

        Raises:
            ValueMappingError: it is no member.
        """
        if not isinstance(action, tuple | list) or len(action) != 2:
            raise ValueMappingError(
                f"expected a pair of the tool (its index or name) and its arguments at $, got {str(action)[:200]}",
                path="$",
            )
        tool = self._tools[self._index(action[0])]
        return ToolCall(tool.name, tool.encode(action[1]))

    def _index(self, tool: Any) -> int:
        if isinstance(tool, str) and tool in self.names:
            return self.names.index(tool)
        scalar = tool[()] if isinstance(tool, np.ndarray) and tool.ndim == 0 else tool
        if not isinstance(scalar, int | np.integer) or isinstance(scalar, bool) or not 0 <= int(tool) < len(self.names):
            raise ValueMappingError(
                f"expected the tool as an index below {len(self.names)} or one of the names {self.names} at $[0], got "
                f"{str(tool)[:200]!r}",
                path="$[0]",
            )
        return int(tool)


class CallText(UnicodeText):
    """A call as text; any text is a member, and samples are calls that the tools' schemas allow.

    Args:
        tools: the tools, each ``{"name", "description", "input_schema"}``.
        seed: the seed of ``sample``, or a generator.

    Example:
        >>> text = CallText([{"name": "wait", "input_schema": {"properties": {"turns": {"const": 3}}}}])
        >>> text.sample()
        '{"name":"wait","arguments":{"turns":3}}'
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]], *, seed: int | np.random.Generator | None = None) -> None:
        self._tools = list(tools)
        self._calls = CallSpaces(self._tools)
        super().__init__(seed=seed)

    def sample(
        self,
        mask: tuple[int | None, Any] | None = None,
        probability: tuple[int | None, Any] | None = None,
    ) -> str:
        """The text of a random call.

        Raises:
            ValueError: a mask or a probability was given; calls have none.
        """
        if mask is not None or probability is not None:
            raise ValueError("expected neither mask nor probability: a call has no characters to mask")
        space = self._calls.space
        space.seed(int(self.np_random.integers(2**31)))
        return call_text(self._calls.encode(space.sample()))

    def __reduce__(self) -> tuple[Callable[..., Space[Any]], tuple[Any, ...]]:
        return _call_text, (self._tools, self.np_random)


def _call_text(tools: Sequence[Mapping[str, Any]], generator: np.random.Generator) -> CallText:
    space = CallText(tools)
    space._np_random = generator  # noqa: SLF001  (a copy goes on where its original is, as other Spaces' copies do)
    return space
