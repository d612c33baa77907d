"""What crosses the wire, written down beside a server of any make."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["Recorder"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Recorder:
    """An ASGI app as it is, whose requests and frames are noted.

    Attributes:
        requests: method, path and body of each HTTP request.
        frames: path and text of each WebSocket message that came in.
        handshakes: the path of each WebSocket.
        connections: the client's address of each HTTP request.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.clear()

    def clear(self) -> None:
        """Forget what was noted."""
        self.requests: list[tuple[str, str, bytes]] = []
        self.frames: list[tuple[str, str]] = []
        self.handshakes: list[str] = []
        self.connections: list[Any] = []

    @property
    def methods(self) -> list[str]:
        """The JSON-RPC methods that were asked for by POST /mcp."""
        posted = [body for method, path, body in self.requests if (method, path) == ("POST", "/mcp")]
        return [json.loads(body)["method"] for body in posted]

    @property
    def types(self) -> list[str]:
        """The types of the frames that came over /ws; of steps, those of their actions."""
        frames = [json.loads(text) for path, text in self.frames if path == "/ws"]
        return [frame["data"].get("type", "step") if frame["type"] == "step" else frame["type"] for frame in frames]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        body = b""
        index = len(self.requests)
        self.requests.append((scope["method"], scope["path"], b""))
        self.connections.append(tuple(scope["client"]))

        async def noting() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                self.requests[index] = (scope["method"], scope["path"], body)
            return message

        await self.app(scope, noting, send)

    async def _websocket(self, scope: Message, receive: Receive, send: Send) -> None:
        self.handshakes.append(scope["path"])

        async def noting() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                self.frames.append((scope["path"], message.get("text") or repr(message.get("bytes"))))
            return message

        await self.app(scope, noting, send)
