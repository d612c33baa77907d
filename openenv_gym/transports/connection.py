"""One open WebSocket, as a state machine over a socket that never blocks.

It reads and writes what can move now, makes messages of the bytes, and keeps how the connection ended. Where a call has
to wait, it yields for how long at most, and whoever drives it waits: a thread in ``poll()`` (``blocking``), a task in
its event loop (``aio``). RFC 6455 is the business of ``websockets``' sans-I/O protocol; between two calls the
``keeper`` looks after the connection. Not for what a message means (``openenv_gym.session``).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from websockets.client import ClientProtocol
from websockets.frames import CloseCode
from websockets.protocol import State

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.transports.base import ConnectionSettings, Frame
from openenv_gym.transports.endings import busy, foreign_failure, lost, peer_ended, timed_out, too_large
from openenv_gym.transports.framing import Framing
from openenv_gym.transports.keeper import keeper
from openenv_gym.transports.stream import Stream
from openenv_gym.transports.turns import Turn, Turns

__all__ = ["Connection", "Waits"]

Waits: TypeAlias = "Iterator[float | None]"
"""The waits of one call, each for the socket: seconds at most, None without a limit."""

# Looked up once: an attribute of an enum's class costs more than the comparison.
_OPEN = State.OPEN

_READS_A_LOOK = 4  # for a message behind pings, or longer than the buffer
_FRAMES_A_READ = 32  # so that a flood of small ones keeps nobody from looking at the clock
_READS_A_VISIT = 16  # of the keeper: what is left waits for its next round or for the next call
_KEEPER_PATIENCE_S = 10.0  # for a visit of the keeper, which takes microseconds unless its thread is starved


class Connection:
    """An open WebSocket, whoever waits for it.

    One call at a time has its turn; a signal handler may raise at any point of any of them: its exception comes out,
    the connection is lost, nothing waits for ever, and closing it closes the socket.

    Args:
        sock: the connected socket; the connection owns it.
        protocol: the protocol of this connection, its handshake done.
        settings: limits and timeouts.
        early: what came in one piece with the handshake's answer, of which the protocol knows nothing.

    Attributes:
        subprotocol: what the server agreed to, None for nothing.
    """

    def __init__(
        self, sock: socket.socket, protocol: ClientProtocol, settings: ConnectionSettings, early: bytes = b""
    ) -> None:
        self.subprotocol: str | None = protocol.subprotocol
        self._stream = Stream(sock)
        self._output = self._stream.output
        self._protocol = protocol
        self._settings = settings
        self._limit = settings.max_message_bytes
        self._framing = Framing(protocol, self._limit)
        self._inbox = self._framing.messages
        self._sent_size = 0
        self._failure: OpenEnvGymError | None = None  # how the connection ended, raised once; then _lost says why
        self._lost: str | None = None
        self._turns = Turns()
        self._called = False  # since the keeper was last here
        self._feed(early)
        self._write()

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent; messages that came before may still be there for ``receive()``."""
        return self._lost is not None or self._failure is not None

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
            self.end(f"reading from it failed: {error!r}")
        finally:
            self._turns.give_back(turn)

    def abandon(self) -> None:
        """For the keeper, in a forked child: the connection is the parent's; let go of it without a word."""
        self._turns = Turns()
        self._inbox.clear()
        self._lost = "it belongs to the process this one was forked from; each process needs a session of its own"
        self._stream.abandon()

    def drop(self, reason: str) -> None:
        """Close at once; see ``Transport.drop``."""
        turn = Turn()
        try:
            if self._turns.take(turn, _KEEPER_PATIENCE_S):
                self.end(reason)
            else:
                self.cut(turn, reason)
        finally:
            self._turns.give_back(turn)

    # ---------------------------------------------------------------------------- the calls, but for their waiting

    def sending(self, payload: bytes, text: bool) -> Waits:
        """Send a message, reading meanwhile: a peer that is itself sending may not read before we do."""
        if not self.begin_sending(payload, text):
            yield from self.end_sending()

    def begin_sending(self, payload: bytes, text: bool) -> bool:
        """Send what of a message can be sent without waiting; whether that is all there is to do."""
        if not self.closed:
            self._sent_size = len(payload)
            self._output.extend(self._framing.encode(payload, text=text))
            self._write()
        return not self._output and not self.closed

    def end_sending(self) -> Waits:
        """Send what ``begin_sending`` has left, or find out why it cannot be sent."""
        timeout_s = self._settings.send_timeout_s
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._output and not self.closed:
            yield self._left(deadline, timeout_s)
            self._progress()
        if self.closed and not self._inbox:
            raise self._end()

    def receiving(self, timeout_s: float | None) -> Waits:
        """Have a message in the inbox."""
        deadline = time.monotonic() + timeout_s if timeout_s else None
        while not self._inbox:
            if self.closed:
                raise self._end()
            yield self._left(deadline, timeout_s)
            self._progress()

    def saying_goodbye(self) -> Waits:
        """Send a close frame and read until the peer's, its end, or ``close_timeout_s``."""
        if self.closed:
            return
        deadline = time.monotonic() + self._settings.close_timeout_s
        self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
        self._output.extend(self._protocol.data_to_send())
        self._lost = "this client closed it"
        self._write()
        while self._protocol.close_rcvd is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            yield left
            self._read()
            if self._protocol.state is State.CLOSED:
                return
            self._write()

    def message(self) -> Frame:
        """Take the message that ``receiving`` has found."""
        return self._inbox.popleft()

    # -------------------------------------------------------------------------------- for who drives these calls

    def check_size(self, payload: bytes) -> None:
        """Refuse a message above this end's limit.

        Raises:
            MessageTooLargeError: it is.
        """
        if len(payload) > self._limit:
            raise too_large(len(payload), self._limit, "outgoing")

    def take(self, turn: Turn) -> bool:
        """Take the turn for a call; False where another has it."""
        self._called = True
        return self._turns.take(turn, _KEEPER_PATIENCE_S)

    def refusal(self, name: str) -> OpenEnvGymError:
        """Why a call did not get its turn."""
        return busy(name) if self._lost is None else lost(self._lost)

    def fail(self, turn: Turn, name: str) -> None:
        """A call that has the turn ended early, and the connection ends with it: an answer may be on its way."""
        if self._turns.holder is turn:
            self.end(f"{name}() was interrupted or failed")

    def leave(self, turn: Turn) -> None:
        """End the turn. Again: nothing."""
        self._turns.give_back(turn)

    def note_loss(self, reason: str) -> None:
        """Nothing more may be sent, for this reason unless there is one already."""
        self._lost = self._lost or reason

    @property
    def unread(self) -> bool:
        """Whether there may be bytes to read that no poll of the socket would tell of."""
        return self._stream.ready

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until bytes can move; False after ``timeout_s`` seconds."""
        return self._stream.wait(timeout_s)

    def hold(self, holder: object, lives: Callable[[], bool]) -> None:
        """Keep the socket's descriptor; see ``Stream.hold``."""
        self._stream.hold(holder, lives)

    def let_go(self, holder: object) -> None:
        """End a hold; see ``Stream.let_go``."""
        self._stream.let_go(holder)

    @property
    def writing(self) -> bool:
        """Whether there are bytes still to be written."""
        return bool(self._output)

    def look(self) -> bool:
        """Whether a whole message has come that no call has taken; without waiting."""
        for _ in range(_READS_A_LOOK):
            if self._inbox or self.closed or not self._read():
                break
        if self._output:
            self._write()
        return bool(self._inbox)

    def look_for_any(self) -> bool:
        """The same for a message that may have come in part."""
        return self.look() or self._framing.partial

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

    def _left(self, deadline: float | None, timeout_s: float | None) -> float | None:
        """Seconds until the deadline.

        Raises:
            RequestTimeoutError: there are none.
        """
        if deadline is None:
            return None
        left = deadline - time.monotonic()
        if left <= 0:
            self._lost = f"no whole message came or went within {timeout_s:g} s"
            raise timed_out(timeout_s or 0.0)
        return left

    def _progress(self) -> None:
        """Move the bytes that can be moved now."""
        self._read()
        if self._output:
            self._write()

    def _read(self) -> bool:
        """Read once without blocking; False where there was nothing."""
        target = self._framing.target
        try:
            data = self._stream.read(target)
        except OSError as error:
            self._cut(error)
            return True
        if data is None:
            return False
        if not data:
            self._cut(None)
        elif target is not None:
            self._framing.filled(len(data))
        else:
            self._feed(data)
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

    def _feed(self, data: bytes | memoryview) -> None:
        """Sort what has come: messages to the inbox, the protocol's own answers (pongs) to the output."""
        rest = self._framing.feed(data, _FRAMES_A_READ)
        if rest:
            self._stream.give_back(rest)
        if self._protocol.parser_exc is not None:
            self._raise_foreign()
        for reply in self._protocol.data_to_send():
            # Empty is the sign for half-closing TCP; this end closes it whole.
            if reply:
                self._output.append(reply)
        if self._protocol.state is not _OPEN and not self.closed:
            self._write()
            self._over(None)

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
                unfinished=self._framing.unfinished,
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

    def end(self, reason: str) -> None:
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
        self._framing.forget()
        keeper.remove(self)
        self._stream.close()

    def cut(self, turn: Turn, reason: str = "this client closed it") -> None:
        """Cut the connection under a call in flight, from another thread or from a signal handler of the same."""
        holder = self._turns.holder
        if holder is not None and holder.gone:
            self.end(reason)
            return
        if holder is not None and holder.interrupted_by(turn) and self._lost is not None:
            # Cut before, or lost: what is left of that call, if it goes on at all, waits for nothing any more.
            self._release()
            return
        self._lost = self._lost or "it was closed while a call was in flight"
        self._stream.cut()
        if self._turns.take(turn):
            # It has ended meanwhile, perhaps without noticing.
            self.end(reason)
