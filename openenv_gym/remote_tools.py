"""The tools of a server far away, for a Model Context Protocol server in front of it. Needs the extra ``mcp``.

In production by ``/mcp``, which every OpenEnv server has; in simulation by steps, with rewards. Either way one
connection is one episode, which begins when its tools are first wanted. Not for messages of the protocol
(``tool_server.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from mcp import types

from openenv_gym.errors import OpenEnvGymError, ToolCallError
from openenv_gym.json_text import JSON, JSONObject, encode_json
from openenv_gym.mcp_client import MCPToolClient
from openenv_gym.tool_server import Tools
from openenv_gym.tool_wire import Reward, failed_call, mcp_result, mcp_tool, refuse
from openenv_gym.tools import CallToolAction, CallToolObservation, DescribedTool, ToolError, ToolErrorType
from openenv_gym.transition import own_flags, own_reward
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.mcp import McpCalls
from openenv_gym.types import StepResult

__all__ = ["AskedTools", "SteppedTools", "open_remote_tools"]

OVER = "the episode is over; connect anew for another"


@contextlib.asynccontextmanager
async def open_remote_tools(base_url: str, settings: ConnectionSettings, *, production: bool) -> AsyncIterator[Tools]:
    """The tools of a server, as long as the block lasts; nothing is asked of it before they are wanted."""
    tools = AskedTools(base_url, settings) if production else SteppedTools(base_url, settings)
    try:
        yield tools
    finally:
        await tools.close()


class AskedTools:
    """The tools at a server's ``/mcp``, in a session of their own.

    Args:
        base_url: the server's address.
        settings: how to reach it.
    """

    def __init__(self, base_url: str, settings: ConnectionSettings) -> None:
        self._calls = McpCalls.at(base_url, settings)

    async def list_tools(self) -> list[types.Tool]:
        """The tools there are.

        Raises:
            McpError: the server cannot be asked.
        """
        try:
            tools = await self._calls.list_tools()
        except OpenEnvGymError as error:
            refuse(types.INTERNAL_ERROR, str(error))
        return [mcp_tool(_described(tool), rewarded=False) for tool in tools]

    async def call_tool(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        """What a tool gives.

        Raises:
            McpError: there is no such tool.
        """
        try:
            given = await self._calls.call_tool(name, arguments)
        except OpenEnvGymError as error:
            return mcp_result(None, _failure(error), None)
        return mcp_result(given if isinstance(given, dict) and "content" in given else _plain(given), None, None)

    async def close(self) -> None:
        """End the session."""
        await self._calls.close()


class SteppedTools:
    """The tools of a server by steps of an episode.

    Args:
        base_url: the server's address.
        settings: how to reach it.
    """

    def __init__(self, base_url: str, settings: ConnectionSettings) -> None:
        self._client = MCPToolClient(base_url, settings=settings, mode="simulation")
        self._begun = self._over = False
        self._turn = asyncio.Lock()  # so that concurrent first calls begin one episode

    async def list_tools(self) -> list[types.Tool]:
        """The tools there are.

        Raises:
            McpError: the server cannot be asked.
        """
        async with self._turn:
            try:
                await self._begin()
                tools = await self._client.list_tools(use_cache=False)
            except OpenEnvGymError as error:
                refuse(types.INTERNAL_ERROR, str(error))
        return [mcp_tool(tool, rewarded=True) for tool in tools]

    async def call_tool(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        """What a tool gives, with its reward.

        Raises:
            McpError: there is no such tool.
        """
        async with self._turn:
            if self._over:
                return failed_call(ToolError(error_type=ToolErrorType.EXECUTION_ERROR, message=OVER), None)
            try:
                await self._begin()
                step = await self._client.step(CallToolAction(tool_name=name, arguments=arguments))
            except OpenEnvGymError as error:
                return mcp_result(None, _failure(error), None)
        self._over = step.done
        observation, reward = step.observation, _reward(step)
        if isinstance(observation, CallToolObservation):
            return mcp_result(getattr(observation, "tool_result", None), observation.error, reward)
        return mcp_result(
            _plain(observation.model_dump(mode="json", exclude={"metadata", "reward", "done"})), None, reward
        )

    async def close(self) -> None:
        """End the session."""
        await self._client.close()

    async def _begin(self) -> None:
        if not self._begun:
            await self._client.reset()
            self._begun = True


def _reward(step: StepResult[Any]) -> Reward:
    metadata = step.metadata or {}
    terminated, truncated = own_flags(step.done, metadata)
    return {"reward": own_reward(step.reward, metadata), "terminated": terminated, "truncated": truncated}


def _described(tool: Mapping[str, Any]) -> DescribedTool:
    """A tool as a server's ``/mcp`` has it, whose spelling differs from one release to the next."""
    return DescribedTool(
        name=tool["name"],
        description=tool.get("description") or "",
        input_schema=tool.get("inputSchema") or tool.get("input_schema") or {},
        title=tool.get("title"),
        output_schema=tool.get("outputSchema"),
        annotations=tool.get("annotations"),
        meta=tool.get("meta"),
    )


def _plain(value: JSON) -> JSONObject:
    """The result that a value is, where the server gives none in the usual shape."""
    text = value if isinstance(value, str) else encode_json(value).decode()
    structured = value if isinstance(value, dict) else None
    return {"content": [{"type": "text", "text": text}], "structured_content": structured, "data": value}


def _failure(error: OpenEnvGymError) -> ToolError:
    """The failure of a call, in the words of whoever failed."""
    if isinstance(error, ToolCallError) and error.error_type is not None:
        message = (error.data or {}).get("message")
        return ToolError(error_type=ToolErrorType(error.error_type), message=str(message or error))
    return ToolError(error_type=ToolErrorType.TRANSPORT_ERROR, message=str(error))
