"""What every transport has in common: its interface, its settings, and the address it goes to.

Not for I/O (``blocking``, ``http``, ``memory``) nor for choosing proxies and TLS (``network``).
"""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

from openenv_gym.errors import SettingsError
from openenv_gym.transports.busy_wait import AT_ONCE_S

__all__ = ["ConnectionSettings", "Frame", "Transport", "http_url", "redacted", "websocket_url"]


class Frame(NamedTuple):
    """One whole message: its bytes, and whether they travelled as text (UTF-8) or as binary.

    Of a long binary message the bytes may be a ``memoryview``, of memory that is nobody else's.
    """

    payload: bytes
    text: bool


class Transport(Protocol):
    """A connection that carries whole messages, used by one call at a time.

    After any error the transport is ``closed``, so that a late answer can never be read as the answer to a later
    request. Two refusals alone leave it as it was: of an outgoing message above this end's own limit, and of a call in
    the middle of another. An exception that is not the transport's own, as a signal handler may raise, comes out as it
    is, and closes the transport too. ``subprotocol`` is what the server agreed to, None where it agreed to nothing.
    """

    subprotocol: str | None

    @property
    def closed(self) -> bool:
        """True once nothing more can be sent, by the peer's doing as well: as soon as its close has been read."""
        ...

    @property
    def pending(self) -> bool:
        """Whether a message has arrived, in part at least, that no ``receive()`` has taken. Reads, never blocks.

        Between two requests it tells of a message that nobody asked for. ``closed`` is up to date afterwards.

        Raises:
            SessionStateError: another call is in flight.
        """
        ...

    @property
    def arrived(self) -> bool:
        """Whether ``receive()`` would give a whole message at once. Reads, never blocks; else as ``pending``."""
        ...

    @property
    def ready(self) -> bool:
        """Whether there may be something to read that no poll of ``fileno()`` would tell of. Does not read."""
        ...

    def fileno(self) -> int:
        """The descriptor to poll for what comes; -1 where there is none (any more)."""
        ...

    def send(self, payload: bytes, *, text: bool = True) -> None:
        """Send one message.

        Where the peer has closed and left messages to read, nothing is sent and nothing raised: ``receive()`` gives
        those messages, then the error.

        Raises:
            MessageTooLargeError: above this end's limit: nothing was sent, the transport stays usable and is not
                ``closed``. Or the peer has closed (close code 1009) over an earlier message: the transport is
                ``closed``.
            RequestTimeoutError: the peer took nothing for as long as the longest request may last.
            SessionLostError: the connection is gone.
            SessionStateError: another call is in flight.
        """
        ...

    def receive(self, timeout_s: float | None) -> Frame:
        """Wait for the next message, at most ``timeout_s`` seconds for the whole of it (None or 0: no limit).

        Raises:
            MessageTooLargeError: above the limit of this end, or (close code 1009) ours above that of the server.
            ProtocolError: the peer does not keep to RFC 6455.
            RequestTimeoutError: no whole message came in time.
            SessionLostError: the connection is gone.
            SessionStateError: another call is in flight.
        """
        ...

    def close(self) -> None:
        """Close, waiting at most ``close_timeout_s`` for the peer.

        Again: nothing, or what an interrupt has left undone the first time.
        """
        ...

    def drop(self, reason: str) -> None:
        """Close at once: nothing is waited for, and a call in flight raises ``SessionLostError``. Again: nothing."""
        ...


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section 5.6.2
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OWN_HEADERS = frozenset({"connection", "content-length", "transfer-encoding", "upgrade"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach a server and how long to wait for it.

    Args:
        connect_timeout_s: seconds for opening a connection, from name resolution to the last handshake; also for a
            whole HTTP request.
        reset_timeout_s: seconds for an answer to reset; None or 0 for no limit.
        step_timeout_s: seconds for any other answer; None or 0 for no limit.
        close_timeout_s: seconds to wait for the peer when closing.
        busy_wait_s: seconds for which an answer is asked for again and again before the thread sleeps, while the
            answers before came as quickly, and four times as long for a vector's only session; 0: never. It saves the
            time that waking up takes, at the price of the processor's. Never done where there is but one processor,
            nor with a server that does not speak ``openenv-gym.v1``.
        keepalive_interval_s: seconds of silence after which TCP asks whether the peer is still there; None or 0: it
            does not ask.
        keepalive_timeout_s: seconds without an answer to that after which the session is lost; None or 0: as the system
            has it.
        max_message_size_mb: limit of one message in MiB, each way.
        headers: sent with the WebSocket handshake and every HTTP request. The values never show in ``repr`` or errors.
        ca_file: PEM file with the certificate authorities to trust instead of the system's.
        client_certificate: PEM file with the certificate (chain) this client shows.
        client_key: PEM file with its key, where the certificate's file has none.
        verify: False accepts any certificate: for tests alone.
        proxy: URL of a proxy, None for none, True for HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. A loopback
            address is always reached directly.

    Raises:
        SettingsError: a value that cannot be; ``setting`` names it.

    Example:
        >>> settings = ConnectionSettings(step_timeout_s=None, headers={"Authorization": "Bearer secret"})
        >>> "secret" in repr(settings)
        False
        >>> ConnectionSettings.from_mapping({"connect_timeout_s": 2}).connect_timeout_s
        2
    """

    connect_timeout_s: float = 10.0
    reset_timeout_s: float | None = 60.0
    step_timeout_s: float | None = 60.0
    close_timeout_s: float = 5.0
    busy_wait_s: float = AT_ONCE_S
    keepalive_interval_s: float | None = 20.0
    keepalive_timeout_s: float | None = 20.0
    max_message_size_mb: float = 100.0
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    ca_file: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    verify: bool = True
    proxy: str | Literal[True] | None = True

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> ConnectionSettings:
        """The settings in a mapping of their names.

        Raises:
            SettingsError: a name that is no setting, or a value that cannot be.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in mapping:
            if name not in known:
                raise SettingsError(
                    f"expected connection settings out of {', '.join(known)}; got {name!r}", setting=str(name)
                )
        return cls(**cast("dict[str, object]", dict(mapping)))  # type: ignore[arg-type]

    def with_headers(self, headers: Mapping[str, str]) -> ConnectionSettings:
        """These settings with more headers; one of the same name replaces the old."""
        if not headers:
            return self
        new = {name.lower() for name in headers}
        kept = {name: value for name, value in self.headers.items() if name.lower() not in new}
        return dataclasses.replace(self, headers={**kept, **headers})

    def __post_init__(self) -> None:
        for name in ("connect_timeout_s", "max_message_size_mb"):
            self._check_number(name, optional=False, positive=True)
        for name in ("close_timeout_s", "busy_wait_s"):
            self._check_number(name, optional=False, positive=False)
        for name in ("reset_timeout_s", "step_timeout_s", "keepalive_interval_s", "keepalive_timeout_s"):
            self._check_number(name, optional=True, positive=False)
        for name in ("ca_file", "client_certificate", "client_key"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise SettingsError(f"expected {name} to be a path as text or None, got {value!r}", setting=name)
        if not isinstance(self.verify, bool):
            raise SettingsError(f"expected verify to be True or False, got {self.verify!r}", setting="verify")
        if self.client_key is not None and self.client_certificate is None:
            raise SettingsError("client_key needs client_certificate as well", setting="client_key")
        if self.proxy is not None and self.proxy is not True and not isinstance(self.proxy, str):
            raise SettingsError(
                "expected proxy to be a URL, None (no proxy) or True (from the environment)", setting="proxy"
            )
        object.__setattr__(self, "headers", _checked_headers(self.headers))

    def _check_number(self, name: str, *, optional: bool, positive: bool) -> None:
        value = getattr(self, name)
        if value is None and optional:
            return
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (positive and value == 0):
            wanted = "a finite number above 0" if positive else "a finite number, 0 or above"
            raise SettingsError(
                f"expected {name} to be {wanted}{' (None or 0: none)' if optional else ''}, got {value!r}",
                setting=name,
            )

    def __repr__(self) -> str:
        """The settings, with names alone for the headers and without the credentials of the proxy."""
        shown = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        shown["headers"] = dict.fromkeys(self.headers, "…")
        if isinstance(self.proxy, str):
            shown["proxy"] = redacted(self.proxy)
        return f"ConnectionSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def max_message_bytes(self) -> int:
        """The limit of one message in bytes."""
        return int(self.max_message_size_mb * 1024 * 1024)

    @property
    def send_timeout_s(self) -> float | None:
        """Seconds a peer may leave a message unread: the longest request timeout, None where one has no limit."""
        if not self.reset_timeout_s or not self.step_timeout_s:
            return None
        return max(self.reset_timeout_s, self.step_timeout_s)


def _checked_headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise SettingsError(f"expected headers to map names to values, got {type(headers).__name__}", setting="headers")
    checked = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise SettingsError(f"expected the name of a header, got {name!r}", setting="headers")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("sec-websocket-"):
            raise SettingsError(f"the header {name} is set by the connection itself; leave it out", setting="headers")
        # The value may be a secret, so the message describes it and does not show it.
        if not isinstance(value, str):
            raise SettingsError(f"expected the header {name} to be text, got {type(value).__name__}", setting="headers")
        if not _VALUE.fullmatch(value):
            raise SettingsError(
                f"the value of the header {name} has a line end, a control character or one outside ASCII; "
                "a token read from a file may need strip()",
                setting="headers",
            )
        checked[name] = value
    return checked


def websocket_url(base_url: str, path: str = "/ws") -> str:
    """The WebSocket address of ``path`` below a server's base URL; ``http`` becomes ``ws``, ``https`` becomes ``wss``.

    Raises:
        SettingsError: not the address of a server.

    Example:
        >>> websocket_url("https://example.com/prefix/")
        'wss://example.com/prefix/ws'
        >>> websocket_url("[::1]:8000")
        'ws://[::1]:8000/ws'
    """
    parts = _split(base_url)
    return _join(parts, "wss" if parts.scheme in {"https", "wss"} else "ws", path)


def http_url(base_url: str, path: str) -> str:
    """The HTTP address of ``path`` below a server's base URL; ``ws`` becomes ``http``, ``wss`` becomes ``https``.

    Raises:
        SettingsError: not the address of a server.

    Example:
        >>> http_url("host:8000", "/schema")
        'http://host:8000/schema'
    """
    parts = _split(base_url)
    return _join(parts, "https" if parts.scheme in {"https", "wss"} else "http", path)


def _join(parts: SplitResult, scheme: str, path: str) -> str:
    return urlunsplit((scheme, parts.netloc, f"{parts.path.rstrip('/')}/{path.lstrip('/')}", "", ""))


def _split(base_url: str) -> SplitResult:
    if not isinstance(base_url, str) or not base_url.strip():
        raise _bad_address(f"got {base_url!r}")
    if _is_bare_ipv6(base_url):
        raise _bad_address(f"an IPv6 address needs brackets: [{base_url}]")
    try:
        parts = urlsplit(base_url if "://" in base_url else f"ws://{base_url}")
        port = parts.port
    except ValueError as error:
        # The text of the foreign error may repeat the address with its credentials.
        raise _bad_address("its host or port cannot be read") from error
    if parts.scheme not in {"http", "https", "ws", "wss"}:
        raise _bad_address(f"got the scheme {parts.scheme!r}")
    if not parts.hostname or any(character.isspace() for character in base_url) or port == 0:
        raise _bad_address("its host or port is missing" if not parts.hostname else f"got {redacted(base_url)!r}")
    if parts.query or parts.fragment:
        raise _bad_address("it has a query or a fragment; credentials go into the setting `headers`")
    if parts.username is not None and parts.password is None:
        raise _bad_address("it has a user name without a password; a token goes into the setting `headers`")
    return parts


def _bad_address(what: str) -> SettingsError:
    return SettingsError(
        f"expected base_url to be a server's address such as http://127.0.0.1:8000 or https://host/prefix: {what}",
        setting="base_url",
    )


def _is_bare_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def redacted(url: str) -> str:
    """The URL without user name, password, query and fragment, fit for a message."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    _, at, host = parts.netloc.rpartition("@")
    host = f"…@{host}" if at else host
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
