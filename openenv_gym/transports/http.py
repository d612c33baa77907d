"""Single HTTP requests for JSON documents: schema, metadata, health.

With the same headers, certificates, proxies, path prefixes and limits as the WebSocket of the same settings. Not for
episodes (``blocking``).
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openenv_gym.errors import OpenEnvGymError, ProtocolError, UnreachableError
from openenv_gym.json_text import JSON, decode_json
from openenv_gym.transports.base import ConnectionSettings, http_url, redacted
from openenv_gym.transports.endings import too_large
from openenv_gym.transports.failures import connection_failure, proxy_failure, status_failure, timeout_failure
from openenv_gym.transports.network import MAX_REDIRECTS, USER_AGENT, proxy_for, redirect_target, tls_context

if TYPE_CHECKING:
    import httpx

__all__ = ["fetch_json"]

_LONGEST_EXPLANATION = 65_536


def fetch_json(base_url: str, path: str, settings: ConnectionSettings) -> JSON:
    """The JSON document at ``path`` below ``base_url``, within ``connect_timeout_s`` seconds for everything.

    Raises:
        UnreachableError: no OpenEnv server answered there; the message says what to check. ``body`` is the JSON that
            came with a status that is a failure, where there was any of at most 64 KiB.
        ProtocolError: what came is not JSON.
        MessageTooLargeError: what came is above ``max_message_size_mb``.
        SettingsError: an address, a certificate's file or a proxy that cannot be used.

    Example:
        >>> fetch_json("http://127.0.0.1:8000", "/health", ConnectionSettings())    # doctest: +SKIP
        {'status': 'healthy'}
    """
    url = http_url(base_url, path)
    deadline = time.monotonic() + settings.connect_timeout_s
    headers: Mapping[str, str] = settings.headers
    for _ in range(MAX_REDIRECTS + 1):
        status, location, body = _get(url, settings, headers, deadline)
        if location is None:
            return _parsed(body, url)
        url, same_origin = redirect_target(url, location, status)
        headers = headers if same_origin else {}
    shown = redacted(url)
    raise UnreachableError(f"more than {MAX_REDIRECTS} redirects, the last to {shown}; check base_url", url=shown)


def _get(
    url: str, settings: ConnectionSettings, headers: Mapping[str, str], deadline: float
) -> tuple[int, str | None, bytes]:
    """One request: its status, where it redirects to (or None), and its body."""
    # Half of what the whole package takes to import is httpx, and an embedded or cached server never needs it.
    import httpx  # noqa: PLC0415

    timeout_s = deadline - time.monotonic()
    if timeout_s <= 0:
        raise timeout_failure(url, settings)
    # Plain HTTP needs no certificates, and reading the system's takes longer than the request.
    proxy = proxy_for(url, settings)
    tls_proxy = proxy is not None and proxy.startswith("https:")
    secure = tls_proxy or urlsplit(url).scheme == "https"
    context = tls_context(settings) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        with (
            httpx.Client(
                # Uncompressed, so that the size on the way is the size in memory.
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers},
                verify=context,
                proxy=None if proxy is None else httpx.Proxy(proxy, ssl_context=context if tls_proxy else None),
                trust_env=False,
                timeout=timeout_s,
            ) as client,
            client.stream("GET", url) as response,
        ):
            if response.is_redirect and "location" in response.headers:
                return response.status_code, response.headers["location"], b""
            body = _body(response, url, settings, deadline)
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, OSError, UnicodeError) as error:
        raise _failure(error, url, settings) from error
    _check_status(response, url, body, headers)
    return response.status_code, None, body


def _body(response: httpx.Response, url: str, settings: ConnectionSettings, deadline: float) -> bytes:
    limit = settings.max_message_bytes
    announced = response.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise too_large(int(announced), limit, "incoming")
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit:
            raise too_large(None, limit, "incoming")
        if time.monotonic() > deadline:
            raise timeout_failure(url, settings)
    return bytes(body)


def _check_status(response: httpx.Response, url: str, body: bytes, sent: Mapping[str, str]) -> None:
    html = "html" in response.headers.get("content-type", "")
    if not response.is_success or html:
        failure = status_failure(url, response.status_code, response.headers, websocket=False, sent=sent)
        failure.body = _explanation(body)
        raise failure


def _explanation(body: bytes) -> JSON:
    """The JSON a server gives beside a status that is a failure; None for anything else."""
    if len(body) > _LONGEST_EXPLANATION:
        return None
    try:
        return decode_json(body)
    except ProtocolError:
        return None


def _parsed(body: bytes, url: str) -> JSON:
    try:
        return decode_json(body)
    except ProtocolError as error:
        raise ProtocolError(
            f"expected JSON from {redacted(url)}, got none: {error}; check that base_url is an OpenEnv server's",
            received=error.received,
        ) from error


def _failure(error: Exception, url: str, settings: ConnectionSettings) -> OpenEnvGymError:
    import httpx  # noqa: PLC0415 - see _get()

    if isinstance(error, httpx.TimeoutException):
        return timeout_failure(url, settings)
    if isinstance(error, httpx.ProxyError):
        return proxy_failure(str(error), url)
    if isinstance(error, httpx.RemoteProtocolError):
        return connection_failure(EOFError(str(error)), url, settings)
    # httpx wraps what the network said twice; the innermost tells most.
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return connection_failure(cause or error, url, settings)
