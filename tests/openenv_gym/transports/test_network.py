"""Which proxy, which TLS, and which redirect."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
import trustme

from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.network import is_loopback, keep_alive, proxy_for, redirect_target, tls_context


@pytest.mark.parametrize(
    "host", ["localhost", "env.localhost", "127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"]
)
def test_this_machine_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example.com", "10.0.0.1", "::2", "host"])
def test_other_machines_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("spelling", [str.upper, str.lower])
def test_the_environment_names_a_proxy_for_each_kind(no_proxies: pytest.MonkeyPatch, spelling: object) -> None:
    no_proxies.setenv(spelling("http_proxy"), "http://plain:1")
    no_proxies.setenv(spelling("https_proxy"), "secure:2")
    no_proxies.setenv(spelling("no_proxy"), "direct,.internal.example")
    settings = ConnectionSettings()
    assert proxy_for("ws://host/ws", settings) == "http://plain:1"
    assert proxy_for("http://host/schema", settings) == "http://plain:1"
    assert proxy_for("wss://host/ws", settings) == "http://secure:2"
    assert proxy_for("https://host:8443/schema", settings) == "http://secure:2"
    assert proxy_for("wss://direct/ws", settings) is None
    assert proxy_for("http://a.internal.example:8000/ws", settings) is None


def test_one_proxy_may_serve_all(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("ALL_PROXY", "http://all:3")
    assert proxy_for("wss://host", ConnectionSettings()) == "http://all:3"


def test_no_proxy_is_the_default(no_proxies: pytest.MonkeyPatch) -> None:
    assert proxy_for("wss://host", ConnectionSettings()) is None


@pytest.mark.parametrize("proxy", [True, "http://given:4"])
def test_a_loopback_address_is_always_reached_directly(no_proxies: pytest.MonkeyPatch, proxy: object) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://plain:1")
    settings = ConnectionSettings.from_mapping({"proxy": proxy})
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
        assert proxy_for(f"http://{host}/schema", settings) is None


def test_a_setting_outranks_the_environment(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://plain:1")
    assert proxy_for("http://host", ConnectionSettings(proxy="http://given:4")) == "http://given:4"
    assert proxy_for("http://host", ConnectionSettings(proxy=None)) is None


def test_without_verification_any_certificate_will_do() -> None:
    context = tls_context(ConnectionSettings(verify=False))
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
    assert tls_context(ConnectionSettings()).verify_mode is ssl.CERT_REQUIRED


def test_a_file_of_authorities_that_is_none_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for path in (str(empty), str(tmp_path / "absent.pem")):
        with pytest.raises(SettingsError) as caught:
            tls_context(ConnectionSettings(ca_file=path))
        assert caught.value.setting == "ca_file"
        assert path in str(caught.value)


def test_a_client_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        tls_context(ConnectionSettings(client_certificate=str(tmp_path / "absent.pem")))
    assert caught.value.setting == "client_certificate"


def test_certificate_and_key_may_be_one_file_or_two(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("me@example.com")
    both, key, chain = (tmp_path / name for name in ("both.pem", "key.pem", "chain.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(both))
    issued.private_key_pem.write_to_path(str(key))
    issued.cert_chain_pems[0].write_to_path(str(chain))
    assert tls_context(ConnectionSettings(client_certificate=str(both)))
    assert tls_context(ConnectionSettings(client_certificate=str(chain), client_key=str(key)))


@pytest.mark.parametrize(
    ("url", "location", "target", "same"),
    [
        ("ws://host/ws", "/other/ws", "ws://host/other/ws", True),
        ("ws://host:8000/a/ws", "b/ws", "ws://host:8000/a/b/ws", True),
        ("ws://host/ws", "http://host/b#part", "ws://host/b", True),
        ("ws://host/ws", "https://host/ws", "wss://host/ws", True),
        ("ws://host:8000/ws", "https://host:8443/ws", "wss://host:8443/ws", False),
        ("wss://host/ws", "https://elsewhere/ws", "wss://elsewhere/ws", False),
        ("http://host/a", "https://host/a", "https://host/a", True),
        ("https://host/a", "https://host:8443/a", "https://host:8443/a", False),
    ],
)
def test_a_redirect_is_resolved_and_headers_stay_within_the_origin(
    url: str, location: str, target: str, same: bool
) -> None:
    assert redirect_target(url, location, 307) == (target, same)


@pytest.mark.parametrize("location", ["http://[::1", "http://h:99999/", "http://h:0/", "http://h h/", "http://\xe9/"])
def test_a_redirect_to_what_is_no_address_is_an_error_of_ours(location: str) -> None:
    with pytest.raises(UnreachableError, match="no server's address"):
        redirect_target("http://host/", location, 302)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/a b\xe9?c=\x01", "http://host/a%20b%E9?c=%01"),
        ("/a%20b", "http://host/a%20b"),
        ("/\u20ac\udcff", "http://host/%E2%82%AC%FF"),
    ],
)
def test_a_redirect_is_quoted(location: str, target: str) -> None:
    assert redirect_target("http://host/", location, 302) == (target, True)


@pytest.mark.parametrize("location", ["http://host/ws", "mailto:me@example.com", "https://"])
def test_a_redirect_to_plain_or_to_nowhere_is_not_followed(location: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        redirect_target("wss://host/ws", location, 302)
    assert (caught.value.status, caught.value.url) == (302, "wss://host/ws")


def test_tcp_asks_for_a_silent_peer_as_the_settings_say():
    with socket.socket() as sock:
        keep_alive(sock, ConnectionSettings(keepalive_interval_s=7, keepalive_timeout_s=10))
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name, value in {"TCP_KEEPIDLE": 7, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 4}.items():
            assert not hasattr(socket, name) or sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value


@pytest.mark.parametrize("off", [None, 0])
def test_tcp_does_not_ask_where_that_is_off(off):
    with socket.socket() as sock:
        keep_alive(sock, ConnectionSettings(keepalive_interval_s=off))
        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        keep_alive(sock, ConnectionSettings(keepalive_timeout_s=off))
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
