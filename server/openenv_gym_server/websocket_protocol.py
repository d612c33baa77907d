"""WebSockets for uvicorn: ASGI's events straight from and to the transport.

``uvicorn.Config(app, ws=WebSocketProtocol)``. A message passes no parser that it does not need
(``openenv_gym.transports.framing``), and reading is paused where the application falls behind, not after each message.
Handshake, compression and closing are those of ``websockets``. Not for what an application does with a message
(``routes/ws.py``).
"""

from __future__ import annotations

import asyncio
import http
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import uvicorn
from uvicorn.protocols.utils import ClientDisconnected, get_client_addr
from uvicorn.protocols.utils import get_path_with_query_string as target_of
from uvicorn.server import ServerState
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from openenv_gym.transports.framing import Framing
from openenv_gym_server.brisk import Peer
from openenv_gym_server.websocket_handshake import HeaderFields, response, scope_of

__all__ = ["WebSocketProtocol"]

_Event: TypeAlias = "dict[str, Any]"

_OPEN = State.OPEN
_CLOSE_TIMEOUT_S = 10.0
_MOST_HELD = 65_536  # bytes that wait for the application before reading is paused
_COST = 256  # bytes that an event counts besides its payload
_PART = 4_096  # bytes that one turn of the loop takes, besides a single long message; of the shortest frames, 10 ms
_WORTH_COMPRESSING = 1_024  # bytes of a message; below, compressing takes longer than sending
_logger = logging.getLogger("uvicorn.error")


