"""A pair of connected ends without sockets, for tests of what stands on a transport.

The client's end is a ``Transport`` like any other; the server's end is scripted by the test. Not for measuring, nor for
what only real sockets show.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports.base import Frame
from openenv_gym.transports.endings import busy, closed_by_server, lost, timed_out, too_large

__all__ = ["MemoryServer", "MemoryTransport", "memory_pair"]

_LIMIT = 100 * 1024 * 1024

Handler = Callable[[Frame], "Iterable[Frame | bytes] | Frame | bytes | None"]
"""Answers one message of the client: with one message, several, or none; ``bytes`` are a text message."""


class _Link:
    """What lies between the two ends: messages on their way to the client, and how the connection ended, if it did."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._messages: deque[Frame] = deque()
        self._held: list[Frame] = []
        self._silent = False
        self._failure: OpenEnvGymError | None = None
        self._lost: str | None = None

    @property
    def over(self) -> bool:
        return self._lost is not None or self._failure is not None

    @property
    def waiting(self) -> bool:
        return bool(self._messages)

    def put(self, frame: Frame) -> None:
        with self._changed:
            if not self.over:
                (self._held if self._silent else self._messages).append(frame)
                self._changed.notify_all()

    def hold(self, silent: bool) -> None:
        with self._changed:
            self._silent = silent
            if not silent:
                self._messages.extend(self._held)
                self._held.clear()
            self._changed.notify_all()

    def finish(self, failure: OpenEnvGymError) -> None:
        """The server ends it: what is on its way still arrives."""
        with self._changed:
            if not self.over:
                self._failure = failure
                self._changed.notify_all()

    def drop(self, reason: str) -> None:
        """The client ends it: nothing arrives any more."""
        with self._changed:
            self._lost = self._lost or reason
            self._failure = None
            self._messages.clear()
            self._held.clear()
            self._changed.notify_all()

    def get(self, timeout_s: float | None) -> Frame:
        deadline = time.monotonic() + timeout_s if timeout_s else None
        with self._changed:
            while not self._messages:
                if self.over:
                    raise self.end()
                left = None if deadline is None else deadline - time.monotonic()
                # A stalled server will not answer in time, so a test need not wait to see it.
                if timeout_s and left is not None and (self._silent or left <= 0):
                    raise timed_out(timeout_s)
                self._changed.wait(left)
            return self._messages.popleft()

    def end(self) -> OpenEnvGymError:
        """The error to raise: the whole story once, then a reminder of it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._lost = getattr(failure, "reason", None) or str(failure)
            return failure
        return lost(self._lost or "the connection is over")


class MemoryServer:
    """The server's end: what it got, and what it lets the client see.

    Args:
        handler: called with each message as the client sends it, in the client's thread; None leaves answering to
            the test.

    Attributes:
        received: every message of the client, in order.

    Example:
        >>> client, server = memory_pair(lambda frame: frame.payload.upper())
        >>> client.send(b"hello")
        >>> client.receive(timeout_s=1.0).payload
        b'HELLO'
        >>> server.received[0].text
        True
    """

    def __init__(self, handler: Handler | None = None) -> None:
        self.handler = handler
        self.received: list[Frame] = []
        self.link = _Link()
        self._arrived: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Put a message on its way to the client."""
        self.link.put(Frame(payload, text))

    def receive(self, timeout_s: float = 5.0) -> Frame:
        """The client's next message that ``receive`` has not given yet.

        Raises:
            TimeoutError: none came in ``timeout_s`` seconds.
        """
        try:
            return self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"the client sent nothing within {timeout_s:g} s") from None

    def take(self, frame: Frame) -> None:
        """What the client's ``send()`` does here: keep the message and answer it."""
        self.received.append(frame)
        self._arrived.put(frame)
        answer = None if self.handler is None else self.handler(frame)
        if answer is None:
            return
        for item in [answer] if isinstance(answer, Frame | bytes) else answer:
            self.link.put(item if isinstance(item, Frame) else Frame(item, text=True))

    def stall(self) -> None:
        """From now on nothing reaches the client, so that its ``receive()`` runs into its timeout, at once."""
        self.link.hold(silent=True)

    def resume(self) -> None:
        """Let through what was held back since ``stall()``: late answers."""
        self.link.hold(silent=False)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close; messages that are on their way still arrive."""
        sent = len(self.received[-1].payload) if self.received else 0
        self.link.finish(closed_by_server(code, reason, sent=sent))

    def cut(self) -> None:
        """Break the connection without a closing handshake."""
        self.link.finish(lost("the connection was cut without a closing handshake (the server ended it)"))


class MemoryTransport:
    """The client's end; made by ``memory_pair()``. It behaves as ``Transport`` says, and as the blocking one does.

    Args:
        server: the other end.
        subprotocol: what the server is to have agreed to.
        max_message_bytes: the limit of one message, each way.
    """

    def __init__(
        self, server: MemoryServer, *, subprotocol: str | None = SUBPROTOCOL, max_message_bytes: int = _LIMIT
    ) -> None:
        self.subprotocol = subprotocol
        self._server = server
        self._limit = max_message_bytes
        self._in_call = threading.Lock()

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent."""
        return self._server.link.over

    @property
    def pending(self) -> bool:
        """Whether a message has arrived that no ``receive()`` has taken; see ``Transport.pending``."""
        with self._call("pending"):
            return self._server.link.waiting

    @property
    def arrived(self) -> bool:
        """The same: here messages come whole."""
        return self.pending

    @property
    def ready(self) -> bool:
        """Whether there is something to read; see ``Transport.ready``."""
        return self._server.link.waiting or self.closed

    def fileno(self) -> int:
        """-1: there is no descriptor."""
        return -1

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message; see ``Transport.send``."""
        if len(payload) > self._limit:
            raise too_large(len(payload), self._limit, "outgoing")
        with self._call("send"):
            if not self.closed:
                self._server.take(Frame(bytes(payload), text))
            elif not self._server.link.waiting:
                raise self._server.link.end()

    def receive(self, timeout_s: float | None) -> Frame:
        """Wait for the next message; see ``Transport.receive``."""
        with self._call("receive"):
            frame = self._server.link.get(timeout_s)
            if len(frame.payload) > self._limit:
                raise too_large(len(frame.payload), self._limit, "incoming")
            return frame

    def close(self) -> None:
        """Close; again: nothing."""
        calling = self._in_call.locked()
        self._server.link.drop("it was closed while a call was in flight" if calling else "this client closed it")

    def drop(self, reason: str) -> None:
        """Close at once; see ``Transport.drop``."""
        self._server.link.drop(reason)

    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        if not self._in_call.acquire(blocking=False):
            raise busy(name)
        try:
            yield
        except BaseException as error:
            self._server.link.drop(getattr(error, "reason", None) or str(error) or "a call was interrupted")
            raise
        finally:
            self._in_call.release()


def memory_pair(
    handler: Handler | None = None,
    *,
    subprotocol: str | None = SUBPROTOCOL,
    max_message_bytes: int = _LIMIT,
) -> tuple[MemoryTransport, MemoryServer]:
    """A client's end and the server's end it is connected to.

    Example:
        >>> client, server = memory_pair()
        >>> server.send(b"{}")
        >>> client.receive(timeout_s=None)
        Frame(payload=b'{}', text=True)
    """
    server = MemoryServer(handler)
    return MemoryTransport(server, subprotocol=subprotocol, max_message_bytes=max_message_bytes), server
