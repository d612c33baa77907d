"""Standard MCP at ``/mcp``: Streamable HTTP, revision 2025-11-25, by the official SDK. Needs the extra ``mcp``.

Which requests are meant for it, ``routes/mcp.py`` knows; what an MCP session has, ``standard_sessions.py``.

The SDK's session manager lives in a task that starts with the first request, on that request's event loop: the lifespan
of an application that is mounted in another never runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import ClosedResourceError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from openenv_gym.errors import MessageTooLargeError, ProtocolError
from openenv_gym.json_text import JSONObject, decode_json, encode_json
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym.tool_server import Tools, tool_server
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.routes.body import received
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc import answer_to_error, failure
from openenv_gym_server.settings import DEFAULT_KEPT_SESSION_TIMEOUT_S, ServerSettings
from openenv_gym_server.standard_sessions import KnownTools, SessionTools

__all__ = ["StandardMcp", "endpoint"]

_PRODUCTION = "One session is one episode. Once the tools answer that it is over, open a new session to play another."
_SIMULATION = "A tool's structured result has the reward, and whether the episode is terminated or truncated."


def endpoint(served: Served) -> StandardMcp:
    """The ASGI application of an environment's server; one for each application."""
    return StandardMcp(served)


class StandardMcp:
    """An ASGI application that speaks Streamable HTTP.

    Args:
        served: the application's parts.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self._running: dict[asyncio.AbstractEventLoop, _Running] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["method"] == "POST":
            try:
                receive = await _readable(Request(scope, receive), self._served.settings.max_message_bytes)
            except MessageTooLargeError as error:
                await _refused(413, answer_to_error(None, error))(scope, receive, send)
                return
            except ProtocolError as error:
                await _refused(400, failure(None, JsonRpcErrorCode.PARSE_ERROR, f"Parse error: {error}"))(
                    scope, receive, send
                )
                return
            except ClientDisconnect:
                return
        manager = await self._here().started()
        await manager.handle_request(scope, receive, send)

    async def aclose(self) -> None:
        """End the MCP sessions of this event loop, and with them their environments."""
        running = self._running.pop(asyncio.get_running_loop(), None)
        if running is not None:
            await running.aclose()

    def _here(self) -> _Running:
        loop = asyncio.get_running_loop()
        running = self._running.get(loop)
        if running is None or running.ended:
            # An application may be driven from several loops, and the ends of those are told to nobody.
            self._running = {each: one for each, one in self._running.items() if not each.is_closed()}
            running = self._running[loop] = _Running(self._manager())
        return running

    def _manager(self) -> StreamableHTTPSessionManager:
        served, known = self._served, KnownTools(self._served)

        @asynccontextmanager
        async def open_tools() -> AsyncIterator[Tools]:
            tools = SessionTools(served, known)
            try:
                yield tools
            finally:
                tools.close()

        instructions = _PRODUCTION if served.settings.production else _SIMULATION
        return StreamableHTTPSessionManager(
            tool_server(served.name, open_tools, instructions), **_limits(served.settings)
        )


class _Ordinary(logging.Filter):
    """Leaves out what the SDK logs as an error, with a traceback, where an open stream ends with its session."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], ClosedResourceError)


logging.getLogger("mcp.server.streamable_http").addFilter(_Ordinary())


class _Running:
    """A session manager and the task it lives in: it has to be entered and left in one and the same."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        # In a context of its own: what the first request has in its is not the later ones'.
        self._task = asyncio.create_task(self._run(), name="openenv-mcp", context=contextvars.Context())

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def started(self) -> StreamableHTTPSessionManager:
        await asyncio.wait([self._ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        return self._manager

    async def aclose(self) -> None:
        self._stop.set()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set_result(None)
            await self._stop.wait()


async def _readable(request: Request, limit: int) -> Receive:
    """What gives the request's body once more, now that it is known to be JSON.

    The SDK answers some of what is none by a status of 500, and reads any body to its end.

    Raises:
        MessageTooLargeError: it is above the limit.
        ProtocolError: it is no JSON.
        ClientDisconnect: it did not come to its end.
    """
    content = await received(request, limit)
    await off_the_loop(len(content), decode_json, content)
    events = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Message:
        return events.pop() if events else await request.receive()

    return receive


def _refused(status: int, answer: JSONObject) -> Response:
    return Response(encode_json(answer), status, media_type="application/json")


def _limits(settings: ServerSettings) -> dict[str, Any]:
    """The operator's limits, as far as the installed release of the SDK knows them."""
    limits = {
        "session_idle_timeout": settings.session_timeout_s or DEFAULT_KEPT_SESSION_TIMEOUT_S,
        "max_request_body_size": settings.max_message_bytes,
    }
    known = inspect.signature(StreamableHTTPSessionManager).parameters
    return {name: value for name, value in limits.items() if name in known}
