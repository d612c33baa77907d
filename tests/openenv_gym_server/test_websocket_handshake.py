"""Scopes and refusals; the handshake over a socket is ``test_websocket_protocol``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from websockets.datastructures import Headers
from websockets.http11 import Request

from openenv_gym_server.websocket_handshake import response, scope_of


class Transport(asyncio.Transport):
    """The addresses of a connection, without one."""

    def __init__(self, **extra: Any) -> None:
        super().__init__({"sockname": ("127.0.0.1", 8000), "peername": ("127.0.0.1", 50000), **extra})


def scope(path: str, headers: Headers, **extra: Any) -> dict[str, Any]:
    state = {"pool": object()}
    config = uvicorn.Config("a:b", root_path="/root", interface="asgi3")
    made = scope_of(Request(path, headers), config, Transport(**extra), state)
    assert made["state"] == state
    assert made["state"] is not state
    return made


def test_the_scope_has_the_path_behind_the_root_path_and_the_query() -> None:
    made = scope("/ws%20x?session_id=1%202", Headers())
    assert (made["root_path"], made["path"], made["raw_path"]) == ("/root", "/root/ws x", b"/root/ws%20x")
    assert made["query_string"] == b"session_id=1%202"
    assert (made["server"], made["client"]) == (("127.0.0.1", 8000), ("127.0.0.1", 50000))


@pytest.mark.parametrize(("context", "scheme"), [(None, "ws"), (object(), "wss")])
def test_the_scheme_tells_of_tls(context: object, scheme: str) -> None:
    assert scope("/", Headers(), sslcontext=context)["scheme"] == scheme


def test_subprotocols_are_listed_over_all_headers_and_names_are_lower_case() -> None:
    headers = Headers([("Sec-WebSocket-Protocol", "a, b"), ("Sec-WebSocket-Protocol", "c"), ("X-Name", "caf\xe9")])
    made = scope("/", headers)
    assert made["subprotocols"] == ["a", "b", "c"]
    assert (b"x-name", b"caf\xe9") in made["headers"]
    assert scope("/", Headers())["subprotocols"] == []


def test_a_refusal_is_a_whole_response_and_says_what_it_was_given_to_say() -> None:
    text = response(418, [(b"content-type", b"application/json"), (b"x-a", b"1")], b"{}").decode()
    assert text.startswith("HTTP/1.1 418 ")
    assert "content-type: application/json\r\n" in text
    assert "text/plain" not in text
    assert "Content-Length: 2\r\n" in text
    assert "Connection: close\r\n" in text
    assert text.endswith("\r\n\r\n{}")
    assert response(299).startswith(b"HTTP/1.1 299 \r\n"), "a status without a name"
