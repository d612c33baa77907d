"""Waiting until a socket can be read or written.

Not for reading or writing it (``blocking``).
"""

from __future__ import annotations

import math
import select
import socket
import sys

__all__ = ["Readiness"]

_LONGEST_WAIT_S = 86_400.0  # poll() takes a C int of milliseconds; longer waits come back early and are waited again


if sys.platform == "win32":  # pragma: no cover

    class Readiness:
        """Waits on one socket with ``select()``, where there is no ``poll()``."""

        def __init__(self, sock: socket.socket) -> None:
            self._sockets = [sock]

        def wait(self, timeout_s: float | None, *, writing: bool = False) -> bool:
            """True once the socket can be read (or, with ``writing``, written), False after ``timeout_s`` seconds."""
            return any(select.select(self._sockets, self._sockets if writing else [], [], timeout_s))

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
            if timeout_s is None:
                return bool(poller.poll())
            return bool(poller.poll(math.ceil(min(timeout_s, _LONGEST_WAIT_S) * 1000)))
