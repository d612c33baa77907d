"""What a tool gave, as it travels: the object that an MCP client's call returns, in OpenEnv's spelling.

``{"content", "structured_content", "meta", "data", "is_error"}``, where ``data`` is the plain value, ``content`` its
text, and ``structured_content`` the same as an object. Not for calling a tool (``tool_caller.py``).

Source of the shape: ``openenv`` 0.10.0 with ``fastmcp`` 3.
"""

from __future__ import annotations

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.tools import CallToolObservation, ToolError, ToolErrorType
from openenv_gym_server.errors import text_of
from openenv_gym_server.plain import plain_json

__all__ = ["failure", "success", "timed_out", "unsendable"]

_WRAPPED = {"fastmcp": {"wrap_result": True}}
"""FastMCP's note that ``structured_content`` is not the value itself; its clients unwrap by it."""


def success(tool_name: str, value: object) -> CallToolObservation:
    """The observation of a call that gave a value; of a value without JSON form, an ``execution_error``.

    What JSON cannot say is said as in every observation: NaN and the infinities are strings, bytes are base64, arrays
    are lists. None has no content.
    """
    try:
        plain = plain_json(value)
        text = encode_json(plain).decode()
    except ValueMappingError as error:
        return unsendable(tool_name, str(error))
    except BaseException as error:  # noqa: BLE001 - what makes JSON of an author's object may be the author's too
        return unsendable(tool_name, text_of(error))
    return CallToolObservation(tool_name=tool_name, result=_result(plain, text))


def _result(plain: JSON, text: str) -> JSONObject:
    if plain is None:
        return {"content": [], "structured_content": None, "meta": None, "data": None, "is_error": False}
    is_object = isinstance(plain, dict)
    shown = plain if isinstance(plain, str) else text
    return {
        "content": [{"type": "text", "text": shown, "annotations": None, "meta": None}],
        "structured_content": plain if is_object else {"result": plain},
        "meta": None if is_object else {name: dict(note) for name, note in _WRAPPED.items()},
        "data": plain,
        "is_error": False,
    }


def unsendable(tool_name: str, why: str) -> CallToolObservation:
    """The observation of a call whose result has no JSON form."""
    message = f"the tool {tool_name!r} has run, but its result cannot be sent as JSON and is lost: {why}"
    return failure(tool_name, ToolErrorType.EXECUTION_ERROR, message)


def failure(tool_name: str, error_type: ToolErrorType, message: str) -> CallToolObservation:
    """The observation of a call that gave nothing."""
    return CallToolObservation(tool_name=tool_name, error=ToolError(error_type=error_type, message=message))


def timed_out(tool_name: str, seconds: float | None, *, begun: bool = True) -> CallToolObservation:
    """The observation of a call that took longer than its limit; or that had not begun by then."""
    message = f"Tool {tool_name!r} timed out after {seconds:g} seconds; "
    if begun:
        message += "what it may still do is not undone, and its result is dropped"
    else:
        message += "it was not called, because the environment was still busy with an earlier call"
    return failure(tool_name, ToolErrorType.TIMEOUT, message)
