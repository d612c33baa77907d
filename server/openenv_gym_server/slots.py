"""A bound on how much goes on at a time, whichever threads and event loops it goes on in."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future

__all__ = ["Place", "Slots"]


class Slots:
    """So many at a time; further ones wait, first come first served.

    Unlike ``asyncio.Semaphore`` it belongs to no event loop and may be released from any thread.

    Args:
        size: how many at a time.

    Example:
        >>> slots = Slots(1)
        >>> asyncio.run(slots.acquire())
        >>> slots.free
        0
        >>> slots.release()
        >>> slots.free
        1
    """

    def __init__(self, size: int) -> None:
        self.free = size
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    async def acquire(self) -> None:
        """Take one, as soon as there is one."""
        with self._lock:
            if self.free > 0:
                self.free -= 1
                return
            turn: Future[None] = Future()
            self._waiting.append(turn)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            # Its turn may have come at the very moment it stopped waiting.
            if not turn.cancel():
                self.release()
            raise

    def take(self) -> bool:
        """Take one without waiting; False where there is none."""
        with self._lock:
            if self.free == 0:
                return False
            self.free -= 1
            return True

    def release(self) -> None:
        """Give one back; the next who waits has it."""
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self.free += 1


class Place:
    """One slot that was taken: given back once, when its work is done or no longer waited for.

    Work that nobody waits for goes on all the same, and there is a bound on how much of it may.

    Args:
        slots: whose slot it is.
        abandoned: bounds the work that goes on beyond its slot.

    Example:
        >>> slots, abandoned = Slots(1), Slots(1)
        >>> slots.take()
        True
        >>> place = Place(slots, abandoned)
        >>> place.abandon()
        >>> slots.free, abandoned.free
        (1, 0)
        >>> place.give_back()
        >>> slots.free, abandoned.free
        (1, 1)
    """

    def __init__(self, slots: Slots, abandoned: Slots) -> None:
        self._held: Slots | None = slots
        self._abandoned = abandoned
        self._lock = threading.Lock()

    def abandon(self) -> None:
        """Nobody waits for the work any more: its slot is free, unless too much such work goes on already."""
        with self._lock:
            if self._held is not None and self._abandoned.take():
                self._held.release()
                self._held = self._abandoned

    def give_back(self) -> None:
        """The work is done."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.release()
