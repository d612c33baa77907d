"""The socket under an HTTP connection: name, proxy, TLS.

For connections that are kept (``exchange``). Not for WebSockets (``opening``) nor for single documents (``http``):
their libraries do this themselves; the policy is the same for all (``network``).
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import socket
import ssl
import time
from collections.abc import Mapping
from importlib import import_module
from urllib.parse import SplitResult, unquote, urlsplit

import h11

from openenv_gym.errors import OpenEnvGymError, SettingsError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.failures import connection_failure, proxy_failure
from openenv_gym.transports.network import keep_alive, proxy_for, tls_context

__all__ = ["Dialed", "dial"]

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclasses.dataclass(frozen=True, slots=True)
class Dialed:
    """A connected socket, and how requests are to be written on it.

    Attributes:
        socket: blocking, with whatever TLS there is.
        forwarded: whether a proxy reads the requests, so that each names the whole address.
        headers: what that proxy wants with each of them.
    """

    socket: socket.socket
    forwarded: bool = False
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def dial(url: str, settings: ConnectionSettings) -> Dialed:
    """Connect to the server of ``url``, within ``connect_timeout_s`` seconds.

    Raises:
        UnreachableError: no connection came about; the message says what to check.
        SettingsError: a certificate's file or a proxy that cannot be used.

    Example:
        >>> dial("http://127.0.0.1:8000/mcp", ConnectionSettings()).forwarded    # doctest: +SKIP
        False
    """
    deadline = time.monotonic() + settings.connect_timeout_s
    proxy = proxy_for(url, settings)
    opened: list[socket.socket] = []
    try:
        return _dial(urlsplit(url), None if proxy is None else urlsplit(proxy), settings, deadline, opened)
    except BaseException as error:
        for sock in opened:
            with contextlib.suppress(OSError):
                sock.close()
        if isinstance(error, OpenEnvGymError):
            raise
        if isinstance(error, h11.RemoteProtocolError):
            raise proxy_failure(f"it does not answer in HTTP: {error}", url) from error
        if isinstance(error, OSError | EOFError | ImportError | UnicodeError):
            raise connection_failure(error, url, settings) from error
        raise


def _dial(
    target: SplitResult,
    proxy: SplitResult | None,
    settings: ConnectionSettings,
    deadline: float,
    opened: list[socket.socket],
) -> Dialed:
    """Args as ``dial``; ``opened`` takes every socket, to be closed where this fails."""
    secure = target.scheme == "https"
    if proxy is None:
        sock = _tcp(target, settings, deadline, opened)
    elif proxy.scheme.startswith("socks"):
        sock = _through_socks(target, proxy, deadline, opened)
    else:
        if secure and proxy.scheme == "https":
            raise SettingsError(
                "a proxy that itself speaks TLS (https://…) cannot carry a TLS connection here; "
                "give the proxy's http:// address, the way through it stays encrypted end to end",
                setting="proxy",
            )
        sock = _tcp(proxy, settings, deadline, opened)
        credentials = _credentials(proxy)
        if not secure:
            if proxy.scheme == "https":
                sock = _tls(sock, str(proxy.hostname), settings, opened)
            sock.settimeout(None)
            return Dialed(sock, forwarded=True, headers=credentials)
        _tunnel(sock, target, credentials, deadline)
    if secure:
        sock = _tls(sock, str(target.hostname), settings, opened)
    sock.settimeout(None)
    return Dialed(sock)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _place(parts: SplitResult) -> tuple[str, int]:
    return str(parts.hostname), parts.port or _PORTS[parts.scheme]


def _tcp(
    parts: SplitResult, settings: ConnectionSettings, deadline: float, opened: list[socket.socket]
) -> socket.socket:
    sock = socket.create_connection(_place(parts), timeout=_left(deadline))
    opened.append(sock)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    keep_alive(sock, settings)
    sock.settimeout(_left(deadline))
    return sock


def _through_socks(
    target: SplitResult, proxy: SplitResult, deadline: float, opened: list[socket.socket]
) -> socket.socket:
    # An extra of the libraries below; connection_failure() says how to install it.
    socks, calls = import_module("python_socks"), import_module("python_socks.sync")
    host, port = _place(proxy)
    user = None if proxy.username is None else unquote(proxy.username)
    password = None if proxy.password is None else unquote(proxy.password)
    way = calls.Proxy(socks.ProxyType.SOCKS5, host, port, user, password, rdns=proxy.scheme == "socks5h")
    try:
        sock: socket.socket = way.connect(*_place(target), timeout=_left(deadline))
    except socks.ProxyError as error:
        raise proxy_failure(str(error), target.geturl()) from error
    opened.append(sock)
    sock.settimeout(_left(deadline))
    return sock


def _tls(sock: socket.socket, host: str, settings: ConnectionSettings, opened: list[socket.socket]) -> ssl.SSLSocket:
    """Shake hands; the time that the socket has for a call is what is left of the whole."""
    secured = tls_context(settings).wrap_socket(sock, server_hostname=host)
    opened.append(secured)
    return secured


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"}


def _tunnel(sock: socket.socket, target: SplitResult, headers: Mapping[str, str], deadline: float) -> None:
    """Ask the proxy for a way to the server (RFC 9110 section 9.3.6)."""
    host, port = _place(target)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    protocol = h11.Connection(h11.CLIENT)
    request = h11.Request(method="CONNECT", target=place, headers=[("Host", place), *headers.items()])
    asked = protocol.send(request)
    assert asked is not None
    sock.sendall(asked)
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            sock.settimeout(_left(deadline))
            protocol.receive_data(sock.recv(4096))
        elif isinstance(event, h11.Response):
            if not 200 <= event.status_code < 300:
                raise proxy_failure(f"it answered HTTP {event.status_code}", target.geturl(), event.status_code)
            sock.settimeout(_left(deadline))
            return
        elif isinstance(event, h11.ConnectionClosed):
            raise proxy_failure("it ended the connection", target.geturl())
