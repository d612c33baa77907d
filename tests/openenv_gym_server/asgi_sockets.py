"""ASGI applications for the WebSocket protocol class, served, and clients of every politeness."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.serving import serve

WAIT_S = 10.0
KEY = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"


class Application:
    """Accepts, and sends back what comes; notes how it went."""

    def __init__(self, converse: Callable[..., Any] | None = None, accept: dict[str, Any] | None = None) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []
        self.finished = threading.Event()
        self._converse = converse or self.echo
        self._accept = accept or {}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        self.scopes.append(scope)
        try:
            assert await receive() == {"type": "websocket.connect"}
            await send({"type": "websocket.accept", **self._accept})
            await self._converse(receive, send)
        finally:
            self.finished.set()

    async def echo(self, receive: Any, send: Any) -> None:
        while (event := await receive())["type"] == "websocket.receive":
            await send({**event, "type": "websocket.send"})
        self.ends.append(event)
        assert await receive() == event, "the end is given again"


@contextlib.contextmanager
def served(app: Any, **settings: Any) -> Iterator[str]:
    with serve(app, lifespan="off", **settings) as url:
        yield url.replace("http", "ws", 1)


@contextlib.contextmanager
def opened(url: str, **options: Any) -> Iterator[ClientConnection]:
    options = {"compression": None, "max_size": None, **options}
    with connect(url, proxy=None, open_timeout=WAIT_S, close_timeout=WAIT_S, **options) as client:
        yield client


@contextlib.contextmanager
def bare(url: str, request: bytes | None = None) -> Iterator[socket.socket]:
    """A plain socket whose handshake is done."""
    host, port = url.removeprefix("ws://").split(":")
    request = request or b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + KEY + b"\r\n"
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as sock:
        sock.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += sock.recv(1)
        assert b" 101 " in answer
        yield sock


def rest(sock: socket.socket) -> bytes:
    """What comes until the connection ends."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while data := sock.recv(65536):
            answer += data
    return answer


def exactly(sock: socket.socket, size: int) -> bytes:
    answer = b""
    while len(answer) < size:
        answer += sock.recv(size - len(answer))
    return answer
