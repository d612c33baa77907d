"""Whose turn it is with a connection: a call's, the keeper's, or nobody's.

Not a lock, on purpose. A signal handler may raise between any two steps of a call, so a lock that a call acquires may
stay held for ever, and whoever waits for it next waits for ever. A turn is taken in one indivisible step, knows whose
it is, may be given back twice, and is waited for only while the keeper has it, for a bounded time.
"""

from __future__ import annotations

import time
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

__all__ = ["Turn", "Turns"]

_NO_THREAD = 0
_PAUSE_S = 0.0002  # a visit of the keeper takes less


class Turn:
    """One claim to a connection, made anew for each call: identity tells whose turn it is.

    Args:
        visit: it is the keeper's, and soon over.
        loop: it is that of a task of this event loop, which goes on by itself while its thread does something else.
    """

    __slots__ = ("loop", "thread", "visit")

    def __init__(self, *, visit: bool = False, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.thread = get_ident() if loop is None else _NO_THREAD
        self.visit = visit

    @property
    def gone(self) -> bool:
        """Whether it will never be given back, the loop being closed."""
        return self.loop is not None and self.loop.is_closed()

    def interrupted_by(self, other: Turn) -> bool:
        """Whether it is that of a call of the very thread that makes the other, so that it does nothing meanwhile."""
        return self.loop is None and self.thread == other.thread


class Turns:
    """The turns of one connection, one at a time.

    Example:
        >>> turns, mine, other = Turns(), Turn(), Turn()
        >>> turns.take(mine), turns.take(other)
        (True, False)
        >>> turns.give_back(mine)
        >>> turns.take(other)
        True
    """

    def __init__(self) -> None:
        self._holder: dict[int, Turn] = {}

    @property
    def holder(self) -> Turn | None:
        """Whose turn it is, None for nobody's."""
        return self._holder.get(0)

    def take(self, turn: Turn, patience_s: float = 0.0) -> bool:
        """Take the turn; a visit of the keeper is waited for, ``patience_s`` seconds at most, a call never.

        Interrupted at any point, it leaves either nothing or a turn that ``give_back`` ends.
        """
        # One C call, so there is no moment in which the turn is taken and its holder unknown.
        holder = self._holder.setdefault(0, turn)
        if holder is turn:
            return True
        deadline = time.monotonic() + patience_s
        # The keeper's own thread may come here, by a finalizer; waiting for itself would be in vain.
        while holder.visit and holder.thread != turn.thread and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            holder = self._holder.setdefault(0, turn)
        return holder is turn

    def give_back(self, turn: Turn) -> None:
        """End the turn; nothing where it is not this one's."""
        if self._holder.get(0) is turn:
            del self._holder[0]
