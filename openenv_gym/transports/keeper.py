"""One thread that answers for every connection whose caller is busy elsewhere.

A server pings and drops a client that does not answer; a learner may compute or sleep for minutes between two steps.
Several times a second the keeper asks, in one system call for all connections, which of them have something to read,
and lets those read it: pings are answered, messages and a close are kept for the next call. A call itself pays nothing
for that. Not for connections in the middle of a call: the calling thread itself reads those.

Nothing here waits for a lock, and nothing is signalled: ``add`` and ``remove`` may be interrupted at any point, and may
come from a signal handler that has interrupted either.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

from openenv_gym.transports.readiness import Watch

__all__ = ["INTERVAL_S", "Keeper", "Tended", "keeper"]

INTERVAL_S = 0.1
"""Seconds between two rounds. Servers give up after 20 s and more, some after one."""


_MANY = 2500  # connections, for which the interval doubles: the system call of a round takes longer with each


class Tended(Protocol):
    """What the keeper needs of a connection. No method may block or raise."""

    def fileno(self) -> int:
        """The descriptor of its socket, -1 once that is closed."""
        ...

    def tend(self) -> None:
        """Read what has arrived, unless calls are being made."""
        ...

    def abandon(self) -> None:
        """This process is a forked child and the connection its parent's: let go of it, telling the peer nothing."""
        ...


class Keeper:
    """The connections to tend, held weakly, and the daemon thread that does it while there are any.

    Args:
        interval_s: seconds between two rounds; may be set at any time.

    Example:
        >>> keeper = Keeper(interval_s=0.1)
        >>> keeper.running
        False
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self.interval_s = interval_s
        self._reset()

    def _reset(self) -> None:
        self._connections: weakref.WeakValueDictionary[int, Tended] = weakref.WeakValueDictionary()
        self._watch = Watch()
        # Held by the thread as long as it runs. Only such threads acquire it, and signal handlers run in none of them.
        self._running = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether the thread runs."""
        return self._running.locked()

    def add(self, connection: Tended) -> None:
        """Tend the connection until it is removed or collected; starts the thread where none runs."""
        descriptor = connection.fileno()
        self._connections[descriptor] = connection
        self._watch.add(descriptor)
        if not self.running:
            # Of two that start at once, one finds the other at work and ends.
            threading.Thread(target=self._run, name="openenv-gym-keeper", daemon=True).start()

    def remove(self, connection: Tended) -> None:
        """Tend the connection, whose socket is still open, no longer; the thread ends soon after the last one."""
        descriptor = connection.fileno()
        if self._connections.get(descriptor) is connection:
            self._watch.discard(descriptor)
            self._connections.pop(descriptor, None)

    def _run(self) -> None:
        running = self._running
        # Once more after the release: a connection added just before it has found this thread running.
        while self._connections and running is self._running and running.acquire(blocking=False):
            try:
                while self._connections and running is self._running:
                    time.sleep(self.interval_s * (1 + len(self._connections) / _MANY))
                    self._round()
            finally:
                running.release()

    def _round(self) -> None:
        for descriptor in self._watch.readable():
            connection = self._connections.get(descriptor)
            if connection is not None:
                connection.tend()
                continue
            # Collected without a word. Its number may by now be that of another connection, which is to stay.
            self._watch.discard(descriptor)
            if descriptor in self._connections:
                self._watch.add(descriptor)

    def forked(self) -> None:
        """In a forked child: abandon the parent's connections and start afresh, for the thread did not come along."""
        inherited = list(self._connections.values())
        self._reset()
        for connection in inherited:
            connection.abandon()


keeper = Keeper()
"""The keeper of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=keeper.forked)
