"""What an answer of ``/mcp`` means: its result, or the error that it stands for. No I/O here.

For OpenEnv's JSON-RPC dialect, of this project's servers and of ``openenv`` 0.10.0, which says many things in the words
of a message alone. Not for requests (``transports/mcp.py``) nor for tools that are called through steps
(``mcp_client.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    EnvironmentFactoryError,
    OpenEnvGymError,
    ProtocolError,
    ServerError,
    SessionLostError,
    ToolCallError,
)
from openenv_gym.json_text import JSON, JSONObject, decode_json, excerpt, shown

__all__ = [
    "TOOL_FAILURES",
    "call_failure",
    "read_answer",
    "request_failure",
    "result_of_call",
    "texts_of",
    "tool_call_error",
]

TOOL_FAILURES = frozenset({"execution_error", "invalid_args", "transport_error", "tool_not_found", "timeout"})
"""Why a call gave no result, as ``tools.ToolErrorType`` has it (which to import loads pydantic)."""

_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603

_WORDS = (
    ("error calling tool", "execution_error"),
    ("unknown tool", "tool_not_found"),
    ("tool not found", "tool_not_found"),
    ("validation error", "invalid_args"),
    ("unexpected keyword argument", "invalid_args"),
    ("missing required argument", "invalid_args"),
    ("timed out", "timeout"),
)
"""What ``openenv`` 0.10.0 and FastMCP write, in small letters, and the kind of failure it is; the first one counts."""


def read_answer(payload: bytes, request_id: int, url: str) -> tuple[JSON, JSONObject | None]:
    """The answer to a request: its result, or beside None its ``error``.

    Raises:
        ProtocolError: it is no answer to this request.

    Example:
        >>> read_answer(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', 1, "http://host/mcp")
        ({'tools': []}, None)
    """
    try:
        answer = decode_json(payload)
    except ProtocolError as error:
        raise ProtocolError(
            f"expected JSON from {url}, got none: {error}; check that base_url is an OpenEnv server's",
            received=error.received,
        ) from error
    if isinstance(answer, dict) and answer.get("jsonrpc") == "2.0":
        failure, answered = answer.get("error"), answer.get("id")
        # Not by equality alone: 1.0 and true equal 1.
        own = type(answered) is int and answered == request_id
        # An error may be that of a request whose id could not be read.
        if isinstance(failure, dict) and (own or answered is None):
            return None, failure
        if failure is None and "result" in answer and own:
            return answer["result"], None
    raise ProtocolError(
        f"expected {url} to answer request {request_id} in JSON-RPC 2.0, got {excerpt(payload)!r}; check that base_url "
        "is an OpenEnv server's",
        received=excerpt(payload),
    )


def request_failure(method: str, error: Mapping[str, Any], url: str) -> OpenEnvGymError:
    """The error that an answer to anything but a call of a tool stands for.

    Args:
        method: what was asked for.
        error: the answer's ``error``.
        url: who answered.
    """
    code, text, data = _read_error(error)
    facts: dict[str, Any] = {"code": str(code), "data": data or None}
    if "max_sessions" in data:
        return CapacityError(
            f"the server is full: {text} Close a session, or raise the server's max_concurrent_envs",
            active_sessions=data.get("active_sessions"),
            max_sessions=data.get("max_sessions"),
            **facts,
        )
    if "factory_name" in data:
        return EnvironmentFactoryError(text, factory_name=data.get("factory_name"), **facts)
    if _names_no_session(code, text):
        return _session_gone(text)
    if code == _METHOD_NOT_FOUND:
        return ServerError(
            f"expected {url} to know {method}, it does not ({text}); sessions over /mcp need a server of this project, "
            "or of openenv 0.3 and later",
            **facts,
        )
    if code == _INTERNAL_ERROR:
        return EnvironmentExecutionError(f"the server could not do {method}: {text}", **facts)
    return ServerError(f"the server refused {method}: {text} ({code})", **facts)


def call_failure(name: str, error: Mapping[str, Any]) -> OpenEnvGymError:
    """The error that an answer to the call of a tool stands for: a ``ToolCallError``, or the end of the session.

    Args:
        name: the tool.
        error: the answer's ``error``.

    Example:
        >>> call_failure("look", {"code": -32603, "message": "Unknown tool: 'look'", "data": None}).error_type
        'tool_not_found'
    """
    code, text, data = _read_error(error)
    kind = data.get("error_type")
    if isinstance(kind, str) and kind in TOOL_FAILURES:
        return tool_call_error(name, text, kind, data=data)
    if _names_no_session(code, text):
        return _session_gone(text)
    return tool_call_error(name, text, _kind_of(code, text), data=data)


def result_of_call(name: str, result: JSON) -> JSON:
    """The result of a call as it is in OpenEnv's dialect; its failure, where it stands for one, is raised.

    A server whose environment knows tools through steps alone gives the whole observation of the step.

    Raises:
        ToolCallError: the call failed.
    """
    while isinstance(result, dict) and "tool_name" in result and "result" in result:
        error = result.get("error")
        if isinstance(error, dict):
            kind = error.get("error_type")
            known = kind if isinstance(kind, str) and kind in TOOL_FAILURES else "execution_error"
            raise tool_call_error(name, _words(error.get("message")), known)
        result = result["result"]
    if not isinstance(result, dict):
        return result
    if result.get("is_error") is True or result.get("isError") is True:
        raise tool_call_error(name, "\n".join(texts_of(result)) or "it did not say why", "execution_error")
    return result


def tool_call_error(name: str, text: str, kind: str, *, data: Mapping[str, Any] | None = None) -> ToolCallError:
    """The failure of one call.

    Args:
        name: the tool.
        text: what happened.
        kind: one of ``TOOL_FAILURES``.
        data: what else the server said.
    """
    return ToolCallError(
        f"Tool {name!r} failed: {text} (type: {kind})",
        code="EXECUTION_ERROR",
        data={**(data or {}), "error_type": kind, "message": text},
        error_type=kind,
        tool_name=name,
    )


def _read_error(error: Mapping[str, Any]) -> tuple[int, str, Mapping[str, Any]]:
    code, data = error.get("code"), error.get("data")
    return code if isinstance(code, int) else 0, _words(error.get("message")), data if isinstance(data, dict) else {}


def _words(message: JSON) -> str:
    return message if isinstance(message, str) else shown(message)


def _kind_of(code: int, text: str) -> str:
    small = text.lower()
    for words, kind in _WORDS:
        if words in small:
            return kind
    return {_INVALID_PARAMS: "invalid_args", _INTERNAL_ERROR: "execution_error"}.get(code, "transport_error")


def _names_no_session(code: int, text: str) -> bool:
    return code == _INVALID_PARAMS and text.startswith("Unknown session_id")


def _session_gone(text: str) -> SessionLostError:
    return SessionLostError(
        f"the server no longer has this session ({text}): it was closed, or left alone for too long; "
        "connect() opens another, of which nothing is remembered",
        reason=text,
    )


def texts_of(result: Mapping[str, Any]) -> list[str]:
    """The texts in a tool's result."""
    content = result.get("content")
    parts = [part.get("text") for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return [text for text in parts if isinstance(text, str)]
