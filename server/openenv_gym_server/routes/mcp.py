"""``/mcp``: OpenEnv's JSON-RPC dialect over POST and over a socket, and the door to the standard's MCP.

A request of a standard MCP client is told by its headers and handed on whole. Plain ASGI, because a call of a tool
should pass nothing between the socket and its method that it does not need. Not for methods (``rpc_methods.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, cast

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from openenv_gym.errors import MessageTooLargeError, OpenEnvGymError
from openenv_gym.json_text import encode_json
from openenv_gym.jsonrpc import JsonRpcErrorCode, JsonRpcRequest, JsonRpcResponse
from openenv_gym_server import rpc
from openenv_gym_server.closed_mode import as_told
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.host_check import mcp_refusal
from openenv_gym_server.protection import Gate
from openenv_gym_server.reports import report
from openenv_gym_server.routes import body
from openenv_gym_server.routes.sending import bounded
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc_methods import Peer
from openenv_gym_server.session import Serving, Session

__all__ = ["Endpoint", "Mcp", "is_standard", "mcp"]

STANDARD = "openenv_gym_server.standard_mcp"
"""The module of the standard's MCP, loaded when the first such client comes: it needs the extra ``mcp``."""


class Mcp(NamedTuple):
    """The route of requests and the one of sockets; ``aclose`` ends the sessions of standard clients."""

    routes: list[BaseRoute]
    aclose: Callable[[], Awaitable[None]]


def mcp(served: Served) -> Mcp:
    """What ``/mcp`` needs in an application."""
    check = functools.partial(mcp_refusal, settings=served.settings)
    posts = _Posts(served)
    routes = [_McpRoute(Gate(posts, check)), WebSocketRoute("/mcp", Gate(_Sockets(served), check))]
    return Mcp(routes, posts.aclose)


class Endpoint(Protocol):
    """What speaks the standard's MCP."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    async def aclose(self) -> None:
        """End its sessions."""


class _McpRoute(APIRoute):
    """Described by OpenAPI as any other, and answered by a plain ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            "/mcp",
            _described,
            methods=["POST"],
            tags=["MCP"],
            summary="Call tools by JSON-RPC",
            **body.documented(JsonRpcRequest, JsonRpcResponse),
        )
        self._plain = app

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever its method is."""
        await self._plain(scope, receive, send)


async def _described() -> None:
    """`tools/list`, `tools/call`, `openenv/session/create` and `openenv/session/close`; standard MCP clients too."""


def is_standard(scope: Scope) -> bool:
    """Whether a request is a standard MCP client's (Streamable HTTP)."""
    if scope["method"] == "DELETE":
        return True
    for name, value in scope["headers"]:
        if name in {b"mcp-session-id", b"mcp-protocol-version"}:
            return True
        if name == b"accept" and b"text/event-stream" in value.lower():
            return True
    return False


# ------------------------------------------------------------------------------------------------ over POST


class _Posts:
    """Requests: each has its answer, and no session but the one that it names."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._standard: Endpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        send = bounded(send)
        if is_standard(scope):
            await self._handed_on(scope, receive, send)
        elif scope["method"] != "POST":
            await _send(send, 405, b'{"detail":"Method Not Allowed"}', (b"allow", b"POST"))
        else:
            await self._answered(Request(scope, receive), send)

    async def aclose(self) -> None:
        """End the sessions of standard clients."""
        if self._standard is not None:
            await self._standard.aclose()

    async def _answered(self, request: Request, send: Send) -> None:
        try:
            content = await body.received(request, self._served.settings.max_message_bytes)
            answer = await self._served.rpc.answer(content, Peer(has_left=request.is_disconnected))
        except MessageTooLargeError as error:
            await _send(send, 413, encode_json(rpc.answer_to_error(None, error)))
        except ClientDisconnect:
            return
        else:
            await _send(send, 202 if answer is None else 200, answer or b"")

    async def _handed_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._standard is None:
            try:
                # It takes as long as some hundred calls, for which other sessions are not to wait.
                standard = await asyncio.to_thread(importlib.import_module, STANDARD)
            except ModuleNotFoundError as error:
                if error.name is None or error.name.partition(".")[0] != "mcp":
                    raise
                message = "standard MCP clients need the server's extra: pip install openenv-gym[mcp]"
                answer = rpc.failure(None, JsonRpcErrorCode.SERVER_ERROR, message)
                await _send(send, 501, encode_json(answer))
                return
            endpoint = cast("Callable[[Served], Endpoint]", standard.endpoint)
            self._standard = self._standard or endpoint(self._served)  # another request may have come first
        await self._standard(scope, receive, send)


async def _send(send: Send, status: int, content: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-length", b"%d" % len(content)), *more]
    if content:
        headers.append((b"content-type", b"application/json"))
    with contextlib.suppress(OSError):  # nobody hears it
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


# --------------------------------------------------------------------------------------------- over a socket


class _Sockets:
    """Sockets: each has a session of its own."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI calls it
        """Serve one connection, from its handshake to its end."""
        await receive()  # the handshake itself
        # As over /ws: the peer is gone, or the server stops; nobody is left to be told.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await _Socket(self._served, receive, send).serve()


class _Socket:
    def __init__(self, served: Served, receive: Receive, send: Send) -> None:
        self._served = served
        self._receive = receive
        self._asgi_send = send
        self._closed = False
        self._session: Session | None = None

    async def serve(self) -> None:
        """Accept, make the session, converse, clean up."""
        await self._asgi_send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        settings = self._served.settings
        try:
            self._session = await self._served.sessions.open("socket", serving=Serving(settings.mode, begins=True))
            self._session.farewell = self._farewell
            await self._converse(self._session)
        except OpenEnvGymError as error:
            if self._session is not None:
                self._served.sessions.begin_end(self._session, str(error))
            report(error, None, "connect")
            await self._refuse(as_told(error, production=settings.production))
        finally:
            await self._leave()

    async def _converse(self, session: Session) -> None:
        peer, limit = Peer(session), self._served.settings.max_message_bytes
        while (text := await self._next()) is not None and session.ending is None:
            if len(text) > limit:
                message = f"expected a message of at most {limit} bytes, got {len(text)} (setting max_message_size_mb)"
                await self._refuse(MessageTooLargeError(message, size=len(text), limit=limit))
                continue
            answer = await self._served.rpc.answer(text, peer)
            if answer is not None:
                await self._send(answer)

    async def _next(self) -> bytes | None:
        """What the next frame holds, whichever form it has; None once the peer is gone."""
        event = await self._receive()
        if event["type"] != "websocket.receive":
            self._closed = True
            return None
        text: str | None = event.get("text")
        content: bytes = event["bytes"] if text is None else text.encode("utf-8", "surrogatepass")
        return content

    async def _leave(self) -> None:
        if self._session is not None:
            self._session.farewell = None
            await self._served.sessions.end(self._session, "its socket was closed")
        await self._close()

    async def _farewell(self, reason: str) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            await self._refuse(SessionEndedError(reason, code="SESSION_ERROR"))
        await self._close()

    async def _refuse(self, error: OpenEnvGymError) -> None:
        answer = rpc.answer_to_error(None, error)
        if isinstance(error, SessionEndedError):
            answer = rpc.failure(None, JsonRpcErrorCode.SERVER_ERROR, str(error))
        await self._send(encode_json(answer))

    async def _send(self, content: bytes) -> None:
        if not self._closed:
            await self._asgi_send({"type": "websocket.send", "text": content.decode()})

    async def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError, RuntimeError):  # the peer closed at the same moment
            await self._asgi_send({"type": "websocket.close", "code": 1000})
