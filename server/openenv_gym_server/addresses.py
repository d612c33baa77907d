"""Host names and web origins in the one form in which they are compared.

Letter case, a trailing dot, brackets and a scheme's default port make no difference between two of them. Not for who
may use the server (``protection.py``).
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from openenv_gym.transports.network import is_loopback

__all__ = ["Address", "address_of", "canonical_host", "canonical_origin"]

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class Address(NamedTuple):
    """A host with its port, of a ``Host`` header or an origin; ``port`` is None where the scheme's own is meant."""

    name: str
    port: int | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether it can only be this machine."""
        return is_loopback(self.name)

    @property
    def can_be_rebound(self) -> bool:
        """Whether a stranger may own the name, so that it can be made to lead anywhere.

        Not so for addresses themselves, for loopback names, and for names without a dot, which no public registry has.
        """
        if self.is_loopback or "." not in self.name:
            return False
        try:
            ipaddress.ip_address(self.name)
        except ValueError:
            return True
        return False


def address_of(text: str, scheme: str = "http") -> Address | None:
    """The address in ``host``, ``host:port`` or ``[v6]:port``; None where it is none."""
    try:
        parts = urlsplit(f"//{text.strip()}")
        port = parts.port
    except ValueError:  # a port or an address that is none
        return None
    name = (parts.hostname or "").removesuffix(".")
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return Address(name, None if port == _DEFAULT_PORTS.get(scheme, 80) else port)


def canonical_host(text: str) -> str:
    """A ``Host`` as it is compared, with its port where one was given."""
    try:
        parts = urlsplit(f"//{text.strip()}")
        name, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return text.strip().lower()
    if not name:
        return text.strip().lower()
    return name if port is None else f"{name}:{port}"


def canonical_origin(text: str) -> str:
    """An origin as it is compared: without the default port of its scheme, without what follows the port."""
    scheme, separator, rest = text.strip().lower().partition("://")
    address = address_of(rest.removesuffix("/"), scheme) if separator else None
    if address is None:
        return text.strip().lower()
    name = f"[{address.name}]" if ":" in address.name else address.name
    return f"{scheme}://{name}" + ("" if address.port is None else f":{address.port}")
