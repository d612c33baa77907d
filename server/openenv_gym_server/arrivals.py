"""Where the threads of a vector session leave what they have done, and the session's own thread finds it.

One queue for all, which wakes the one who waits once, however many arrive. Not for what is done (``crews.py``).
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import Generic, TypeVar

__all__ = ["Arrivals"]

T = TypeVar("T")


class Arrivals(Generic[T]):
    """What is done, in the order in which it was done. One thread takes, any may put.

    Example:
        >>> arrivals = Arrivals()
        >>> arrivals.put(3, "row of environment 3")
        >>> len(arrivals), arrivals.take(1)
        (1, ({3: 'row of environment 3'}, {}))
    """

    __slots__ = ("_awaited", "_done", "_enough", "_failed", "_hasty")

    def __init__(self) -> None:
        self._done: deque[tuple[int, T | None, BaseException | None]] = deque()
        # At how many the one who waits is woken. Whoever puts looks at it after putting, and whoever waits looks at
        # what is there after setting it, so that one of the two sees the other.
        self._awaited = sys.maxsize
        self._hasty = self._failed = False
        self._enough = threading.Event()

    def __len__(self) -> int:
        """How many are there to be taken."""
        return len(self._done)

    def put(self, index: int, result: T) -> None:
        """Leave what the lane of that index has done."""
        self._done.append((index, result, None))
        if len(self._done) >= self._awaited:
            self._enough.set()

    def fail(self, index: int, error: BaseException) -> None:
        """Leave what the lane of that index has raised."""
        self._done.append((index, None, error))
        self._failed = True
        if self._hasty or len(self._done) >= self._awaited:
            self._enough.set()

    def take(
        self, at_least: int, within_s: float | None = None, *, hasty: bool = True
    ) -> tuple[dict[int, T], dict[int, BaseException]]:
        """All that is there by now, and what was raised, each by the index of its lane.

        Args:
            at_least: wait for so many; 0: for none.
            within_s: seconds to wait at most; None: without a limit.
            hasty: whether to wait for no more once one has failed.
        """
        if len(self._done) < at_least:
            self._wait(at_least, within_s, hasty)
        results: dict[int, T] = {}
        errors: dict[int, BaseException] = {}
        for _ in range(len(self._done)):
            index, result, error = self._done.popleft()
            if error is None:
                results[index] = result  # type: ignore[assignment]  # it has a result then
            else:
                errors[index] = error
        return results, errors

    def _wait(self, at_least: int, within_s: float | None, hasty: bool) -> None:
        until = None if within_s is None else time.monotonic() + within_s
        self._awaited, self._hasty = at_least, hasty
        while True:
            self._enough.clear()
            if len(self._done) >= at_least or (hasty and self._failed):
                break
            # One who put for the last wait, and was slow to say so, wakes this one for nothing.
            if not self._enough.wait(None if until is None else max(until - time.monotonic(), 0.0)):
                break
        self._awaited, self._hasty = sys.maxsize, False
