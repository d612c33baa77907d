"""The server's sessions: who gets one, on which thread it lives, when it ends.

A session is one hosted environment. A socket's own session ends with the socket; one kept over HTTP ends when it is
deleted or idle, and a socket may attach to it meanwhile. Not for what a message does (``dispatch.py``) nor for how it
travels (``routes``).

The registry is guarded by a lock, not by an event loop: environments end on their own threads, and an application may
be driven from several loops.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from openenv_gym.messages import OpenSettings
from openenv_gym_server.environment_making import EnvironmentMaker, close_hosted
from openenv_gym_server.errors import SessionEndedError, SessionNotFoundError, SessionStartingError, at_capacity
from openenv_gym_server.eviction import EndedSessions, making_room
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.models import Models
from openenv_gym_server.reaper import Reaper
from openenv_gym_server.rpc import MAX_NAME
from openenv_gym_server.rpc_tools import begin_episode
from openenv_gym_server.session import Kind, Limit, Serving, Session, limited
from openenv_gym_server.settings import DEFAULT_CAPACITY, ServerSettings
from openenv_gym_server.slots import Place, Slots
from openenv_gym_server.workers import Workers

__all__ = ["Sessions", "without_session"]

T = TypeVar("T")

MAX_BORROWED = 32
"""Environments that live for one HTTP request each, at a time; further requests wait."""

MAX_ASKED = 4
"""The same for questions about the environment, so that resets do not keep them waiting."""

MAX_ABANDONED = 96
"""Threads of requests that took too long and go on all the same; above, such a request keeps its place."""

DEFAULT_REQUEST_TIMEOUT_S = 60.0
"""Limit of an HTTP request with an environment of its own, the making of it included, where no setting is one."""

DEFAULT_QUESTION_TIMEOUT_S = 300.0
"""The same for a question about the environment, which some take minutes to be made for."""

logger = logging.getLogger("openenv_gym_server")


class Sessions:
    """All sessions of one application.

    Args:
        factory: makes their environments.
        models: the classes of the environments' objects.
        settings: the operator's settings.
    """

    def __init__(self, factory: EnvironmentFactory, models: Models, settings: ServerSettings) -> None:
        self.factory = factory
        self.settings = settings
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._taken = 0
        self._ended = EndedSessions()
        self._workers = Workers(factory)
        self._maker = EnvironmentMaker(factory, models, settings, self._workers)
        self._borrowed = Slots(MAX_BORROWED)
        self._asked = Slots(MAX_ASKED)
        self._abandoned = Slots(MAX_ABANDONED)
        self._reaper = Reaper(settings, lambda: list(self._sessions.values()), self.begin_end)

    def __len__(self) -> int:
        """Places taken: a session of several environments takes as many."""
        return self._taken

    @property
    def supports_concurrency(self) -> bool | None:
        """Whether the environments are known not to disturb one another; None where none can be made to tell."""
        return self._workers.ask()

    @property
    def limit(self) -> int:
        """Sessions at a time; ``sys.maxsize`` where there is no limit."""
        configured = self.settings.max_concurrent_envs
        if self.factory.instance is not None:
            return 1
        if configured == "unlimited":
            return sys.maxsize if self._workers.concurrent else 1
        if configured is not None:
            return configured
        return DEFAULT_CAPACITY if self._workers.concurrent else 1

    def capacity(self) -> dict[str, int | None]:
        """How full the server is; ``max_sessions`` is None where there is no limit."""
        return {
            "active_sessions": len(self),
            "max_sessions": None if self.limit == sys.maxsize else self.limit,
        }

    def any_made(self) -> bool:
        """Whether some session has its environment."""
        return any(session.hosted is not None for session in list(self._sessions.values()))

    def ids(self) -> list[str]:
        """The ids of all sessions, those that begin or end included."""
        return list(self._sessions)

    def get(self, session_id: str) -> Session | None:
        """The session of that id."""
        return self._sessions.get(session_id)

    # ---------------------------------------------------------------------------------------- begin and end

    async def open(self, kind: Kind, opening: OpenSettings | None = None, serving: Serving | None = None) -> Session:
        """Admit a session and make its environment; in production begin its episode.

        Raises:
            EnvironmentExecutionError: the episode could not be begun.
            SessionEndedError: that took longer than ``reset_timeout_s``.
            CapacityError: the server is full.
            InvalidActionError: the client asked for what the operator or the factory does not allow.
            EnvironmentFactoryError: the environment could not be made.
        """
        opening, serving = opening or OpenSettings(), serving or Serving(self.settings.mode)
        if opening.num_envs > 1 and self.factory.instance is None and self._workers.concurrent is None:
            # How many there may be, only one that was made can tell.
            await asyncio.to_thread(self._workers.ask)
        session = await self._admit(kind, opening.num_envs)
        try:
            await session.worker.run(self._make, session, opening, serving)
            if serving.production and kind != "request":
                await session.run(begin_episode, Limit.reset(self.settings))
        except BaseException:
            self.begin_end(session, "its environment could not be made")
            raise
        session.made(lent=self.factory.instance is not None)
        self._reaper.watch()
        return session

    def begin_end(self, session: Session, reason: str, *, asked: bool = False) -> Future[None]:
        """Have a session end after whatever it is doing; the future is done once its slot is free.

        Args:
            session: the session.
            reason: why it ends.
            asked: whether its client wants it so, who need not be told why when it comes back to it.
        """
        with self._lock:
            if session.ending is not None:
                return session.gone
            session.ending = reason
            if session.kind == "kept" and not asked:
                self._ended.add(session.id, reason)
        try:
            session.worker.submit(self._finish, session)
        except SessionEndedError:
            # Its thread was stopped with the server, so nothing of it can be closed any more.
            self._forget(session)
        return session.gone

    async def end(self, session: Session, reason: str) -> None:
        """End a session and wait until its slot is free, or for ``close_timeout_s``, after which it is given up."""
        gone = asyncio.wrap_future(self.begin_end(session, reason, asked=True))
        await asyncio.wait([gone], timeout=self.settings.close_timeout_s)
        if not gone.done():
            session.give_up()

    async def borrow(self, job: Callable[[HostedEnvironment], T], limit: Limit, serving: Serving | None = None) -> T:
        """What the job gives on an environment made for it alone; it is not counted as a session.

        A lent instance is one session's at a time, so there the job is a short session, and goes on with the episode
        that the last one left.

        Args:
            job: what to do with the environment.
            limit: the time it may take; how long it waits for its turn beforehand is limited alike.
            serving: the application's; without one the settings'.

        Raises:
            EnvironmentFactoryError: the environment could not be made.
            CapacityError: a session has the lent instance.
            SessionEndedError: it took longer.
        """
        limit = without_session(limit)
        if self.factory.instance is None:
            return await self._lend(job, limit, self._borrowed, serving)
        session = await self.open("request", serving=serving)
        try:
            return await session.run(job, limit)
        finally:
            await self.end(session, "its request was answered")

    async def ask(self, question: Callable[[HostedEnvironment], T], serving: Serving | None = None) -> T:
        """What a question gives that changes nothing outside the environment made for it; a lent one answers in use.

        Raises:
            EnvironmentFactoryError: the environment could not be made.
            SessionEndedError: it took longer than ``reset_timeout_s``.
        """
        limit = Limit.reset(self.settings)
        return await self._lend(question, limit.or_else(DEFAULT_QUESTION_TIMEOUT_S, _DEFAULT), self._asked, serving)

    async def _lend(
        self, job: Callable[[HostedEnvironment], T], limit: Limit, slots: Slots, serving: Serving | None
    ) -> T:
        busy = "the server was busy with other requests for longer than {} allows"
        await limited(slots.acquire(), limit, busy)
        try:
            while (worker := self._workers.take("openenv-request")) is None:
                await limited(self._workers.settled(), limit, busy)
            work = worker.submit(self._maker.use_once, worker, job, serving or Serving(self.settings.mode))
        except BaseException:
            slots.release()
            raise
        place = Place(slots, self._abandoned)
        work.add_done_callback(lambda _: self._workers.release(worker))
        work.add_done_callback(lambda _: place.give_back())
        try:
            return await limited(asyncio.wrap_future(work), limit)
        except SessionEndedError:
            place.abandon()
            raise

    async def shutdown(self) -> None:
        """End every session, within half of ``shutdown_timeout_s``: the server had the other for requests in flight."""
        await self._reaper.stop()
        gone = [self.begin_end(session, "the server stops") for session in list(self._sessions.values())]
        patience_s = self.settings.shutdown_timeout_s / 2
        deadline = time.monotonic() + patience_s
        for after_s in (0.75 * patience_s, 0.25 * patience_s):
            if waiting := [asyncio.wrap_future(one) for one in gone if not one.done()]:
                await asyncio.wait(waiting, timeout=after_s)
            for session in list(self._sessions.values()):
                session.give_up()
        self._workers.stop()
        busy = await self._workers.join(deadline)
        if busy:
            logger.warning("%d environments were still busy when the server stopped", busy)

    async def _admit(self, kind: Kind, weight: int) -> Session:
        deadline = time.monotonic() + self.settings.close_timeout_s
        while True:
            with self._lock:
                active, limit = self._taken, self.limit
                session = self._begin(kind, weight) if active + weight <= limit else None
                leaving = [session.gone for session in self._sessions.values() if session.leaves]
            if session is not None:
                return session
            if active + weight <= limit:
                await self._workers.settled()
                continue
            remaining = deadline - time.monotonic()
            if not leaving or remaining <= 0 or weight > limit:
                if weight <= limit and self._make_room(active + weight - limit):
                    deadline = time.monotonic() + self.settings.close_timeout_s
                    continue
                raise at_capacity(active, limit, self._advice(), weight)
            # Whoever closes one session and opens the next at once is not refused for the old one's last moments; and
            # single requests for a lent instance are served one after another.
            ended = [asyncio.wrap_future(gone) for gone in leaving]
            await asyncio.wait(ended, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)

    def _make_room(self, places: int) -> bool:
        """Begin to end kept sessions that nobody has used for long, if those are enough."""
        chosen = making_room(list(self._sessions.values()), places)
        for session in chosen:
            reason = "it had been idle for the longest time when the server was full, so it has ended to make room"
            logger.info("session %s: %s", session.id, reason)
            self.begin_end(session, reason)
        return bool(chosen)

    def _begin(self, kind: Kind, weight: int) -> Session | None:
        session_id = str(uuid.uuid4())
        worker = self._workers.take(f"openenv-session-{session_id[:8]}")
        if worker is None:
            return None
        session = Session(session_id, kind, worker, self.settings, weight)
        self._sessions[session_id] = session
        self._taken += weight
        return session

    def _advice(self) -> str:
        if self.factory.instance is not None:
            return (
                "The server was given one environment instance, which is one session's at a time whatever "
                "max_concurrent_envs is; give it the class to serve more sessions."
            )
        if self.settings.max_concurrent_envs in {None, "unlimited"} and not self._workers.concurrent:
            return (
                f"{self.factory.name} does not declare SUPPORTS_CONCURRENT_SESSIONS, so its instances may disturb one "
                "another and there is one at a time, whatever max_concurrent_envs is. Close the other session first; "
                "or, where they do not disturb one another, set SUPPORTS_CONCURRENT_SESSIONS = True on its class."
            )
        return "Close other sessions, or raise the server's max_concurrent_envs (--max-concurrent-envs)."

    # ------------------------------------------------------------------------------------ kept over HTTP

    def kept(self, session_id: str) -> Session:
        """A session kept over HTTP.

        Raises:
            SessionNotFoundError: there is none of that id; a ``SessionStartingError``: not yet.
        """
        session = self._sessions.get(session_id)
        if session is None or session.kind != "kept" or session.ending is not None:
            reason = self._ended.reason_of(session_id)
            known = "" if reason is None else f" ({reason})"
            raise _not_found(f"Unknown session_id: {session_id[:MAX_NAME]}{known}", session_id)
        if session.hosted is None:
            message = f"Session {session_id} is still initializing"
            raise SessionStartingError(message, code="SESSION_ERROR", session_id=session_id)
        return session

    def attach(self, session_id: str) -> Session:
        """A kept session, now with a socket.

        Raises:
            SessionNotFoundError: there is none of that id, or it has a socket.
        """
        session = self.kept(session_id)
        if session.attached:
            raise _not_found(f"Session {session_id} already has an attached WebSocket", session_id)
        session.attached = True
        return session

    async def detach(self, session: Session) -> None:
        """Let a kept session go on without its socket, or end it where that was asked for meanwhile."""
        session.attached = False
        session.touch()
        if session.end_at_detach:
            await self.end(session, "it was deleted")

    # ------------------------------------------------------------------------------------------- on threads

    def _make(self, session: Session, opening: OpenSettings, serving: Serving) -> None:
        session.hosted = self._maker.make(session.worker, opening, serving)

    def _finish(self, session: Session) -> None:
        try:
            if session.hosted is not None and self.factory.instance is None:
                close_hosted(session.hosted)
        finally:
            self._forget(session)

    def _forget(self, session: Session) -> None:
        with self._lock:
            self._sessions.pop(session.id, None)
            self._taken -= session.weight
        self._workers.release(session.worker)
        session.gone.set_result(None)


_DEFAULT = "the server's default for requests without a session (settings reset_timeout_s, step_timeout_s)"


def without_session(limit: Limit) -> Limit:
    """A limit as it is for a request without a session, which has one in any case."""
    return limit.or_else(DEFAULT_REQUEST_TIMEOUT_S, _DEFAULT)


def _not_found(message: str, session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(message, code="SESSION_ERROR", session_id=session_id)
