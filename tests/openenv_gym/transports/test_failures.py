"""Every reason for which no connection came about says what to check."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest
from websockets.exceptions import InvalidProxy, InvalidURI, ProxyError

from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.failures import connection_failure, proxy_failure, status_failure, timeout_failure

URL = "wss://me:secret@host/ws"
SHOWN = "wss://…@host/ws"


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] it failed")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "within 10 s"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "host name cannot be resolved"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "nothing listens there"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "cut the connection at once"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable; check the address"),
        (OSError("no errno"), "no errno"),
        (tls_error("WRONG_VERSION_NUMBER"), "does not speak TLS"),
        (tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "refused this client's certificate"),
        (tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), "refused this client's certificate"),
        (tls_error("UNSUPPORTED_PROTOCOL"), "TLS failed"),
        (ssl.SSLError("no reason"), "TLS failed"),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), "cut the TLS handshake"),
        (EOFError(), "did not answer in HTTP"),
        (UnicodeError("label too long"), "host name cannot be used"),
        (ProxyError("failed to connect to SOCKS proxy"), "check the proxy, or NO_PROXY"),
    ],
)
def test_an_error_of_the_network_says_what_to_check(error: Exception, words: str) -> None:
    failure = connection_failure(error, URL, ConnectionSettings())
    assert isinstance(failure, UnreachableError)
    assert words in str(failure)
    assert (failure.url, failure.status) == (SHOWN, None)
    assert "secret" not in str(failure)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("connecting through a SOCKS proxy requires python-socks"), "pip install"),
        (InvalidURI("ws://me:secret@host", "it is none"), "base_url"),
        (InvalidProxy("http://me:secret@proxy/path", "path is meaningless"), "not a proxy's URL"),
    ],
)
def test_an_address_or_a_proxy_that_cannot_be_used_is_a_settings_error(error: Exception, words: str) -> None:
    failure = connection_failure(error, URL, ConnectionSettings())
    assert isinstance(failure, SettingsError)
    assert failure.setting == ("base_url" if isinstance(error, InvalidURI) else "proxy")
    assert words in str(failure)
    assert "secret" not in str(failure)


def test_a_proxy_that_refuses_gives_its_status() -> None:
    assert proxy_failure("HTTP 407", URL, 407).status == 407


def test_a_timeout_says_how_long_it_was() -> None:
    assert "within 0.5 s" in str(timeout_failure(URL, ConnectionSettings(connect_timeout_s=0.5)))


@pytest.mark.parametrize("status", [401, 403, 404, 407, 429, 500, 502, 503, 504, 200, 418])
@pytest.mark.parametrize("websocket", [True, False])
def test_every_status_is_explained(status: int, websocket: bool) -> None:
    failure = status_failure(URL, status, {}, websocket=websocket, sent={})
    assert failure.status == status
    assert f"HTTP {status}: " in str(failure)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, 'it wants a token; give one with the setting headers={"Authorization": "Bearer <token>"}'),
        ({"authorization": "hidden"}, 'lacks the word Bearer; expected headers={"Authorization": "Bearer <token>"}'),
        ({"Authorization": "Bearer hidden"}, "it wants a token, but not the one that was sent"),
    ],
)
def test_a_refused_token_is_told_from_one_in_another_form_and_from_none(sent: dict[str, str], words: str) -> None:
    told = str(status_failure(URL, 401, {}, websocket=True, sent=sent))
    assert words in told
    assert "hidden" not in told
