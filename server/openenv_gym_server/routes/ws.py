"""``/ws``: a session over a WebSocket, as OpenEnv's clients speak it, and the negotiated extension of ours.

A plain ASGI application, because a message should pass nothing between the socket and ``dispatch`` that it does not
need.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from urllib.parse import parse_qs

from starlette.types import Message, Receive, Scope, Send

from openenv_gym.errors import InvalidActionError, OpenEnvGymError
from openenv_gym.frames import Packed
from openenv_gym.messages import (
    SUBPROTOCOL,
    Close,
    Mcp,
    McpReply,
    Open,
    Request,
    RequestId,
)
from openenv_gym_server import rpc
from openenv_gym_server.closed_mode import as_told
from openenv_gym_server.errors import SessionEndedError, error_frame
from openenv_gym_server.parsing import Payload, Terms, no_binary, read
from openenv_gym_server.reading import off_the_loop
from openenv_gym_server.reports import report
from openenv_gym_server.routes.served import Served
from openenv_gym_server.rpc_methods import Peer
from openenv_gym_server.session import Serving, Session
from openenv_gym_server.vector_sessions import check_opening

__all__ = ["WebSocketApp"]


class WebSocketApp:
    """The ASGI application of the route."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, from its handshake to its end."""
        await receive()  # the handshake itself
        connection = _Connection(self._served, scope, receive, send)
        # OSError: the peer is gone. CancelledError: the server stopped waiting for a busy environment, whose session
        # ends by itself. Nobody is left to be told, and this is the task's outermost frame.
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await connection.serve()


