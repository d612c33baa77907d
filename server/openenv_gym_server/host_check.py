"""Who may use ``/mcp`` by the names in a request: what ``protection.py`` asks of every route, with two differences.

Programs for agents run on the user's own machine and are partly web pages: on a loopback address any loopback Origin
is one of them, whatever its port. And where the operator lists hosts, no other is served on any address. A page that
had a name of its own made to lead here ("DNS rebinding") names that, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openenv_gym_server.addresses import Address, address_of
from openenv_gym_server.protection import Refusal, headers_of, is_listed, page_refusal, server_address
from openenv_gym_server.settings import ServerSettings

__all__ = ["mcp_refusal"]


def mcp_refusal(scope: Mapping[str, Any], settings: ServerSettings) -> Refusal | None:
    """Why a request or handshake is refused, naming the setting that would allow it; None if it is not.

    Example:
        >>> scope = {"server": ("127.0.0.1", 8000), "headers": [(b"host", b"evil.example")], "scheme": "http"}
        >>> mcp_refusal(scope, ServerSettings()).status
        403
        >>> mcp_refusal({**scope, "headers": [(b"host", b"localhost:8000")]}, ServerSettings()) is None
        True
    """
    refused = page_refusal(scope, settings)
    if refused is not None and _is_local_page(scope):
        refused = page_refusal(
            {**scope, "headers": [each for each in scope["headers"] if each[0] != b"origin"]}, settings
        )
    return refused or _unlisted(scope, settings)


def _is_local_page(scope: Mapping[str, Any]) -> bool:
    origins = headers_of(scope, b"origin")
    if len(origins) != 1 or not _is_loopback(server_address(scope)):
        return False
    scheme, _, rest = origins[0].lower().partition("://")
    return scheme in {"http", "https"} and _is_loopback(address_of(rest, scheme))


def _unlisted(scope: Mapping[str, Any], settings: ServerSettings) -> Refusal | None:
    if not settings.allowed_hosts:
        return None
    for host in headers_of(scope, b"host"):
        address = address_of(host)
        if not (_is_loopback(address) or is_listed(host, address, settings)):
            return Refusal(
                403,
                f"Host {host[:200]!r} is not among those that this server's operator allows; "
                "set allowed_hosts or OPENENV_ALLOWED_HOSTS to allow it",
            )
    return None


def _is_loopback(address: Address | None) -> bool:
    return address is not None and address.is_loopback
