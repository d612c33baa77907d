"""The line in front of one client: its callers are served one after another, threads and tasks alike.

A caller is a thread that blocks, or a task of whatever event loop. Not a lock, for the reasons of
``transports/turns.py``: an interrupt may come between any two steps, a loop may be closed with its tasks waiting, a
process may fork in the middle of another thread's call. So whoever waits looks again several times a second, and one
that will never leave is passed by.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

from openenv_gym.errors import SessionLostError, SessionStateError
from openenv_gym.loopless import blocking, settle

__all__ = ["Line", "Place"]

_LOOK_AGAIN_S = 0.1


class Place:
    """One caller's place in the line, made anew for each call.

    Args:
        loop: the loop whose task waits; None for a thread that blocks.
    """

    __slots__ = ("_future", "_lock", "loop", "process", "thread")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.process = os.getpid()
        self._future: asyncio.Future[None] | None = None
        self._lock: threading.Lock | None = None

    @classmethod
    def here(cls) -> Place:
        """The place of whoever calls: a task of the running loop, or a thread that blocks."""
        return cls(None if blocking() else asyncio.get_running_loop())

    def block(self) -> None:
        """Wait until woken, or until it is time to look again."""
        if self._lock is None:
            self._lock = threading.Lock()
            self._lock.acquire()
        self._lock.acquire(timeout=_LOOK_AGAIN_S)

    async def sleep(self) -> None:
        """Await being woken, or that it is time to look again."""
        assert self.loop is not None
        waiter = self._future = self.loop.create_future()
        timer = self.loop.call_later(_LOOK_AGAIN_S, settle, waiter)
        try:
            await waiter
        finally:
            timer.cancel()

    def wake(self) -> None:
        """End the wait; may come from any thread, and too late."""
        # RuntimeError: its loop was closed meanwhile, or it was woken before.
        with contextlib.suppress(RuntimeError):
            if self._future is not None:
                self._future.get_loop().call_soon_threadsafe(settle, self._future)
            elif self._lock is not None:
                self._lock.release()

    @property
    def gone(self) -> bool:
        """Whether nobody will ever come back to this place."""
        return self.process != os.getpid() or (self.loop is not None and self.loop.is_closed())

    @property
    def stalled(self) -> bool:
        """Whether its loop does not run at the moment, so that its task can do nothing."""
        return self.loop is not None and not self.loop.is_running()


class Line:
    """Who is served, and who waits.

    Example:
        >>> line, place = Line(), Place()
        >>> line.enter(place)
        >>> line.leave(place)
    """

    def __init__(self) -> None:
        # The only entry's value is being served: setdefault takes the front in one indivisible step.
        self._front: dict[int, Place] = {}
        self._waiting: dict[Place, None] = {}
        self._unfinished: list[str] = []

    @property
    def served(self) -> Place | None:
        """Whose turn it is, None for nobody's."""
        return self._front.get(0)

    def enter(self, place: Place) -> str | None:
        """Wait for the front as a thread. Whoever enters also leaves, whatever happens meanwhile.

        Returns:
            Why the one served before has never left, None as a rule.

        Raises:
            SessionLostError: that one is a call of this very thread, which a signal has interrupted.
            SessionStateError: it is a task of this thread's event loop, which cannot go on while the thread waits.
        """
        if not self._waiting and self._front.setdefault(0, place) is place:
            return self._unfinished.pop() if self._unfinished else None
        self._waiting[place] = None
        while not self._try(place):
            served = self.served
            if served is not None and served.thread == place.thread and served.loop is not None and not served.gone:
                raise SessionStateError(
                    "expected no call under way, but a task of this thread's event loop has one: await it, or call "
                    "from another thread",
                    expected="no call under way",
                    state="in a call",
                )
            place.block()
        return self._unfinished.pop() if self._unfinished else None

    async def enter_awaited(self, place: Place) -> str | None:
        """Await the front as a task; else as ``enter``."""
        if not self._waiting and self._front.setdefault(0, place) is place:
            return self._unfinished.pop() if self._unfinished else None
        self._waiting[place] = None
        while not self._try(place):
            await place.sleep()
        return self._unfinished.pop() if self._unfinished else None

    def leave(self, place: Place) -> None:
        """Leave the front, or give up waiting for it. Again: nothing."""
        if self._front.get(0) is place:
            del self._front[0]
        if self._waiting:
            self._waiting.pop(place, None)
            first = self._first()
            if first is not None and not self._front:
                first.wake()

    def _try(self, place: Place) -> bool:
        """Take the front if it is free and nobody who could take it stands before."""
        self._pass_by(place)
        if self._first(place) is place and self._front.setdefault(0, place) is place:
            self._waiting.pop(place, None)
            return True
        return False

    def _pass_by(self, place: Place) -> None:
        """Clear the front of one who will never leave it."""
        served = self.served
        if served is None or served is place:
            return
        if served.gone:
            closed = served.process == os.getpid()
            self._unfinished = [
                "its event loop was closed in the middle of a call" if closed else "a process was forked"
            ]
            self.leave(served)
        elif served.loop is None and served.thread == place.thread:
            self.leave(served)
            raise SessionLostError(
                "the session is lost: a call was interrupted before it ended; reset() opens a new one",
                reason="a call was interrupted",
            )

    def _first(self, asking: Place | None = None) -> Place | None:
        """The first who waits and is able to come."""
        for place in list(self._waiting):
            if place.gone:
                self._waiting.pop(place, None)
            elif place is asking or not (place.stalled or self._held_up(place, asking)):
                return place
        return None

    @staticmethod
    def _held_up(place: Place, asking: Place | None) -> bool:
        """Whether the place's task runs in the very thread that blocks now."""
        return asking is not None and asking.loop is None and place.loop is not None and place.thread == asking.thread
