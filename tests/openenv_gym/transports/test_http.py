"""JSON documents over HTTP from real servers, proxies and redirects."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from openenv_gym.errors import MessageTooLargeError, ProtocolError, SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.http import fetch_json
from tests.openenv_gym.transports.conftest import WAIT_S, Answer, HttpRequest, read_request

Start = Callable[..., str]
JSON_TYPE = {"Content-Type": "application/json"}
SECRET = {"Authorization": "Bearer secret", "X-Key": "hidden"}


def keep(requests: list[HttpRequest]) -> Callable[[HttpRequest], Answer]:
    def answer(request: HttpRequest) -> Answer:
        requests.append(request)
        return 200, JSON_TYPE, b'{"status":"healthy"}'

    return answer


def test_a_document_is_fetched_below_the_prefix_with_the_headers(serve_http: Start) -> None:
    requests: list[HttpRequest] = []
    base_url = serve_http(keep(requests)) + "/a/prefix/"
    assert fetch_json(base_url, "/health", ConnectionSettings(headers=SECRET)) == {"status": "healthy"}
    assert requests[0].target == "/a/prefix/health"
    assert requests[0].headers["authorization"] == "Bearer secret"
    assert requests[0].headers["user-agent"].startswith("openenv-gym/")


def test_httpx_is_imported_when_it_is_needed_and_not_before() -> None:
    code = "import sys, openenv_gym.transports.http as http; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, {}, b""), "wants a token"),
        ((403, {}, b""), "token"),
        ((404, JSON_TYPE, b"{}"), "no document at this path.*path prefix"),
        ((503, {"Content-Type": "text/html"}, b"<html>"), "web page.*asleep"),
        ((503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b""), "after Wed, 21 Oct 2026 07:28:00 GMT"),
        ((200, {"Content-Type": "text/html"}, b"<html>hello"), "web page"),
        ((500, {}, b""), "its own log"),
        ((304, {}, b""), "not the answer"),
    ],
)
def test_a_status_or_a_web_page_says_what_to_check(serve_http: Start, answer: Answer, words: str) -> None:
    base_url = serve_http(lambda _: answer)
    with pytest.raises(UnreachableError, match=words) as caught:
        fetch_json(base_url, "/schema", ConnectionSettings(headers=SECRET))
    assert (caught.value.status, caught.value.url) == (answer[0], f"{base_url}/schema")
    assert "secret" not in str(caught.value)


def test_the_json_beside_a_status_that_is_a_failure_is_kept(serve_http: Start) -> None:
    document = b'{"status":"unavailable","reason":"full","capacity":{"free":0}}'
    base_url = serve_http(lambda _: (503, JSON_TYPE, document))
    with pytest.raises(UnreachableError) as caught:
        fetch_json(base_url, "/ready", ConnectionSettings())
    assert caught.value.status == 503
    assert caught.value.body == {"status": "unavailable", "reason": "full", "capacity": {"free": 0}}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, b'"' + b"x" * 65_536 + b'"'])
def test_anything_else_beside_such_a_status_is_not(serve_http: Start, body: bytes) -> None:
    base_url = serve_http(lambda _: (503, JSON_TYPE, body))
    with pytest.raises(UnreachableError) as caught:
        fetch_json(base_url, "/ready", ConnectionSettings())
    assert caught.value.body is None


def test_what_is_not_json_is_a_protocol_error(serve_http: Start) -> None:
    with pytest.raises(ProtocolError) as caught:
        fetch_json(serve_http(lambda _: (200, {}, b"healthy")), "/health", ConnectionSettings())
    assert caught.value.received == "healthy"


@pytest.mark.parametrize("headers", [{}, {"Content-Length": ""}])
def test_a_document_above_the_limit_is_refused(serve_http: Start, headers: dict[str, str]) -> None:
    base_url = serve_http(lambda _: (200, headers, b" " * 2_000_000))
    with pytest.raises(MessageTooLargeError) as caught:
        fetch_json(base_url, "/schema", ConnectionSettings(max_message_size_mb=1))
    assert (caught.value.limit, caught.value.setting) == (1024 * 1024, "max_message_size_mb")


def test_a_port_where_nothing_listens_is_said_to_be_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match="nothing listens there") as caught:
        fetch_json(f"ws://127.0.0.1:{port}", "/health", ConnectionSettings())
    assert caught.value.url == f"http://127.0.0.1:{port}/health"


def test_a_name_that_does_not_resolve_is_said_to_be_one(no_proxies: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="host name"):
        fetch_json("http://no-such-host.invalid", "/health", ConnectionSettings())


def test_a_name_that_cannot_be_one_is_unreachable(no_proxies: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="host name"):
        fetch_json(f"http://{'a' * 70}.invalid", "/health", ConnectionSettings())


def test_what_is_not_http_is_said_to_be_none(serve_tcp: Start) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

    with pytest.raises(UnreachableError, match="did not answer in HTTP"):
        fetch_json(serve_tcp(script), "/health", ConnectionSettings())


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_a_server_that_is_too_slow_is_unreachable_after_the_timeout(serve_tcp: Start, start: bytes) -> None:
    def script(sock: socket.socket) -> None:
        read_request(sock)
        sock.sendall(start)
        pause = threading.Event()
        while start:
            sock.sendall(b" ")
            pause.wait(0.02)
        sock.recv(1)

    with pytest.raises(UnreachableError, match=r"within 0\.2 s"):
        fetch_json(serve_tcp(script), "/schema", ConnectionSettings(connect_timeout_s=0.2))


def test_redirects_share_one_timeout(serve_http: Start) -> None:
    def answer(_: HttpRequest) -> Answer:
        threading.Event().wait(0.1)
        return 307, {"Location": "/again"}, b""

    with pytest.raises(UnreachableError, match=r"within 0\.25 s"):
        fetch_json(serve_http(answer), "/schema", ConnectionSettings(connect_timeout_s=0.25))


def test_a_redirect_within_the_origin_keeps_the_headers(serve_http: Start) -> None:
    requests: list[HttpRequest] = []

    def answer(request: HttpRequest) -> Answer:
        return keep(requests)(request) if request.target == "/there" else (307, {"Location": "/there"}, b"")

    assert fetch_json(serve_http(answer), "/schema", ConnectionSettings(headers=SECRET))
    assert requests[0].headers["x-key"] == "hidden"


def test_a_redirect_to_another_origin_takes_none_of_them(serve_http: Start) -> None:
    requests: list[HttpRequest] = []
    target = serve_http(keep(requests))
    assert fetch_json(
        serve_http(lambda _: (302, {"Location": target}, b"")), "/schema", ConnectionSettings(headers=SECRET)
    )
    assert not {"authorization", "x-key"} & requests[0].headers.keys()


def test_a_circle_ends(serve_http: Start) -> None:
    with pytest.raises(UnreachableError, match="more than 10 redirects"):
        fetch_json(serve_http(lambda _: (302, {"Location": "/schema"}, b"")), "/schema", ConnectionSettings())


def test_an_authority_of_ones_own_is_trusted_and_a_client_certificate_shown(
    serve_http: Start, authority: trustme.CA, authority_file: str, tmp_path: Path
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = tmp_path / "mine.pem"
    authority.issue_cert("me@example.com").private_key_and_cert_chain_pem.write_to_path(str(mine))
    base_url = serve_http(keep([]), context=context)
    assert fetch_json(base_url, "/health", ConnectionSettings(ca_file=authority_file, client_certificate=str(mine)))


def test_an_unknown_authority_is_not_trusted_unless_asked(serve_http: Start, server_context: ssl.SSLContext) -> None:
    base_url = serve_http(keep([]), context=server_context)
    with pytest.raises(UnreachableError, match=r"not trusted.*ca_file"):
        fetch_json(base_url, "/health", ConnectionSettings())
    assert fetch_json(base_url, "/health", ConnectionSettings(verify=False))


def test_the_proxy_of_the_environment_is_asked_for_plain_http(
    serve_http: Start, no_proxies: pytest.MonkeyPatch
) -> None:
    requests: list[HttpRequest] = []
    no_proxies.setenv("HTTP_PROXY", serve_http(keep(requests)))
    assert fetch_json("http://server.test/prefix", "/health", ConnectionSettings())
    assert requests[0].target == "http://server.test/prefix/health"


def test_the_proxy_of_the_environment_tunnels_tls(
    serve_http: Start,
    serve_proxy: Start,
    server_context: ssl.SSLContext,
    authority_file: str,
    no_proxies: pytest.MonkeyPatch,
) -> None:
    requests: list[HttpRequest] = []
    no_proxies.setenv("HTTPS_PROXY", serve_proxy(requests))
    base_url = serve_http(keep([]), context=server_context).replace("127.0.0.1", "server.test")
    assert fetch_json(base_url, "/health", ConnectionSettings(ca_file=authority_file))
    assert requests[0].method == "CONNECT"


def test_a_proxy_that_speaks_tls_is_trusted_by_the_same_authority(
    serve_http: Start, server_context: ssl.SSLContext, authority_file: str
) -> None:
    proxy = serve_http(keep([]), context=server_context)
    assert fetch_json("http://server.test", "/health", ConnectionSettings(proxy=proxy, ca_file=authority_file))


def test_loopback_needs_no_proxy(serve_http: Start, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert fetch_json(serve_http(keep([])), "/health", ConnectionSettings())


def test_a_proxy_that_refuses_a_tunnel_is_named(serve_http: Start) -> None:
    proxy = serve_http(lambda _: (407, {}, b""))
    with pytest.raises(UnreachableError, match="proxy"):
        fetch_json("https://server.test", "/health", ConnectionSettings(proxy=proxy, connect_timeout_s=WAIT_S))


@pytest.mark.parametrize(
    "proxy",
    ["ftp://proxy.test", "http://proxy.test:x", "http://", "http://p/path", "http://me@p", "socks5://proxy.test:1080"],
)
def test_a_proxy_that_cannot_be_used_is_a_settings_error(proxy: str) -> None:
    with pytest.raises(SettingsError) as caught:
        fetch_json("http://server.test", "/health", ConnectionSettings(proxy=proxy))
    assert caught.value.setting == "proxy"
