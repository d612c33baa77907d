"""Opening the sessions of a vector environment: over which servers, how many environments in each, all or none.

Not for what they do once they are open (``vector_rollout.py``), nor for where the first addresses come from
(``providers/``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec
from gymnasium.vector import AutoresetMode

from openenv_gym import messages
from openenv_gym.errors import (
    CapacityError,
    EnvironmentFactoryError,
    ServerError,
    SettingsError,
    SpaceMappingError,
    UnreachableError,
)
from openenv_gym.interface import Interface, SpaceOverrides
from openenv_gym.session import SessionState
from openenv_gym.shell import Shell
from openenv_gym.transports.base import ConnectionSettings, Transport, http_url
from openenv_gym.vector_first_come import FirstComeSession
from openenv_gym.vector_rollout import EnvSession
from openenv_gym.vector_sessions import VectorSession
from openenv_gym.vector_singles import SingleSession
from openenv_gym.vector_waiting import deadline_in, finish_in_time
from openenv_gym.waiting import close_all

__all__ = ["Block", "Server", "VectorPlan", "blocks_of", "find_servers", "open_sessions"]

_T = TypeVar("_T")
_FAILED = "another session could not be opened"
_STEPS_LONGER = 4  # a vector's only session, than one environment's; where there are several, none is waited for alone
_AT_ONCE = 16  # connections that are opened at the same time


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlan:
    """What is to be opened.

    Args:
        num_envs: how many environments in all.
        envs_per_session: how many at most in one session; None: as many as a server has of them.
        autoreset_mode: what happens after the end of an episode.
        open_settings: how each session's environments are to be made.
        overrides: what the caller decides about the Spaces.
        binary: whether binary frames may be used.
    """

    num_envs: int
    envs_per_session: int | None
    autoreset_mode: AutoresetMode
    open_settings: messages.OpenSettings
    overrides: SpaceOverrides
    binary: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """An address and how to reach it."""

    base_url: str
    settings: ConnectionSettings


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """The environments ``first`` to ``first + count - 1``, on one server."""

    server: Server
    first: int
    count: int


def find_servers(servers: Sequence[Server]) -> list[Server]:
    """These servers and the shards that they publish in their ``/metadata``, each once.

    A shard is a URL, or ``:port`` of the same host. One on another host gets no headers: they may hold a secret that
    was meant for the host that the caller named.

    Raises:
        UnreachableError: a server does not answer.
    """
    found: dict[str, Server] = {}
    for shards in _at_once([functools.partial(_shards_of, server) for server in servers]):
        for shard in shards:
            found.setdefault(http_url(shard.base_url, "/"), shard)
    return list(found.values())


def _shards_of(server: Server) -> list[Server]:
    from openenv_gym.transports.http import fetch_json  # noqa: PLC0415  (httpx is heavy; an embedded server needs none)

    try:
        document = fetch_json(server.base_url, "/metadata", server.settings)
    except UnreachableError as error:
        if error.status is None:
            raise
        return [server]  # it is there, and publishes nothing
    known = document.get("gymnasium") if isinstance(document, dict) else None
    listed: Any = None
    for place in (known, document):
        if listed is None and isinstance(place, dict):
            listed = place.get("shards")
    if not isinstance(listed, list) or not listed or not all(isinstance(shard, str) for shard in listed):
        return [server]
    return [_shard(server, shard) for shard in listed]


def _shard(server: Server, address: str) -> Server:
    here = urlsplit(http_url(server.base_url, "/"))
    if address.startswith(":"):
        host = here.netloc.rpartition("@")[2]
        host = host.rpartition(":")[0] if here.port is not None else host
        credentials = here.netloc.rpartition("@")[0]
        netloc = f"{credentials}@{host}{address}" if credentials else f"{host}{address}"
        return Server(urlunsplit((here.scheme, netloc, here.path, "", "")), server.settings)
    if urlsplit(http_url(address, "/")).hostname == here.hostname:
        return Server(address, server.settings)
    return Server(address, dataclasses.replace(server.settings, headers={}))


def blocks_of(servers: Sequence[Server], num_envs: int) -> list[Block]:
    """The environments as contiguous blocks, one a server, of sizes that differ by one at most.

    Example:
        >>> server = Server("http://a:8000", ConnectionSettings())
        >>> [(block.first, block.count) for block in blocks_of([server] * 3, 8)]
        [(0, 3), (3, 3), (6, 2)]
    """
    least, more = divmod(num_envs, len(servers))
    blocks, first = [], 0
    for index, server in enumerate(servers):
        count = least + (index < more)
        if count:
            blocks.append(Block(server, first, count))
        first += count
    return blocks


def _pieces(block: Block, size: int | None) -> list[Block]:
    """The block in pieces of at most so many environments."""
    size = size or block.count
    last = block.first + block.count
    return [Block(block.server, first, min(size, last - first)) for first in range(block.first, last, size)]


def open_sessions(
    servers: Sequence[Server], plan: VectorPlan, check: Callable[[Interface, Server], None]
) -> tuple[list[EnvSession], Interface]:
    """Open every session, or none.

    Args:
        servers: where.
        plan: what.
        check: raises where a server's interface is not what the caller wants.

    Returns:
        The sessions in the order of their environments, and what the environments look like.

    Raises:
        CapacityError: the servers have room for fewer; the message names the limit and the setting.
        SettingsError: a server cannot do what was asked for.
        SpaceMappingError: a server's schema has no Space, or two servers have different ones.
        UnreachableError, ServerError: a server does not answer, or cannot make the environments.
    """
    shells: list[Shell] = []
    try:
        return _Opening(plan, check, shells).run(blocks_of(servers, plan.num_envs))
    except BaseException as error:
        close_all(shells, max(server.settings.close_timeout_s for server in servers))
        if isinstance(error, CapacityError):
            raise _no_room(error, plan.num_envs) from error
        raise


class _Opening:
    """One attempt to open all sessions; ``shells`` is given every connection before it is made."""

    def __init__(self, plan: VectorPlan, check: Callable[[Interface, Server], None], shells: list[Shell]) -> None:
        self._plan = plan
        self._check = check
        self._shells = shells
        self._stopped = False

    def run(self, blocks: Sequence[Block]) -> tuple[list[EnvSession], Interface]:
        size = self._plan.envs_per_session
        # The first session of a server shows what server it is.
        firsts = _at_once([functools.partial(self._first, _pieces(block, size)[0]) for block in blocks], self._stop)
        interface = firsts[0][1]
        for (shell, other), block in zip(firsts, blocks, strict=True):
            self._check(other, block.server)
            _require_same(interface, other, shell.base_url)
        rest: list[Block] = []
        for (shell, _), block in zip(firsts, blocks, strict=True):
            rest += _pieces(block, 1 if shell.opened is None else size)[1:]
        opened = {block.first: shell for (shell, _), block in zip(firsts, blocks, strict=True)}
        interfaces = {block.server: other for (_, other), block in zip(firsts, blocks, strict=True)}
        jobs = [functools.partial(self._further, piece, interfaces[piece.server]) for piece in rest]
        further = _at_once(jobs, self._stop)
        opened |= dict(zip((piece.first for piece in rest), further, strict=True))
        _require_room([shell for shell in opened.values() if shell.opened is None])
        faces = {id(shell): interfaces[block.server] for block in [*blocks, *rest] for shell in [opened[block.first]]}
        return [self._session(first, shell, faces[id(shell)]) for first, shell in sorted(opened.items())], interface

    def _first(self, piece: Block) -> tuple[Shell, Interface]:
        shell = self._open(piece)
        if shell.opened is None:
            self._require_plain(shell.base_url)
        return shell, Interface.of(shell.opened, shell.base_url, shell.settings, self._plan.overrides)

    def _further(self, piece: Block, interface: Interface) -> Shell:
        shell = self._open(piece)
        if not interface.describes(shell.opened):
            raise _another(shell.base_url)
        return shell

    def _open(self, piece: Block) -> Shell:
        settings = msgspec.structs.replace(self._plan.open_settings, num_envs=piece.count)
        connection = piece.server.settings
        if 1 < piece.count == self._plan.num_envs:
            connection = dataclasses.replace(connection, busy_wait_s=_STEPS_LONGER * connection.busy_wait_s)
        shell = Shell(piece.server.base_url, connection, settings, connect=self._connect)
        self._shells.append(shell)
        shell.open()
        return shell

    def _connect(self, base_url: str, settings: ConnectionSettings, **offered: Any) -> Transport:
        from openenv_gym.transports.blocking import connect  # noqa: PLC0415  (as in shell.py)

        transport = connect(base_url, settings, **offered)
        if self._stopped:
            transport.drop(_FAILED)
        return transport

    def _stop(self) -> None:
        """Leave what is being opened: nobody waits for the slowest server only to close it."""
        self._stopped = True
        for shell in list(self._shells):
            if shell.in_flight or shell.session.state is SessionState.NEW:
                shell.drop(_FAILED)

    def _require_plain(self, base_url: str) -> None:
        """Nothing may be asked of a server of another make that only ours can do."""
        settings = self._plan.open_settings
        for name in ("env_kwargs", "vectorization"):
            if getattr(settings, name):
                raise SettingsError(
                    f"{name}={getattr(settings, name)!r} needs a server that speaks {messages.SUBPROTOCOL}; "
                    f"{base_url} does not: leave it out",
                    setting=name,
                )

    def _session(self, first: int, shell: Shell, interface: Interface) -> EnvSession:
        plan = self._plan
        if shell.opened is None:
            return SingleSession(
                shell,
                interface,
                first,
                autoreset_mode=plan.autoreset_mode,
                max_episode_steps=plan.open_settings.max_episode_steps,
            )
        # Binary values are laid out by the server's own Spaces.
        binary = plan.binary and shell.opened.binary and interface.packed_fields is not None
        kind = FirstComeSession if shell.opened.first_come else VectorSession
        return kind(shell, interface, first, binary=binary)


def _require_same(interface: Interface, other: Interface, base_url: str) -> None:
    for name in ("action_space", "observation_space"):
        if getattr(interface, name) != getattr(other, name):
            raise SpaceMappingError(
                f"expected every server to have the {name} {getattr(interface, name)}, but that of {base_url} is "
                f"{getattr(other, name)}",
                path="$",
            )


def _another(base_url: str) -> SpaceMappingError:
    return SpaceMappingError(f"expected {base_url} to serve the same environment in every session", path="$")


def _require_room(shells: Sequence[Shell]) -> None:
    """A server of another make says only when it is asked something that it is full."""
    failure: ServerError | None = None
    for shell in shells:
        shell.begin(messages.State)
    until = deadline_in(shells[0].settings.reset_timeout_s or None) if shells else None
    for shell in shells:
        try:
            finish_in_time(shell.finish, until)
        except (CapacityError, EnvironmentFactoryError) as error:
            failure = failure or error
        except ServerError:
            continue  # there is an environment, which has no state before its first reset
    if failure is not None:
        raise failure


def _no_room(error: CapacityError, num_envs: int) -> CapacityError:
    facts: Mapping[str, Any] = {name: getattr(error, name) for name in error.attributes}
    limit = "" if error.max_sessions is None else f", whose limit is {error.max_sessions}"
    return CapacityError(
        f"expected room for {num_envs} environments on the servers{limit}: raise max_concurrent_envs there, ask for "
        f"fewer environments or name more servers. The server said: {error.message}",
        **facts,
    )


def _at_once(jobs: Sequence[Callable[[], _T]], stop: Callable[[], None] | None = None) -> list[_T]:
    """The results of the jobs, some of which run at the same time.

    At the first failure no further one begins, and those that run are waited for, once ``stop`` has told them to end.
    """
    if len(jobs) <= 1:
        return [job() for job in jobs]
    with ThreadPoolExecutor(min(_AT_ONCE, len(jobs)), thread_name_prefix="openenv-gym-opening") as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            if stop is not None:
                stop()
            raise
