"""What a tool gave, as it travels: the object that an MCP client's call returns, in OpenEnv's spelling.

``{"content", "structured_content", "meta", "data", "is_error"}``, where ``data`` is the plain value, ``content`` its
text, and ``structured_content`` the same as an object. Not for calling a tool (``tool_caller.py``).

Source of the shape: ``openenv`` 0.10.0 with ``fastmcp`` 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.tools import CallToolObservation, ToolError, ToolErrorType
from openenv_gym_server.closed_mode import reason_of
from openenv_gym_server.tool_values import tool_value

__all__ = ["RAISED", "bounded", "failure", "made", "result_of", "success", "timed_out", "unsendable"]

RAISED = "x-environment-raised"
"""In the metadata of a failed call: it was no tool of an author's that raised, but the environment behind the tool."""

_WRAPPED = {"fastmcp": {"wrap_result": True}}
"""FastMCP's note that ``structured_content`` is not the value itself; its clients unwrap by it."""


def result_of(
    content: Sequence[JSON], structured: JSON, data: JSON, *, wrapped: bool = False, meta: JSON = None
) -> JSONObject:
    """The object of a result.

    Args:
        content: what an agent is shown, as blocks.
        structured: the object for programs; None where there is none.
        data: the plain value.
        wrapped: whether the object was made for a value that is none.
        meta: whatever else is said of it; else the note of ``wrapped``.
    """
    if wrapped:
        meta = {name: dict(note) for name, note in _WRAPPED.items()}
    return {"content": list(content), "structured_content": structured, "meta": meta, "data": data, "is_error": False}


def success(
    tool_name: str, value: object, limit_mb: float | None = None, *, production: bool = False
) -> CallToolObservation:
    """The observation of a call that gave a value; of a value without JSON form, an ``execution_error``.

    What JSON cannot say is said as in every observation: NaN and the infinities are strings, bytes are base64, arrays
    are lists. A picture is an image of the content (``tool_values.py``). None has no content.

    Args:
        tool_name: the tool.
        value: what it gave.
        limit_mb: size of the largest value, in MiB of JSON; None is no limit.
        production: whether it is said by a production server.
    """
    try:
        return made(tool_name, value, limit_mb)
    except BaseException as error:  # noqa: BLE001 - what makes JSON of an author's object may be the author's too
        return unsendable(tool_name, reason_of(error, tool_name, production=production))


def made(tool_name: str, value: object, limit_mb: float | None = None) -> CallToolObservation:
    """The same, where whatever an author's object raises that is to become JSON is let through."""
    try:
        shown = tool_value(value)
    except ValueMappingError as error:
        return unsendable(tool_name, str(error))
    if limit_mb is not None and shown.size > limit_mb * 2**20:
        return _too_large(tool_name, shown.size, limit_mb)
    result = result_of(shown.content, shown.structured, shown.data, wrapped=shown.wrapped)
    return CallToolObservation(tool_name=tool_name, result=result)


def bounded(tool_name: str, observation: CallToolObservation, limit_mb: float | None) -> CallToolObservation:
    """An observation that was made elsewhere, unless its result is above the limit."""
    if limit_mb is None or observation.error is not None:
        return observation
    # Its author may have made the text and the structured form of different things.
    size = max(len(encode_json(observation.result[form])) for form in ("content", "structured_content"))
    return _too_large(tool_name, size, limit_mb) if size > limit_mb * 2**20 else observation


def _too_large(tool_name: str, size: int, limit_mb: float) -> CallToolObservation:
    message = (
        f"the tool {tool_name!r} has run, but its result of {size / 2**20:.1f} MiB is above the limit of {limit_mb:g} "
        "MiB and is lost; ask for less of it at a time (or let its author raise MAX_RESULT_MB)"
    )
    return failure(tool_name, ToolErrorType.EXECUTION_ERROR, message)


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
