"""Everything an operator may set about a server, validated once, at construction.

Not for what an environment's author decides (class attributes of ``Environment``) nor for what a client may ask for.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from openenv_gym.errors import SettingsError
from openenv_gym.types import ServerMode
from openenv_gym_server.addresses import canonical_host, canonical_origin

__all__ = [
    "CAPACITY_VARIABLE",
    "DEFAULT_CAPACITY",
    "DEFAULT_KEPT_SESSION_TIMEOUT_S",
    "DEFAULT_MESSAGE_SIZE_MB",
    "Names",
    "ServerSettings",
    "capacity_from_environment",
    "uvicorn_options",
]

DEFAULT_CAPACITY = 64
"""Sessions at a time for environments that declare ``SUPPORTS_CONCURRENT_SESSIONS``; one for all others."""

CAPACITY_VARIABLE = "MAX_CONCURRENT_ENVS"
"""The environment variable of the capacity, as OpenEnv's own environments name it."""

DEFAULT_MESSAGE_SIZE_MB = 16.0
"""The limit of one inbound message or request body, which is the reference's too."""

DEFAULT_KEPT_SESSION_TIMEOUT_S = 3600.0
"""How long a session kept over HTTP may be idle, where nothing else is set."""

Names: TypeAlias = frozenset[str] | Literal["all"]
"""An allow-list: the names themselves, or every one."""


def _names_from(variable: str) -> Names:
    """The comma-separated names of an environment variable; ``*`` is every one."""
    entries = frozenset(entry.strip() for entry in os.environ.get(variable, "").split(",") if entry.strip())
    return "all" if "*" in entries else entries


def _allowed_origins() -> Names:
    return _names_from("OPENENV_ALLOWED_ORIGINS")


def _allowed_hosts() -> Names:
    return _names_from("OPENENV_ALLOWED_HOSTS")


def _mode() -> str:
    return os.environ.get("OPENENV_MODE", "").strip() or ServerMode.SIMULATION


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """An operator's settings.

    Attributes:
        mode: ``"simulation"`` or ``"production"``, any letter case; else the environment variable ``OPENENV_MODE``,
            else simulation. In production no transport has reset, step and state.
        max_concurrent_envs: sessions at a time; None is what the environment variable ``MAX_CONCURRENT_ENVS`` says,
            else one for environments that do not declare ``SUPPORTS_CONCURRENT_SESSIONS`` and ``DEFAULT_CAPACITY``
            for those that do; ``"unlimited"`` is as many as come for those that do, and one for the others, whose
            instances may disturb one another.
        session_timeout_s: seconds after which an idle session is ended, one with an open socket included. None:
            sessions kept over HTTP end after ``DEFAULT_KEPT_SESSION_TIMEOUT_S``, sockets live as long as their peer
            answers pings.
        reset_timeout_s: seconds a reset may take before the session is ended; None is no limit.
        step_timeout_s: the same for every other request.
        open_timeout_s: seconds a socket under the subprotocol may wait with its ``x-open``; None is no limit. Such a
            socket has no environment yet and takes no slot.
        close_timeout_s: seconds to wait for an environment's ``close()`` before the peer is answered; and for slots
            that are being freed before a new session is refused.
        shutdown_timeout_s: seconds the server takes to stop, half of them for requests in flight, half for environments
            to close; what still runs then is left behind.
        max_message_size_mb: limit of one inbound message or request body, in MiB of UTF-8 text. Reading JSON takes a
            multiple of it, up to some 20 times for a message of nothing but brackets.
        seed: of the episodes that the server begins itself, which a session over MCP has; None is a random one.
        allowed_env_kwargs: keywords a client may give to the environment's factory.
        remote_names: methods and attributes a client may call and read; those that steer a session or reach past the
            environment's own face (``remote_names.UNREACHABLE``), and names with a leading underscore, never.
        allow_code: whether agents may give Python code that calls the tools of an ``MCPEnvironment``, as one more tool,
            ``execute_code``. It runs in a process of its own, confined as far as the system can (``code_confinement``:
            on Linux without files and network, elsewhere by limits of time and memory alone).
        token: what every request and handshake must carry as ``Authorization: Bearer <token>``; None asks for nothing.
        share_tracebacks: whether a client is sent the traceback of what the environment raised, source lines included;
            the server's log has it in any case.
        allowed_origins: web origins (``https://host[:port]``) that may use the server from a browser, besides the
            server's own; default from ``OPENENV_ALLOWED_ORIGINS`` (comma-separated, ``*`` for all).
        allowed_hosts: Host names, each with or without a port, that are served on a loopback address besides the
            loopback names, and whose own pages may use the server from a browser without TLS (addresses and names
            without a dot always may); default from ``OPENENV_ALLOWED_HOSTS``.
        shards: where the processes are that serve this environment together, this one among them, for clients with
            many environments to spread them: whole URLs, or ``":8001"``, that port of the host a client came to.
            ``/metadata`` says them. Empty: this one serves alone.

    Raises:
        SettingsError: ``setting`` names the one that cannot be.

    Example:
        >>> ServerSettings(mode="Production", max_concurrent_envs=4).mode
        'production'
    """

    mode: str = field(default_factory=_mode)
    max_concurrent_envs: int | Literal["unlimited"] | None = None
    session_timeout_s: float | None = None
    reset_timeout_s: float | None = None
    step_timeout_s: float | None = None
    open_timeout_s: float | None = 30.0
    close_timeout_s: float = 5.0
    shutdown_timeout_s: float = 10.0
    max_message_size_mb: float = DEFAULT_MESSAGE_SIZE_MB
    seed: int | None = None
    allowed_env_kwargs: Names = frozenset()
    remote_names: Names = frozenset()
    allow_code: bool = False
    token: str | None = field(default=None, repr=False)
    share_tracebacks: bool = False
    allowed_origins: Names = field(default_factory=_allowed_origins)
    allowed_hosts: Names = field(default_factory=_allowed_hosts)
    shards: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _valid_mode(self.mode))
        _check_capacity(self.max_concurrent_envs)
        for name in ("session_timeout_s", "reset_timeout_s", "step_timeout_s", "open_timeout_s"):
            if getattr(self, name) is not None:
                _check_positive(name, getattr(self, name))
        for name in ("close_timeout_s", "shutdown_timeout_s", "max_message_size_mb"):
            _check_positive(name, getattr(self, name))
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0):
            raise SettingsError(f"expected seed to be an integer of at least 0, got {self.seed!r}", setting="seed")
        _check_token(self.token)
        for name in ("allow_code", "share_tracebacks"):
            if not isinstance(getattr(self, name), bool):
                message = f"expected {name} to be True or False, got {getattr(self, name)!r}"
                raise SettingsError(message, setting=name)
        for name, canonical in _NAMES.items():
            object.__setattr__(self, name, _valid_names(name, getattr(self, name), canonical))
        object.__setattr__(self, "shards", _valid_shards(self.shards))

    @property
    def production(self) -> bool:
        """Whether reset, step and state are closed."""
        return self.mode == ServerMode.PRODUCTION

    @property
    def max_message_bytes(self) -> int:
        """The limit of one inbound message, in bytes."""
        return int(self.max_message_size_mb * 2**20)


