"""Requests over one HTTP/1.1 connection that is kept: blocking, or awaited under any event loop.

The connection belongs to no loop and to no thread: each call waits on the socket in its own way, one call at a time.
``h11`` says what HTTP is, ``stream`` moves the bytes. Not for opening (``dialing``), not for what is asked (``mcp``).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import h11

from openenv_gym.errors import (
    MessageTooLargeError,
    OpenEnvGymError,
    ProtocolError,
    RequestTimeoutError,
    SessionStateError,
    UnreachableError,
)
from openenv_gym.json_text import JSON, decode_json
from openenv_gym.loopless import blocking, in_thread, loopless, off_the_loop, settle
from openenv_gym.transports.base import ConnectionSettings, http_url, redacted
from openenv_gym.transports.dialing import Dialed, dial
from openenv_gym.transports.failures import status_failure
from openenv_gym.transports.network import MAX_REDIRECTS, USER_AGENT, redirect_target
from openenv_gym.transports.stream import Stream

__all__ = ["HttpExchange"]

_REUSED_FOR_S = 4.0  # uvicorn closes after 5 s of silence, and a request must not meet that
_LONGEST_HEAD = 262_144
_LONGEST_EXPLANATION = 65_536
_REDIRECTS = frozenset({301, 302, 307, 308})

Waits: TypeAlias = Iterator[float | None]


class Answer(NamedTuple):
    """One whole response; the names of its headers in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpExchange:
    """POST requests to one address, over a connection that is opened when needed and kept for the next.

    Calls come one after another; ``drop`` may come at any time.

    Args:
        base_url: the server's address.
        path: the path below it.
        settings: headers, TLS, proxy, limits, and the time that connecting may take.

    Example:
        >>> exchange = HttpExchange("http://127.0.0.1:8000", "/mcp", ConnectionSettings())   # doctest: +SKIP
        >>> drive(exchange.post(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 60.0))    # doctest: +SKIP
    """

    def __init__(self, base_url: str, path: str, settings: ConnectionSettings) -> None:
        self.url = http_url(base_url, path)
        self._settings = settings
        self._headers: Mapping[str, str] = settings.headers
        self._connection: _Connection | None = None
        self._drops = 0

    @loopless
    async def post(self, body: bytes, timeout_s: float | None) -> bytes:
        """The body of the answer to one request.

        Args:
            body: JSON text.
            timeout_s: seconds for the answer, connecting not counted; None or 0: no limit.

        Raises:
            UnreachableError: there is no connection, it was cut, or the answer's status is a failure.
            RequestTimeoutError: no whole answer came in time.
            ProtocolError: what came is not HTTP.
            MessageTooLargeError: the request or the answer is above ``max_message_size_mb``.
            SessionStateError: ``drop`` came while it connected.
        """
        limit = self._settings.max_message_bytes
        if len(body) > limit:
            raise _too_large(len(body), limit, "request", "nothing was sent")
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask(body, timeout_s or None)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                self._check(answer)
                return answer.body
            self.drop()
            self.url, same_origin = redirect_target(self.url, location, answer.status)
            self._headers = self._headers if same_origin else {}
        shown = redacted(self.url)
        raise UnreachableError(f"more than {MAX_REDIRECTS} redirects, the last to {shown}; check base_url", url=shown)

    def drop(self) -> None:
        """Close the connection at once; a call in flight raises. Again: nothing. ``post`` opens another."""
        self._drops += 1
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _ask(self, body: bytes, timeout_s: float | None) -> Answer:
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._open()
        try:
            return await connection.ask(*self._fields(connection), body, timeout_s)
        except OpenEnvGymError:
            self._leave(connection)
            raise
        except (OSError, EOFError) as error:
            self._leave(connection)
            raise self._cut(error) from error
        except h11.RemoteProtocolError as error:
            self._leave(connection)
            raise ProtocolError(
                f"expected HTTP/1.1 from {redacted(self.url)}: {error}", received=str(error)[:200]
            ) from error
        except BaseException:
            self._leave(connection)
            raise

    async def _open(self) -> _Connection:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        drops, url, settings = self._drops, self.url, self._settings
        dialed = await off_the_loop(lambda: dial(url, settings), discard=_hang_up, daemon=True)
        if drops != self._drops:
            _hang_up(dialed)
            raise SessionStateError("it was closed while it connected", expected="open", state="closed")
        connection = self._connection = _Connection(dialed, settings.max_message_bytes)
        return connection

    def _leave(self, connection: _Connection) -> None:
        """What comes late on this connection must not be taken for another answer."""
        if self._connection is connection:
            self._connection = None
        connection.close()

    def _fields(self, connection: _Connection) -> tuple[str, list[tuple[str, str]]]:
        """What a request on this connection asks for, and its headers."""
        parts = urlsplit(self.url)
        fields = {
            "host": parts.netloc.rpartition("@")[2],
            "user-agent": USER_AGENT,
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }
        for headers in (connection.headers, self._headers):
            fields |= {name.lower(): value for name, value in headers.items()}
        if connection.forwarded:
            return urlunsplit(parts._replace(netloc=fields["host"])), list(fields.items())
        return parts.path or "/", list(fields.items())

    def _check(self, answer: Answer) -> None:
        html = "html" in answer.headers.get("content-type", "")
        if answer.status == 200 and not html:
            return
        self.drop()
        failure = status_failure(self.url, answer.status, answer.headers, websocket=False, sent=self._headers)
        said = _explanation(answer.body)
        text = f"{failure.message}; it said: {said[1]}" if said is not None and said[1] else failure.message
        raise UnreachableError(text, url=failure.url, status=failure.status, body=None if said is None else said[0])

    def _cut(self, error: OSError | EOFError) -> UnreachableError:
        shown = redacted(self.url)
        why = getattr(error, "strerror", None) or str(error)
        return UnreachableError(
            f"the connection to {shown} was cut before the answer came ({why}); what was asked for may be done or not",
            url=shown,
        )


