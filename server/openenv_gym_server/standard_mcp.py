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
from openenv_gym.json_text import JSON, JSONObject, decode_json, encode_json
from openenv_gym.jsonrpc import JsonRpcErrorCode
from openenv_gym.tool_server import Tools, tool_server
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.routes.body import received
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc import answer_to_error, failure
from openenv_gym_server.settings import DEFAULT_KEPT_SESSION_TIMEOUT_S
from openenv_gym_server.standard_sessions import KnownTools, SessionTools
from openenv_gym_server.standard_visitors import Visitors, visiting

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
            except _NoRequestError as error:
                await _refused(400, answer_to_error(None, error))(scope, receive, send)
                return
            except ProtocolError as error:
                await _refused(400, failure(None, JsonRpcErrorCode.PARSE_ERROR, f"Parse error: {error}"))(
                    scope, receive, send
                )
                return
            except ClientDisconnect:
                return
        visitors = await self._here().started()
        await visitors(scope, receive, send)

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
            with visiting(SessionTools(served, known)) as tools:
                yield tools

        instructions = _PRODUCTION if served.settings.production else _SIMULATION
        return StreamableHTTPSessionManager(
            tool_server(served.name, open_tools, instructions),
            session_idle_timeout=served.settings.session_timeout_s or DEFAULT_KEPT_SESSION_TIMEOUT_S,
            **_size_limit(served.settings.max_message_bytes),
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
        self._visitors = Visitors(manager.handle_request)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        # In a context of its own: what the first request has in its is not the later ones'.
        self._task = asyncio.create_task(self._run(), name="openenv-mcp", context=contextvars.Context())

    @property
    def ended(self) -> bool:
        return self._task.done()

    async def started(self) -> Visitors:
        await asyncio.wait([self._ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        return self._visitors

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
        ProtocolError: it is no JSON; a ``_NoRequestError``: no request.
        ClientDisconnect: it did not come to its end.
    """
    content = await received(request, limit)
    _check_id(await off_the_loop(len(content), decode_json, content))
    events = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Message:
        return events.pop() if events else await request.receive()

    return receive


class _NoRequestError(ProtocolError):
    """It is JSON, but no request."""


def _check_id(document: JSON) -> None:
    """Hold a request's id to what the protocol knows; the SDK takes a request with another id for a notification.

    Raises:
        _NoRequestError: the id is neither a string nor an integer.
    """
    if not isinstance(document, dict) or "method" not in document or "id" not in document:
        return
    request_id = document["id"]
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise _NoRequestError("Invalid request: id: expected a string or an integer")


def _refused(status: int, answer: JSONObject) -> Response:
    return Response(encode_json(answer), status, media_type="application/json")


def _size_limit(max_message_bytes: int) -> dict[str, Any]:
    """The limit of a request where the SDK has one of its own, which may be lower; ``_readable`` has held ours."""
    name = "max_request_body_size"
    return {name: max_message_bytes} if name in inspect.signature(StreamableHTTPSessionManager).parameters else {}
