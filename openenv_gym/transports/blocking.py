"""A WebSocket that the calling thread itself writes and reads.

A step costs no hand-over to another thread or loop: one ``send``, one wait, one ``recv``. RFC 6455 is the business of
``websockets``' sans-I/O protocol; opening is that of ``opening``, and between two calls the ``keeper`` looks after the
connection. Not for what a message means (``openenv_gym.session``).
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from websockets.client import ClientProtocol
from websockets.frames import CloseCode, Opcode
from websockets.frames import Frame as WebSocketFrame
from websockets.protocol import State

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports.base import ConnectionSettings, Frame, websocket_url
from openenv_gym.transports.endings import busy, foreign_failure, lost, peer_ended, timed_out, too_large
from openenv_gym.transports.keeper import keeper
from openenv_gym.transports.opening import open_websocket
from openenv_gym.transports.stream import Stream
from openenv_gym.transports.turns import Turn, Turns

__all__ = ["BlockingTransport", "connect"]

_T = TypeVar("_T")

# Looked up once: an attribute of an enum's class costs more than the comparison.
_OPEN = State.OPEN
_TEXT, _BINARY, _CONT = Opcode.TEXT, Opcode.BINARY, Opcode.CONT

_READS_A_LOOK = 4  # for a message behind pings, or longer than the buffer
_READS_A_VISIT = 16  # of the keeper: what is left waits for its next round or for the next call
_KEEPER_PATIENCE_S = 10.0  # for a visit of the keeper, which takes microseconds unless its thread is starved


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
    try:
        transport = BlockingTransport(sock, protocol, settings)
        if not transport.closed:
            keeper.add(transport)
    except BaseException:
        sock.close()
        raise
    return transport


class BlockingTransport:
    """An open WebSocket; made by ``connect()``.

    Calls may come from any thread, one at a time. ``close()`` may come at any time: in the middle of another
    call, of whatever thread, it cuts the connection, and that call raises ``SessionLostError``.

    A signal handler may raise at any point of any call: its exception comes out, the transport is lost, nothing waits
    for ever, and ``close()`` closes the socket.

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
        self.subprotocol: str | None = protocol.subprotocol
        self._stream = Stream(sock)
        self._output = self._stream.output
        self._protocol = protocol
        self._settings = settings
        self._limit = settings.max_message_bytes
        self._inbox: deque[Frame] = deque()
        self._partial: bytearray | None = None
        self._partial_is_text = False
        self._sent_size = 0
        self._failure: OpenEnvGymError | None = None  # how the connection ended, raised once; then _lost says why
        self._lost: str | None = None
        self._turns = Turns()
        self._called = False  # since the keeper was last here
        # Frames may have come in one piece with the handshake's answer, pings among them.
        self._take_events()
        self._write()

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent; messages that came before may still be there for ``receive()``."""
        return self._lost is not None or self._failure is not None

    @property
    def pending(self) -> bool:
        """Whether a message has arrived that no ``receive()`` has taken; see ``Transport.pending``."""
        return self._in_turn("pending", self._look)

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        if len(payload) > self._limit:
            raise too_large(len(payload), self._limit, "outgoing")
        self._in_turn("send", self._send, payload, text)

    def receive(self, timeout_s: float | None) -> Frame:
        """Wait for the next message; see ``Transport.receive``."""
        return self._in_turn("receive", self._receive, timeout_s)

    def close(self) -> None:
        """Close with the closing handshake, waiting at most ``close_timeout_s``; see ``Transport.close``."""
        turn = Turn()
        try:
            try:
                if self._turns.take(turn, _KEEPER_PATIENCE_S):
                    self._close_both_ways()
                else:
                    self._close_beside_a_call(turn)
            finally:
                self._turns.give_back(turn)
        except BaseException:
            self._turns.give_back(turn)
            self._lost = self._lost or "closing it was interrupted"
            raise

    def fileno(self) -> int:
        """The descriptor of the socket, -1 once that is closed."""
        return self._stream.fileno()

    def tend(self) -> None:
        """For the keeper: read what has come, without blocking, unless a call is in flight or has just been."""
        if self._called:
            # A caller at work reads its answers itself, and would only be held up.
            self._called = False
            return
        turn = Turn(visit=True)
        if not self._turns.take(turn):
            return
        try:
            self._visit()
        except Exception as error:  # noqa: BLE001 - the keeper has other connections to look after
            self._drop(f"reading from it failed: {error!r}")
        finally:
            self._turns.give_back(turn)

    def abandon(self) -> None:
        """For the keeper, in a forked child: the connection is the parent's; let go of it without a word."""
        self._turns = Turns()
        self._inbox.clear()
        self._lost = "it belongs to the process this one was forked from; each process needs a session of its own"
        self._stream.close()

    def _in_turn(self, name: str, work: Callable[..., _T], *arguments: object) -> _T:
        """Do the work of one call, and see that whatever ends it early ends the connection."""
        turn = Turn()
        self._called = True
        try:
            try:
                if self._turns.take(turn, _KEEPER_PATIENCE_S):
                    return work(*arguments)
            except BaseException:
                if self._turns.holder is turn:
                    self._drop(f"{name}() was interrupted or failed")
                raise
            finally:
                self._turns.give_back(turn)
        except BaseException:
            # Once more, for an interrupt may have come between the work and this, or in the middle of the clean-up.
            self._turns.give_back(turn)
            self._lost = self._lost or f"{name}() was interrupted"
            raise
        raise busy(name) if self._lost is None else lost(self._lost)

    def _look(self) -> bool:
        for _ in range(_READS_A_LOOK):
            if self._inbox or self.closed or not self._stream.wait(0) or not self._read():
                break
        if self._output:
            self._write()
        return bool(self._inbox) or self._partial is not None

    def _visit(self) -> None:
        if self.closed:
            # Cut or interrupted, and its caller may be content with that.
            self._release()
        for _ in range(_READS_A_VISIT):
            if self._output:
                self._write()
            # A peer that floods an idle client, or reads no pongs, is left to TCP's own flow control.
            kept = sum(len(frame.payload) for frame in self._inbox)
            if self.closed or self._output or kept > self._limit or not self._read():
                return
            self._write()

    def _send(self, payload: bytes, text: bool) -> None:
        if not self.closed:
            self._sent_size = len(payload)
            (self._protocol.send_text if text else self._protocol.send_binary)(payload)
            self._output.extend(self._protocol.data_to_send())
            self._write()
            if self._output:
                self._write_out()
        if self.closed and not self._inbox:
            raise self._end()

    def _receive(self, timeout_s: float | None) -> Frame:
        if not self._inbox:
            self._wait_for_message(timeout_s)
        return self._inbox.popleft()

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
        self._stream.wait(left)
        self._read()
        if self._output:
            self._write()

    def _read(self) -> bool:
        """Read once without blocking; False where there was nothing."""
        try:
            data = self._stream.read()
        except OSError as error:
            self._cut(error)
            return True
        if data is None:
            return False
        if not data:
            self._cut(None)
            return True
        # The protocol copies at once, so it may be given the buffer itself.
        self._protocol.receive_data(data)  # type: ignore[arg-type]
        if self._protocol.parser_exc is not None:
            self._raise_foreign()
        self._take_events()
        return True

    def _write(self) -> None:
        """Write what the socket takes, without blocking."""
        try:
            self._stream.write()
        except OSError as error:
            # What the peer sent before it went, an error frame perhaps, is still to be read.
            while error.errno is not None and not self.closed and self._read():
                pass
            self._cut(error)

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
        if error is not None and error.errno is None:
            # No system call said so, but a signal handler: TimeoutError is an OSError.
            raise error
        self._protocol.receive_eof()
        self._raise_foreign()
        self._over(error)

    def _raise_foreign(self) -> None:
        failure = foreign_failure(self._protocol)
        if failure is not None:
            raise failure

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
            if left <= 0 or not self._stream.wait(left):
                return
            self._read()
            if self._protocol.state is State.CLOSED:
                return
            self._write()

    def _drop(self, reason: str) -> None:
        """Close without waiting. Nothing that arrives later is ever delivered. May be interrupted, and repeated."""
        self._lost = self._lost or getattr(self._failure, "reason", None) or reason
        self._failure = None
        self._inbox.clear()
        try:
            if self._protocol.state is _OPEN:
                # So that the server frees the session at once; it may not get through, and need not.
                self._protocol.send_close(CloseCode.GOING_AWAY)
            self._output.extend(data for data in self._protocol.data_to_send() if data)
            self._stream.write()
        except OSError as error:
            if error.errno is None:
                raise
        finally:
            self._release()

    def _release(self) -> None:
        self._output.clear()
        self._partial = None
        keeper.remove(self)
        self._stream.close()

    def _close_beside_a_call(self, turn: Turn) -> None:
        """Cut the connection under a call in flight, from another thread or from a signal handler of the same."""
        holder = self._turns.holder
        if holder is not None and holder.thread == turn.thread and self._lost is not None:
            # Cut before, or lost: what is left of that call, if it goes on at all, waits for nothing any more.
            self._release()
            return
        self._lost = self._lost or "it was closed while a call was in flight"
        self._stream.cut()
        if self._turns.take(turn):
            # It has ended meanwhile, perhaps without noticing.
            self._drop("this client closed it")
