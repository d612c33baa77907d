"""Who may talk to the server: a token for everyone, Origin and Host checks for browsers, HTTP and WebSocket alike.

A web page can open a WebSocket to a server on the visitor's own machine, and CORS does not stop it; a name it controls
can be made to resolve to that machine ("rebound"), whereupon its Origin and the Host agree. Whoever is not a browser
can send any Host and Origin: against those, the token stands.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from openenv_gym_server.addresses import Address, address_of, canonical_host, canonical_origin
from openenv_gym_server.settings import ServerSettings

__all__ = ["Gate", "Refusal", "headers_of", "is_listed", "page_refusal", "server_address", "token_refusal"]


class Refusal(NamedTuple):
    """The HTTP status that refuses a request or a handshake, and the reason."""

    status: int
    reason: str


class Gate:
    """ASGI middleware: whatever ``check`` refuses does not get in.

    Args:
        app: the application behind it.
        check: why a request or handshake is refused, by its scope; None where it is not.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], Refusal | None]) -> None:
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request, handshake or lifespan pass, or refuse it."""
        refused = None if scope["type"] == "lifespan" else self._check(scope)
        if refused is None:
            await self._app(scope, receive, send)
            return
        kind = "http.response"
        if scope["type"] == "websocket":
            await receive()
            if "websocket.http.response" not in scope.get("extensions", {}):
                # The server turns a close before the accept into a status of its own choice.
                await send({"type": "websocket.close", "code": 1008, "reason": refused.reason[:100]})
                return
            kind = "websocket.http.response"
        headers = [(b"content-type", b"application/json")]
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": f"{kind}.start", "status": refused.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": json.dumps({"detail": refused.reason}).encode()})


def page_refusal(scope: Mapping[str, Any], settings: ServerSettings) -> Refusal | None:
    """Why a web page's request or handshake is refused, naming the setting that would allow it; None if it is not."""
    for name in ("Host", "Origin"):
        if len(headers_of(scope, name.lower().encode())) > 1:
            return Refusal(403, f"expected one header {name}, got several")
    host, origin = _header(scope, b"host") or "", _header(scope, b"origin") or ""
    for name, value in (("Host", host), ("Origin", origin)):
        if "@" in value:
            return Refusal(403, f"expected {name} without user information, got {value[:200]!r}")
    reason = _host_refusal(scope, host, settings) or _origin_refusal(scope, host, origin, settings)
    return None if reason is None else Refusal(403, reason)


def token_refusal(scope: Mapping[str, Any], token: str | None) -> Refusal | None:
    """Why a request or handshake without the server's token is refused; neither token is ever repeated."""
    if token is None:
        return None
    given = _header(scope, b"authorization")
    expected = "expected the header Authorization: Bearer <token> with the server's token"
    if given is None:
        return Refusal(401, f"{expected}, got no Authorization header")
    scheme, _, credentials = given.strip().partition(" ")
    if scheme.lower() != "bearer":
        return Refusal(401, f'{expected}, got an Authorization that does not begin with "Bearer "')
    if not hmac.compare_digest(credentials.strip().encode("latin-1"), token.encode("latin-1")):
        return Refusal(401, f"{expected}, got another token")
    return None


def headers_of(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """The values of all headers of that name, which is in small letters."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _header(scope: Mapping[str, Any], name: bytes) -> str | None:
    return next(iter(headers_of(scope, name)), None)


def server_address(scope: Mapping[str, Any]) -> Address | None:
    """The address at which a request arrived: the accepting socket's own; None where the server does not say."""
    server = scope.get("server")
    if server is None:
        return None
    name = str(server[0])
    return address_of(f"[{name}]" if ":" in name else name)


def _host_refusal(scope: Mapping[str, Any], host: str, settings: ServerSettings) -> str | None:
    local = server_address(scope)
    if settings.allowed_hosts == "all" or not host or local is None or not local.is_loopback:
        return None
    address = address_of(host)
    if (address is not None and address.is_loopback) or is_listed(host, address, settings):
        return None
    return (
        f"Host {host!r} is not served on a loopback address, which only loopback names may reach; "
        "set allowed_hosts or OPENENV_ALLOWED_HOSTS to allow it"
    )


def _origin_refusal(scope: Mapping[str, Any], host: str, origin: str, settings: ServerSettings) -> str | None:
    if not origin or settings.allowed_origins == "all" or canonical_origin(origin) in settings.allowed_origins:
        return None
    scheme, separator, rest = origin.lower().partition("://")
    # Only these are pages' own; and where the server itself ends TLS, its pages are https.
    secure = scope.get("scheme") in {"https", "wss"}
    is_page = bool(separator) and scheme in ({"https", "wss"} if secure else {"http", "ws", "https", "wss"})
    page = address_of(rest, scheme) if is_page else None
    # Where a proxy ends TLS, the page's scheme is the outer one, and its default port is unsaid on both sides.
    own = address_of(host, scheme)
    if page is None or own is None or page != own:
        return (
            f"Origin {origin!r} may not use this server from a browser; "
            "set allowed_origins or OPENENV_ALLOWED_ORIGINS to allow it"
        )
    # Over TLS a browser has seen a certificate of the name, and whoever rebinds a name has none for this server.
    if scheme in {"https", "wss"} or not own.can_be_rebound or is_listed(host, own, settings):
        return None
    return (
        f"a web page at {origin!r} may not use this server without TLS, because a stranger's name can be made to lead "
        "here; set allowed_hosts or OPENENV_ALLOWED_HOSTS to allow the name, or allowed_origins to allow the page"
    )


def is_listed(host: str, address: Address | None, settings: ServerSettings) -> bool:
    """Whether the operator lists a Host, or all.

    Args:
        host: the header.
        address: the address in it.
        settings: the operator's.
    """
    if settings.allowed_hosts == "all" or canonical_host(host) in settings.allowed_hosts:
        return True
    return address is not None and address.name in settings.allowed_hosts
