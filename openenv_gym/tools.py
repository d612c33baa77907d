"""Tool calls as actions, and what comes back: the data classes of environments whose steps are calls of tools.

For clients and servers alike. Not for what is a tool and how it runs (``openenv_gym_server.mcp_environment``) nor for
the calls of a client (``mcp_client.py``). Importing this module loads pydantic.

Source of names and fields: ``openenv`` 0.10.0.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from openenv_gym.types import Action, Observation

__all__ = [
    "RESERVED_TOOL_NAMES",
    "WRAPPED",
    "CallToolAction",
    "CallToolObservation",
    "DescribedTool",
    "ListToolsAction",
    "ListToolsObservation",
    "Tool",
    "ToolError",
    "ToolErrorType",
]

RESERVED_TOOL_NAMES = frozenset({"reset", "step", "state", "close"})
"""Names of what a trainer may do and an agent may not: no tool is called so."""

WRAPPED = "x-fastmcp-wrap-result"
"""FastMCP's note in an output schema that an object's ``result`` is the value; its clients unwrap by it."""


class ToolErrorType(StrEnum):
    """Why a call of a tool gave no result.

    Attributes:
        EXECUTION_ERROR: the tool raised, or what it returned cannot be sent.
        INVALID_ARGS: the arguments are not as its schema wants them; the tool was not called.
        TRANSPORT_ERROR: whatever stands between server and tool failed.
        TOOL_NOT_FOUND: there is no tool of that name, or not in the server's mode.
        TIMEOUT: it took longer than its limit.
    """

    EXECUTION_ERROR = "execution_error"
    INVALID_ARGS = "invalid_args"
    TRANSPORT_ERROR = "transport_error"
    TOOL_NOT_FOUND = "tool_not_found"
    TIMEOUT = "timeout"


class ToolError(BaseModel):
    """The failure of one call, as an observation has it.

    Example:
        >>> ToolError(error_type="timeout", message="the tool took longer than 30 s").error_type.value
        'timeout'
    """

    model_config = ConfigDict(extra="forbid")

    error_type: ToolErrorType = Field(description="What kind of failure it is")
    message: str = Field(description="What happened, and what to do")


class Tool(BaseModel):
    """A tool as an agent is told of it.

    Example:
        >>> Tool(name="look", description="Look around.", input_schema={"type": "object", "properties": {}}).name
        'look'
    """

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Name to call it by")
    description: str = Field(description="What it does, for the agent to read")
    input_schema: dict[str, Any] = Field(description="JSON Schema of its arguments, an object")


class DescribedTool(Tool):
    """A tool with what only some protocols tell of it: an observation leaves that out, MCP has it.

    Example:
        >>> look = DescribedTool(name="look", description="Look around.", input_schema={}, title="Look")
        >>> ListToolsObservation(tools=[look]).model_dump()["tools"]
        [{'name': 'look', 'description': 'Look around.', 'input_schema': {}}]
    """

    title: str | None = Field(default=None, description="Name to show to people")
    output_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of the structured result")
    annotations: dict[str, Any] | None = Field(default=None, description="Hints for clients, as MCP has them")
    meta: dict[str, Any] | None = Field(default=None, description="Whatever else its author says of it")


class ListToolsAction(Action):
    """Ask what tools there are; it is no step of the episode.

    Example:
        >>> ListToolsAction().model_dump(exclude={"metadata"})
        {'type': 'list_tools'}
    """

    type: Literal["list_tools"] = Field(default="list_tools", description="What tells this action from others")


class CallToolAction(Action):
    """Call a tool.

    Example:
        >>> CallToolAction(tool_name="look", arguments={"direction": "north"}).type
        'call_tool'
    """

    type: Literal["call_tool"] = Field(default="call_tool", description="What tells this action from others")
    tool_name: str = Field(description="Name of the tool")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Its arguments by name")


class ListToolsObservation(Observation):
    """The tools there are.

    Example:
        >>> ListToolsObservation(tools=[]).tools
        []
    """

    tools: list[Tool] = Field(description="The tools that can be called in the server's mode")


class CallToolObservation(Observation):
    """What a call gave: a result or an error.

    Example:
        >>> CallToolObservation(tool_name="look", result={"data": "a door"}, reward=0.0).error is None
        True
    """

    tool_name: str = Field(description="Name of the tool that was called")
    result: Any = Field(default=None, description="What the tool gave; null where there is an error")
    error: ToolError | None = Field(default=None, description="Why there is no result; null where there is one")
