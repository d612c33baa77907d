"""Ends sessions that are idle for too long. Not for what becomes of a session that ends (``sessions.py``)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from openenv_gym_server.session import Session
from openenv_gym_server.settings import DEFAULT_KEPT_SESSION_TIMEOUT_S, ServerSettings

__all__ = ["Reaper"]


class Reaper:
    """A task on the event loop that looks through the sessions every few seconds, as long as there are any.

    Args:
        settings: say how long a session may be idle.
        sessions: gives the sessions there are.
        end: has a session end, with the reason.
    """

    def __init__(
        self,
        settings: ServerSettings,
        sessions: Callable[[], list[Session]],
        end: Callable[[Session, str], object],
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._end = end
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """See that the task runs on this loop, if any session can ever be idle for too long."""
        if not any(self._timeout_of(session) for session in self._sessions()):
            return
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._reap(), name="openenv-reaper")

    async def stop(self) -> None:
        """End the task, if it is this loop's."""
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    def _timeout_of(self, session: Session) -> float | None:
        configured = self._settings.session_timeout_s
        if session.kind == "kept":
            return None if session.attached else configured or DEFAULT_KEPT_SESSION_TIMEOUT_S
        return configured

    async def _reap(self) -> None:
        period = min(max((self._settings.session_timeout_s or DEFAULT_KEPT_SESSION_TIMEOUT_S) / 4, 0.02), 5.0)
        while self._sessions():
            await asyncio.sleep(period)
            farewells = []
            for session in self._sessions():
                timeout = self._timeout_of(session)
                if timeout is None or not session.idle_for(timeout) or session.ending is not None:
                    continue
                reason = f"Session {session.id} was idle for more than {timeout:g} s and has ended"
                self._end(session, reason)
                if session.farewell is not None:
                    farewells.append(session.farewell(reason))
            # All at once: peers that read nothing must not keep one another's sessions from ending.
            if farewells:
                with contextlib.suppress(TimeoutError):
                    everyone = asyncio.gather(*farewells, return_exceptions=True)
                    await asyncio.wait_for(everyone, self._settings.close_timeout_s)
