"""The server's sessions: who gets one, on which thread it lives, when it ends.

A session is one hosted environment. A socket's own session ends with the socket; one kept over HTTP ends when it is
deleted or idle, and a socket may attach to it meanwhile. Not for what a message does (``dispatch.py``) nor for how it
travels (``routes``).

The registry is guarded by a lock, not by an event loop: environments end on their own threads, and an application may
be driven from several loops.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal, TypeVar

from openenv_gym.errors import EnvironmentFactoryError, OpenEnvGymError
from openenv_gym.messages import OpenSettings
from openenv_gym_server.errors import SessionNotFoundError, at_capacity, factory_calls
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.hosting import HostedEnvironment, Models
from openenv_gym_server.session import Session, limited
from openenv_gym_server.settings import DEFAULT_CAPACITY, DEFAULT_KEPT_SESSION_TIMEOUT_S, ServerSettings
from openenv_gym_server.worker import Worker

__all__ = ["Sessions"]

T = TypeVar("T")

MAX_BORROWED = 32
"""Environments that live for one HTTP request each, at a time; further requests wait."""

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
        self._models = models
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._shared: Worker | None = None
        self._workers: set[Worker] = set()
        self._borrowed = asyncio.Semaphore(MAX_BORROWED)
        self._reaper: asyncio.Task[None] | None = None
        self._learned: bool | None = factory.declares("SUPPORTS_CONCURRENT_SESSIONS")

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def supports_concurrency(self) -> bool:
        """Whether the environments are known not to disturb one another; a function is asked for one to tell."""
        if self._learned is None:
            try:
                self._learned = self.factory.probe("SUPPORTS_CONCURRENT_SESSIONS")
            except EnvironmentFactoryError:
                return False
        return self._learned

    @property
    def limit(self) -> int:
        """Sessions at a time; ``sys.maxsize`` where there is no limit."""
        configured = self.settings.max_concurrent_envs
        if self.factory.instance is not None:
            return 1
        if configured == "unlimited":
            return sys.maxsize if self._learned else 1
        if configured is not None:
            return configured
        return DEFAULT_CAPACITY if self._learned else 1

    def capacity(self) -> dict[str, int | None]:
        """How full the server is; ``max_sessions`` is None where there is no limit."""
        return {
            "active_sessions": len(self._sessions),
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

    async def open(self, kind: Literal["socket", "kept"], opening: OpenSettings | None = None) -> Session:
        """Admit a session and make its environment.

        Raises:
            CapacityError: the server is full.
            InvalidActionError: the client asked for what the operator or the factory does not allow.
            EnvironmentFactoryError: the environment could not be made.
        """
        session = await self._admit(kind)
        try:
            await session.worker.run(self._make, session, opening or OpenSettings())
        except BaseException:
            self.begin_end(session, "its environment could not be made")
            raise
        session.made()
        self._watch()
        return session

    def begin_end(self, session: Session, reason: str) -> Future[None]:
        """Have a session end after whatever it is doing; the future is done once its slot is free."""
        with self._lock:
            if session.ending is not None:
                return session.gone
            session.ending = reason
        session.worker.submit(self._finish, session)
        return session.gone

    async def end(self, session: Session, reason: str) -> None:
        """End a session and wait until its slot is free, or for ``close_timeout_s``."""
        gone = asyncio.wrap_future(self.begin_end(session, reason))
        await asyncio.wait([gone], timeout=self.settings.close_timeout_s)

    async def borrow(
        self, job: Callable[[HostedEnvironment], T], *, limit: str = "reset_timeout_s", reads_only: bool = False
    ) -> T:
        """What the job gives on an environment made for it alone; it is not counted as a session.

        A lent instance is one session's at a time, so there the job is a short session, unless it only reads.

        Args:
            job: what to do with the environment.
            limit: the setting that limits its time.
            reads_only: whether a lent instance may be in use by a session meanwhile.

        Raises:
            EnvironmentFactoryError: the environment could not be made.
            CapacityError: the lent instance is in use.
        """
        if self.factory.instance is not None and not reads_only:
            session = await self.open("socket")
            try:
                return await session.run(job, limit)
            finally:
                await self.end(session, "its request was answered")
        async with self._borrowed:
            worker = self._worker("openenv-request")
            try:
                return await limited(worker.run(self._once, worker, job), self.settings, limit)
            finally:
                self._release(worker)

    async def shutdown(self) -> None:
        """End every session, within ``shutdown_timeout_s``."""
        reaper, self._reaper = self._reaper, None
        if reaper is not None and reaper.get_loop() is asyncio.get_running_loop():
            reaper.cancel()
            await asyncio.wait([reaper])
        gone = [self.begin_end(session, "the server stops") for session in list(self._sessions.values())]
        deadline = time.monotonic() + self.settings.shutdown_timeout_s
        if gone:
            await asyncio.wait([asyncio.wrap_future(one) for one in gone], timeout=self.settings.shutdown_timeout_s)
        if self._shared is not None:
            self._shared.stop()
            self._shared = None
        loop = asyncio.get_running_loop()
        for worker in list(self._workers):
            remaining = max(0.05, deadline - time.monotonic())
            if worker.join(0) or await loop.run_in_executor(None, worker.join, remaining):
                self._workers.discard(worker)
        if self._workers:
            logger.warning("%d environments were still busy when the server stopped", len(self._workers))

    async def _admit(self, kind: Literal["socket", "kept"]) -> Session:
        deadline = time.monotonic() + self.settings.close_timeout_s
        while True:
            with self._lock:
                active, limit = len(self._sessions), self.limit
                if active < limit:
                    session_id = str(uuid.uuid4())
                    worker = self._worker(f"openenv-session-{session_id[:8]}")
                    session = Session(session_id, kind, worker, self.settings)
                    self._sessions[session_id] = session
                    return session
                leaving = [session.gone for session in self._sessions.values() if session.ending is not None]
            remaining = deadline - time.monotonic()
            if not leaving or remaining <= 0:
                raise at_capacity(active, limit, self._advice())
            # Whoever closes one session and opens the next at once is not refused for the old one's last moments.
            ended = [asyncio.wrap_future(gone) for gone in leaving]
            await asyncio.wait(ended, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)

    def _advice(self) -> str:
        if self.factory.instance is not None:
            return "The server was given one environment instance; give it the class to serve more sessions."
        if self.settings.max_concurrent_envs is None and not self._learned:
            return (
                "The environment does not declare SUPPORTS_CONCURRENT_SESSIONS; where its instances do not disturb one "
                "another, declare it and set max_concurrent_envs."
            )
        return "The server's setting is max_concurrent_envs."

    # ------------------------------------------------------------------------------------ kept over HTTP

    def kept(self, session_id: str) -> Session:
        """A session kept over HTTP.

        Raises:
            SessionNotFoundError: there is none of that id.
        """
        session = self._sessions.get(session_id)
        if session is None or session.kind != "kept" or session.ending is not None:
            raise _not_found(f"Unknown session_id: {session_id}", session_id)
        if session.hosted is None:
            raise _not_found(f"Session {session_id} is still initializing", session_id)
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

    def _make(self, session: Session, opening: OpenSettings) -> None:
        session.hosted = self._hosted(session.worker, opening)

    def _hosted(self, worker: Worker, opening: OpenSettings) -> HostedEnvironment:
        env = self.factory.make(opening.env_kwargs, self.settings.allowed_env_kwargs, opening.render_mode)
        with factory_calls(self.factory.name):
            hosted = HostedEnvironment(env, self._models, worker.wait_for)
        if self._learned is None:
            self._learned = bool(getattr(env, "SUPPORTS_CONCURRENT_SESSIONS", False))
        if self._shared is None and getattr(env, "REQUIRES_SINGLE_THREAD_EXECUTOR", False):
            self._shared = worker
        if not hosted.asynchronous and worker is not self._shared:
            worker.drop_loop()
        return hosted

    def _once(self, worker: Worker, job: Callable[[HostedEnvironment], T]) -> T:
        hosted = self._hosted(worker, OpenSettings())
        try:
            return job(hosted)
        finally:
            if self.factory.instance is None:
                _close(hosted)

    def _finish(self, session: Session) -> None:
        if session.hosted is not None and self.factory.instance is None:
            _close(session.hosted)
        with self._lock:
            self._sessions.pop(session.id, None)
        self._release(session.worker)
        session.gone.set_result(None)

    def _worker(self, name: str) -> Worker:
        if self._shared is not None:
            return self._shared
        worker = Worker(name, may_be_async=self.factory.may_be_async)
        if self.factory.instance is not None or self.factory.declares("REQUIRES_SINGLE_THREAD_EXECUTOR"):
            self._shared = worker
        if len(self._workers) > 2 * len(self._sessions) + 16:
            self._workers = {known for known in self._workers if not known.join(0)}
        self._workers.add(worker)
        return worker

    def _release(self, worker: Worker) -> None:
        if worker is not self._shared:
            worker.stop()

    # --------------------------------------------------------------------------------------------- reaper

    def _timeout_of(self, session: Session) -> float | None:
        configured = self.settings.session_timeout_s
        if session.kind == "kept":
            return None if session.attached else configured or DEFAULT_KEPT_SESSION_TIMEOUT_S
        return configured

    def _watch(self) -> None:
        """See that a reaper runs on this loop, if any session can ever be idle for too long."""
        if not any(self._timeout_of(session) for session in self._sessions.values()):
            return
        loop = asyncio.get_running_loop()
        if self._reaper is None or self._reaper.done() or self._reaper.get_loop() is not loop:
            self._reaper = loop.create_task(self._reap(), name="openenv-reaper")

    async def _reap(self) -> None:
        period = min(max((self.settings.session_timeout_s or DEFAULT_KEPT_SESSION_TIMEOUT_S) / 4, 0.02), 5.0)
        while self._sessions:
            await asyncio.sleep(period)
            for session in list(self._sessions.values()):
                timeout = self._timeout_of(session)
                if timeout is None or not session.idle_for(timeout) or session.ending is not None:
                    continue
                reason = f"Session {session.id} was idle for more than {timeout:g} s and has ended"
                self.begin_end(session, reason)
                if session.farewell is not None:
                    # A peer that reads nothing must not keep the others' sessions from ending.
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(session.farewell(reason), self.settings.close_timeout_s)


def _close(hosted: HostedEnvironment) -> None:
    try:
        hosted.close()
    except OpenEnvGymError:
        # Nobody is left to be told, and the slot must be freed whatever an environment's close() does.
        logger.warning("an environment raised in close()", exc_info=True)


def _not_found(message: str, session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(message, code="SESSION_ERROR", session_id=session_id)
