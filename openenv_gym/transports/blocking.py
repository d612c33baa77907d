"""A WebSocket that the calling thread itself writes and reads.

A step costs no hand-over to another thread or loop: one ``send``, one wait, one ``recv``. RFC 6455 is the business of
``websockets``' sans-I/O protocol; opening is that of ``opening``, and between two calls the ``keeper`` looks after the
connection. Not for what a message means (``openenv_gym.session``).
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Sequence

from websockets.client import ClientProtocol
from websockets.frames import CloseCode, Opcode
from websockets.frames import Frame as WebSocketFrame
from websockets.protocol import State

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports.base import ConnectionSettings, Frame, websocket_url
from openenv_gym.transports.endings import busy, lost, peer_ended, timed_out, too_large
from openenv_gym.transports.keeper import keeper
from openenv_gym.transports.opening import open_websocket
from openenv_gym.transports.readiness import Readiness

__all__ = ["BlockingTransport", "connect"]

# Looked up once: an attribute of an enum's class costs more than the comparison.
_OPEN = State.OPEN
_TEXT, _BINARY, _CONT = Opcode.TEXT, Opcode.BINARY, Opcode.CONT

_FIRST_BUFFER = 65_536
_LARGEST_BUFFER = 262_144
_READS_A_VISIT = 16  # of the keeper: what is left waits for its next round or for the next call
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def connect(
    base_url: str,
    settings: ConnectionSettings,
    *,
    path: str = "/ws",
    subprotocols: Sequence[str] = (SUBPROTOCOL,),
) -> BlockingTransport:
    """Open a WebSocket at ``path`` below ``base_url``.

    Raises:
        UnreachableError: no WebSocket there within ``connect_timeout_s``; the message says what to check.
        SettingsError: an address, a certificate's file or a proxy that cannot be used.
    """
    sock, protocol = open_websocket(websocket_url(base_url, path), settings, subprotocols)
    transport = BlockingTransport(sock, protocol, settings)
    if not transport.closed:
        keeper.add(transport)
    return transport


class BlockingTransport:
    """An open WebSocket; made by ``connect()``.

    Calls may come from any thread, one at a time. ``close()`` may come at any time: in the middle of another
    thread's call it cuts the connection, and that call raises ``SessionLostError``.

    Args:
        sock: the connected socket; the transport owns it.
        protocol: the protocol of this connection, its handshake done.
        settings: limits and timeouts.

    Example:
        >>> transport = connect("http://127.0.0.1:8000", ConnectionSettings())      # doctest: +SKIP
        >>> transport.send(b'{"type":"state"}')                                     # doctest: +SKIP
        >>> transport.receive(timeout_s=60.0).text                                  # doctest: +SKIP
        True
    """

    def __init__(self, sock: socket.socket, protocol: ClientProtocol, settings: ConnectionSettings) -> None:
        sock.setblocking(False)
        self.subprotocol: str | None = protocol.subprotocol
        self._socket = sock
        self._protocol = protocol
        self._settings = settings
        self._limit = settings.max_message_bytes
        self._readiness = Readiness(sock)
        self._pending = sock.pending if isinstance(sock, ssl.SSLSocket) else _nothing
        self._buffer = memoryview(bytearray(_FIRST_BUFFER))
        self._more = False  # the last read filled the buffer, so the next need not wait
        self._inbox: deque[Frame] = deque()
        self._partial: bytearray | None = None
        self._partial_is_text = False
        self._output: deque[bytes | memoryview] = deque()
        self._sent_size = 0
        self._failure: OpenEnvGymError | None = None  # how the connection ended, raised once; then _lost says why
        self._lost: str | None = None
        self._in_call = threading.Lock()  # a second call is an error …
        self._turn = threading.Lock()  # … while the keeper is waited for: it takes no longer than one read
        # Frames may have come in one piece with the handshake's answer, pings among them.
        self._take_events()
        self._write()

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent; messages that came before may still be there for ``receive()``."""
        return self._lost is not None or self._failure is not None

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        if len(payload) > self._limit:
            raise too_large(len(payload), self._limit, "outgoing")
        self._begin("send")
        try:
            if not self.closed:
                self._sent_size = len(payload)
                (self._protocol.send_text if text else self._protocol.send_binary)(payload)
                self._output.extend(self._protocol.data_to_send())
                self._write()
                if self._output:
                    self._write_out()
            if self.closed and not self._inbox:
                raise self._end()  # noqa: TRY301 - dropping and raising are one path for every failure
        except BaseException:
            self._drop("a call was interrupted or failed while sending")
            raise
        finally:
            self._finish()

    def receive(self, timeout_s: float | None) -> Frame:
        """Wait for the next message; see ``Transport.receive``."""
        self._begin("receive")
        try:
            if not self._inbox:
                self._wait_for_message(timeout_s)
            return self._inbox.popleft()
        except BaseException:
            self._drop("a call was interrupted while it waited for the answer")
            raise
        finally:
            self._finish()

    def close(self) -> None:
        """Close with the closing handshake, waiting at most ``close_timeout_s``; again: nothing."""
        if not self._in_call.acquire(blocking=False):
            self._abort()
            return
        try:
            with self._turn:
                self._close_both_ways()
        finally:
            self._in_call.release()

    def tend(self) -> None:
        """For the keeper: read what has come, without blocking, unless a call is in flight."""
        for _ in range(_READS_A_VISIT):
            if not self._turn.acquire(blocking=False):
                return
            try:
                if self._output:
                    self._write()
                # A peer that floods an idle client, or reads no pongs, is left to TCP's own flow control.
                kept = sum(len(frame.payload) for frame in self._inbox)
                if self.closed or self._output or kept > self._limit or not self._read():
                    return
                self._write()
            finally:
                self._turn.release()

    def abandon(self) -> None:
        """For the keeper, in a forked child: the connection is the parent's; let go of it without a word."""
        self._in_call = threading.Lock()
        self._turn = threading.Lock()
        self._inbox.clear()
        self._lost = "it belongs to the process this one was forked from; each process needs a session of its own"
        # Closes this process's descriptor alone; neither TCP nor TLS says anything to the peer.
        self._socket.close()

    def _begin(self, call: str) -> None:
        if not self._in_call.acquire(blocking=False):
            raise busy(call) if self._lost is None else lost(self._lost)
        self._turn.acquire()

    def _finish(self) -> None:
        self._turn.release()
        self._in_call.release()

    def _wait_for_message(self, timeout_s: float | None) -> None:
        deadline = time.monotonic() + timeout_s if timeout_s else None
        while not self._inbox:
            if self.closed:
                raise self._end()
            self._progress(deadline, timeout_s)

    def _write_out(self) -> None:
        """Send all there is to send, reading meanwhile: a peer that is itself sending may not read before we do."""
        timeout_s = self._settings.send_timeout_s
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._output and not self.closed:
            self._progress(deadline, timeout_s)

    def _progress(self, deadline: float | None, timeout_s: float | None) -> None:
        """Wait until bytes can move, and move some."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            self._lost = f"no whole message came or went within {timeout_s:g} s"
            raise timed_out(timeout_s or 0.0)
        if not self._more and not self._pending():
            self._readiness.wait(left, writing=bool(self._output))
        self._read()
        if self._output:
            self._write()

    def _read(self) -> bool:
        """Read once without blocking; False where there was nothing."""
        self._more = False
        try:
            size = self._socket.recv_into(self._buffer)
        except _NOT_NOW:
            return False
        except OSError as error:
            self._cut(error)
            return True
        if size == 0:
            self._cut(None)
            return True
        # The protocol copies at once, so it may be given the buffer itself.
        self._protocol.receive_data(self._buffer[:size])  # type: ignore[arg-type]
        self._more = size == len(self._buffer)
        if self._more and size < _LARGEST_BUFFER:
            self._buffer = memoryview(bytearray(size * 2))
        self._take_events()
        return True

    def _write(self) -> None:
        """Write what the socket takes, without blocking."""
        output = self._output
        while output:
            data = output[0]
            try:
                size = self._socket.send(data)
            except _NOT_NOW:
                return
            except OSError as error:
                # What the peer sent before it went, an error frame perhaps, is still to be read.
                while not self.closed and self._read():
                    pass
                self._cut(error)
                return
            if size == len(data):
                output.popleft()
            else:
                output[0] = memoryview(data)[size:]

    def _take_events(self) -> None:
        """Sort what the protocol made of the bytes: messages to the inbox, its own answers (pongs) to the output."""
        for event in self._protocol.events_received():
            if isinstance(event, WebSocketFrame):
                self._take_frame(event)
        for data in self._protocol.data_to_send():
            # Empty is the sign for half-closing TCP; this end closes it whole.
            if data:
                self._output.append(data)
        if self._protocol.state is not _OPEN and not self.closed:
            self._write()
            self._over(None)

    def _take_frame(self, frame: WebSocketFrame) -> None:
        if frame.opcode is _TEXT or frame.opcode is _BINARY:
            if frame.fin:
                self._inbox.append(Frame(bytes(frame.data), frame.opcode is _TEXT))
            else:
                self._partial = bytearray(frame.data)
                self._partial_is_text = frame.opcode is _TEXT
        elif frame.opcode is _CONT and self._partial is not None:
            self._partial += frame.data
            if frame.fin:
                self._inbox.append(Frame(bytes(self._partial), self._partial_is_text))
                self._partial = None

    def _cut(self, error: OSError | None) -> None:
        """The connection ended, with or without a closing handshake."""
        self._protocol.receive_eof()
        self._over(error)

    def _over(self, error: OSError | None) -> None:
        """Keep why it ended for the next call that finds no message any more."""
        if not self.closed:
            self._failure = peer_ended(
                self._protocol,
                error,
                limit=self._limit,
                unfinished=len(self._partial or b""),
                sent=self._sent_size,
            )
            self._release()

    def _end(self) -> OpenEnvGymError:
        """The error to raise now that the connection is over: the whole story once, then a reminder of it."""
        failure, self._failure = self._failure, None
        if self._lost is None:
            self._lost = getattr(failure, "reason", None) or str(failure)
            if failure is not None:
                return failure
        return lost(self._lost)

    def _close_both_ways(self) -> None:
        try:
            if not self.closed:
                self._say_goodbye()
        finally:
            self._drop("this client closed it")

    def _say_goodbye(self) -> None:
        """Send a close frame and read until the peer's, its end, or ``close_timeout_s``."""
        deadline = time.monotonic() + self._settings.close_timeout_s
        self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        self._output.extend(self._protocol.data_to_send())
        self._lost = "this client closed it"
        self._write()
        while self._protocol.close_rcvd is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if not self._pending() and not self._readiness.wait(left, writing=bool(self._output)):
                return
            self._read()
            if self._protocol.state is State.CLOSED:
                return
            self._write()

    def _drop(self, reason: str) -> None:
        """Close without waiting. Nothing that arrives later is ever delivered."""
        if not self.closed or self._failure is not None:
            self._lost = self._lost or reason
        self._failure = None
        self._inbox.clear()
        if self._protocol.state is _OPEN:
            # So that the server frees the session at once; it may not get through, and need not.
            self._protocol.send_close(CloseCode.GOING_AWAY)
            self._output.extend(self._protocol.data_to_send())
            self._write()
        self._release()

    def _release(self) -> None:
        self._output.clear()
        self._partial = None
        keeper.remove(self)
        self._socket.close()

    def _abort(self) -> None:
        """Cut the connection under a call in flight, from another thread or a signal handler."""
        self._lost = self._lost or "it was closed while a call was in flight"
        try:
            # Of TCP alone: SSLSocket.shutdown() would hand the call in flight undecrypted bytes.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            # Already down, which was the wish.
            return


def _nothing() -> int:
    return 0
