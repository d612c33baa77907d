"""Who of many callers gets which session: places on one or several servers, first come first served.

Below ``client_pool.py``, which gives a place its shape for users. A place is a session that one caller has at a time.
Sessions are opened when they are asked for and kept when they come back. A server that is full is asked again with
growing pauses, by one caller at a time, while the others wait in line. For one event loop; not for what is done with
a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from openenv_gym.client import EnvClient
from openenv_gym.errors import CapacityError, SessionStateError

__all__ = ["Place", "Places"]

ClientT = TypeVar("ClientT", bound=EnvClient[Any, Any, Any])

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class _Site(Generic[ClientT]):
    """One server.

    Args:
        root: knows the server and opens sessions there, and has none itself.
    """

    def __init__(self, root: ClientT) -> None:
        self.root = root
        self.idle: list[ClientT] = []  # with a session
        self.spare: list[ClientT] = []  # without one
        self.taken = 0
        self.opening = 0
        self.careful = False  # once it has refused a session: they are opened one by one then
        self._pause: asyncio.TimerHandle | None = None
        self._pause_s = _FIRST_PAUSE_S

    @property
    def may_open(self) -> bool:
        return not self.careful or (self.opening == 0 and self._pause is None)

    def pause(self, then: Callable[[], None]) -> None:
        """Open nothing for a while, twice as long as the last time."""
        self.resume()
        self.careful = True
        self._pause = asyncio.get_running_loop().call_later(self._pause_s, self._resumed, then)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _resumed(self, then: Callable[[], None]) -> None:
        self._pause = None
        then()

    def resume(self) -> None:
        """Do not wait for the end of the pause."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def welcome(self) -> None:
        """There is room, or has been made: ask at once."""
        self.resume()
        self._pause_s = _FIRST_PAUSE_S


@dataclasses.dataclass(eq=False, slots=True)
class Place(Generic[ClientT]):
    """A caller's place: one session on one server. ``found`` is its client, None before there is one."""

    site: _Site[ClientT]
    found: ClientT | None
    opens: bool
    asks_again: bool

    @property
    def client(self) -> ClientT:
        """The client whose session it is."""
        assert self.found is not None
        return self.found


