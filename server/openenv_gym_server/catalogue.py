"""What a server says of its environment outside any session: metadata, schema, readiness.

Each needs an environment; one is made for it, asked and closed, and the answer kept. Not for a session's own
environment, which a client's keywords may have made different (``dispatch.open_``).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

from openenv_gym.errors import OpenEnvGymError
from openenv_gym.json_text import JSONObject
from openenv_gym_server.closed_mode import as_told
from openenv_gym_server.errors import text_of
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.session import Serving
from openenv_gym_server.sessions import Sessions

__all__ = ["Catalogue", "Readiness"]

T = TypeVar("T")

READY_FOR_S = 5.0
"""How long an answer about readiness holds."""


class Readiness(NamedTuple):
    """Whether an environment can be made and reset, and the reason where it cannot."""

    ready: bool
    reason: str | None = None


class _Entry(NamedTuple):
    metadata: JSONObject
    schema: JSONObject


class Catalogue:
    """The kept answers of one application.

    Args:
        sessions: the application's sessions, which lend an environment.
        mode: the application's mode; else the sessions' own.
    """

    def __init__(self, sessions: Sessions, mode: str | None = None) -> None:
        self._sessions = sessions
        self._serving = Serving(mode or sessions.settings.mode)
        self._entry: _Entry | None = None
        self._describing: _Shared[_Entry] = _Shared()
        self._trying: _Shared[Readiness] = _Shared()
        self._readiness = Readiness(False, "nothing was tried yet")
        self._readiness_until = 0.0

    async def metadata(self) -> JSONObject:
        """The ``/metadata`` document.

        Raises:
            EnvironmentFactoryError: no environment can be made.
        """
        return (await self._described()).metadata

    async def schema(self) -> JSONObject:
        """The ``/schema`` document.

        Raises:
            EnvironmentFactoryError: no environment can be made.
        """
        return (await self._described()).schema

    async def readiness(self) -> Readiness:
        """Whether a client would get an environment that resets.

        Where a session has its environment, that is answer enough; else one is made and reset, at most every
        ``READY_FOR_S`` seconds.
        """
        if self._sessions.factory.instance is not None or self._sessions.any_made():
            return Readiness(True)
        if time.monotonic() >= self._readiness_until:
            return await self._trying.result_of(self._try)
        return self._readiness

    async def _try(self) -> Readiness:
        try:
            await self._sessions.ask(_reset, self._serving)
            self._readiness = Readiness(True)
        except OpenEnvGymError as error:
            self._readiness = Readiness(False, text_of(as_told(error, production=self._serving.production)))
        self._readiness_until = time.monotonic() + READY_FOR_S
        return self._readiness

    async def _described(self) -> _Entry:
        if self._entry is None:
            self._entry = await self._describing.result_of(lambda: self._sessions.ask(_describe, self._serving))
        return self._entry


class _Shared(Generic[T]):
    """One piece of work at a time, whose result is that of all who ask for it meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: Future[T] | None = None

    async def result_of(self, begin: Callable[[], Awaitable[T]]) -> T:
        while True:
            with self._lock:
                work = self._work
                if work is None:
                    own: Future[T] = Future()
                    self._work = own
                    own.set_running_or_notify_cancel()  # so that nobody who stops waiting cancels it
                    break
            try:
                return await asyncio.wrap_future(work)
            except _AbandonedError:
                continue
        return await self._lead(own, begin)

    async def _lead(self, work: Future[T], begin: Callable[[], Awaitable[T]]) -> T:
        try:
            result = await begin()
        except BaseException as error:
            self._work = None
            work.set_exception(error if isinstance(error, OpenEnvGymError) else _AbandonedError())
            raise
        self._work = None
        work.set_result(result)
        return result


class _AbandonedError(Exception):
    """Whoever did the work stopped; the next does it."""


def _describe(hosted: HostedEnvironment) -> _Entry:
    return _Entry(hosted.metadata(), hosted.schema())


def _reset(hosted: HostedEnvironment) -> None:
    hosted.reset({})
