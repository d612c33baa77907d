"""Requests over one HTTP/1.1 connection that is kept: on which connection, to which address, and whether it succeeded.

Not for the connection itself (``http_connection``), nor for opening one (``dialing``), nor for what is asked (``mcp``).
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import h11

from openenv_gym.errors import OpenEnvGymError, ProtocolError, SessionStateError, UnreachableError
from openenv_gym.json_text import JSON, decode_json
from openenv_gym.loopless import loopless, off_the_loop
from openenv_gym.transports.base import ConnectionSettings, http_url, redacted
from openenv_gym.transports.dialing import Dialed, dial
from openenv_gym.transports.failures import status_failure
from openenv_gym.transports.http_connection import Answer, HttpConnection, above_limit
from openenv_gym.transports.network import MAX_REDIRECTS, USER_AGENT, redirect_target

__all__ = ["HttpExchange"]

_LONGEST_EXPLANATION = 65_536
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NOT_DONE = frozenset({307, 308})
"""Redirects that say of a POST that it was not acted upon and belongs elsewhere, as RFC 9110 has it."""
_MOVED = frozenset({301, 302}) | _NOT_DONE


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
        self._path = path
        self._settings = settings
        self._connection: HttpConnection | None = None
        self._drops = 0

    @loopless
    async def post(self, body: bytes, timeout_s: float | None, *, repeatable: bool = False) -> bytes:
        """The body of the answer to one request.

        A redirect that says that nothing was done (307, 308) is followed within the origin. One that is followed is
        remembered once the new place has answered. No address is asked twice.

        Args:
            body: JSON text.
            timeout_s: seconds for the answer, connecting not counted; None or 0: no limit.
            repeatable: whether it does no harm if the request is acted upon twice. Then 301 and 302 are followed as
                well, and from plain to TLS on the same host.

        Raises:
            UnreachableError: there is no connection, it was cut, or the answer's status is a failure or a redirect
                that is not followed.
            RequestTimeoutError: no whole answer came in time.
            ProtocolError: what came is not HTTP.
            MessageTooLargeError: the request or the answer is above ``max_message_size_mb``.
            SessionStateError: ``drop`` came while it connected.
        """
        limit = self._settings.max_message_bytes
        if len(body) > limit:
            raise above_limit(len(body), limit, "request", "nothing was sent")
        home, asked = self.url, [self.url]
        try:
            while True:
                answer = await self._ask(body, timeout_s or None)
                location = answer.headers.get("location")
                if answer.status not in _REDIRECTS or location is None:
                    self._check(answer)
                    home = self.url
                    return answer.body
                self.drop()
                self.url = self._next_place(asked, location, answer.status, repeatable=repeatable)
                asked.append(self.url)
        finally:
            if self.url != home:
                self.drop()
                self.url = home

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
        except h11.LocalProtocolError as error:
            self._leave(connection)
            raise UnreachableError(
                f"expected an address and headers that HTTP can carry, got others for {redacted(self.url)}: {error}; "
                "check base_url and headers",
                url=redacted(self.url),
            ) from error
        except BaseException:
            self._leave(connection)
            raise

    async def _open(self) -> HttpConnection:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        drops, url, settings = self._drops, self.url, self._settings
        dialed = await off_the_loop(lambda: dial(url, settings), discard=_hang_up, daemon=True)
        if drops != self._drops:
            _hang_up(dialed)
            raise SessionStateError("it was closed while it connected", expected="open", state="closed")
        connection = self._connection = HttpConnection(dialed, settings.max_message_bytes)
        return connection

    def _leave(self, connection: HttpConnection) -> None:
        """What comes late on this connection must not be taken for another answer."""
        if self._connection is connection:
            self._connection = None
        connection.close()

    def _fields(self, connection: HttpConnection) -> tuple[str, list[tuple[str, str]]]:
        """What a request on this connection asks for, and its headers."""
        parts = urlsplit(self.url)
        fields = {
            "host": parts.netloc.rpartition("@")[2],
            "user-agent": USER_AGENT,
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }
        for headers in (connection.headers, self._settings.headers):
            fields |= {name.lower(): value for name, value in headers.items()}
        if connection.forwarded:
            return urlunsplit(parts._replace(netloc=fields["host"])), list(fields.items())
        return urlunsplit(parts._replace(scheme="", netloc="", path=parts.path or "/")), list(fields.items())

    def _next_place(self, asked: list[str], location: str, status: int, *, repeatable: bool) -> str:
        """Where a redirect leads.

        Raises:
            UnreachableError: it is not followed.
        """
        url = asked[-1]
        target, near = redirect_target(url, location, status)
        same = near and urlsplit(target).scheme == urlsplit(url).scheme
        shown = redacted(target)
        base_url = shown.removesuffix(self._path)
        if status not in (_MOVED if repeatable else _NOT_DONE):
            why = "the request may have been acted upon and is not made again"
        elif not (near if repeatable else same):
            why = "which is another origin, and what was asked is for this one alone"
        elif target in asked or len(asked) > MAX_REDIRECTS:
            why = "which leads round in a circle" if target in asked else f"after {MAX_REDIRECTS} redirects"
        else:
            return target
        raise UnreachableError(
            f"{redacted(url)} redirects (HTTP {status}) to {shown}: {why}; if that is where the server is, give "
            f"{base_url} as base_url",
            url=redacted(url),
            status=status,
        )

    def _check(self, answer: Answer) -> None:
        html = "html" in answer.headers.get("content-type", "")
        if answer.status == 200 and not html:
            return
        self.drop()
        failure = status_failure(self.url, answer.status, answer.headers, websocket=False, sent=self._settings.headers)
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


def _hang_up(dialed: Dialed) -> None:
    dialed.socket.close()
