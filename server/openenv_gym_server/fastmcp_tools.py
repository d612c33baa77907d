"""The tools of a FastMCP server, called in this process through its public methods alone.

Imports ``fastmcp`` only where a server was given, and then late. Not for tools that are Python functions of an
environment (``tool_sets.py``).

FastMCP runs a tool that is not ``async def`` on a thread of its own choice. One that takes too long goes on there; its
result is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol, cast

from pydantic import BaseModel

from openenv_gym.errors import ValueMappingError
from openenv_gym.json_text import encode_json
from openenv_gym.tools import CallToolObservation, DescribedTool, ToolErrorType
from openenv_gym_server.closed_mode import is_wrapped, reason_of, undisclosed
from openenv_gym_server.errors import text_of
from openenv_gym_server.plain import plain_json
from openenv_gym_server.tool_results import failure, result_of, unsendable

__all__ = ["FastMCPServer", "call_server_tool", "described", "server_tools"]


logger = logging.getLogger("openenv_gym_server")


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


async def call_server_tool(
    server: FastMCPServer, name: str, arguments: dict[str, Any], *, production: bool = False
) -> CallToolObservation:
    """The observation of a call, its failure included, of which a production server tells less (``closed_mode.py``)."""
    from fastmcp.exceptions import NotFoundError, ValidationError  # noqa: PLC0415 - only where it is in use
    from pydantic import ValidationError as PydanticError  # noqa: PLC0415

    try:
        return _observation(name, await server.call_tool(name, arguments), production)
    except NotFoundError as error:
        if name not in await server_tools(server):
            return failure(name, ToolErrorType.TOOL_NOT_FOUND, f"Unknown tool: {name[:200]!r}")
        # A tool may raise the same error itself.
        return _raised(name, ToolErrorType.EXECUTION_ERROR, error, production)
    except (ValidationError, PydanticError) as error:
        if isinstance(error, ValidationError) or error.title.startswith("call["):  # the arguments', not a tool's own
            return failure(name, ToolErrorType.INVALID_ARGS, text_of(error))
        return _raised(name, ToolErrorType.INVALID_ARGS, error, production)
    except Exception as error:  # noqa: BLE001 - a server may have middleware of anyone's, which raises anything
        return _raised(name, ToolErrorType.EXECUTION_ERROR, error, production)


def _raised(name: str, kind: ToolErrorType, error: Exception, production: bool) -> CallToolObservation:
    text = text_of(error)
    reason = reason_of(error, name, production=production)
    return failure(name, kind, text if reason == text else f"Error calling tool {name!r}: {reason}")


def _observation(name: str, given: Any, production: bool) -> CallToolObservation:
    try:
        content = plain_json(list(given.content))
        structured = plain_json(given.structured_content)
        meta = plain_json(given.meta)
        encode_json([content, structured, meta])
    except ValueMappingError as error:
        return unsendable(name, str(error))
    if getattr(given, "is_error", False):
        text = _text(content) or f"the tool {name!r} failed"
        if production and is_wrapped(text):  # by another server, which FastMCP has asked
            logger.error("the tool %r failed: %s", name, text)
            text = undisclosed(name)
        return failure(name, ToolErrorType.EXECUTION_ERROR, text)
    data = structured["result"] if _is_wrapped(structured, meta) else structured  # type: ignore[index, call-overload]
    return CallToolObservation(tool_name=name, result=result_of(content, structured, data, meta=meta))  # type: ignore[arg-type]


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
