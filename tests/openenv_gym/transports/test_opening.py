"""Opening a WebSocket: refusals, TLS, redirects, proxies, each against a real peer."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from websockets.sync.server import ServerConnection

from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import BlockingTransport
from openenv_gym.transports.opening import open_websocket
from tests.openenv_gym.transports.conftest import WAIT_S, Answer, HttpRequest, echo, read_request

Start = Callable[..., str]
Open = Callable[..., BlockingTransport]

SECRET = {"Authorization": "Bearer secret", "X-Key": "hidden"}


def works(transport: BlockingTransport) -> bool:
    transport.send(b"x")
    return transport.receive(WAIT_S).payload == b"x"


def keep_headers(seen: list[dict[str, str]]) -> Callable[[ServerConnection], None]:
    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append({name.lower(): value for name, value in connection.request.headers.raw_items()})
        seen[-1]["path"] = connection.request.path
        echo(connection)

    return handler


def test_headers_reach_the_server_and_no_compression_is_asked_for(serve_websocket: Start, open_transport: Open) -> None:
    seen: list[dict[str, str]] = []
    settings = ConnectionSettings(headers={**SECRET, "User-Agent": "mine", "Host": "virtual.example"})
    assert works(open_transport(serve_websocket(keep_headers(seen)), settings))
    assert seen[0]["authorization"] == "Bearer secret"
    assert (seen[0]["user-agent"], seen[0]["host"]) == ("mine", "virtual.example")
    assert seen[0]["sec-websocket-protocol"] == "openenv-gym.v1"
    assert "sec-websocket-extensions" not in seen[0]


def test_the_client_names_itself(serve_websocket: Start, open_transport: Open) -> None:
    seen: list[dict[str, str]] = []
    assert works(open_transport(serve_websocket(keep_headers(seen)), subprotocols=()))
    assert seen[0]["user-agent"].startswith("openenv-gym/")
    assert "sec-websocket-protocol" not in seen[0]


def test_a_path_prefix_is_kept(serve_websocket: Start, open_transport: Open) -> None:
    seen: list[dict[str, str]] = []
    assert works(open_transport(serve_websocket(keep_headers(seen)) + "/a/prefix", path="/mcp"))
    assert seen[0]["path"] == "/a/prefix/mcp"


def test_no_header_value_gets_into_the_log(
    serve_websocket: Start, open_transport: Open, caplog: pytest.LogCaptureFixture
) -> None:
    silent = logging.getLogger("tests.silent_server")
    silent.disabled = True
    caplog.set_level(logging.DEBUG)
    assert works(open_transport(serve_websocket(logger=silent), ConnectionSettings(headers=SECRET)))
    assert "secret" not in caplog.text
    assert "hidden" not in caplog.text


def test_an_ipv6_address_is_reached_or_named_with_its_brackets(serve_websocket: Start, open_transport: Open) -> None:
    try:
        base_url = serve_websocket(host="::1")
    except OSError:
        with pytest.raises(UnreachableError) as caught:
            open_transport("http://[::1]:9")
        assert caught.value.url == "ws://[::1]:9/ws"
    else:
        assert works(open_transport(base_url))


def test_a_port_where_nothing_listens_is_said_to_be_one(open_transport: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match="nothing listens there") as caught:
        open_transport(f"http://127.0.0.1:{port}")
    assert (caught.value.url, caught.value.status) == (f"ws://127.0.0.1:{port}/ws", None)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid"])
def test_a_name_that_does_not_resolve_is_said_to_be_one(
    open_transport: Open, no_proxies: pytest.MonkeyPatch, host: str
) -> None:
    with pytest.raises(UnreachableError, match="host name") as caught:
        open_transport(f"http://me:secret@{host}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, "wants a token"),
        (403, {}, "no WebSocket at this path"),
        (404, {}, "path prefix"),
        (429, {"Retry-After": "55"}, "after 55 s"),
        (503, {"Retry-After": "120"}, "asleep or overloaded; try again after 120 s"),
        (503, {}, "again in a while"),
        (500, {}, "its own log"),
        (200, {"Content-Type": "text/html; charset=utf-8"}, "web page"),
        (426, {}, "not the answer of an OpenEnv server"),
        (302, {}, "not the answer of an OpenEnv server"),
    ],
)
def test_an_http_status_says_what_to_check(
    serve_http: Start, open_transport: Open, status: int, headers: dict[str, str], words: str
) -> None:
    base_url = serve_http(lambda _: (status, headers, b"<html>"))
    with pytest.raises(UnreachableError, match=words) as caught:
        open_transport(base_url, ConnectionSettings(headers=SECRET))
    assert (caught.value.status, caught.value.url) == (status, base_url.replace("http", "ws") + "/ws")
    assert "secret" not in str(caught.value)


def test_a_body_that_ends_with_the_connection_is_read_to_its_end(serve_http: Start, open_transport: Open) -> None:
    base_url = serve_http(lambda _: (503, {"Content-Length": ""}, b"asleep"))
    with pytest.raises(UnreachableError) as caught:
        open_transport(base_url)
    assert caught.value.status == 503


def test_what_is_not_http_is_said_to_be_none(serve_tcp: Start, open_transport: Open) -> None:
    with pytest.raises(UnreachableError, match="did not answer in HTTP"):
        open_transport(serve_tcp(lambda sock: sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")))


def test_an_old_web_server_is_said_to_be_one(serve_tcp: Start, open_transport: Open) -> None:
    with pytest.raises(UnreachableError, match=r"knows no WebSockets .*HTTP/1\.0 404 File not found"):
        open_transport(serve_tcp(lambda sock: sock.sendall(b"HTTP/1.0 404 File not found\r\n\r\n")))


def test_a_connection_cut_before_any_answer_is_unreachable(serve_tcp: Start, open_transport: Open) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)

    with pytest.raises(UnreachableError, match="did not answer in HTTP"):
        open_transport(serve_tcp(script))


def test_an_upgrade_to_something_else_is_unreachable(serve_http: Start, open_transport: Open) -> None:
    base_url = serve_http(lambda _: (101, {"Connection": "Upgrade", "Upgrade": "h2c", "Content-Length": ""}, b""))
    with pytest.raises(UnreachableError, match="RFC 6455"):
        open_transport(base_url)


def test_a_server_that_never_answers_is_unreachable_after_the_timeout(serve_tcp: Start, open_transport: Open) -> None:
    end = threading.Event()
    with pytest.raises(UnreachableError, match=r"within 0\.1 s"):
        open_transport(serve_tcp(lambda _: end.wait(WAIT_S)), ConnectionSettings(connect_timeout_s=0.1))
    end.set()


def test_a_handshake_that_drips_is_unreachable_after_the_timeout(serve_tcp: Start, open_transport: Open) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)
        pause = threading.Event()
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nX: ")
        while True:
            sock.sendall(b"x")
            pause.wait(0.02)

    with pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        open_transport(serve_tcp(script), ConnectionSettings(connect_timeout_s=0.2))


def test_an_interrupt_while_opening_leaves_no_socket(serve_tcp: Start) -> None:
    main = threading.get_ident()

    def script(sock: socket.socket) -> None:
        read_request(sock)
        signal.pthread_kill(main, signal.SIGINT)
        sock.recv(1)

    base_url = serve_tcp(script)
    # A socket left open would warn when it is collected, and warnings are errors.
    with pytest.raises(KeyboardInterrupt):
        open_websocket(base_url.replace("http", "ws"), ConnectionSettings(), ())


class TestTls:
    def test_an_authority_of_ones_own_is_trusted(
        self, serve_websocket: Start, open_transport: Open, server_context: ssl.SSLContext, authority_file: str
    ) -> None:
        assert works(open_transport(serve_websocket(ssl=server_context), ConnectionSettings(ca_file=authority_file)))

    def test_without_verification_any_server_will_do(
        self, serve_websocket: Start, open_transport: Open, server_context: ssl.SSLContext
    ) -> None:
        assert works(open_transport(serve_websocket(ssl=server_context), ConnectionSettings(verify=False)))

    def test_an_unknown_authority_is_not_trusted(
        self, serve_tcp: Start, open_transport: Open, server_context: ssl.SSLContext, tmp_path: Path
    ) -> None:
        other = tmp_path / "other.pem"
        trustme.CA().cert_pem.write_to_path(str(other))
        base_url = serve_tcp(echo, context=server_context)
        with pytest.raises(UnreachableError, match=r"not trusted.*ca_file"):
            open_transport(base_url, ConnectionSettings(ca_file=str(other)))

    def test_a_certificate_of_another_host_is_not_trusted(
        self, serve_tcp: Start, open_transport: Open, authority: trustme.CA, authority_file: str
    ) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("elsewhere.example").configure_cert(context)
        base_url = serve_tcp(echo, context=context)
        with pytest.raises(UnreachableError, match="host name"):
            open_transport(base_url, ConnectionSettings(ca_file=authority_file))

    @pytest.fixture
    def demanding_context(self, authority: trustme.CA) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def test_a_server_that_wants_a_certificate_gets_it(
        self,
        serve_websocket: Start,
        open_transport: Open,
        demanding_context: ssl.SSLContext,
        authority: trustme.CA,
        authority_file: str,
        tmp_path: Path,
    ) -> None:
        mine = tmp_path / "mine.pem"
        authority.issue_cert("me@example.com").private_key_and_cert_chain_pem.write_to_path(str(mine))
        settings = ConnectionSettings(ca_file=authority_file, client_certificate=str(mine))
        assert works(open_transport(serve_websocket(ssl=demanding_context), settings))

    def test_without_it_the_message_says_so(
        self, serve_scripted: Start, open_transport: Open, demanding_context: ssl.SSLContext, authority_file: str
    ) -> None:
        base_url = serve_scripted(lambda peer: peer.wait_for_end(), context=demanding_context)
        with pytest.raises(UnreachableError, match=r"client_certificate|cut the connection at once"):
            open_transport(base_url, ConnectionSettings(ca_file=authority_file))

    def test_a_plain_server_addressed_by_https_is_told_apart(self, serve_tcp: Start, open_transport: Open) -> None:
        def script(sock: socket.socket) -> None:
            sock.recv(10)
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with pytest.raises(UnreachableError, match="http://"):
            open_transport(serve_tcp(script).replace("http:", "https:"))


class TestRedirects:
    def test_a_redirect_is_followed_with_the_headers(self, serve_websocket: Start, open_transport: Open) -> None:
        seen: list[dict[str, str]] = []

        def redirect(connection: ServerConnection, request: object) -> object:
            if request.path == "/ws":  # type: ignore[attr-defined]
                response = connection.respond(307, "there")
                response.headers["Location"] = "/there"
                return response
            return None

        base_url = serve_websocket(keep_headers(seen), process_request=redirect)
        assert works(open_transport(base_url, ConnectionSettings(headers=SECRET)))
        assert seen[0]["path"] == "/there"
        assert seen[0]["x-key"] == "hidden"

    def test_another_origin_gets_none_of_the_headers(
        self, serve_websocket: Start, serve_http: Start, open_transport: Open
    ) -> None:
        seen: list[dict[str, str]] = []
        target = serve_websocket(keep_headers(seen))
        base_url = serve_http(lambda _: (302, {"Location": f"{target}/ws"}, b""))
        assert works(open_transport(base_url, ConnectionSettings(headers=SECRET)))
        assert not {"authorization", "x-key"} & seen[0].keys()

    def test_http_may_redirect_to_https(
        self,
        serve_websocket: Start,
        serve_http: Start,
        open_transport: Open,
        server_context: ssl.SSLContext,
        authority_file: str,
    ) -> None:
        target = serve_websocket(ssl=server_context)
        base_url = serve_http(lambda _: (308, {"Location": f"{target}/ws"}, b""))
        assert works(open_transport(base_url, ConnectionSettings(ca_file=authority_file)))

    def test_a_circle_ends(self, serve_http: Start, open_transport: Open) -> None:
        base_url = serve_http(lambda _: (307, {"Location": "/ws"}, b""))
        with pytest.raises(UnreachableError, match="more than 10 redirects"):
            open_transport(base_url)


class TestProxies:
    @pytest.mark.parametrize("secure", [False, True])
    def test_the_proxy_of_the_environment_carries_the_connection(
        self,
        serve_websocket: Start,
        serve_proxy: Start,
        open_transport: Open,
        server_context: ssl.SSLContext,
        authority_file: str,
        no_proxies: pytest.MonkeyPatch,
        secure: bool,
    ) -> None:
        requests: list[HttpRequest] = []
        proxy = serve_proxy(requests).replace("//", "//me:word@")
        no_proxies.setenv("HTTPS_PROXY" if secure else "HTTP_PROXY", proxy)
        base_url = serve_websocket(ssl=server_context) if secure else serve_websocket()
        target = base_url.replace("127.0.0.1", "server.test")
        assert works(open_transport(target, ConnectionSettings(ca_file=authority_file, headers=SECRET)))
        assert requests[0].method == "CONNECT"
        assert requests[0].target == target.partition("//")[2]
        assert requests[0].headers["proxy-authorization"].startswith("Basic ")
        assert "authorization" not in requests[0].headers

    def test_a_proxy_that_speaks_tls_carries_a_plain_connection(
        self,
        serve_websocket: Start,
        serve_proxy: Start,
        open_transport: Open,
        server_context: ssl.SSLContext,
        authority_file: str,
    ) -> None:
        requests: list[HttpRequest] = []
        proxy = serve_proxy(requests, context=server_context)
        target = serve_websocket().replace("127.0.0.1", "server.test")
        assert works(open_transport(target, ConnectionSettings(proxy=proxy, ca_file=authority_file)))
        assert requests

    def test_tls_inside_tls_is_refused_with_the_way_out(self, open_transport: Open) -> None:
        with pytest.raises(SettingsError, match="http:// address") as caught:
            open_transport("https://server.test", ConnectionSettings(proxy="https://proxy.test:3129"))
        assert caught.value.setting == "proxy"

    def test_loopback_needs_no_proxy(
        self, serve_websocket: Start, open_transport: Open, no_proxies: pytest.MonkeyPatch
    ) -> None:
        no_proxies.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        assert works(open_transport(serve_websocket()))
        assert works(open_transport(serve_websocket().replace("127.0.0.1", "localhost")))

    def test_a_proxy_that_refuses_is_named(self, serve_http: Start, open_transport: Open) -> None:
        def refuse(_: HttpRequest) -> Answer:
            return 407, {}, b""

        with pytest.raises(UnreachableError, match="proxy") as caught:
            open_transport("http://server.test", ConnectionSettings(proxy=serve_http(refuse)))
        assert (caught.value.status, caught.value.url) == (407, "ws://server.test/ws")

    @pytest.mark.parametrize("proxy", ["ftp://proxy.test", "http://", "socks5://proxy.test:1080"])
    def test_a_proxy_that_cannot_be_used_is_a_settings_error(self, open_transport: Open, proxy: str) -> None:
        with pytest.raises(SettingsError) as caught:
            open_transport("http://server.test", ConnectionSettings(proxy=proxy))
        assert caught.value.setting == "proxy"
