"""The tools of a FastMCP server, called in this process through its public methods alone.

Imports ``fastmcp`` only where a server was given, and then late. Not for tools that are Python functions of an
environment (``tool_sets.py``).

FastMCP runs a tool that is not ``async def`` on a thread of its own choice. One that takes too long goes on there; its
result is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from pydantic import BaseModel

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import encode_json
from openenv_gym.tools import CallToolObservation, DescribedTool, ToolErrorType
from openenv_gym_server.errors import text_of
from openenv_gym_server.plain import plain_json
from openenv_gym_server.tool_results import failure, unsendable

__all__ = ["FastMCPServer", "call_server_tool", "described", "server_tools"]


class FastMCPServer(Protocol):
    """What is used of a ``fastmcp.FastMCP``, version 3."""

    async def list_tools(self) -> Sequence[Any]:
        """The server's tools."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """What a tool gives."""


async def server_tools(server: FastMCPServer) -> dict[str, Any]:
    """The server's own tool objects by name."""
    return {each.name: each for each in await server.list_tools()}


def described(server_tool: Any) -> DescribedTool:
    """A server's tool as an agent is told of it."""
    return DescribedTool(
        name=server_tool.name,
        description=server_tool.description or "",
        input_schema=_plain(server_tool.parameters) or {},
        title=getattr(server_tool, "title", None),
        output_schema=_plain(getattr(server_tool, "output_schema", None)),
        annotations=_hints(getattr(server_tool, "annotations", None)),
        meta=_plain(getattr(server_tool, "meta", None)),
    )


def _plain(document: Any) -> dict[str, Any] | None:
    """A copy in plain JSON: a default may be an infinity, which would be in the way of all tools."""
    return cast("dict[str, Any] | None", plain_json(document))


def _hints(annotations: Any) -> dict[str, Any] | None:
    return annotations.model_dump(exclude_none=True) if isinstance(annotations, BaseModel) else None


async def call_server_tool(server: FastMCPServer, name: str, arguments: dict[str, Any]) -> CallToolObservation:
    """The observation of a call, its failure included."""
    from fastmcp.exceptions import NotFoundError, ValidationError  # noqa: PLC0415 - only where it is in use
    from pydantic import ValidationError as PydanticError  # noqa: PLC0415

    try:
        return _observation(name, await server.call_tool(name, arguments))
    except NotFoundError as error:
        # A tool may raise the same error itself.
        known = name in await server_tools(server)
        kind = ToolErrorType.EXECUTION_ERROR if known else ToolErrorType.TOOL_NOT_FOUND
        return failure(name, kind, text_of(error))
    except (ValidationError, PydanticError) as error:
        return failure(name, ToolErrorType.INVALID_ARGS, text_of(error))
    except Exception as error:  # noqa: BLE001 - a server may have middleware of anyone's, which raises anything
        return failure(name, ToolErrorType.EXECUTION_ERROR, text_of(error))


def _observation(name: str, given: Any) -> CallToolObservation:
    try:
        content = plain_json(list(given.content))
        structured = plain_json(given.structured_content)
        meta = plain_json(given.meta)
        encode_json([content, structured, meta])
    except ValueMappingError as error:
        return unsendable(name, str(error))
    if getattr(given, "is_error", False):
        return failure(name, ToolErrorType.EXECUTION_ERROR, _text(content) or f"the tool {name!r} failed")
    result = {
        "content": content,
        "structured_content": structured,
        "meta": meta,
        "data": structured["result"] if _is_wrapped(structured, meta) else structured,  # type: ignore[index, call-overload]
        "is_error": False,
    }
    return CallToolObservation(tool_name=name, result=result)


def _is_wrapped(structured: Any, meta: Any) -> bool:
    note = meta.get("fastmcp") if isinstance(meta, dict) else None
    return (
        isinstance(note, dict)
        and bool(note.get("wrap_result"))
        and isinstance(structured, dict)
        and "result" in structured
    )


def _text(content: Any) -> str:
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
