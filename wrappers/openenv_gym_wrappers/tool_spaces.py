"""The Spaces of calls of tools, from the tools' own input schemas.

``CallSpaces`` is a ``OneOf`` of one ``Dict`` of arguments a tool, with the conversion to calls; ``CallText`` holds a
call as text. Not for what travels or comes back (``tool_calls.py``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, OneOf, Space

from openenv_gym.errors import SettingsError, SpaceMappingError, ValueMappingError
from openenv_gym.spaces import SchemaMapping, UnicodeText, mapping_from_schema
from openenv_gym_wrappers.tool_calls import ToolCall, call_text

__all__ = ["CallSpaces", "CallText", "ToolSpace"]

_SHARED = ("$defs", "definitions")


class ToolSpace:
    """The arguments of one tool: their Space, and the JSON of its members.

    An argument whose schema has no Space is a text that holds its JSON. Whatever the schema says beyond its Space
    (``pattern``, ``multipleOf`` …) the server checks.

    Args:
        tool: the tool, as ``{"name", "description", "input_schema"}``.

    Attributes:
        name: the tool's name.
        space: a ``Dict`` of the arguments, in declared order.

    Example:
        >>> schema = {"properties": {"direction": {"enum": ["north", "south"]}}, "required": ["direction"]}
        >>> look = ToolSpace({"name": "look", "input_schema": schema})
        >>> look.space, look.encode({"direction": 1})
        (Dict('direction': Discrete(2)), {'direction': 'south'})
    """

    def __init__(self, tool: Mapping[str, Any]) -> None:
        self.name = str(tool["name"])
        schema = tool.get("input_schema") or {}
        self._mapping = _mapping(schema, self.name)
        space = self._mapping.space
        assert isinstance(space, Dict)
        self.space = space
        required = schema.get("required", ())
        # What a caller leaves out is written all the same, from these, and then taken out of what is sent.
        self._optional = {
            key: copy.deepcopy(part).sample() for key, part in space.spaces.items() if key not in required
        }

    def encode(self, arguments: Any) -> dict[str, Any]:
        """The JSON of the arguments. Those that the tool does not require may be left out.

        Raises:
            ValueMappingError: they do not fit; ``path`` says where.
        """
        if not isinstance(arguments, Mapping):
            raise ValueMappingError(
                f"expected the arguments of {self.name!r} as a dictionary at $.arguments, got "
                f"{type(arguments).__name__}",
                path="$.arguments",
            )
        absent = [key for key in self._optional if key not in arguments]
        whole = {**arguments, **{key: self._optional[key] for key in absent}} if absent else arguments
        encoded: Any = self._mapping.encode(whole)
        written: dict[str, Any] = encoded["arguments"]
        for key in absent:
            del written[key]
        return written


def _mapping(schema: Mapping[str, Any], name: str) -> SchemaMapping:
    """The mapping of an object whose one field is the arguments: at the top, some names have a meaning of their own."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise SpaceMappingError(
            f"expected the input schema of the tool {name!r} to have properties, got {properties!r}",
            path="$.arguments.properties",
        )
    try:
        return _mapping_of(schema, properties)
    except SpaceMappingError:
        return _mapping_of(
            schema, {key: part if _has_space(schema, key, part) else {} for key, part in properties.items()}
        )


def _has_space(schema: Mapping[str, Any], key: str, part: Any) -> bool:
    try:
        _mapping_of(schema, {key: part})
    except SpaceMappingError:
        return False
    return True


def _mapping_of(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> SchemaMapping:
    required = [key for key in schema.get("required", ()) if key in properties]
    arguments = {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
    shared = {key: schema[key] for key in _SHARED if key in schema}
    whole = {"type": "object", "properties": {"arguments": arguments}, "required": ["arguments"], **shared}
    return mapping_from_schema(whole)


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
        SpaceMappingError: a tool's input schema is none.

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
        self._tools = [ToolSpace(tool) for tool in tools]
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
