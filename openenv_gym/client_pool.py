"""``pool``: sessions in bulk for rollouts that own their loop, agents' above all.

A rollout is a coroutine that is given a client and plays with it as it likes. The pool bounds how many play at once,
keeps their connections for the next, and spreads them over servers; which session is whose, and who waits, is
``pool_places.py``. Not for environments that are stepped in lockstep: that is ``RemoteVectorEnv``.

Two ways in, and no third: ``session()`` for a program with a structure of its own, ``map()`` for tasks in, results
out. A list of results is ``[result async for result in pool.map(...)]``.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import inspect
import re
import types
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeVar, overload

from openenv_gym.client import EnvClient
from openenv_gym.discovery import connect
from openenv_gym.errors import SessionStateError, SettingsError
from openenv_gym.pool_places import Places

__all__ = ["ClientPool", "PoolStats", "pool"]

ClientT = TypeVar("ClientT", bound=EnvClient[Any, Any, Any])
TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

_CANCEL_TIMEOUT_S = 5.0


@overload
def pool(
    servers: str | Sequence[str],
    *,
    max_sessions: int = 64,
    client: None = None,
    capacity_timeout_s: float | None = 60.0,
    **settings: Any,
) -> ClientPool[EnvClient[Any, Any, Any]]: ...


@overload
def pool(
    servers: str | Sequence[str] | None = None,
    *,
    max_sessions: int = 64,
    client: Callable[..., ClientT],
    capacity_timeout_s: float | None = 60.0,
    **settings: Any,
) -> ClientPool[ClientT]: ...


def pool(
    servers: str | Sequence[str] | None = None,
    *,
    max_sessions: int = 64,
    client: Callable[..., Any] | None = None,
    capacity_timeout_s: float | None = 60.0,
    **settings: Any,
) -> ClientPool[Any]:
    """A pool of clients; nothing is connected or started before somebody asks for a session.

    Args:
        servers: what ``connect`` takes as a name ("echo", a URL, a Gymnasium id), or several. With ``client``:
            addresses alone, or None where the client has a server of its own.
        max_sessions: how many sessions there may be at once, on all servers together.
        client: the class of the clients, or what makes one of an address and the settings; None: the one that
            ``connect`` gives.
        capacity_timeout_s: seconds to wait for room on servers that are full of others' sessions; None: no limit.
        **settings: further arguments of the clients.

    Raises:
        SettingsError: a value that cannot be.

    Example:
        >>> async def play(client, task):
        ...     await client.reset(seed=task)
        ...     return (await client.step({"message": "hello"})).reward
        >>> async with pool("echo", max_sessions=32) as sessions:                           # doctest: +SKIP
        ...     async for reward in sessions.map(play, range(1000)):
        ...         print(reward)
    """
    if isinstance(max_sessions, bool) or not isinstance(max_sessions, int) or max_sessions < 1:
        raise SettingsError(f"expected max_sessions to be 1 or more, got {max_sessions!r}", setting="max_sessions")
    if capacity_timeout_s is not None and not capacity_timeout_s >= 0:
        raise SettingsError(
            f"expected capacity_timeout_s in seconds or None, got {capacity_timeout_s!r}", setting="capacity_timeout_s"
        )
    names = [servers] if servers is None or isinstance(servers, str) else list(servers)
    if not names or (client is None and None in names):
        raise SettingsError(f"expected a server's name or address, or several, got {servers!r}", setting="servers")
    if len(names) > 1 and settings.get("provider") is not None:
        raise SettingsError("expected one server with a provider, got several", setting="provider")
    make: Callable[..., Any] = client or connect
    return ClientPool([_made(make, name, settings) for name in names], max_sessions, capacity_timeout_s)


_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


def _made(make: Callable[..., Any], name: str | None, settings: dict[str, Any]) -> Any:
    try:
        return make(name, **settings)
    except TypeError as error:
        unexpected = _UNEXPECTED.search(str(error))
        if unexpected is None or unexpected[1] not in settings:
            raise
        found = unexpected[1]
        known = sorted({*inspect.signature(pool).parameters, *inspect.signature(EnvClient).parameters} - {"settings"})
        near = difflib.get_close_matches(found, known, n=1)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}, and what the client takes"
        raise SettingsError(
            f"expected a setting of the pool or of its clients, got {found!r}; {meant}", setting=found
        ) from error


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What a pool is doing.

    Attributes:
        in_use: sessions that rollouts have.
        idle: open sessions that nobody has.
        waiting: rollouts without a session yet.
        done: rollouts that ended well.
        failed: rollouts that raised or were cancelled.
    """

    in_use: int
    idle: int
    waiting: int
    done: int
    failed: int


