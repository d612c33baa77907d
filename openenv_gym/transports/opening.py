"""Opening a WebSocket: TCP, proxy, TLS, handshake, redirects, and the failures of each.

The library's own ``websockets.sync.client.connect()`` does the work down to the handshake; what it makes here is a bare
socket and its sans-I/O protocol, without the threads of its own connection class. Not for an open connection
(``blocking``).
"""

from __future__ import annotations

import dataclasses
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidMessage, InvalidStatus, WebSocketException
from websockets.protocol import State
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings, redacted
from openenv_gym.transports.failures import connection_failure
from openenv_gym.transports.network import (
    MAX_REDIRECTS,
    USER_AGENT,
    keep_alive,
    proxy_for,
    redirect_target,
    tls_context,
)

__all__ = ["open_websocket"]

_NO_LOG = logging.getLogger(f"{__name__}.protocol")
_NO_LOG.setLevel(logging.CRITICAL + 1)  # `disabled` would be undone by who configures the logging, as uvicorn does

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})


def open_websocket(
    url: str, settings: ConnectionSettings, subprotocols: Sequence[str]
) -> tuple[socket.socket, ClientProtocol, bytes]:
    """The connected socket (blocking, no timeout), the protocol, whose handshake is done, and what came after that.

    Raises:
        UnreachableError: no WebSocket at ``url`` within ``connect_timeout_s``; the message says what to check.
        SettingsError: a certificate's file or a proxy that cannot be used.
    """
    deadline = time.monotonic() + settings.connect_timeout_s
    headers = dict(settings.headers)
    for _ in range(MAX_REDIRECTS + 1):
        try:
            return _open_once(url, settings, headers, subprotocols, max(deadline - time.monotonic(), 0.001))
        except _RedirectError as redirect:
            url, same_origin = redirect_target(url, redirect.location, redirect.status)
            headers = headers if same_origin else {}
        except (OSError, EOFError, ImportError, UnicodeError, WebSocketException) as error:
            raise connection_failure(error, url, settings) from error
    shown = redacted(url)
    raise UnreachableError(f"more than {MAX_REDIRECTS} redirects, the last to {shown}; check base_url", url=shown)


def _open_once(
    url: str, settings: ConnectionSettings, headers: Mapping[str, str], subprotocols: Sequence[str], timeout_s: float
) -> tuple[socket.socket, ClientProtocol, bytes]:
    secure = urlsplit(url).scheme == "wss"
    proxy = proxy_for(url, settings)
    tls_proxy = proxy is not None and proxy.startswith("https:")
    if secure and tls_proxy:
        raise SettingsError(
            "a proxy that itself speaks TLS (https://…) cannot carry a TLS connection here; "
            "give the proxy's http:// address, the way through it stays encrypted end to end",
            setting="proxy",
        )
    openings: list[_Opening] = []

    def make(sock: socket.socket, protocol: ClientProtocol, **_: object) -> _Opening:
        openings.append(_Opening(sock, protocol))
        return openings[-1]

    try:
        opened: object = connect(  # type: ignore[call-overload]
            url,
            ssl=tls_context(settings) if secure else None,
            proxy=proxy,
            proxy_ssl=tls_context(settings) if tls_proxy else None,
            additional_headers=headers,
            user_agent_header=USER_AGENT,
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            compression=None,
            open_timeout=timeout_s,
            max_size=settings.max_message_bytes,
            create_connection=make,
        )
        assert isinstance(opened, _Opening)
    except BaseException:
        # The library closes after an Exception alone; an interrupt must not leave a socket behind.
        for opening in openings:
            opening.close_socket()
        raise
    keep_alive(opened.socket, settings)
    return opened.socket, opened.protocol, opened.early


@dataclasses.dataclass
class _RedirectError(Exception):
    """The server sends the handshake elsewhere. Not an InvalidStatus, which the library would follow by itself."""

    status: int
    location: str


def _foreign(failure: Exception) -> BaseException | None:
    """What was raised in the parser without being its own, by a signal handler perhaps: all look like bad answers."""
    cause = failure.__cause__ if isinstance(failure, InvalidMessage) else None
    own = EOFError | LookupError | NotImplementedError | ValueError | WebSocketException
    return None if isinstance(cause, own) else cause


class _Thread:
    """Stands for the reader thread that the library joins after a failed handshake; there is none."""

    def join(self) -> None:
        """Nothing to wait for."""


class _Opening:
    """What ``connect()`` makes and drives until the handshake is done."""

    recv_events_thread = _Thread()

    def __init__(self, sock: socket.socket, protocol: ClientProtocol) -> None:
        self.socket = sock
        self.protocol = protocol
        self.early = b""
        # With debug logging on, the protocol would write every header of the request into the log. What else it logs is
        # an exception in its parser, which comes out of the call and says more there.
        protocol.debug = False
        protocol.logger = _NO_LOG

    def handshake(self, headers: Mapping[str, str], user_agent: str, timeout_s: float) -> None:
        """Send the request and read its answer, within ``timeout_s`` seconds for both."""
        deadline = time.monotonic() + timeout_s
        request = self.protocol.connect()
        for name, value in {"User-Agent": user_agent, **headers}.items():
            if name in request.headers:
                del request.headers[name]
            request.headers[name] = value
        self.protocol.send_request(request)
        self.socket.settimeout(timeout_s)
        self.socket.sendall(b"".join(self.protocol.data_to_send()))
        while self.protocol.state is State.CONNECTING and self.protocol.handshake_exc is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            data = self.socket.recv(65536)
            if data:
                self._feed(data)
            else:
                self.protocol.receive_eof()
        failure = self.protocol.handshake_exc
        if isinstance(failure, InvalidStatus) and failure.response.status_code in _REDIRECTS:
            location = failure.response.headers.get("Location")
            if location is not None:
                raise _RedirectError(failure.response.status_code, location)
        if failure is not None:
            raise _foreign(failure) or failure

    def _feed(self, data: bytes) -> None:
        """Give the protocol the answer and not a byte more, line by line: frames are read elsewhere."""
        for line in data.splitlines(keepends=True):
            if self.protocol.state is State.CONNECTING:
                self.protocol.receive_data(line)
            else:
                self.early += line

    def close_socket(self) -> None:
        """Close without ceremony: there is no session yet."""
        self.socket.close()

    def start_keepalive(self) -> None:
        """Nothing: TCP asks for the peer (``keep_alive``), and the keeper answers the server's pings."""