class Places(Generic[ClientT]):
    """The places there are, and the line of those who wait for one.

    Args:
        roots: one client a server, not connected.
        limit: how many sessions there may be at once.
        capacity_timeout_s: seconds to wait for a full server on which this pool has no session; None: no limit.
    """

    def __init__(self, roots: Sequence[ClientT], limit: int, capacity_timeout_s: float | None) -> None:
        self._sites = [_Site(root) for root in roots]
        self._limit = limit
        self._capacity_timeout_s = capacity_timeout_s
        self._tickets = itertools.count()
        self._line: list[tuple[int, asyncio.Future[Place[ClientT]]]] = []
        self._endings: set[asyncio.Task[None]] = set()
        self._last_use = 0.0
        self.in_use = 0
        """Sessions that somebody has, or that are being ended after use."""
        self.closed = False

    @property
    def idle(self) -> int:
        """Open sessions that nobody has."""
        return sum(len(site.idle) for site in self._sites)

    @property
    def waiting(self) -> int:
        """Callers without a session yet: in line, or while it is opened."""
        in_line = sum(not waiter.done() for _, waiter in self._line)
        return in_line + sum(site.opening for site in self._sites)

    async def take(self) -> Place[ClientT]:
        """Wait in line for a place, and for its session.

        Raises:
            CapacityError: the servers are full, with sessions of others alone, for longer than is waited.
            SessionStateError: the pool is closed.
            OpenEnvGymError: the session could not be opened.
        """
        ticket = next(self._tickets)
        loop = asyncio.get_running_loop()
        since = loop.time()
        while True:
            place = await self._admitted(ticket)
            asked = loop.time()
            try:
                await self._connect(place)
            except CapacityError as error:
                self._refused(place, error, asked, since)
            except BaseException as error:
                if isinstance(error, ConnectionError) and len(self._sites) > 1:
                    # It has the fewest sessions now, but should not get every next caller for that.
                    place.site.pause(self._admit)
                self._vacate(place)
                raise
            else:
                self.in_use += 1
                return place

    def leave(self, place: Place[ClientT], *, keep: bool) -> None:
        """Give the place back.

        Args:
            place: the place.
            keep: whether its session may serve others; else it is ended, in the background.
        """
        self._last_use = asyncio.get_running_loop().time()
        if keep and not self.closed:
            self.in_use -= 1
            place.site.taken -= 1
            place.site.idle.append(place.client)
            self._admit()
            return
        self._end(place, frees=True)

    async def close(self) -> None:
        """End all sessions, under whoever has one too, and stop what was started for them. May be called again."""
        self.closed = True
        line, self._line = self._line, []
        for _, waiter in line:
            if not waiter.done():
                waiter.set_exception(self._closed_error())
        ended = await asyncio.gather(*(site.root.close() for site in self._sites), return_exceptions=True)
        await asyncio.gather(*self._endings, return_exceptions=True)
        for site in self._sites:
            site.resume()
            site.idle.clear()
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    # ------------------------------------------------------------------------------------------------------ the line

    async def _admitted(self, ticket: int) -> Place[ClientT]:
        """Wait in line; who was refused by a server keeps the ticket, and so comes first."""
        if self.closed:
            raise self._closed_error()
        waiter: asyncio.Future[Place[ClientT]] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (ticket, waiter))
        self._admit()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._unused(waiter.result())
            raise

    def _admit(self) -> None:
        """Give free places to those who wait."""
        while self._line and not self.closed:
            waiter = self._line[0][1]
            if not waiter.done():
                place = self._free_place()
                if place is None:
                    return
                waiter.set_result(place)
            heapq.heappop(self._line)

    def _free_place(self) -> Place[ClientT] | None:
        """A place on the server with the fewest taken: an idle session there, else one that is to be opened."""
        able = [site for site in self._sites if site.idle or site.may_open]
        if not able or sum(site.taken for site in self._sites) >= self._limit:
            return None
        site = min(able, key=lambda each: (each.taken, not each.idle))
        site.taken += 1
        if site.idle:
            return Place(site, site.idle.pop(), opens=False, asks_again=False)
        site.opening += 1
        return Place(site, site.spare.pop() if site.spare else None, opens=True, asks_again=site.careful)

    def _unused(self, place: Place[ClientT]) -> None:
        """The one it was for is gone."""
        if place.found is not None:
            (place.site.spare if place.opens else place.site.idle).append(place.found)
            place.found = None
        self._vacate(place)

    def _vacate(self, place: Place[ClientT]) -> None:
        """Nobody has the place any more; a client that it still has keeps no session."""
        if place.opens:
            place.opens = False
            place.site.opening -= 1
        if place.found is None:
            place.site.taken -= 1
            self._admit()
        else:
            self._end(place, frees=False)

    # -------------------------------------------------------------------------------------------------- the sessions

    async def _connect(self, place: Place[ClientT]) -> None:
        """See that the place has a client with a session. An idle one that was lost meanwhile is opened anew."""
        site = place.site
        if place.opens:
            await self._make_room()
        if place.found is None:
            place.found = await site.root.new_session()
        else:
            await place.found.connect()
            place.found.forget_episode()  # which was another caller's
        if place.opens:
            await _ask_for_room(place.found)
            site.opening -= 1
            place.opens = False
            site.welcome()
        if self.closed:
            await place.client.close()
            raise self._closed_error()
        self._admit()

    async def _make_room(self) -> None:
        """Idle sessions count too: where that makes too many, one of another server goes."""
        while sum(site.taken + len(site.idle) for site in self._sites) > self._limit:
            site = next(site for site in self._sites if site.idle)
            client = site.idle.pop()
            site.spare.append(client)
            await client.disconnect()

    def _refused(self, place: Place[ClientT], error: CapacityError, asked: float, since: float) -> None:
        """The server is full: ask again later, or give up.

        Args:
            place: the place that came to nothing.
            error: what the server said.
            asked: when it was asked; seconds, as ``since``.
            since: when its caller came.
        """
        site = place.site
        if place.asks_again or not site.careful:  # not for each of the many who asked before it was known
            site.pause(self._admit)
        self._vacate(place)
        limit_s = self._capacity_timeout_s
        if limit_s is None or self.in_use or self.idle:
            return
        if asked - max(since, self._last_use) < limit_s:
            return
        site.welcome()  # so that the others in line, whose time is up too, learn it now
        self._admit()
        raise CapacityError(
            f"expected room for a session on {site.root.base_url} within capacity_timeout_s={limit_s}, but others have "
            f"all its {error.max_sessions or ''} sessions: raise its max_concurrent_envs, end some, or wait longer. "
            f"({error})",
            code=error.code,
            data=error.data,
            active_sessions=error.active_sessions,
            max_sessions=error.max_sessions,
        ) from error

    def _end(self, place: Place[ClientT], *, frees: bool) -> None:
        """End the session in the background: whoever had it may be cancelled and have no time.

        Args:
            place: the place, which counts as taken until then.
            frees: whether it was in use, so that the server has room for another afterwards.
        """
        task = asyncio.get_running_loop().create_task(self._ended(place, frees=frees))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _ended(self, place: Place[ClientT], *, frees: bool) -> None:
        site = place.site
        try:
            with contextlib.suppress(Exception):  # it is not needed any more, whatever is wrong with it
                await place.client.disconnect()
        finally:
            site.taken -= 1
            site.spare.append(place.client)
            if frees:
                self.in_use -= 1
                self._last_use = asyncio.get_running_loop().time()
                site.welcome()
            self._admit()

    @staticmethod
    def _closed_error() -> SessionStateError:
        return SessionStateError(
            "expected an open pool, but it was closed: make another", expected="open", state="closed"
        )


async def _ask_for_room(client: EnvClient[Any, Any, Any]) -> None:
    """Let a server that takes connections beyond its limit, as ``openenv`` 0.10.0 does, refuse this one now."""
    try:
        await client.state()
    except (ConnectionError, TimeoutError):
        raise
    except Exception:  # noqa: BLE001, S110 - that it was answered is all; a state before a reset need not be readable
        pass