class ClientPool(Generic[ClientT]):
    """Clients with a session each, for one rollout at a time. ``pool`` makes it; it is for one event loop.

    A rollout that raises, or is cancelled, loses its session; one that ends well leaves it open for the next, which
    begins with ``reset()``. Whoever waits for a session gets one in the order of asking, on the server where the pool
    has the fewest.

    A server with less room than ``max_sessions`` bounds the pool by it: the rest waits. Only where all its sessions
    are others', and stay so for ``capacity_timeout_s``, is that a ``CapacityError``.

    Args:
        roots: a client for each server, not connected.
        max_sessions: how many sessions there may be at once.
        capacity_timeout_s: seconds; see ``pool``.

    Example:
        >>> async with pool("echo") as sessions:                                            # doctest: +SKIP
        ...     async with sessions.session() as client:
        ...         await client.reset()
    """

    def __init__(self, roots: Sequence[ClientT], max_sessions: int, capacity_timeout_s: float | None) -> None:
        self._max_sessions = max_sessions
        self._places = Places(roots, max_sessions, capacity_timeout_s)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done = 0
        self._failed = 0

    @property
    def stats(self) -> PoolStats:
        """What it is doing now."""
        places = self._places
        return PoolStats(places.in_use, places.idle, places.waiting, self._done, self._failed)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[ClientT]:
        """A client with a session, for the block.

        Raises:
            CapacityError: the servers are full, with sessions of others alone, for ``capacity_timeout_s``.
            UnreachableError: there is no server.
            SessionStateError: the pool is closed.
        """
        place = await self._places.take()
        try:
            yield place.client
        except BaseException:
            self._failed += 1
            self._places.leave(place, keep=False)
            raise
        self._done += 1
        self._places.leave(place, keep=True)

    @overload
    def map(
        self,
        rollout: Callable[[ClientT, TaskT], Awaitable[ResultT]],
        tasks: Iterable[TaskT] | AsyncIterable[TaskT],
        *,
        ordered: bool = False,
        on_error: Literal["raise"] = "raise",
    ) -> AsyncGenerator[ResultT, None]: ...

    @overload
    def map(
        self,
        rollout: Callable[[ClientT, TaskT], Awaitable[ResultT]],
        tasks: Iterable[TaskT] | AsyncIterable[TaskT],
        *,
        ordered: bool = False,
        on_error: Literal["return"],
    ) -> AsyncGenerator[ResultT | BaseException, None]: ...

    def map(
        self,
        rollout: Callable[[ClientT, TaskT], Awaitable[ResultT]],
        tasks: Iterable[TaskT] | AsyncIterable[TaskT],
        *,
        ordered: bool = False,
        on_error: Literal["raise", "return"] = "raise",
    ) -> AsyncGenerator[ResultT | BaseException, None]:
        """Roll out every task, each with a session of its own, and give the results as they come.

        A task is read only when fewer than ``max_sessions`` before it are at work or have a result that nobody has
        taken yet, so ``tasks`` may be endless, and a slow reader of results slows the rollouts. The rollouts end with
        the iteration; where that is left early, ``contextlib.aclosing`` ends them at once, and closing the pool does.

        Args:
            rollout: called with a client and a task. It knows its task, so a result can say which one it is of.
            tasks: an iterable, asynchronous or not.
            ordered: give the results in the order of the tasks; one that takes long then holds up those after it.
            on_error: "raise": the first error of a rollout is raised at once, and ends the others; "return": an error
                is its rollout's result.

        Raises:
            SettingsError: there is no such ``on_error``.
            TypeError: ``rollout`` gives nothing that can be awaited.
            SessionStateError: the pool was closed meanwhile.
        """
        if not callable(rollout) or inspect.isgeneratorfunction(rollout) or inspect.isasyncgenfunction(rollout):
            raise _no_rollout(rollout)
        if on_error not in {"raise", "return"}:
            raise SettingsError(f"expected on_error 'raise' or 'return', got {on_error!r}", setting="on_error")
        return self._results(rollout, tasks, ordered, on_error)

    async def _results(
        self, rollout: Callable[..., Awaitable[Any]], tasks: Any, ordered: bool, on_error: str
    ) -> AsyncGenerator[Any, None]:
        if self._places.closed:
            raise _closed_error()
        flow = _Flow(self._max_sessions)
        feeder = self._started(self._feed(flow, rollout, tasks), flow)
        ready: dict[int, asyncio.Task[Any]] = {}
        given, total = 0, None
        try:
            while given != total:
                task = await flow.arrived.get()
                if task.cancelled() and self._places.closed:
                    raise _closed_error()
                if task is feeder:
                    total = feeder.result()
                    continue
                number = flow.at_work.pop(task)
                if on_error == "raise":
                    task.result()
                ready[number if ordered else given] = task
                while given in ready:
                    yield flow.taken(ready.pop(given))
                    given += 1
        finally:
            await _cancel([feeder, *flow.at_work])

    async def _feed(self, flow: _Flow, rollout: Callable[..., Awaitable[Any]], tasks: Any) -> int:
        """Start a rollout for each task, no faster than the results are taken; how many there were."""
        count = 0
        async with contextlib.aclosing(_each(tasks)) as source:
            while True:
                await flow.room.acquire()
                try:
                    task = await anext(source)
                except StopAsyncIteration:
                    return count
                flow.at_work[self._started(self._play(rollout, task), flow)] = count
                count += 1

    async def _play(self, rollout: Callable[..., Awaitable[Any]], task: Any) -> Any:
        async with self.session() as client:
            work = rollout(client, task)
            if not inspect.isawaitable(work):
                raise _no_rollout(rollout)
            return await work

    def _started(self, work: Any, flow: _Flow) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(flow.arrive)
        return task

    async def close(self) -> None:
        """Cancel what ``map`` has under way, end every session, and stop what was started. May be called again.

        Rollouts in ``session()`` blocks find their session ended at their next call. One that does not let itself be
        cancelled is left behind after a few seconds.
        """
        self._places.closed = True
        await _cancel([task for task in self._tasks if task is not asyncio.current_task()])
        await self._places.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        await self.close()