class WebSocketProtocol(asyncio.Protocol):
    """One connection; uvicorn makes it once a request asks for a WebSocket.

    Args:
        config: uvicorn's configuration, of which ``ws_max_size``, ``ws_ping_interval``, ``ws_ping_timeout`` and
            ``ws_per_message_deflate`` hold.
        server_state: the connections and tasks that the server waits for when it ends.
        app_state: what the application's lifespan has left.

    Example:
        >>> uvicorn.Config("module:app", ws=WebSocketProtocol).ws is WebSocketProtocol
        True
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._server_state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        deflate = [_DEFLATE] if config.ws_per_message_deflate else None
        self._protocol = ServerProtocol(extensions=deflate, max_size=config.ws_max_size, logger=_logger)
        self._framing = Framing(self._protocol, config.ws_max_size)
        self._transport: asyncio.Transport
        self._peer = Peer(self._loop)
        self._scope: _Event = {}
        self._answer: Response | None = None  # to the handshake, once it was asked for and until it is sent
        self._rejection: _Event = {}
        self._rest: bytes | memoryview = b""  # what has come and was not taken yet
        self._turn: asyncio.Handle | None = None  # when the next part of it will be
        self._events: asyncio.Queue[tuple[_Event, int]] = asyncio.Queue()
        self._held = 0
        self._reading = True
        self._choked = False  # the peer asks for pongs and reads none
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = False  # by the application
        self._over = False  # the application was told so
        self._timer: asyncio.TimerHandle | None = None
        self._heard = True  # since the last ping
        self._unsent = 0  # when it was sent

    # -------------------------------------------------------------------------------- what uvicorn and asyncio call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The HTTP connection is this one's from now on."""
        self._transport = transport  # type: ignore[assignment]  # uvloop's is no subclass of asyncio's
        self._server_state.connections.add(self)  # type: ignore[arg-type]  # it lists its own classes by name

    def data_received(self, data: bytes) -> None:
        """Take the request that asks for the WebSocket, and frames after it."""
        self._heard = True
        self._peer.heard()
        self._rest = b"".join((self._rest, data)) if self._rest else data
        if self._protocol.state is not State.CONNECTING:
            self._take()
        elif not self._scope:
            self._take_request()
        elif len(self._rest) > _MOST_HELD:  # the peer does not wait for the answer
            self._regulate()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio wants
        """The transport is closed, for whatever reason."""
        self._server_state.connections.discard(self)
        self._end(CloseCode.ABNORMAL_CLOSURE if self._scope and self._answer else CloseCode.NO_STATUS_RCVD)
        self._set_timer(None)
        self._protocol.parser.close()  # which refers to the protocol that refers to it

    def pause_writing(self) -> None:
        """The peer reads too slowly: ``send`` waits, unless it is the end."""
        if not self._over:
            self._writable.clear()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._heard, self._choked = True, False
        self._writable.set()
        self._regulate()

    def shutdown(self) -> None:
        """The server ends."""
        if self._protocol.state is State.CONNECTING:
            self._reject(http.HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._say_goodbye(CloseCode.SERVICE_RESTART)
            self._transport.close()

    # ----------------------------------------------------------------------------------------------- the handshake

    def _take_request(self) -> None:
        data, self._rest = self._rest, b""
        self._protocol.receive_data(bytes(data))
        for request in self._protocol.events_received():
            assert isinstance(request, Request)
            self._begin(request)
        fault = self._protocol.handshake_exc
        if fault is not None and not self._closed:
            said = b"".join(self._protocol.data_to_send())  # of some faults the protocol itself tells
            self._respond(said or response(http.HTTPStatus.BAD_REQUEST, (), f"{fault}\n".encode()))

    def _begin(self, request: Request) -> None:
        answer = self._protocol.accept(request)
        if self._protocol.handshake_exc is not None:
            self._respond(answer.serialize())
            return
        self._answer = answer
        self._scope = scope_of(request, self._config, self._transport, self._app_state)
        self._put({"type": "websocket.connect"}, 0)
        task = self._loop.create_task(self._run())
        self._server_state.tasks.add(task)
        task.add_done_callback(self._server_state.tasks.discard)

    async def _run(self) -> None:
        try:
            await self._config.loaded_app(self._scope, self.receive, self.send)
        except ClientDisconnected:
            pass
        except Exception:  # the outermost handler: the application may raise anything
            _logger.exception("Exception in ASGI application\n")
            if self._answer is None:
                self._say_goodbye(CloseCode.INTERNAL_ERROR)
        finally:
            if self._answer is not None:
                self._reject(http.HTTPStatus.INTERNAL_SERVER_ERROR)
            elif not self._closed:
                self._leave(CloseCode.NO_STATUS_RCVD)

    def _answer_handshake(self, answer: Response, message: _Event) -> None:
        kind = message["type"]
        if kind == "websocket.accept":
            self._log("[accepted]")
            headers = self._server_state.default_headers + list(message.get("headers", ()))
            del answer.headers["Date"]
            answer.headers.update((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
            if message.get("subprotocol"):
                answer.headers["Sec-WebSocket-Protocol"] = message["subprotocol"]
            self._answer = None
            self._protocol.send_response(answer)
            self._flush()
            self._ping_later(self._config.ws_ping_interval)
            self._take()
        elif kind == "websocket.close":
            self._reject(http.HTTPStatus.FORBIDDEN)
        elif kind == "websocket.http.response.start":
            self._rejection = {**message, "body": b""}
        elif kind == "websocket.http.response.body" and self._rejection:
            self._rejection["body"] += message.get("body", b"")
            if not message.get("more_body", False):
                self._reject(self._rejection["status"], self._rejection.get("headers", ()), self._rejection["body"])
        else:
            raise RuntimeError(
                "expected websocket.accept, websocket.close or websocket.http.response.start and .body, got "
                f"{kind!r} before the handshake's end"
            )

    def _reject(self, status: int, headers: HeaderFields = (), body: bytes = b"") -> None:
        self._log(str(int(status)))
        self._respond(response(status, headers, body))

    def _respond(self, answer: bytes) -> None:
        """Answer the handshake with something else than a WebSocket."""
        self._answer, self._closed = None, True
        self._transport.write(answer)
        self._leave(CloseCode.ABNORMAL_CLOSURE)

    def _log(self, outcome: str) -> None:
        _logger.info('%s - "WebSocket %s" %s', get_client_addr(self._scope), target_of(self._scope), outcome)  # type: ignore[arg-type]

    # ----------------------------------------------------------------------------- what the application calls

    async def receive(self) -> _Event:
        """The next event; the end is given as often as it is asked for."""
        event, size = await self._events.get()
        self._held -= size
        if event["type"] == "websocket.disconnect":
            self._put(event, 0)
        elif not self._reading:
            self._regulate()
        return event

    async def send(self, message: _Event) -> None:
        """Do as the event says.

        Raises:
            ClientDisconnected: the peer is gone, or about to be.
            RuntimeError: the event has no place here.
        """
        if not self._writable.is_set():
            await self._writable.wait()
        kind = message["type"]
        if self._closed:
            raise RuntimeError(f"expected nothing after the connection was closed, got {kind!r}")
        if self._over:
            raise ClientDisconnected
        if self._answer is not None:
            self._answer_handshake(self._answer, message)
        elif kind == "websocket.send":
            self._send(message)
        elif kind == "websocket.close":
            self._closed = True
            self._say_goodbye(message.get("code") or CloseCode.NORMAL_CLOSURE, message.get("reason") or "")
            self._regulate()  # the peer's own close ends the connection, or its silence
        else:
            raise RuntimeError(f"expected websocket.send or websocket.close, got {kind!r}")

    def _send(self, message: _Event) -> None:
        text = message.get("text")
        payload = message["bytes"] if text is None else text.encode()
        if len(payload) >= _WORTH_COMPRESSING and self._protocol.extensions:
            (self._protocol.send_binary if text is None else self._protocol.send_text)(payload)
            self._flush()
            return
        pieces = self._framing.encode(payload, text=text is not None)
        if len(pieces) == 1:
            self._transport.write(pieces[0])
        else:
            self._transport.writelines(pieces)
        self._peer.sent()

    # ---------------------------------------------------------------------------------------------- what comes

    def _take(self) -> None:
        """Take as much of what has come as others can wait for."""
        data, self._rest, self._turn = self._rest, b"", None
        if self._transport.is_closing():
            return
        if len(data) > _PART:
            data = memoryview(data)
            self._feed(data[:_PART])
            long = len(self._framing.target or b"")
            self._feed(data[_PART : _PART + long])
            self._rest = data[_PART + long :]
        else:
            self._feed(data)
        if self._rest or self._choked or not self._reading:
            self._regulate()

    def _feed(self, data: bytes | memoryview) -> None:
        self._framing.feed(data)
        messages = self._framing.messages
        while messages:
            payload, text = messages.popleft()
            try:
                content = {"text": payload.decode()} if text else {"bytes": payload}
            except UnicodeDecodeError:
                self._protocol.fail(CloseCode.INVALID_DATA, "invalid UTF-8")
                break
            if not (self._closed or self._over):
                self._put({"type": "websocket.receive", **content}, len(payload) + _COST)
        if self._protocol.state is not _OPEN:
            self._note_closing()
        elif self._protocol.writes:
            self._flush()
            self._choked = not self._writable.is_set()

    def _put(self, event: _Event, size: int) -> None:
        self._events.put_nowait((event, size))
        self._held += size
        if self._held > _MOST_HELD and self._reading:
            self._regulate()

    def _regulate(self) -> None:
        """Go on with what has come, and after that read on, unless the application or the peer is behind."""
        if self._transport.is_closing():
            return
        full = self._held > _MOST_HELD and not self._closed
        behind = full or self._choked or self._protocol.state is State.CONNECTING
        reading = not (behind or self._rest)
        if reading is not self._reading:
            self._reading = reading
            (self._transport.resume_reading if reading else self._transport.pause_reading)()
        if self._rest and not behind and self._turn is None:
            self._turn = self._loop.call_soon(self._take)

    # ---------------------------------------------------------------------------------------------- how it ends

    def _flush(self) -> None:
        self._transport.write(b"".join(self._protocol.data_to_send()))

    def _note_closing(self) -> None:
        """The connection is not open any more: the peer's close, a fault of it, or this end's close came before."""
        self._flush()
        said = self._protocol.close_rcvd
        if said is not None:
            self._leave(said.code, said.reason)
        elif self._protocol.close_sent is not None and not self._closed:
            self._leave(self._protocol.close_sent.code, self._protocol.close_sent.reason)

    def _say_goodbye(self, code: int, reason: str = "") -> None:
        if self._protocol.state is _OPEN:
            self._protocol.send_close(code, reason)
            self._flush()
        self._end(code, reason)

    def _leave(self, code: int, reason: str = "") -> None:
        self._end(code, reason)
        self._transport.close()

    def _end(self, code: int, reason: str = "") -> None:
        """Tell the application that the connection has ended, once."""
        if not self._over:
            self._over = True
            self._put({"type": "websocket.disconnect", "code": int(code), "reason": reason}, 0)
            self._writable.set()
            # A transport that is closed waits until the peer has read all: for ever, if the peer so wants.
            self._set_timer(_CLOSE_TIMEOUT_S, self._transport.abort)

    # -------------------------------------------------------------------------------------------------- pings

    def _set_timer(self, delay_s: float | None, then: Callable[[], None] = lambda: None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if delay_s is None else self._loop.call_later(delay_s, then)

    def _ping_later(self, delay_s: float | None) -> None:
        if delay_s is not None and self._config.ws_ping_interval:
            self._set_timer(delay_s, self._ping)

    def _ping(self) -> None:
        self._heard = False
        self._protocol.send_ping(b"")
        self._flush()
        self._unsent = self._transport.get_write_buffer_size()
        if self._config.ws_ping_timeout:
            self._set_timer(self._config.ws_ping_timeout, self._look_for_life)
        else:
            self._ping_later(self._config.ws_ping_interval)

    def _look_for_life(self) -> None:
        # Whatever has come tells of life, and so does what went; while nothing is read or on its way nothing can.
        taken = self._transport.get_write_buffer_size() < self._unsent
        if self._heard or taken or (not self._reading and self._writable.is_set()):
            interval, timeout = self._config.ws_ping_interval or 0.0, self._config.ws_ping_timeout or 0.0
            self._ping_later(max(0.0, interval - timeout))
            return
        self._protocol.fail(CloseCode.INTERNAL_ERROR, "keepalive ping timeout")
        self._flush()
        self._leave(CloseCode.INTERNAL_ERROR, "keepalive ping timeout")


_DEFLATE = ServerPerMessageDeflateFactory(
    server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
)
