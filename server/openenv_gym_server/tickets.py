"""Whether a job that waits for its thread may still begin, decided once between the thread and whoever waits for it.

A call that was given up before it began must never begin later, behind the back of a client that was told so. Not for
what a job is (``session.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Ticket"]

T = TypeVar("T")


class Ticket:
    """Admits one job, unless it was withdrawn before.

    Example:
        >>> ticket = Ticket()
        >>> ticket.withdraw()
        True
        >>> ticket.use(print, "never said") is None
        True
    """

    __slots__ = ("_lock", "_taken")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False

    def use(self, job: Callable[..., T], *args: Any) -> T | None:
        """What the job gives; None, without calling it, where the ticket was withdrawn."""
        return job(*args) if self._take() else None

    def withdraw(self) -> bool:
        """Have the job never begin; False where it has begun."""
        return self._take()

    def _take(self) -> bool:
        with self._lock:
            taken, self._taken = self._taken, True
            return not taken
