"""One HTTP/1.1 connection: a request is sent, its answer read, blocking or awaited under any event loop.

The connection belongs to no loop and to no thread: each call waits on the socket in its own way, one call at a time.
``h11`` says what HTTP is, ``stream`` moves the bytes. Not for which connection serves which request, nor for statuses
and redirects (``exchange``).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import h11

from openenv_gym.errors import MessageTooLargeError, ProtocolError, RequestTimeoutError
from openenv_gym.loopless import blocking, in_thread, pause, settle
from openenv_gym.transports.dialing import Dialed
from openenv_gym.transports.stream import Stream

__all__ = ["Answer", "HttpConnection", "above_limit"]

_REUSED_FOR_S = 4.0  # uvicorn closes after 5 s of silence, and a request must not meet that
_LONGEST_HEAD = 262_144
_MOST_INTERIM = 32  # answers before the answer (100 Continue); more are a flood
_STEPS_A_TURN = 16  # of reading, between which an event loop has its turn

Waits: TypeAlias = Iterator[float | None]


class Answer(NamedTuple):
    """One whole response; the names of its headers in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnection:
    """One socket, the HTTP that is spoken on it, and the call it serves."""

    def __init__(self, dialed: Dialed, limit: int) -> None:
        self.forwarded = dialed.forwarded
        self.headers = dialed.headers
        self._stream = Stream(dialed.socket)
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._limit = limit
        self._process = os.getpid()
        self._used = time.monotonic()
        self._answer: Answer | None = None
        self._ended = False

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: the server has said nothing since the last one, its end least of all."""
        return (
            self._process == os.getpid()
            and self._http.our_state is h11.IDLE
            and time.monotonic() - self._used < _REUSED_FOR_S
            and not self._http.trailing_data[0]
            and not self._stream.wait(0)
        )

    def close(self) -> None:
        """Close it, or where a call holds it cut it; in a forked child this end alone."""
        if self._process == os.getpid():
            self._stream.close()
        else:
            self._stream.abandon()

    async def ask(self, target: str, headers: list[tuple[str, str]], body: bytes, timeout_s: float | None) -> Answer:
        """Send one request and wait for its answer.

        Raises:
            OSError, EOFError: the connection is gone.
            h11.RemoteProtocolError: what came is not HTTP.
            RequestTimeoutError: no whole answer came in time.
            MessageTooLargeError: the answer is above the limit.
        """
        fields = [*headers, ("content-length", str(len(body)))]
        events = (h11.Request(method="POST", target=target, headers=fields), h11.Data(data=body), h11.EndOfMessage())
        self._stream.output.append(b"".join(self._http.send(event) or b"" for event in events))
        loop = None if blocking() else asyncio.get_running_loop()
        waits = self._waits(timeout_s)
        self._stream.hold(waits, _lives(loop))
        try:
            for left in waits:
                if left == 0:
                    await pause(0)
                elif loop is None:
                    self._stream.wait(left)
                else:
                    await _readiness(self._stream, left, loop)
        finally:
            self._stream.let_go(waits)
        assert self._answer is not None
        return self._answer

    def _waits(self, timeout_s: float | None) -> Waits:
        """Write and read until the answer is whole; each wait that this takes is its caller's, so long at most.

        A wait of 0 is none for the socket: much has come at once, and others are to have their turn.
        """
        self._answer = None
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        reading = _Reading(self._limit)
        stream, http = self._stream, self._http
        for step in itertools.count(1):
            event = self._event()
            if not reading.take(event):
                break
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise _timed_out(timeout_s)
            if event is h11.NEED_DATA:
                stream.write()
                data = stream.read()
                if data is None:
                    yield left
                    continue
                self._ended = not data
                http.receive_data(bytes(data))
            if step % _STEPS_A_TURN == 0:
                yield 0.0
        self._answer = reading.answer
        self._used = time.monotonic()
        if http.our_state is h11.DONE and http.their_state is h11.DONE and not stream.output:
            http.start_next_cycle()

    def _event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            if self._ended:
                # Before the answer was whole, which is all that there is to say against it.
                raise EOFError("the server ended it") from error
            raise


class _Reading:
    """An answer as far as it has come.

    Args:
        limit: most bytes its body may have.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head: h11.Response | None = None
        self._body = bytearray()
        self._interim = 0

    @property
    def answer(self) -> Answer:
        """The whole answer."""
        assert self._head is not None
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._head.headers}
        return Answer(self._head.status_code, fields, bytes(self._body))

    def take(self, event: object) -> bool:
        """Take what has come; False where nothing more is to come.

        Raises:
            MessageTooLargeError: the body is above the limit, or is announced so.
            ProtocolError: there are interim answers without end.
        """
        if isinstance(event, h11.Response):
            self._head = event
            self._check_size(_announced(event))
        elif isinstance(event, h11.Data):
            self._body += event.data
            self._check_size(len(self._body))
        elif isinstance(event, h11.InformationalResponse):
            self._interim += 1
            if self._interim > _MOST_INTERIM:
                raise ProtocolError(
                    f"expected an answer after at most {_MOST_INTERIM} interim ones, got another of those (HTTP "
                    f"{event.status_code}); check what stands between this client and the server",
                    received=f"HTTP {event.status_code}",
                )
        return not isinstance(event, h11.EndOfMessage)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise above_limit(size, self._limit, "answer", "it was not read")


async def _readiness(stream: Stream, timeout_s: float | None, loop: asyncio.AbstractEventLoop) -> None:
    """Await that there is something to read, or room to write where something is to be written, so long at most."""
    descriptor = stream.fileno()
    if stream.ready or descriptor < 0:
        return
    waiter: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, settle, waiter)
    except NotImplementedError:
        # A loop that cannot watch sockets. Cancelled, the caller cuts the connection, which ends the thread.
        await in_thread(lambda: stream.wait(timeout_s), discard=_nothing, daemon=True)
        return
    writing = bool(stream.output)
    timer = None if timeout_s is None else loop.call_later(timeout_s, settle, waiter)
    try:
        if writing:
            loop.add_writer(descriptor, settle, waiter)
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
        # A task that outlived its loop ends here too, when it is collected.
        if not loop.is_closed():
            loop.remove_reader(descriptor)
            if writing:
                loop.remove_writer(descriptor)


def _lives(loop: asyncio.AbstractEventLoop | None) -> Callable[[], bool]:
    return lambda: loop is None or not loop.is_closed()


def _announced(response: h11.Response) -> int:
    lengths = [value for name, value in response.headers if name == b"content-length"]
    return int(lengths[0]) if lengths else 0


def _timed_out(timeout_s: float | None) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"expected the server to answer within {timeout_s:g} s, it did not; what was asked for may still be done. If "
        "it may take longer, raise step_timeout_s, of an OpenEnv client message_timeout_s or tool_timeout_s",
        timeout_s=timeout_s,
    )


def above_limit(size: int, limit: int, what: str, hint: str) -> MessageTooLargeError:
    """The error of a body of so many bytes, or more.

    Args:
        size: the bytes.
        limit: how many there may be.
        what: whose body it is.
        hint: what became of it.
    """
    return MessageTooLargeError(
        f"the {what} has {size} bytes or more, above this client's limit of {limit}: {hint}; raise max_message_size_mb",
        size=size,
        limit=limit,
        setting="max_message_size_mb",
    )


def _nothing(_: object) -> None:
    """Nothing is left to undo."""
