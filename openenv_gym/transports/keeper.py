"""One thread that answers for every connection whose caller is busy elsewhere.

A server pings and drops a client that does not answer; a learner may compute for minutes between two steps. The keeper
wakes every few seconds and lets each idle connection read what has come: pings are answered, messages and a close are
kept for the next call. Not for connections in the middle of a call: the calling thread itself reads those.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["INTERVAL_S", "Keeper", "Tended", "keeper"]

INTERVAL_S = 5.0
"""Seconds between two rounds; a fraction of the 20 s after which servers commonly give up."""


class Tended(Protocol):
    """What the keeper needs of a connection. Neither method may block or raise."""

    def tend(self) -> None:
        """Read what has arrived, unless a call is in flight."""
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
        # Re-entrant: a signal handler may close a connection while its own thread adds or removes one.
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._connections: weakref.WeakSet[Tended] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def add(self, connection: Tended) -> None:
        """Tend the connection until it is removed or collected; starts the thread where none runs."""
        with self._lock:
            self._connections.add(connection)
            if not self.running:
                self._wake.clear()
                thread = threading.Thread(target=self._run, name="openenv-gym-keeper", daemon=True)
                thread.start()
                self._thread = thread

    def remove(self, connection: Tended) -> None:
        """Tend the connection no longer; the thread ends with the last one."""
        with self._lock:
            self._connections.discard(connection)
            if not self._connections:
                self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(self.interval_s)
            with self._lock:
                self._wake.clear()
                connections = list(self._connections)
                if not connections:
                    self._thread = None
                    return
            while connections:
                connections.pop().tend()

    def forked(self) -> None:
        """In a forked child: abandon the parent's connections and start afresh, for the thread did not come along."""
        inherited = list(self._connections)
        # A lock may have been held by a thread that does not exist here.
        self._reset()
        for connection in inherited:
            connection.abandon()


keeper = Keeper()
"""The keeper of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=keeper.forked)