class _Connection:
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
                if loop is None:
                    self._stream.wait(left)
                else:
                    await _readiness(self._stream, left, loop)
        finally:
            self._stream.let_go(waits)
        assert self._answer is not None
        return self._answer

    def _waits(self, timeout_s: float | None) -> Waits:
        """Write and read until the answer is whole; each wait that this takes is its caller's, so long at most."""
        self._answer = None
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        head: h11.Response | None = None
        body = bytearray()
        stream, http = self._stream, self._http
        while True:
            event = self._event()
            if event is h11.NEED_DATA:
                stream.write()
                data = stream.read()
                if data is not None:
                    self._ended = not data
                    http.receive_data(bytes(data))
                    continue
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise _timed_out(timeout_s)
                yield left
            elif isinstance(event, h11.Response):
                head = event
                self._check_size(_announced(event))
            elif isinstance(event, h11.Data):
                body += event.data
                self._check_size(len(body))
            elif isinstance(event, h11.EndOfMessage):
                break
        assert head is not None
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        self._answer = Answer(head.status_code, fields, bytes(body))
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

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise _too_large(size, self._limit, "answer", "it was not read")


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


def _explanation(body: bytes) -> tuple[JSON, str] | None:
    """The JSON beside a status that is a failure, and the words in it that are for people; None for anything else."""
    if len(body) > _LONGEST_EXPLANATION:
        return None
    try:
        document = decode_json(body)
    except ProtocolError:
        return None
    error = document.get("error") if isinstance(document, dict) else None
    words = error.get("message") if isinstance(error, dict) else error
    if not isinstance(words, str) and isinstance(document, dict):
        words = document.get("detail")
    return document, words[:500] if isinstance(words, str) else ""


def _timed_out(timeout_s: float | None) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"expected the server to answer within {timeout_s:g} s, it did not; what was asked for may still be done. If "
        "it may take longer, raise step_timeout_s, of an OpenEnv client message_timeout_s or tool_timeout_s",
        timeout_s=timeout_s,
    )


def _too_large(size: int, limit: int, what: str, hint: str) -> MessageTooLargeError:
    return MessageTooLargeError(
        f"the {what} has {size} bytes or more, above this client's limit of {limit}: {hint}; raise max_message_size_mb",
        size=size,
        limit=limit,
        setting="max_message_size_mb",
    )


def _hang_up(dialed: Dialed) -> None:
    dialed.socket.close()


def _nothing(_: object) -> None:
    """Nothing is left to undo."""
