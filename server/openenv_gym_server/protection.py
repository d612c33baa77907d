"""Who may talk to the server from a browser: Origin and Host checks for HTTP and WebSocket alike.

A web page can open a WebSocket to a server on the visitor's own machine, and CORS does not stop it; a name it
controls can be made to resolve to loopback. Not authentication: whoever is not a browser can send any header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from openenv_gym_server.settings import ServerSettings

__all__ = ["refusal"]

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


def refusal(scope: Mapping[str, Any], settings: ServerSettings) -> str | None:
    """Why a request or handshake is refused, naming the setting that would allow it; None where it is not."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in {b"host", b"origin"}}
    host, origin = headers.get(b"host", "").lower(), headers.get(b"origin", "").lower()
    return _host_refusal(scope, host, settings) or _origin_refusal(scope, host, origin, settings)


def _host_refusal(scope: Mapping[str, Any], host: str, settings: ServerSettings) -> str | None:
    server = scope.get("server")
    if settings.allowed_hosts == "all" or not host or server is None or not _is_loopback(str(server[0])):
        return None
    name = _hostname(host)
    if _is_loopback(name) or name in settings.allowed_hosts or host in settings.allowed_hosts:
        return None
    return (
        f"Host {host!r} is not served on a loopback address, which only loopback names may reach; "
        "set allowed_hosts or OPENENV_ALLOWED_HOSTS to allow it"
    )


def _origin_refusal(scope: Mapping[str, Any], host: str, origin: str, settings: ServerSettings) -> str | None:
    if not origin or settings.allowed_origins == "all" or origin in settings.allowed_origins:
        return None
    try:
        parts = urlsplit(origin)
        own = urlsplit(f"//{host}")
        default = _DEFAULT_PORTS.get(str(scope.get("scheme", "http")), 80)
        same_port = (parts.port or _DEFAULT_PORTS.get(parts.scheme)) == (own.port or default)
        # A proxy that ends TLS leaves the scheme's default port unsaid on both sides.
        if (
            parts.hostname
            and parts.hostname == own.hostname
            and (same_port or (parts.port is None and own.port is None))
        ):
            return None
    except ValueError:  # a port or an address that is none
        pass
    return (
        f"Origin {origin!r} may not use this server from a browser; "
        "set allowed_origins or OPENENV_ALLOWED_ORIGINS to allow it"
    )


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or host
    except ValueError:
        return host


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
