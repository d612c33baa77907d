"""``listener``: the socket that a server listens on. Not for serving (``openenv_gym_server``)."""

from __future__ import annotations

import socket

__all__ = ["listener"]

_BACKLOG = 2048


def listener(host: str, port: int) -> socket.socket:
    """A listening socket whose connections send what they are given at once.

    ``socket.create_server`` alone is not enough: asyncio sets TCP_NODELAY only where a socket says that it is one of
    TCP, which one of protocol 0 does not. An answer in two parts, as uvicorn's over HTTP, then waits for an
    acknowledgement that comes 40 ms late. What the listening socket has set, its connections inherit.

    Args:
        host: a name or an address, of either family.
        port: the port; 0: one that the system chooses.

    Raises:
        OSError: it cannot be listened on.

    Example:
        >>> with listener("127.0.0.1", 0) as listening:
        ...     listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        True
    """
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