class _Connection:
    """One socket and its session."""

    def __init__(self, served: Served, scope: Scope, receive: Receive, send: Send) -> None:
        self._sessions = served.sessions
        self._rpc = served.rpc
        self._serving = Serving(served.settings.mode)
        self._receive = receive
        self._asgi_send = send
        self._closed = False
        self._session: Session | None = None
        self._open_timeout_s = served.settings.open_timeout_s
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        self._attach_to = query.get("session_id", [None])[0]
        self._terms = Terms(
            extended=SUBPROTOCOL in scope.get("subprotocols", ()),
            opened=True,
            attached=self._attach_to is not None,
            production=served.settings.production,
            remote_names=served.settings.remote_names,
            max_message_bytes=served.settings.max_message_bytes,
            share_tracebacks=served.settings.share_tracebacks and not served.settings.production,
        )

    async def serve(self) -> None:
        """Accept, find or make the session, converse, clean up."""
        subprotocol = SUBPROTOCOL if self._terms.extended else None
        await self._asgi_send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
        try:
            await self._begin()
            if self._session is not None:
                await self._converse(self._session)
        except OpenEnvGymError as error:
            if self._session is not None:
                self._sessions.begin_end(self._session, str(error))
            await self._refuse(error, "connect")
        finally:
            await self._leave()

    # ------------------------------------------------------------------------------------------- the session

    async def _begin(self) -> None:
        if self._attach_to is not None:
            self._own(self._sessions.attach(self._attach_to))
        elif self._terms.extended:
            await self._opened()
        else:
            self._own(await self._sessions.open("socket", serving=self._serving))

    def _own(self, session: Session) -> None:
        """The session is this connection's from now on, and ends with it, whatever happens next."""
        self._session = session
        self._terms = dataclasses.replace(self._terms, session_id=session.id)

    async def _opened(self) -> None:
        """Have the peer open its session itself; there is none where it leaves instead."""
        terms = dataclasses.replace(self._terms, opened=False)
        while True:
            request = await self._first_request(terms)
            if request is None or isinstance(request, Close):
                return
            if isinstance(request, Mcp) and terms.production:  # which has no x-open
                self._own(await self._sessions.open("socket", serving=self._serving))
                await self._send(await self._called(request))
                return
            if not isinstance(request, Open):
                error = SessionEndedError("the first message under openenv-gym.v1 is x-open", code="SESSION_ERROR")
                await self._refuse(error, "x-open", request.id)
                return
            await self._answer_open(request, terms)
            if self._session is not None or self._closed:
                return

    async def _first_request(self, terms: Terms) -> Request | None:
        """The first message that can be read; None once the peer is gone.

        Raises:
            SessionEndedError: none came in time; such a socket must not stay for nothing.
        """
        try:
            async with asyncio.timeout(self._open_timeout_s):
                while (text := await self._next_text()) is not None:
                    request = await off_the_loop(len(text), read, text, terms)
                    if not isinstance(request, str | Packed):
                        return request
                    assert isinstance(request, str)  # a text frame is no packed request
                    await self._send(request)
        except TimeoutError as error:
            raise SessionEndedError(
                f"no x-open came within the server's setting open_timeout_s={self._open_timeout_s:g}",
                code="SESSION_ERROR",
            ) from error
        return None

    async def _answer_open(self, request: Open, terms: Terms) -> None:
        """Make the session's environment and describe it; there is no session where the request cannot be met."""
        try:
            check_opening(request.data, self._sessions.factory)
            session = await self._sessions.open("socket", request.data, self._serving)
        except InvalidActionError as error:
            await self._refuse(error, "x-open", request.id)
            return
        except OpenEnvGymError as error:
            await self._refuse(error, "x-open", request.id)
            await self._close()
            return
        self._own(session)
        terms = dataclasses.replace(terms, session_id=session.id)
        answer = await session.describe(request, terms)
        assert answer is not None  # only close has none
        await self._send(answer)

    async def _converse(self, session: Session) -> None:
        session.farewell = self._farewell
        terms = self._terms
        while (payload := self._payload_of(await self._receive())) is not None and session.ending is None:
            answer: str | bytes | Mcp | None = session.inline_answer(payload, terms)
            if answer is None:
                answer = await session.handle(payload, terms)
            if answer is None:
                return
            await self._send(await self._called(answer) if isinstance(answer, Mcp) else answer)
            if session.failed:
                return

    async def _called(self, request: Mcp) -> str:
        """The answer to a JSON-RPC request."""
        answer = await self._rpc.respond(request.data, Peer(self._session))
        return rpc.encoded(answer, lambda each: McpReply(data=each, id=request.id)).decode()

    async def _leave(self) -> None:
        session = self._session
        if session is not None:
            session.farewell = None
            if session.kind == "kept" and session.ending is None:
                await self._sessions.detach(session)
            else:
                await self._sessions.end(session, "its socket was closed")
        await self._close()

    async def _farewell(self, reason: str) -> None:
        """Tell the peer that its session has ended; called by the reaper, while this connection waits for a message."""
        with contextlib.suppress(OSError, RuntimeError):
            await self._send(error_frame(SessionEndedError(reason, code="SESSION_ERROR")).decode())
        await self._close()

    # -------------------------------------------------------------------------------------------- the socket

    def _payload_of(self, event: Message) -> Payload | None:
        """What a frame holds: a string of a text frame, bytes of a binary one; None once the peer is gone."""
        text: str | None = event.get("text")
        if text is not None:
            return text
        if event["type"] == "websocket.receive":
            content: bytes = event["bytes"]
            return content
        self._closed = True
        return None

    async def _next_text(self) -> str | None:
        """The next text frame; None once the peer is gone. A binary frame is answered and passed over."""
        while (payload := self._payload_of(await self._receive())) is not None:
            if isinstance(payload, str):
                return payload
            await self._send(error_frame(no_binary()).decode())
        return None

    async def _refuse(self, error: OpenEnvGymError, message: str, request_id: RequestId = None) -> None:
        report(error, self._terms.session_id, message)
        error = as_told(error, production=self._terms.production)
        frame = error_frame(error, request_id, share_traceback=self._terms.share_tracebacks)
        await self._send(frame.decode())

    async def _send(self, content: str | bytes) -> None:
        if self._closed:
            return
        form = "text" if isinstance(content, str) else "bytes"
        await self._asgi_send({"type": "websocket.send", form: content})

    async def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError, RuntimeError):  # the peer closed at the same moment
            await self._asgi_send({"type": "websocket.close", "code": 1000})