def capacity_from_environment() -> int | Literal["unlimited"] | None:
    """The capacity that the environment variable ``MAX_CONCURRENT_ENVS`` sets; None where it is empty or not there.

    It holds where nothing else sets one: no argument of the application, no ``ServerSettings``, no option.

    Raises:
        SettingsError: it is neither a number of at least 1 nor ``unlimited``.
    """
    text = os.environ.get(CAPACITY_VARIABLE, "").strip()
    if not text or text == "unlimited":
        return "unlimited" if text else None
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise SettingsError(
            f'expected the environment variable {CAPACITY_VARIABLE} to be a number of at least 1 or "unlimited", '
            f"got {text[:100]!r}; mend it or unset it",
            setting="max_concurrent_envs",
        )
    return int(text)


def uvicorn_options(settings: ServerSettings) -> dict[str, Any]:
    """The options with which uvicorn holds these settings too.

    The socket's own limit is 1 MiB above ours, so that a message a little too large gets an error frame instead of a
    closed socket; a much larger one closes it with code 1009.
    """
    return {
        "ws_max_size": settings.max_message_bytes + 2**20,
        "timeout_graceful_shutdown": math.ceil(settings.shutdown_timeout_s / 2),
    }


def _valid_mode(mode: object) -> str:
    try:
        return ServerMode(str(getattr(mode, "value", mode)).strip().lower()).value
    except ValueError:
        raise SettingsError(
            f'expected mode "simulation" or "production", got {mode!r}; set mode= or OPENENV_MODE', setting="mode"
        ) from None


def _check_capacity(capacity: object) -> None:
    if capacity is None or capacity == "unlimited":
        return
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        raise SettingsError(
            f'expected max_concurrent_envs of at least 1, "unlimited" or None, got {capacity!r}',
            setting="max_concurrent_envs",
        )


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise SettingsError(f"expected {name} to be a positive number, got {value!r}", setting=name)


def _check_token(token: object) -> None:
    if token is None:
        return
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise SettingsError(
            "expected token to be a string of letters, digits and -._~+/ (RFC 6750), got something else, which is not "
            "repeated here; secrets.token_urlsafe() makes one",
            setting="token",
        )


_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")

_NAMES: dict[str, Callable[[str], str]] = {
    "allowed_env_kwargs": str,
    "remote_names": str,
    "allowed_origins": canonical_origin,
    "allowed_hosts": canonical_host,
}
"""The settings that are sets of names, each with the form in which its names are compared."""


def _valid_names(setting: str, names: object, canonical: Callable[[str], str]) -> Names:
    if names == "all":
        return "all"
    if isinstance(names, str) or not isinstance(names, set | frozenset | list | tuple):
        raise SettingsError(f'expected {setting} to be a set of names or "all", got {names!r}', setting=setting)
    return frozenset(canonical(str(name)) for name in names)


def _valid_shards(shards: object) -> tuple[str, ...]:
    if isinstance(shards, str) or not isinstance(shards, list | tuple):
        raise SettingsError(f"expected shards to be a sequence of URLs, got {shards!r}", setting="shards")
    for shard in shards:
        if not isinstance(shard, str) or not _SHARD.fullmatch(shard):
            raise SettingsError(
                f'expected each of shards to be a URL (http://host:port) or a port (":8001"), got {shards!r}',
                setting="shards",
            )
    return tuple(shards)


_SHARD = re.compile(r":[1-9][0-9]{0,4}|https?://[^\s/?#]+(?:/[^\s?#]*)?")
