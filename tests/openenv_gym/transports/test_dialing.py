"""Sockets to real servers: directly, with TLS, and through every kind of proxy."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from openenv_gym.errors import OpenEnvGymError, SettingsError, UnreachableError
from openenv_gym.loopless import drive
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.dialing import dial
from openenv_gym.transports.exchange import HttpExchange
from tests.openenv_gym.transports.conftest import WAIT_S, Answer, HttpRequest, read_request

Start = Callable[..., str]


def keep(requests: list[HttpRequest]) -> Callable[[HttpRequest], Answer]:
    def answer(request: HttpRequest) -> Answer:
        requests.append(request)
        return 200, {"Content-Type": "application/json"}, b"{}"

    return answer


def post(base_url: str, **settings: Any) -> bytes:
    exchange = HttpExchange(base_url, "/mcp", ConnectionSettings(**settings))
    try:
        return drive(exchange.post(b"1", WAIT_S))
    finally:
        exchange.drop()


def test_a_port_where_nothing_listens_is_said_to_be_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match="nothing listens there") as caught:
        post(f"ws://127.0.0.1:{port}")
    assert caught.value.url == f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("host", ["no-such-host.invalid", f"{'a' * 70}.invalid"])
def test_a_name_that_does_not_resolve_is_said_to_be_one(no_proxies: pytest.MonkeyPatch, host: str) -> None:
    with pytest.raises(UnreachableError, match="host name"):
        post(f"http://{host}")


def test_tls_is_checked_against_the_authority(
    serve_http: Start, server_context: ssl.SSLContext, authority_file: str
) -> None:
    base_url = serve_http(keep([]), context=server_context)
    with pytest.raises(UnreachableError, match=r"not trusted.*ca_file"):
        post(base_url)
    assert post(base_url, ca_file=authority_file) == b"{}"
    assert post(base_url, verify=False) == b"{}"
    with pytest.raises(SettingsError, match="ca_file"):
        post(base_url, ca_file="/no/such/file")


def test_a_server_that_does_not_shake_hands_is_unreachable_after_the_timeout(serve_tcp: Start) -> None:
    base_url = serve_tcp(lambda sock: sock.recv(1_000_000) and sock.recv(1)).replace("http:", "https:")
    with pytest.raises(UnreachableError, match=r"within 0\.1 s"):
        post(base_url, connect_timeout_s=0.1)


def test_a_proxy_is_asked_for_plain_http_with_its_credentials(
    serve_http: Start, no_proxies: pytest.MonkeyPatch
) -> None:
    requests: list[HttpRequest] = []
    no_proxies.setenv("HTTP_PROXY", serve_http(keep(requests)).replace("http://", "http://me:p%40ss@"))
    assert post("http://user:word@server.test/prefix") == b"{}"
    assert requests[0].target == "http://server.test/prefix/mcp"
    assert requests[0].headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert requests[0].headers["host"] == "server.test"


def test_a_proxy_tunnels_tls(
    serve_http: Start, serve_proxy: Start, server_context: ssl.SSLContext, authority_file: str
) -> None:
    requests: list[HttpRequest] = []
    proxy = serve_proxy(requests).replace("http://", "http://me:word@")
    base_url = serve_http(keep([]), context=server_context).replace("127.0.0.1", "server.test")
    assert post(base_url, ca_file=authority_file, proxy=proxy) == b"{}"
    assert requests[0].method == "CONNECT"
    assert requests[0].target == base_url.removeprefix("https://")
    assert requests[0].headers["proxy-authorization"] == "Basic bWU6d29yZA=="


def test_a_proxy_that_speaks_tls_carries_plain_http_alone(
    serve_http: Start, server_context: ssl.SSLContext, authority_file: str
) -> None:
    proxy = serve_http(keep([]), context=server_context)
    assert post("http://server.test", proxy=proxy, ca_file=authority_file) == b"{}"
    with pytest.raises(SettingsError, match="itself speaks TLS") as caught:
        post("https://server.test", proxy=proxy, ca_file=authority_file)
    assert caught.value.setting == "proxy"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "proxy.*HTTP 407"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "proxy.*does not answer in HTTP"),
        (b"", "proxy"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "proxy"),
    ],
)
def test_a_proxy_that_opens_no_way_is_named(serve_tcp: Start, said: bytes, words: str) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(said)

    with pytest.raises(UnreachableError, match=words):
        post("https://[::9]", proxy=serve_tcp(script))


def test_a_proxy_that_is_too_slow_is_unreachable_after_the_timeout(serve_tcp: Start) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)
        pause = threading.Event()
        sock.sendall(b"HTTP/1.1 200")
        while not pause.wait(0.02):
            sock.sendall(b"x")

    with pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        post("https://server.test", proxy=serve_tcp(script), connect_timeout_s=0.2)


class SocksError(Exception):
    """Stands for ``python_socks.ProxyError``."""


class Socks:
    """Stands for ``python_socks.sync.Proxy``; it opens a way to 127.0.0.1, whatever the name."""

    made: list[tuple[Any, ...]] = []

    def __init__(self, *arguments: Any, rdns: bool) -> None:
        self.made.append((*arguments, rdns))

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        if host == "refused.test":
            raise SocksError("not allowed")
        return socket.create_connection(("127.0.0.1", port), timeout)


def test_a_socks_proxy_needs_an_extra_and_then_opens_a_way(serve_http: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "socks5h://me:p%40ss@proxy.test"
    monkeypatch.setitem(sys.modules, "python_socks", None)
    with pytest.raises(SettingsError, match="pip install"):
        post("http://server.test", proxy=proxy)
    fake = SimpleNamespace(ProxyError=SocksError, ProxyType=SimpleNamespace(SOCKS5=2), Proxy=Socks)
    monkeypatch.setitem(sys.modules, "python_socks", fake)
    monkeypatch.setitem(sys.modules, "python_socks.sync", fake)
    assert post(serve_http(keep([])).replace("127.0.0.1", "server.test"), proxy=proxy) == b"{}"
    assert Socks.made[-1] == (2, "proxy.test", 1080, "me", "p@ss", True)
    with pytest.raises(UnreachableError, match=r"proxy.*not allowed"):
        post("http://refused.test", proxy="socks5://proxy.test:1")
    assert Socks.made[-1] == (2, "proxy.test", 1, None, None, False)


def test_an_interrupt_leaves_no_socket_behind(serve_tcp: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []
    create = socket.create_connection

    def note(*arguments: Any, **more: Any) -> socket.socket:
        opened.append(create(*arguments, **more))
        return opened[-1]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(socket, "create_connection", note)
    monkeypatch.setattr("openenv_gym.transports.dialing.keep_alive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        dial(serve_tcp(lambda sock: sock.recv(1)), ConnectionSettings())
    assert opened[0].fileno() == -1


def test_failures_are_of_this_projects_kind(no_proxies: pytest.MonkeyPatch) -> None:
    with pytest.raises(OpenEnvGymError):
        dial("http://127.0.0.1:1/mcp", ConnectionSettings())
