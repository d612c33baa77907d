"""Tests of ``openenv_gym_server.routes.sending``, alone and by a peer that does not read."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from openenv_gym.tools import CallToolAction, CallToolObservation
from openenv_gym.types import Observation
from openenv_gym_server.app import create_app
from openenv_gym_server.mcp_environment import MCPEnvironment
from openenv_gym_server.routes import sending
from openenv_gym_server.routes.sending import PART, bounded
from openenv_gym_server.tool_functions import tool
from tests.openenv_gym_server.climbing import calling
from tests.serving import serve
from tests.sockets import until

Sent = list[dict[str, Any]]


def sent_of(*messages: dict[str, Any]) -> Sent:
    sent: Sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def main() -> None:
        sending = bounded(send)
        for message in messages:
            await sending(message)

    asyncio.run(main())
    return sent


def test_what_is_small_is_sent_as_it_is() -> None:
    messages = (
        {"type": "http.response.start", "status": 200, "headers": []},
        {"type": "http.response.body", "body": b"x" * PART, "more_body": True},
        {"type": "http.response.body"},
    )
    assert sent_of(*messages) == list(messages)


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("size", [PART + 1, 2 * PART, 2 * PART + 1])
def test_what_is_large_is_sent_in_parts_and_only_the_last_is_the_end(size: int, more: bool) -> None:
    body = bytes(range(251)) * (size // 251 + 1)
    sent = sent_of({"type": "http.response.body", "body": body[:size], "more_body": more})
    assert b"".join(each["body"] for each in sent) == body[:size]
    assert max(len(each["body"]) for each in sent) == PART
    assert [each["more_body"] for each in sent] == [True] * (len(sent) - 1) + [more]


class Large(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: int | None = None, **kwargs: Any) -> Observation:
        return Observation(reward=0.0, metadata={"text": "a" * 2**23})

    @tool
    def fill(self) -> str:
        return "a" * 2**23


@pytest.mark.parametrize(
    ("path", "request_body", "accept"),
    [
        ("/mcp", calling("fill"), "application/json"),
        ("/reset", {}, "application/json"),
    ],
)
def test_an_answer_that_nobody_reads_is_given_up(
    path: str, request_body: Any, accept: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sending, "PATIENCE_S", 0.2)
    monkeypatch.setattr(sending, "SLOWEST", 2**40)
    content = json.dumps(request_body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {accept}\r\n"
    with serve(create_app(Large, CallToolAction, CallToolObservation)) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PART)  # so that the system keeps little of it
            peer.settimeout(10.0)
            peer.connect((host, int(port)))
            peer.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
            until(lambda: "was given up" in caplog.text)
            received = 0
            while part := peer.recv(2**20):
                received += len(part)
    assert 0 < received < 2**23, "the connection ends before the answer does"