class _Flow:
    """What is between the reading of tasks and the giving of results."""

    def __init__(self, limit: int) -> None:
        self.room = asyncio.Semaphore(limit)
        self.arrived: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self.at_work: dict[asyncio.Task[Any], int] = {}

    def arrive(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # or asyncio complains where nobody comes for it any more
        self.arrived.put_nowait(task)

    def taken(self, task: asyncio.Task[Any]) -> Any:
        """The result, for somebody who takes it now."""
        self.room.release()
        if task.cancelled():
            return asyncio.CancelledError("the rollout was cancelled")
        error = task.exception()
        return task.result() if error is None else error


def _no_rollout(rollout: object) -> TypeError:
    return TypeError(
        f"expected a rollout that is awaited (async def rollout(client, task): ...), got {rollout!r}, which gives "
        "nothing that can be"
    )


def _closed_error() -> SessionStateError:
    return SessionStateError(
        "expected an open pool, but it was closed before all results were there", expected="open", state="closed"
    )


async def _each(tasks: Iterable[TaskT] | AsyncIterable[TaskT]) -> AsyncGenerator[TaskT, None]:
    if isinstance(tasks, AsyncIterable):
        async for task in tasks:
            yield task
    else:
        for task in tasks:
            yield task


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel them and wait for their ends, but not for ever: one may not let itself be cancelled."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)
