"""Bytes on a non-blocking socket, plain or TLS: what comes, what is still to go, and waiting for either.

Not for what the bytes mean nor for how a connection ends (``blocking``): errors of the socket come out as they are.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable

from openenv_gym.transports.readiness import Readiness

__all__ = ["Stream"]

_FIRST_BUFFER = 65_536
_LARGEST_BUFFER = 262_144
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Stream:
    """One socket, which it owns and makes non-blocking.

    Attributes:
        output: what is still to be written, in order.

    Example:
        >>> a, b = socket.socketpair()
        >>> stream = Stream(a)
        >>> stream.output.append(b"hello")
        >>> stream.write()
        >>> b.recv(5)
        b'hello'
        >>> stream.wait(0)
        False
        >>> stream.close(), b.close()
        (None, None)
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.output: deque[bytes | memoryview] = deque()
        self._socket = sock
        self._readiness = Readiness(sock)
        # What TLS has decrypted already no poll() sees.
        self._decrypted = sock.pending if isinstance(sock, ssl.SSLSocket) else None
        self._buffer = memoryview(bytearray(_FIRST_BUFFER))
        self._more = False  # the last read filled the buffer, so the next need not wait
        self._rest: bytes | memoryview = b""
        self._holders: dict[object, Callable[[], bool]] = {}
        self._ended = False

    def fileno(self) -> int:
        """The descriptor, -1 once it is closed."""
        return self._socket.fileno()

    @property
    def ready(self) -> bool:
        """Whether there may be bytes to read that no poll of the descriptor tells of."""
        return self._more or bool(self._rest) or (self._decrypted is not None and self._decrypted() > 0)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until bytes can be read, or written where some are to be; False after ``timeout_s`` seconds."""
        return self.ready or self._readiness.wait(timeout_s, writing=bool(self.output))

    def read(self, target: memoryview | None = None) -> memoryview | None:
        """What has come, valid until the next call; empty at the end of the stream, None where nothing has come.

        Args:
            target: where to put it; None: a buffer of the stream's own.

        Raises:
            OSError: the connection is broken.
        """
        if self._rest:
            return self._read_rest(target)
        self._more = False
        buffer = self._buffer if target is None else target
        try:
            size = self._socket.recv_into(buffer)
        except _NOT_NOW:
            return None
        if size == len(buffer):
            self._more = True
            if target is None and size < _LARGEST_BUFFER:
                self._buffer = memoryview(bytearray(size * 2))
        return buffer[:size]

    def give_back(self, data: bytes | memoryview) -> None:
        """Have the next ``read`` give these bytes of the last one once more: there was no time for them."""
        self._rest = data

    def _read_rest(self, target: memoryview | None) -> memoryview:
        rest = memoryview(self._rest)
        size = len(rest) if target is None else min(len(rest), len(target))
        self._rest = rest[size:]
        if target is None:
            return rest
        target[:size] = rest[:size]
        return target[:size]

    def write(self) -> None:
        """Write what the socket takes now.

        Raises:
            OSError: the connection is broken.
        """
        output = self.output
        while output:
            data = output[0]
            try:
                size = self._socket.send(data)
            except _NOT_NOW:
                return
            if not output:
                # A signal handler has closed the connection since.
                return
            if size == len(data):
                output.popleft()
            else:
                output[0] = memoryview(data)[size:]

    def cut(self) -> None:
        """End the connection under whoever waits for it; it stays to be closed."""
        # Of TCP alone: SSLSocket.shutdown() would hand a call in flight undecrypted bytes.
        with contextlib.suppress(OSError):
            # An error: already down, which is the wish.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def hold(self, holder: object, lives: Callable[[], bool]) -> None:
        """Keep the descriptor from being closed, and so given to another socket, for as long as the holder lives."""
        for other, still in list(self._holders.items()):
            if not still():
                del self._holders[other]
        self._holders[holder] = lives

    def let_go(self, holder: object) -> None:
        """End a hold; the last one closes what was to be closed meanwhile."""
        self._holders.pop(holder, None)
        if self._ended:
            self.close()

    def close(self) -> None:
        """Close this process's descriptor, or where it is held cut the connection and leave that to the holder.

        Neither TCP nor TLS is asked to say anything. Again: nothing.
        """
        # Before it looks for holders: the last of them, which may end just now, looks at this.
        self._ended = True
        if any(lives() for lives in list(self._holders.values())):
            self.cut()
            return
        self._socket.close()

    def abandon(self) -> None:
        """Close the descriptor of a forked child, whoever holds it, and leave the parent's connection as it is."""
        self._socket.close()
