"""JSON-RPC 2.0 as OpenEnv speaks it: reading requests, and the answers to them. No sockets, no sessions.

Batches and notifications are as the specification has them; codes and texts are those of ``openenv`` 0.10.0. Not for
what a method does (``rpc_methods.py``) nor for the standard's MCP.

Source: the JSON-RPC 2.0 specification, and ``openenv`` 0.10.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from openenv_gym.errors import (
    CapacityError,
    EnvironmentFactoryError,
    InvalidActionError,
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    ValueMappingError,
)
from openenv_gym.json_text import JSON, JSONObject, decode_json, encode_json
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym_server.errors import SessionNotFoundError, text_of

__all__ = [
    "MAX_BATCH",
    "MAX_BATCH_BYTES",
    "MAX_NAME",
    "Call",
    "CallId",
    "Refusal",
    "answer_to_error",
    "encoded",
    "failure",
    "left_out",
    "parse",
    "read",
    "success",
]

MAX_BATCH = 100
"""Requests in one batch; each costs an answer, however short it is."""

MAX_BATCH_BYTES = 8 * 2**20
"""Bytes of one batch's answers, all of which are kept until the last; beyond, its further calls are not made."""

CallId: TypeAlias = str | int | None

MAX_NAME = 200
"""Characters of a peer's own name for something that an answer repeats."""

_KEYS = frozenset({"jsonrpc", "method", "params", "id"})


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a method.

    Attributes:
        method: its name.
        params: its arguments by name.
        id: what the answer repeats.
        notification: whether the request had no id, so that nobody waits for an answer.
    """

    method: str
    params: JSONObject
    id: CallId = None
    notification: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """What could not be read as a call, with its answer."""

    answer: JSONObject


def parse(text: str | bytes) -> Call | Refusal | list[Call | Refusal]:
    """The call in a text, the calls of a batch, or why there is none.

    Example:
        >>> parse('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}').method
        'tools/list'
        >>> parse("nonsense").answer["error"]["code"]
        -32700
    """
    try:
        document = decode_json(text)
    except ProtocolError as error:
        return Refusal(failure(None, JsonRpcErrorCode.PARSE_ERROR, f"Parse error: {error}"))
    if isinstance(document, dict):
        return read(document)
    if not isinstance(document, list):
        message = f"Parse error: expected an object or an array of objects, got {type(document).__name__}"
        return Refusal(failure(None, JsonRpcErrorCode.PARSE_ERROR, message))
    if not 0 < len(document) <= MAX_BATCH:
        return _invalid(f"expected a batch of 1 to {MAX_BATCH} requests, got {len(document)}")
    return [read(item) for item in document]


def read(document: JSON) -> Call | Refusal:
    """The call in a JSON value, or why there is none."""
    if not isinstance(document, dict):
        return _invalid(f"expected an object, got {type(document).__name__}")
    if document.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc: expected "2.0"')
    method, params, call_id = document.get("method"), document.get("params", {}), document.get("id")
    if not isinstance(method, str):
        return _invalid("method: expected a string")
    if not isinstance(params, dict):
        return _invalid("params: expected an object; arguments go by name here")
    if isinstance(call_id, bool) or not isinstance(call_id, str | int | None):
        return _invalid("id: expected a string, an integer or null")
    if not document.keys() <= _KEYS:
        unknown = min(document.keys() - _KEYS)
        return _invalid(f"{unknown[:MAX_NAME]}: there is no such member of a request")
    return Call(method, params, call_id, "id" not in document)


def success(call_id: CallId, result: JSON) -> JSONObject:
    """The answer with a result."""
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def failure(call_id: CallId, code: JsonRpcErrorCode, message: str, data: JSON = None) -> JSONObject:
    """The answer with an error."""
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code.value, "message": message, "data": data}}


def answer_to_error(call_id: CallId, error: OpenEnvGymError) -> JSONObject:
    """The answer that an error of the server's makes of a call."""
    data: JSON = None
    code = JsonRpcErrorCode.INTERNAL_ERROR
    if isinstance(error, CapacityError):
        code = JsonRpcErrorCode.SERVER_ERROR
        data = {"active_sessions": error.active_sessions, "max_sessions": error.max_sessions}
    elif isinstance(error, EnvironmentFactoryError):
        code, data = JsonRpcErrorCode.SERVER_ERROR, {"factory_name": error.factory_name}
    elif isinstance(error, MessageTooLargeError):
        code, data = JsonRpcErrorCode.INVALID_REQUEST, {"size": error.size, "limit": error.limit}
    elif isinstance(error, InvalidActionError | SessionNotFoundError):
        code = JsonRpcErrorCode.INVALID_PARAMS
    elif isinstance(error, ProtocolError):
        code = JsonRpcErrorCode.INVALID_REQUEST
    return failure(call_id, code, text_of(error), data)


def left_out(call: Call | Refusal) -> JSONObject | None:
    """The answer to a call of a batch that is not made; None where nobody waits for one."""
    if isinstance(call, Refusal):
        return call.answer
    if call.notification:
        return None
    message = f"the answers to this batch are above {MAX_BATCH_BYTES} bytes, so this call was not made; send it again"
    return failure(call.id, JsonRpcErrorCode.INVALID_REQUEST, message)


def encoded(answer: JSONObject, within: Callable[[JSONObject], Any] = lambda answer: answer) -> bytes:
    """The JSON text of an answer; where it has none, of a failure that says so.

    Args:
        answer: the answer.
        within: makes the message that the answer is a part of.

    Example:
        >>> encoded(success(1, float("nan")))[:43]
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32'
    """
    try:
        return encode_json(within(answer))
    except ValueMappingError as error:
        message = f"the answer cannot be sent as JSON, and what was done for it stays done: {text_of(error)}"
        return encode_json(within(failure(answer["id"], JsonRpcErrorCode.INTERNAL_ERROR, message)))  # type: ignore[arg-type]


def _invalid(message: str) -> Refusal:
    return Refusal(failure(None, JsonRpcErrorCode.INVALID_REQUEST, f"Invalid request: {message}"))
