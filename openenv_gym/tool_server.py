"""A Model Context Protocol server whose tools are an environment's: what is the same on every transport.

Every connection has tools of its own, which ``open_tools`` opens and closes. Needs the extra ``mcp``. Not for where
the tools are: a server's session (``openenv_gym_server.standard_sessions``) or a server far away (``cli/mcp.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.context import RequestContext

import openenv_gym
from openenv_gym.json_text import JSONObject
from openenv_gym.tool_wire import refuse

__all__ = ["PROGRESS_EVERY_S", "Tools", "tool_server"]

PROGRESS_EVERY_S = 1.0
"""A client that asks for progress hears of a call that runs longer as often."""


class Tools(Protocol):
    """The tools of one connection. What either raises as an ``McpError`` is the answer."""

    async def list_tools(self) -> list[types.Tool]:
        """The tools there are."""

    async def call_tool(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        """What a tool gives; cancelled where the client cancels the request."""


def tool_server(
    name: str, open_tools: Callable[[], AbstractAsyncContextManager[Tools]], instructions: str | None = None
) -> Server[Tools, Any]:
    """A server that a transport of the official SDK can run.

    Args:
        name: what it is called.
        open_tools: opens the tools of a connection, for as long as that lasts.
        instructions: what an agent should know of all tools.
    """

    def lifespan(_: Server[Tools, Any]) -> AbstractAsyncContextManager[Tools]:
        return open_tools()

    server: Server[Tools, Any] = Server(
        name, version=openenv_gym.__version__, instructions=instructions, lifespan=lifespan
    )

    async def list_tools(request: types.ListToolsRequest) -> types.ServerResult:
        if request.params is not None and request.params.cursor is not None:
            refuse(types.INVALID_PARAMS, "expected no cursor: all tools are on one page")
        tools = await server.request_context.lifespan_context.list_tools()
        return types.ServerResult(types.ListToolsResult(tools=tools))

    async def call_tool(request: types.CallToolRequest) -> types.ServerResult:
        context = server.request_context
        teller = _teller(context, request.params.name)
        try:
            arguments = request.params.arguments or {}
            return types.ServerResult(await context.lifespan_context.call_tool(request.params.name, arguments))
        finally:
            if teller is not None:
                teller.cancel()
                # So that nothing is told of a request after its answer; a client that has left is told nothing.
                await asyncio.gather(teller, return_exceptions=True)

    # Not by the SDK's decorators: those check arguments and results once more, and hide which error it was.
    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


def _teller(context: RequestContext[Any, Any, Any], name: str) -> asyncio.Task[None] | None:
    token = None if context.meta is None else context.meta.progressToken
    return None if token is None else asyncio.create_task(_tell(context, token, name))


async def _tell(context: RequestContext[Any, Any, Any], token: str | int, name: str) -> None:
    """Tell the client every now and then that its call still runs; progress is the time it has taken, in seconds."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_EVERY_S)
        seconds = round(time.monotonic() - begun, 3)
        await context.session.send_progress_notification(
            token, seconds, message=f"{name} runs for {seconds:.0f} s", related_request_id=str(context.request_id)
        )
