"""Which proxy and which TLS a connection uses, and how TCP is set: one policy for WebSocket and HTTP alike.

Not for opening connections (``blocking``, ``http``).
"""

from __future__ import annotations

import ipaddress
import math
import socket
import ssl
import urllib.request
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from openenv_gym.errors import SettingsError, UnreachableError
from openenv_gym.transports.base import ConnectionSettings, redacted

__all__ = ["MAX_REDIRECTS", "USER_AGENT", "is_loopback", "keep_alive", "proxy_for", "redirect_target", "tls_context"]

MAX_REDIRECTS = 10

try:
    USER_AGENT = f"openenv-gym/{version('openenv-gym')}"
except PackageNotFoundError:  # pragma: no cover - run from a source tree that was never installed
    USER_AGENT = "openenv-gym"

_PROXY_SCHEMES = frozenset({"http", "https", "socks5", "socks5h"})
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


def is_loopback(host: str) -> bool:
    """Whether the host can only be this machine: ``localhost``, names below it, 127.0.0.0/8, ``::1``, and 0.0.0.0."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified


def proxy_for(url: str, settings: ConnectionSettings) -> str | None:
    """The proxy for ``url``, or None.

    From the environment, ``http`` and ``ws`` go through HTTP_PROXY, ``https`` and ``wss`` through HTTPS_PROXY, either
    through ALL_PROXY where that one is not set, and the hosts of NO_PROXY directly. Small letters count as well.

    Raises:
        SettingsError: what is named is no proxy's URL.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if settings.proxy is None or is_loopback(host):
        return None
    if isinstance(settings.proxy, str):
        return _checked_proxy(settings.proxy)
    if urllib.request.proxy_bypass(f"{host}:{parts.port or _DEFAULT_PORTS[parts.scheme]}"):
        return None
    proxies = urllib.request.getproxies()
    found = proxies.get("https" if parts.scheme in {"https", "wss"} else "http") or proxies.get("all")
    if found is None:
        return None
    return _checked_proxy(found)


def _checked_proxy(proxy: str) -> str:
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
        usable = usable and parts.path in {"", "/"} and not parts.query and not parts.fragment
        usable = usable and (parts.username is None or parts.password is not None)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            "expected the proxy (setting `proxy`, or HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) to be a URL such as "
            f"http://host:3128 or http://user:password@host:3128, got {redacted(url)!r}",
            setting="proxy",
        )
    return url


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """What to trust and what to show.

    Raises:
        SettingsError: a certificate's file is missing or is none.
    """
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"expected ca_file to be a PEM file of certificates, {settings.ca_file!r} is not: {error}",
            setting="ca_file",
        ) from error
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.client_certificate is not None:
        try:
            context.load_cert_chain(settings.client_certificate, settings.client_key)
        except (OSError, ValueError) as error:
            raise SettingsError(
                "expected client_certificate (and client_key) to be PEM files of a certificate and its key, "
                f"{settings.client_certificate!r} and {settings.client_key!r} are not: {error}",
                setting="client_certificate",
            ) from error
    return context


_PROBES = 4


def keep_alive(sock: socket.socket, settings: ConnectionSettings) -> None:
    """Have TCP ask a silent peer whether it is still there, as the settings say; where TCP cannot, it is left alone."""
    if not settings.keepalive_interval_s:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {"TCP_KEEPIDLE": settings.keepalive_interval_s, "TCP_KEEPALIVE": settings.keepalive_interval_s}
    if settings.keepalive_timeout_s:
        values |= {"TCP_KEEPINTVL": settings.keepalive_timeout_s / _PROBES, "TCP_KEEPCNT": _PROBES}
    for name, value in values.items():
        option = getattr(socket, name, None)  # TCP_KEEPALIVE is what macOS calls TCP_KEEPIDLE
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, max(1, math.ceil(value)))


def redirect_target(url: str, location: str, status: int) -> tuple[str, bool]:
    """Where a redirect leads, in the scheme family of ``url``, and whether our headers may go there.

    They may within one origin, and from plain to TLS on the same host with default ports, as RFC 6797 upgrades do.

    Raises:
        UnreachableError: from TLS to plain, or to no address at all.
    """
    old = urlsplit(url)
    schemes = ("ws", "wss") if old.scheme in {"ws", "wss"} else ("http", "https")
    target = _address_in(location, url)
    if target is None:
        raise UnreachableError(
            f"{redacted(url)} redirects (HTTP {status}) to {redacted(location)[:200]!r}, which is no server's address",
            url=redacted(url),
            status=status,
        )
    target = target._replace(scheme=schemes[target.scheme in {"https", "wss"}], fragment="")
    if old.scheme in {"https", "wss"} and target.scheme in {"http", "ws"}:
        raise UnreachableError(
            f"{redacted(url)} redirects (HTTP {status}) from TLS to the plain {redacted(target.geturl())}; "
            "that is not followed, check base_url",
            url=redacted(url),
            status=status,
        )
    ports = tuple(part.port or _DEFAULT_PORTS[part.scheme] for part in (old, target))
    same = old.hostname == target.hostname and (
        (old.scheme == target.scheme and ports[0] == ports[1]) or ports == (80, 443)
    )
    return target.geturl(), same


def _address_in(location: str, url: str) -> SplitResult | None:
    """What a ``Location`` names, seen from ``url``, with nothing in it that a request line cannot have."""
    try:
        target = urlsplit(urljoin(url, location))
        usable = target.scheme in _DEFAULT_PORTS and bool(target.hostname) and target.port != 0
        usable = usable and target.netloc.isascii() and target.netloc.isprintable() and " " not in target.netloc
        return target._replace(path=_quoted(target.path), query=_quoted(target.query)) if usable else None
    except ValueError:
        return None


def _quoted(text: str) -> str:
    # A header's text stands for its bytes, one a character, or in WebSockets for those of UTF-8.
    raw = text.encode("latin-1") if all(ord(each) < 256 for each in text) else text.encode("utf-8", "surrogateescape")
    return quote(raw, safe="/%:@!$&'()*+,;=-._~?")
