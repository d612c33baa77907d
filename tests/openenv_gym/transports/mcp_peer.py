"""A server at ``/mcp`` that tests script and look into."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.mcp import McpCalls
from tests.openenv_gym.transports.conftest import WAIT_S
from tests.openenv_gym.transports.test_exchange import answer_with, read_body


class Peer:
    """A server at ``/mcp``: sessions are numbers, a call's result is its arguments; what it was asked is noted."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.wait: dict[str, threading.Event] = {}
        self.began = threading.Event()
        self.sessions = 0
        self.url = ""

    def __call__(self, sock: socket.socket) -> None:
        while True:
            request = json.loads(read_body(sock)[1])
            method = request["method"]
            self.asked.append((method, request["params"]))
            self.began.set()
            if method in self.wait:
                self.wait[method].wait(WAIT_S)
            answer = self.answers.get(method, self.usual)(request)
            if answer is None:
                return
            sock.sendall(answer_with(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()))

    def noted(self, request: dict[str, Any]) -> dict[str, Any]:
        """The usual answer, of a request that is noted."""
        self.asked.append((request["method"], request["params"]))
        return {"jsonrpc": "2.0", "id": request["id"], **self.usual(request)}

    def usual(self, request: dict[str, Any]) -> dict[str, Any]:
        params = request["params"]
        match request["method"]:
            case "openenv/session/create":
                self.sessions += 1
                return {"result": {"session_id": str(self.sessions)}}
            case "tools/list":
                return {"result": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}}
            case "tools/call":
                return {"result": {"data": params["arguments"], "content": [], "is_error": False}}
            case _:
                return {"result": {"closed": True}}

    @property
    def methods(self) -> list[str]:
        return [method.rpartition("/")[2] for method, _ in self.asked]

    def fail(self, method: str, code: int, message: str, data: Any = None) -> None:
        self.answers[method] = lambda _: {"error": {"code": code, "message": message, "data": data}}


def calls_of(peer: Peer, *, session_id: str | None = None, **settings: Any) -> McpCalls:
    async def address() -> tuple[str, ConnectionSettings]:
        return peer.url, ConnectionSettings(**settings)

    return McpCalls(address, session_id=session_id)
