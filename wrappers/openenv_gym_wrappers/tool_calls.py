"""Calls of tools and their answers, in words: a call as JSON text, an answer as text or by its parts, a failure.

What travels is OpenEnv's call and observation of a tool. Not for Spaces (``tool_spaces.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from openenv_gym.errors import ProtocolError, ValueMappingError
from openenv_gym.json_text import JSON, decode_json, encode_json

__all__ = ["ToolCall", "answer_parts", "answer_text", "call_fields", "call_text", "read_call", "tool_error"]

_ENVELOPE = ("metadata", "reward", "done")


class ToolCall(NamedTuple):
    """A call: the tool's name, its arguments by name."""

    name: str
    arguments: dict[str, Any]


def call_fields(call: ToolCall) -> dict[str, Any]:
    """The call as a step's action.

    Example:
        >>> call_fields(ToolCall("look", {"direction": "north"}))
        {'type': 'call_tool', 'tool_name': 'look', 'arguments': {'direction': 'north'}}
    """
    return {"type": "call_tool", "tool_name": call.name, "arguments": call.arguments}


def call_text(call: ToolCall) -> str:
    """The call as a language model writes it.

    Raises:
        ValueMappingError: an argument has no JSON form.

    Example:
        >>> call_text(ToolCall("look", {"direction": "north"}))
        '{"name":"look","arguments":{"direction":"north"}}'
    """
    return encode_json({"name": call.name, "arguments": call.arguments}).decode()


def read_call(text: str) -> ToolCall:
    """The call in a text: a JSON object of ``name`` (or ``tool_name``) and ``arguments``, an object or its JSON text.

    Raises:
        ValueMappingError: it is none; the message says how a call is written.

    Example:
        >>> read_call('{"name": "look", "arguments": {"direction": "north"}}')
        ToolCall(name='look', arguments={'direction': 'north'})
    """
    call = _parsed(text, "$")
    if not isinstance(call, dict):
        raise _no_call("a JSON object", text, "$")
    name = call.get("name", call.get("tool_name"))
    if not isinstance(name, str):
        raise _no_call("the tool's name", name, "$.name")
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        arguments = _parsed(arguments, "$.arguments")
    if not isinstance(arguments, dict | None):
        raise _no_call("an object", arguments, "$.arguments")
    return ToolCall(name, arguments or {})


def _parsed(text: object, path: str) -> JSON:
    if not isinstance(text, str):
        raise _no_call("text", text, path)
    try:
        return decode_json(text)
    except ProtocolError:
        raise _no_call("JSON", text, path) from None


def _no_call(expected: str, got: object, path: str) -> ValueMappingError:
    return ValueMappingError(
        f'expected {expected} at {path} of a call, got {str(got)[:200]!r}; a call of a tool is written {{"name": "…", '
        '"arguments": {…}}',
        path=path,
    )


def tool_error(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """Why a call gave nothing: ``{"error_type", "message"}``; None where it did, and for any other observation.

    Args:
        fields: the observation's fields as they were on the wire.

    Example:
        >>> error = {"error_type": "timeout", "message": "it took longer than 30 s"}
        >>> tool_error({"tool_name": "look", "result": None, "error": error})["error_type"]
        'timeout'
    """
    if "tool_name" not in fields:
        return None
    error = fields.get("error")
    if isinstance(error, Mapping):
        return {
            "error_type": str(error.get("error_type") or "execution_error"),
            "message": str(error.get("message") or ""),
        }
    result = fields.get("result")
    # A FastMCP server's own word for a tool that failed, which another maker's environment may pass on as a result.
    if isinstance(result, Mapping) and (result.get("is_error") is True or result.get("isError") is True):
        return {"error_type": "execution_error", "message": _text_of(result)}
    return None


def answer_text(fields: Mapping[str, Any]) -> str:
    """An observation as an agent reads it.

    Of a call, the text that the tool gave, or why there is none; of anything else, its one text, or its JSON.

    Args:
        fields: the observation's fields as they were on the wire.

    Example:
        >>> answer_text({"tool_name": "look", "result": {"data": "a door", "content": []}, "error": None})
        'a door'
        >>> answer_text({"room": 3})
        '{"room":3}'
    """
    if "tool_name" in fields:
        error = tool_error(fields)
        return error["message"] if error is not None else _text_of(fields.get("result"))
    said = {key: value for key, value in fields.items() if key not in _ENVELOPE}
    texts = list(said.values())
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else _json(said or dict(fields))


def answer_parts(fields: Mapping[str, Any]) -> dict[str, str]:
    """An observation by its parts: ``tool_name``, ``text``, ``data`` (the plain value as JSON text), ``error_type``.

    What an observation has not is the empty text; ``data`` is ``"null"`` where a tool gave no value.

    Args:
        fields: the observation's fields as they were on the wire.

    Example:
        >>> answer_parts({"tool_name": "count", "result": {"data": 3, "content": []}, "error": None})
        {'tool_name': 'count', 'text': '3', 'data': '3', 'error_type': ''}
    """
    error = tool_error(fields)
    data: Any = dict(fields)
    if "tool_name" in fields:
        data = _data_of(fields.get("result")) if error is None else None
    return {
        "tool_name": str(fields.get("tool_name", "")),
        "text": answer_text(fields),
        "data": _json(data),
        "error_type": "" if error is None else error["error_type"],
    }


def _data_of(result: Any) -> Any:
    if not isinstance(result, Mapping) or "content" not in result:
        return result
    data = result.get("data")
    return data if data is not None else result.get("structured_content")


def _text_of(result: Any) -> str:
    if isinstance(result, Mapping) and isinstance(result.get("content"), list) and result["content"]:
        return "\n".join(map(_part, result["content"]))
    data = _data_of(result)
    return data if isinstance(data, str) else "" if data is None else _json(data)


def _part(part: Any) -> str:
    """One part of a result; of what is no text, its kind."""
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("mimeType") or part.get("mime_type") or part.get("type") if isinstance(part, Mapping) else None
    return f"[{kind or 'something'}]"


def _json(value: Any) -> str:
    return encode_json(value).decode()
