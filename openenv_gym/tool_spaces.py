"""The Spaces of an environment with tools, for Gymnasium.

Which tools there are is no part of the schema, and what reset answers has other fields than what a call gives; so an
action is a tool's name and its arguments as JSON text, an observation the whole answer as JSON text. Not for one tool
whose texts are the actions (``openenv/echo-v0`` is such), nor for clients without Spaces (``mcp_client.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Dict, Space

from openenv_gym.errors import ProtocolError, ValueMappingError
from openenv_gym.json_text import JSON, decode_json, encode_json
from openenv_gym.spaces import UnicodeText, codec_for

__all__ = ["call_space", "encode_call", "is_tool_call", "observation_text"]


def is_tool_call(schema: JSON) -> bool:
    """Whether the JSON Schema of an action is that of OpenEnv's ``CallToolAction``.

    Example:
        >>> from openenv_gym.tools import CallToolAction
        >>> is_tool_call(CallToolAction.model_json_schema())
        True
    """
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict) or not {"tool_name", "arguments"} <= fields.keys():
        return False
    kind = fields.get("type")
    return isinstance(kind, dict) and kind.get("const") == "call_tool"


def call_space() -> Space[Any]:
    """The Space of calls: ``tool_name``, and ``arguments`` as the text of a JSON object; samples have no arguments."""
    return Dict(tool_name=UnicodeText(), arguments=UnicodeText.sampling("{}"))


def encode_call(action: Any) -> dict[str, Any]:
    """The fields of a call, of a member of ``call_space()``.

    Raises:
        ValueMappingError: the arguments are not the text of a JSON object, or the action is no member.

    Example:
        >>> encode_call({"tool_name": "look", "arguments": '{"direction": "north"}'})
        {'type': 'call_tool', 'tool_name': 'look', 'arguments': {'direction': 'north'}}
    """
    if not isinstance(action, Mapping) or action.keys() != {"tool_name", "arguments"}:
        raise ValueMappingError(
            f'expected a dictionary of "tool_name" and "arguments" (JSON text) at $, got {str(action)[:200]}', path="$"
        )
    text = codec_for(UnicodeText())
    name = text.encode(action["tool_name"], "$.tool_name")
    arguments = _object(text.encode(action["arguments"], "$.arguments"))
    return {"type": "call_tool", "tool_name": name, "arguments": arguments}


def _object(text: JSON) -> dict[str, JSON]:
    try:
        arguments = decode_json(str(text))
    except ProtocolError as error:
        message = f"expected the JSON text of an object at $.arguments: {error}"
        raise ValueMappingError(message, path="$.arguments") from error
    if not isinstance(arguments, dict):
        raise ValueMappingError(
            f"expected the JSON text of an object at $.arguments, got {str(text)[:200]!r}", path="$.arguments"
        )
    return arguments


def observation_text(fields: dict[str, Any]) -> str:
    """An observation as JSON text.

    Example:
        >>> observation_text({"tool_name": "look", "result": {"data": "a door"}, "error": None})
        '{"tool_name":"look","result":{"data":"a door"},"error":null}'
    """
    return encode_json(fields).decode()
