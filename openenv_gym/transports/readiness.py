"""Waiting until a socket can be read or written, and asking which of many can be read.

Not for reading or writing it (``blocking``).
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import sys

__all__ = ["Readiness", "Watch"]

_SELECT_LIMIT = 500  # of sockets that one select() takes on Windows, where it is 512
_LONGEST_WAIT_S = 86_400.0  # poll() takes a C int of milliseconds; longer waits come back early and are waited again


if sys.platform == "win32":  # pragma: no cover

    class Readiness:
        """Waits on one socket with ``select()``, where there is no ``poll()``."""

        def __init__(self, sock: socket.socket) -> None:
            self._sockets = [sock]

        def wait(self, timeout_s: float | None, *, writing: bool = False) -> bool:
            """True once the socket can be read (or, with ``writing``, written), False after ``timeout_s`` seconds."""
            return any(select.select(self._sockets, self._sockets if writing else [], [], timeout_s))

    class Watch:
        """Which of many descriptors have something to read."""

        def __init__(self) -> None:
            self._descriptors: set[int] = set()

        def add(self, descriptor: int) -> None:
            """Watch the descriptor as well."""
            self._descriptors.add(descriptor)

        def discard(self, descriptor: int) -> None:
            """Watch the descriptor no longer."""
            self._descriptors.discard(descriptor)

        def readable(self, timeout_s: float | None = 0) -> list[int]:
            """Those with something to read, an end or an error among them; closed ones count.

            Waits at most ``timeout_s`` seconds for the first; of many, the first few hundred are waited for.
            """
            descriptors = sorted(self._descriptors)
            if timeout_s != 0 and descriptors:
                with contextlib.suppress(OSError, ValueError):
                    select.select(descriptors[:_SELECT_LIMIT], [], [], timeout_s)
            found: list[int] = []
            for start in range(0, len(descriptors), _SELECT_LIMIT):
                some = descriptors[start : start + _SELECT_LIMIT]
                try:
                    found += select.select(some, [], [], 0)[0]
                except (OSError, ValueError):
                    # One of them is closed, and it is not said which.
                    found += some
            return found

else:

    class Readiness:
        """Waits on one socket with ``poll()``, which unlike ``select()`` has no limit on descriptors.

        Example:
            >>> a, b = socket.socketpair()
            >>> b.send(b"x")
            1
            >>> Readiness(a).wait(1.0)
            True
            >>> a.close(), b.close()
            (None, None)
        """

        def __init__(self, sock: socket.socket) -> None:
            self._reading = select.poll()
            self._reading.register(sock, select.POLLIN)
            self._both = select.poll()
            self._both.register(sock, select.POLLIN | select.POLLOUT)

        def wait(self, timeout_s: float | None, *, writing: bool = False) -> bool:
            """True once the socket can be read (or, with ``writing``, written), False after ``timeout_s`` seconds."""
            poller = self._both if writing else self._reading
            return bool(poller.poll(_milliseconds(timeout_s)))

    class Watch:
        """Which of many descriptors have something to read.

        Any thread may add and discard while one asks; none of it blocks.

        Example:
            >>> a, b = socket.socketpair()
            >>> watch = Watch()
            >>> watch.add(a.fileno())
            >>> watch.readable()
            []
            >>> b.send(b"x")
            1
            >>> watch.readable() == [a.fileno()]
            True
            >>> a.close(), b.close()
            (None, None)
        """

        def __init__(self) -> None:
            self._poller = select.poll()

        def add(self, descriptor: int) -> None:
            """Watch the descriptor as well."""
            self._poller.register(descriptor, select.POLLIN)

        def discard(self, descriptor: int) -> None:
            """Watch the descriptor no longer."""
            with contextlib.suppress(KeyError):
                self._poller.unregister(descriptor)

        def readable(self, timeout_s: float | None = 0) -> list[int]:
            """Those with something to read, an end or an error among them; closed ones count.

            Waits at most ``timeout_s`` seconds for the first; None: without a limit.
            """
            return [descriptor for descriptor, _ in self._poller.poll(_milliseconds(timeout_s))]

    def _milliseconds(timeout_s: float | None) -> int | None:
        return None if timeout_s is None else math.ceil(min(timeout_s, _LONGEST_WAIT_S) * 1000)
