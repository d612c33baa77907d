"""Tools and what they gave in the types of the Model Context Protocol, revision 2025-11-25. Needs the extra ``mcp``.

In simulation a structured result is ``{"result", "reward", "terminated", "truncated"}``: the reward is nowhere else, so
that whoever shows a result's content to an agent shows it no reward. In production it is what the tool gave. Not for
OpenEnv's own spelling of the same (``tools.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from mcp import types
from mcp.shared.exceptions import McpError
from pydantic import TypeAdapter, ValidationError

from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.spaces.atoms import spell_float
from openenv_gym.tools import WRAPPED, Tool, ToolError, ToolErrorType

__all__ = ["ERROR_TYPE", "Reward", "failed_call", "mcp_result", "mcp_tool", "refuse"]

ERROR_TYPE = "openenv-gym/error_type"
"""Where a failed result's ``_meta`` has the kind of the failure."""

Reward = JSONObject
"""``{"reward", "terminated", "truncated"}``, of a call in simulation."""

_REWARD_SCHEMA: JSONObject = {
    "reward": {"type": ["number", "boolean", "string", "null"]},  # a string is NaN or an infinity
    "terminated": {"type": "boolean"},
    "truncated": {"type": "boolean"},
}
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


def mcp_tool(tool: Tool, *, rewarded: bool) -> types.Tool:
    """A tool as a standard client is told of it.

    Args:
        tool: the tool; of a ``DescribedTool`` the title, output schema and annotations too.
        rewarded: whether structured results have the reward beside the tool's own.

    Example:
        >>> look = Tool(name="look", description="Look around.", input_schema={"type": "object", "properties": {}})
        >>> mcp_tool(look, rewarded=False).inputSchema
        {'type': 'object', 'properties': {}}
        >>> mcp_tool(look, rewarded=True).outputSchema["required"]
        ['result', 'reward', 'terminated', 'truncated']
    """
    own: JSONObject | None = getattr(tool, "output_schema", None)
    hints: JSONObject | None = getattr(tool, "annotations", None)
    return types.Tool(
        name=tool.name,
        title=getattr(tool, "title", None),
        description=tool.description,
        inputSchema={**tool.input_schema, "type": "object"},
        outputSchema=_rewarded(own) if rewarded else own,
        annotations=None if hints is None else types.ToolAnnotations.model_validate(hints),
        _meta=getattr(tool, "meta", None),
    )


def _rewarded(own: JSONObject | None) -> JSONObject:
    value, definitions = _value_schema(own or {})
    return {
        "type": "object",
        "properties": {"result": value, **_REWARD_SCHEMA},
        "required": ["result", *_REWARD_SCHEMA],
        WRAPPED: True,
        **definitions,
    }


def _value_schema(own: Mapping[str, Any]) -> tuple[JSONObject, JSONObject]:
    """The schema of a value by that of its structured result, and the definitions that it names."""
    definitions = {name: own[name] for name in ("$defs", "definitions") if name in own}
    if own.get(WRAPPED) is True:
        schema = own.get("properties", {}).get("result")
    else:
        schema = {name: part for name, part in own.items() if name not in definitions}
    if _refers_to_the_root([schema, definitions]):
        return {}, {}  # moved, it would be another schema
    return dict(schema) if isinstance(schema, Mapping) else {}, definitions


def _refers_to_the_root(part: object) -> bool:
    if isinstance(part, Mapping):
        reference = part.get("$ref")
        if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(_refers_to_the_root(each) for each in part.values())
    return isinstance(part, list) and any(_refers_to_the_root(each) for each in part)


def mcp_result(
    result: Mapping[str, Any] | None, error: ToolError | None, reward: Reward | None
) -> types.CallToolResult:
    """What a call gave, as a standard client is told.

    Args:
        result: ``{"content", "structured_content", "meta", "data", "is_error"}``; None where it failed.
        error: why it failed.
        reward: of a call in simulation.

    Raises:
        McpError: there is no such tool, which the protocol calls a wrong request and not a failed call.
    """
    if error is not None:
        if error.error_type is ToolErrorType.TOOL_NOT_FOUND:
            refuse(types.INVALID_PARAMS, error.message)
        return failed_call(error, reward)
    result = result or {}
    structured, meta = result.get("structured_content"), result.get("meta")
    if reward is not None:
        structured = {"result": result.get("data"), **_spelled(reward)}
        meta = {**(meta or {}), "fastmcp": {"wrap_result": True}}
    return types.CallToolResult(
        content=[_block(each) for each in result.get("content") or []],
        structuredContent=structured if isinstance(structured, dict) else None,
        isError=bool(result.get("is_error")),
        _meta=meta,
    )


def failed_call(error: ToolError, reward: Reward | None) -> types.CallToolResult:
    """The result of a call that failed, for the agent to read and do better."""
    told: JSONObject = {"error_type": error.error_type.value, "message": error.message}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=error.message)],
        structuredContent=None if reward is None else {"result": None, "error": told, **_spelled(reward)},
        isError=True,
        _meta={ERROR_TYPE: error.error_type.value},
    )


def refuse(code: int, message: str, data: JSON = None) -> NoReturn:
    """Answer a request with an error of JSON-RPC.

    Raises:
        McpError: always.
    """
    raise McpError(types.ErrorData(code=code, message=message, data=data))


def _spelled(reward: Reward) -> Reward:
    value = reward.get("reward")
    return {**reward, "reward": spell_float(value)} if isinstance(value, float) else reward


def _block(part: object) -> types.ContentBlock:
    """A block of content in the protocol's spelling; one that it does not know is its JSON text."""
    if isinstance(part, Mapping):
        spelled = {_SPELLINGS.get(name, name): value for name, value in part.items() if value is not None}
        try:
            return _BLOCK.validate_python(spelled)
        except ValidationError:
            pass
    return types.TextContent(type="text", text=encode_json(part).decode())


_SPELLINGS = {"meta": "_meta", "mime_type": "mimeType"}
