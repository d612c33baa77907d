"""One session: a hosted environment, the thread it lives on, and how a message reaches it.

Not for who gets a session and when it ends (``sessions.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Literal, TypeVar

from openenv_gym.messages import Reset, State, Step
from openenv_gym.types import SessionInfo
from openenv_gym_server import dispatch
from openenv_gym_server.dispatch import Terms
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.hosting import HostedEnvironment
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.worker import Worker

__all__ = ["Session", "limited"]

T = TypeVar("T")

INLINE_LIMIT_S = 0.005
"""A step on the event loop above this has the session move to its thread at its next reset."""

INLINE_MESSAGE_CHARACTERS = 65_536
"""Larger messages are read on the thread in any case."""


class Session:
    """A session and its place in the world.

    Args:
        session_id: its name.
        kind: ``"socket"`` ends with its socket, ``"kept"`` lives over HTTP.
        worker: the thread of its environment.
        settings: the operator's settings.

    Attributes:
        hosted: its environment; None until it is made.
        attached: whether a socket is attached to this kept session.
        end_at_detach: whether it was deleted while it had a socket.
        ending: why it ends or has ended; None while it lives.
        gone: done once its environment is closed and its slot free.
        farewell: tells the socket that the session has ended, and closes it.
    """

    def __init__(
        self, session_id: str, kind: Literal["socket", "kept"], worker: Worker, settings: ServerSettings
    ) -> None:
        self.id = session_id
        self.kind = kind
        self.worker = worker
        self.hosted: HostedEnvironment | None = None
        self.attached = False
        self.end_at_detach = False
        self.ending: str | None = None
        self.gone: Future[None] = Future()
        self.farewell: Callable[[str], Awaitable[None]] | None = None
        self.created_at = time.time()
        self._settings = settings
        self._active_at = time.monotonic()
        self._in_flight = 0
        self._inline = False
        self._too_slow = False
        self._timed = settings.reset_timeout_s is not None or settings.step_timeout_s is not None

    def made(self) -> None:
        """The environment is there: decide where its steps run."""
        hosted = self._environment
        self._inline = bool(getattr(hosted.env, "INLINE", False)) and not (
            hosted.asynchronous or getattr(hosted.env, "REQUIRES_SINGLE_THREAD_EXECUTOR", False)
        )
        self.touch()

    @property
    def inline(self) -> bool:
        """Whether steps run on the event loop."""
        return self._inline

    @property
    def _environment(self) -> HostedEnvironment:
        if self.hosted is None:
            raise SessionEndedError(f"Session {self.id} has no environment", code="SESSION_ERROR")
        return self.hosted

    def touch(self) -> None:
        """The session is being used."""
        self._active_at = time.monotonic()

    def idle_for(self, seconds: float) -> bool:
        """Whether it has been idle that long; work in flight is not idleness."""
        return self.hosted is not None and self._in_flight == 0 and time.monotonic() - self._active_at > seconds

    def info(self) -> SessionInfo:
        """What is known of it."""
        hosted = self.hosted
        return SessionInfo(
            session_id=self.id,
            created_at=self.created_at,
            last_activity_at=time.time() - (time.monotonic() - self._active_at),
            step_count=hosted.total_steps if hosted else 0,
            environment_type=type(hosted.env).__name__ if hosted else "",
        )

    async def handle(self, text: str, terms: Terms) -> str | None:
        """The answer to a text message; None where the peer asked to close.

        Raises:
            SessionEndedError: the environment took longer than the operator allows.
        """
        if self._inline or self._timed:
            if len(text) <= INLINE_MESSAGE_CHARACTERS:
                return await self._handle_small(text, terms)
            return await self._limited(self._run(dispatch.respond, self._environment, text, terms), "step_timeout_s")
        return await self._run(dispatch.respond, self._environment, text, terms)

    async def run(self, job: Callable[[HostedEnvironment], T], limit: str = "step_timeout_s") -> T:
        """What a job gives on the session's thread.

        Raises:
            SessionEndedError: it took longer than the setting ``limit`` allows.
        """
        return await self._limited(self._run(job, self._environment), limit)

    async def _handle_small(self, text: str, terms: Terms) -> str | None:
        """Read the message here, then decide where and for how long it may run."""
        started = time.perf_counter()
        request = dispatch.read(text, terms)
        if isinstance(request, str):
            return request
        if self._inline and self._in_flight == 0 and isinstance(request, Step | State):
            self.touch()
            answer = dispatch.perform(self._environment, request, terms)
            self._too_slow |= time.perf_counter() - started > INLINE_LIMIT_S
            return answer
        if isinstance(request, Reset):
            self._inline = self._inline and not self._too_slow
        limit = "reset_timeout_s" if isinstance(request, Reset) else "step_timeout_s"
        return await self._limited(self._run(dispatch.perform, self._environment, request, terms), limit)

    async def _run(self, job: Callable[..., T], *args: Any) -> T:
        self._in_flight += 1
        try:
            return await self.worker.run(job, *args)
        finally:
            self._in_flight -= 1
            self._active_at = time.monotonic()

    async def _limited(self, work: Awaitable[T], limit: str) -> T:
        return await limited(work, self._settings, limit)


async def limited(work: Awaitable[T], settings: ServerSettings, limit: str) -> T:
    """What the work gives within the setting ``limit``.

    Raises:
        SessionEndedError: it took longer.
    """
    seconds = getattr(settings, limit)
    if seconds is None:
        return await work
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError as error:
        raise SessionEndedError(
            f"the environment took longer than the server's setting {limit}={seconds:g} allows; its session has ended",
            code="SESSION_ERROR",
        ) from error
