"""Why no connection came about, in our own errors, and what to check.

Not for the end of an open session (``endings``) nor for the server's error frames (``openenv_gym.session``).
Source of what each status means: RFC 9110, and what uvicorn and the common gateways answer.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

from websockets.exceptions import (
    InvalidMessage,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
    ProxyError,
    WebSocketException,
)

from openenv_gym.errors import OpenEnvGymError, SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings, redacted

__all__ = ["connection_failure", "proxy_failure", "status_failure", "timeout_failure"]

_NOT_TLS = frozenset({"HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "WRONG_VERSION_NUMBER"})
"""What OpenSSL says (3.x and before) where the other side speaks something else."""


def connection_failure(error: BaseException, url: str, settings: ConnectionSettings) -> OpenEnvGymError:
    """The error that says why no connection to ``url`` came about, and what to check."""
    if isinstance(error, InvalidStatus):
        response = error.response
        headers = dict(response.headers.raw_items())
        return status_failure(url, response.status_code, headers, websocket=True, sent=settings.headers)
    if isinstance(error, InvalidURI | InvalidProxy | ImportError):
        return _settings_failure(error, url)
    if isinstance(error, ProxyError):
        status = getattr(getattr(error, "response", None), "status_code", None)
        return proxy_failure(str(error), url, status)
    if isinstance(error, TimeoutError):
        return timeout_failure(url, settings)
    if isinstance(error, OSError):
        return _unreachable(_os_reason(error), url)
    if isinstance(error, InvalidMessage | EOFError):
        return _unreachable(_not_http_reason(error), url)
    if isinstance(error, WebSocketException):
        return _unreachable(f"it answered, but not with a WebSocket handshake as RFC 6455 says: {error}", url)
    return _unreachable(f"the host name cannot be used ({error}); check the address", url)


def _not_http_reason(error: InvalidMessage | EOFError) -> str:
    cause = str(error.__cause__ or error)
    if "HTTP/1.0" in cause:
        answer = cause[cause.index("HTTP/1.0") :][:80]
        return f"a web server that knows no WebSockets answered there ({answer}); check the address and the port"
    return (
        "something listens there, but did not answer in HTTP; check the port, and whether it wants https:// or http://"
    )


def _settings_failure(error: InvalidURI | InvalidProxy | ImportError, url: str) -> SettingsError:
    # The texts of the first two repeat the address with its credentials.
    if isinstance(error, InvalidURI):
        return SettingsError(f"expected base_url to be a server's address, got {redacted(url)!r}", setting="base_url")
    why = "not a proxy's URL" if isinstance(error, InvalidProxy) else f"{error}; pip install python-socks httpx[socks]"
    return SettingsError(
        f"the proxy (setting `proxy`, or HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) cannot be used: {why}", setting="proxy"
    )


def proxy_failure(what: str, url: str, status: int | None = None) -> UnreachableError:
    """The proxy refused."""
    return _unreachable(f"the proxy did not open a way to it ({what}); check the proxy, or NO_PROXY", url, status)


def timeout_failure(url: str, settings: ConnectionSettings) -> UnreachableError:
    """Nothing answered in ``connect_timeout_s``."""
    return _unreachable(
        f"no answer within {settings.connect_timeout_s:g} s; check the address and firewalls, "
        "or raise connect_timeout_s if the server is still starting",
        url,
    )


def status_failure(
    url: str, status: int, headers: Mapping[str, str], *, websocket: bool, sent: Mapping[str, str]
) -> UnreachableError:
    """The server answered with an HTTP status that is not the one hoped for.

    Args:
        url: the address.
        status: the status.
        headers: what came with it.
        websocket: whether it answered a handshake, and not a request for a document.
        sent: the settings' headers, of which nothing is repeated.
    """
    fields = {name.lower(): value for name, value in headers.items()}
    html = " (it sent a web page)" if "html" in fields.get("content-type", "") else ""
    reason = _token_reason(sent) if status == 401 else _status_reason(status, fields, websocket=websocket)
    return _unreachable(f"it answered HTTP {status}{html}: {reason}", url, status)


def _token_reason(sent: Mapping[str, str]) -> str:
    given = next((value for name, value in sent.items() if name.lower() == "authorization"), None)
    form = 'headers={"Authorization": "Bearer <token>"}'
    if given is None:
        return f"it wants a token; give one with the setting {form}"
    if not given.strip().lower().startswith("bearer "):
        return f"it wants a token, but the Authorization that was sent lacks the word Bearer; expected {form}"
    return "it wants a token, but not the one that was sent; check that in the setting `headers`"


def _status_reason(status: int, fields: Mapping[str, str], *, websocket: bool) -> str:
    retry = fields.get("retry-after", "").strip()[:40]
    wait = f"try again after {retry}{' s' if retry.isdigit() else ''}" if retry else "try again in a while"
    path = "check the path prefix of base_url, and that it is the address of an OpenEnv server itself"
    what = "WebSocket" if websocket else "document"
    known = {
        403: f"the server has no WebSocket at this path, or refuses this client; {path}, and the token in `headers`"
        if websocket
        else "it refuses this client; check the token in the setting `headers`",
        404: f"no {what} at this path; {path} (a private server may answer so for want of a token in `headers`)",
        407: "the proxy wants credentials; put them into its URL",
        429: f"too many requests; {wait}",
    }
    known |= dict.fromkeys((502, 503, 504), f"the server is not up, starting, asleep or overloaded; {wait}")
    if status in known:
        return known[status]
    if status >= 500:
        return "the server failed; its own log says why"
    return f"not the answer of an OpenEnv server's {what}; {path}"


def _os_reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return _tls_reason(error)
    if isinstance(error, socket.gaierror):
        return f"its host name cannot be resolved ({error.strerror}); check the spelling and the name service"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused); check that the server runs, and its port"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "it cut the connection at once; check the port, and whether it wants https:// or http://"
    return f"the network said: {error.strerror or error}; check the address"


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}); "
            "trust its authority with the setting ca_file, or check the host name"
        )
    if isinstance(error, ssl.SSLEOFError):
        return "it cut the TLS handshake; it may speak plain http:// at this port, or want a client_certificate"
    reason = getattr(error, "reason", None) or str(error)
    if reason in _NOT_TLS:
        return f"it does not speak TLS at this port ({reason}); use http:// or check the port"
    if "CERTIFICATE" in reason.upper() or "HANDSHAKE_FAILURE" in reason.upper():
        return f"it refused this client's certificate ({reason}); check the settings client_certificate and client_key"
    return f"TLS failed ({reason}); check that the port speaks TLS and which certificates both sides want"


def _unreachable(reason: str, url: str, status: int | None = None) -> UnreachableError:
    shown = redacted(url)
    return UnreachableError(f"expected an OpenEnv server at {shown}: {reason}", url=shown, status=status)
