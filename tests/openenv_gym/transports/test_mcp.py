"""Sessions at ``/mcp``: their life, their calls and their failures, blocking and awaited."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any

import pytest

from openenv_gym.errors import (
    CapacityError,
    EnvironmentExecutionError,
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
    SessionStateError,
    ToolCallError,
    UnreachableError,
    ValueMappingError,
)
from openenv_gym.loopless import drive
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.mcp import McpSession
from tests.openenv_gym.transports.conftest import WAIT_S, Run, Start
from tests.openenv_gym.transports.mcp_peer import Peer, calls_of
from tests.openenv_gym.transports.test_exchange import answer_with, read_body


@pytest.fixture
def peer(serve_tcp: Start) -> Peer:
    peer = Peer()
    peer.url = serve_tcp(peer)
    return peer


def test_a_session_is_opened_used_and_closed(peer: Peer) -> None:
    with McpSession(peer.url, ConnectionSettings()) as session:
        session.open()
        assert session.session_id == "1"
        assert session.list_tools() == [{"name": "look", "inputSchema": {"type": "object"}}]
        assert session.call_tool("look", {"a": [1, None]}) == {
            "data": {"a": [1, None]},
            "content": [],
            "is_error": False,
        }
    session.close()
    assert session.session_id is None
    assert peer.methods == ["create", "list", "call", "close"]
    assert peer.asked[2][1] == {"name": "look", "arguments": {"a": [1, None]}, "session_id": "1"}
    assert peer.asked[3][1] == {"session_id": "1"}


def test_the_first_call_opens_it(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    assert (calls.fresh, calls.opened) == (True, False)
    assert run(calls.list_tools())
    assert (calls.fresh, calls.opened) == (False, True)
    run(calls.close())
    assert (calls.fresh, calls.opened) == (False, False)
    assert peer.methods == ["create", "list", "close"]


def test_first_calls_at_once_open_one(peer: Peer) -> None:
    calls = calls_of(peer)

    async def all_at_once() -> None:
        await asyncio.gather(*(calls.call_tool("look", {"n": n}) for n in range(5)), calls.open())

    threads = [threading.Thread(target=lambda: drive(calls.call_tool("look", {}))) for _ in range(4)]
    for thread in threads:
        thread.start()
    asyncio.run(all_at_once())
    for thread in threads:
        thread.join(WAIT_S)
    assert peer.methods.count("create") == 1
    assert peer.methods.count("call") == 9
    drive(calls.close())


def test_once_closed_only_open_helps(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    run(calls.close())
    with pytest.raises(SessionStateError, match=r"connect\(\)") as caught:
        run(calls.call_tool("look", {}))
    assert caught.value.state == "closed"
    run(calls.open())
    assert calls.session_id == "1"
    run(calls.close())
    run(calls.open())
    assert calls.session_id == "2"
    run(calls.close())


def test_a_session_that_the_server_dropped_is_lost_until_open(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    run(calls.open())
    peer.fail("tools/call", -32602, "Unknown session_id: 1")
    for ask in (lambda: calls.call_tool("look", {}), calls.list_tools, lambda: calls.call_tool("look", {})):
        with pytest.raises(SessionLostError) as caught:
            run(ask())
        assert caught.value.reason == "Unknown session_id: 1"
    assert peer.methods == ["create", "call"]
    assert calls.opened
    peer.answers.clear()
    run(calls.open())
    assert run(calls.call_tool("look", {}))["data"] == {}
    assert peer.asked[-1][1]["session_id"] == "2"
    run(calls.close())


def test_a_call_that_fails_leaves_the_session(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    run(calls.open())
    peer.fail("tools/call", -32603, "no", {"error_type": "invalid_args"})
    with pytest.raises(ToolCallError) as caught:
        run(calls.call_tool("look", {}))
    assert caught.value.error_type == "invalid_args"
    peer.answers["tools/call"] = lambda _: {"result": {"is_error": True, "content": [{"text": "a"}]}}
    with pytest.raises(ToolCallError, match="a"):
        run(calls.call_tool("look", {}))
    peer.answers.clear()
    assert run(calls.call_tool("look", {"n": 1}))["data"] == {"n": 1}
    assert peer.methods.count("create") == 1
    run(calls.close())


def test_the_servers_silence_is_a_timeout_and_the_session_goes_on(peer: Peer, run: Run) -> None:
    calls = calls_of(peer, step_timeout_s=0.05)
    run(calls.open())
    late = peer.wait["tools/call"] = threading.Event()
    with pytest.raises(ToolCallError) as caught:
        run(calls.call_tool("look", {"n": 1}))
    assert caught.value.error_type == "timeout"
    assert isinstance(caught.value.__cause__, RequestTimeoutError)
    late.set()
    del peer.wait["tools/call"]
    calls._settings = ConnectionSettings()
    assert run(calls.call_tool("look", {"n": 2}))["data"] == {"n": 2}
    assert peer.methods.count("create") == 1
    run(calls.close())


def test_a_limit_for_one_call_is_told_to_the_server(peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openenv_gym.transports.mcp._GRACE_S", 0.01)
    calls = calls_of(peer)
    late = peer.wait["tools/call"] = threading.Event()
    with pytest.raises(ToolCallError) as caught:
        run(calls.call_tool("look", {}, 0.05))
    assert caught.value.error_type == "timeout"
    assert peer.asked[-1][1]["timeout_s"] == 0.05
    late.set()
    run(calls.close())


@pytest.mark.parametrize("answer", [None, {"id": 99, "result": 1}])
def test_a_cut_or_nonsense_is_a_failure_of_the_transport_and_the_session_goes_on(
    peer: Peer, run: Run, answer: Any
) -> None:
    calls = calls_of(peer)
    run(calls.open())
    peer.answers["tools/call"] = lambda _: answer
    with pytest.raises(ToolCallError) as caught:
        run(calls.call_tool("look", {}))
    assert caught.value.error_type == "transport_error"
    assert isinstance(caught.value.__cause__, UnreachableError | ProtocolError)
    peer.answers.clear()
    assert run(calls.call_tool("look", {}))["data"] == {}
    assert peer.methods.count("create") == 1
    run(calls.close())


def test_what_cannot_be_sent_is_not(peer: Peer, run: Run) -> None:
    calls = calls_of(peer, max_message_size_mb=1)
    run(calls.open())
    with pytest.raises(ValueMappingError):
        run(calls.call_tool("look", {"a": object()}))
    with pytest.raises(MessageTooLargeError):
        run(calls.call_tool("look", {"a": "x" * 1_100_000}))
    assert peer.methods == ["create"]
    assert run(calls.call_tool("look", {}))
    run(calls.close())


def test_a_session_that_cannot_be_opened_says_why(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    peer.fail("openenv/session/create", -32000, "Full.", {"active_sessions": 1, "max_sessions": 1})
    for ask in (calls.open, calls.list_tools, lambda: calls.call_tool("look", {})):
        with pytest.raises(CapacityError):
            run(ask())
    peer.answers["openenv/session/create"] = lambda _: {"result": {"session_id": None}}
    with pytest.raises(ProtocolError, match="name the session"):
        run(calls.open())
    peer.answers.clear()
    assert run(calls.list_tools())
    run(calls.close())


def test_a_listing_that_fails_says_why(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    peer.fail("tools/list", -32603, "no tools here")
    with pytest.raises(EnvironmentExecutionError, match="no tools here"):
        run(calls.list_tools())
    faulty: tuple[Any, ...] = (None, [3], [{}], {})
    for tools in faulty:
        peer.answers["tools/list"] = lambda _, tools=tools: {"result": {"tools": tools}}
        with pytest.raises(ProtocolError, match="list tools"):
            run(calls.list_tools())
    peer.answers["tools/list"] = lambda _: {"result": []}
    with pytest.raises(ProtocolError):
        run(calls.list_tools())
    run(calls.close())


def test_a_kept_session_is_used_and_left(peer: Peer, run: Run) -> None:
    calls = calls_of(peer, session_id="kept")
    assert run(calls.call_tool("look", {}))
    run(calls.close())
    assert peer.methods == ["call"]
    assert peer.asked[0][1]["session_id"] == "kept"


def test_keys_that_are_one_in_json_are_refused_and_nothing_is_sent(peer: Peer, run: Run) -> None:
    with pytest.raises(ValueMappingError) as caught:
        run(calls_of(peer).call_tool("look", {"x": {1: "a", "1": "b"}}))
    assert caught.value.path == "$.arguments.x"
    assert peer.methods == []


class Elsewhere:
    """A server that redirects a method to an address, whatever was there before."""

    def __init__(self, peer: Peer, method: str, status: int, location: bytes) -> None:
        self.peer, self.method, self.posts = peer, method.encode(), 0
        self.answer = b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % (status, location)

    def __call__(self, sock: socket.socket) -> None:
        while True:
            head, body = read_body(sock)
            if b'"%s"' % self.method in body and b"/mcp HTTP" in head:
                self.posts += 1
                sock.sendall(self.answer)
            else:
                sock.sendall(answer_with(json.dumps(self.peer.noted(json.loads(body))).encode()))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_address_of_a_session_is_learnt_when_it_is_made(serve_tcp: Start, run: Run, status: int) -> None:
    peer = Peer()
    peer.url = serve_tcp(Elsewhere(peer, "openenv/session/create", status, b"/new"))
    calls = calls_of(peer)
    assert run(calls.call_tool("look", {"n": 1}))["data"] == {"n": 1}
    assert calls._url == f"{peer.url}/new"
    run(calls.close())
    assert peer.methods == ["create", "call", "close"]


@pytest.mark.parametrize("location", [b"/there", b"http://127.0.0.1:1/mcp", b"http://[::1", b"/a b\xe9"])
@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_call_is_never_made_twice_and_the_session_is_closed_where_it_is(
    serve_tcp: Start, run: Run, status: int, location: bytes
) -> None:
    peer = Peer()
    server = Elsewhere(peer, "tools/call", status, location)
    peer.url = serve_tcp(server)
    calls = calls_of(peer)
    for _ in range(2):
        with pytest.raises(ToolCallError) as caught:
            run(calls.call_tool("look", {}))
        assert caught.value.error_type == "transport_error"
    assert server.posts == 2
    run(calls.close())
    assert peer.methods == ["create", "close"]


@pytest.mark.parametrize("location", [b"http://[::1", b"http://127.0.0.1:99999/", b"/a b\xe9", b"http://127.0.0.1:1/"])
def test_closing_never_fails_over_where_it_is_sent(serve_tcp: Start, run: Run, location: bytes) -> None:
    peer = Peer()
    peer.url = serve_tcp(Elsewhere(peer, "openenv/session/close", 307, location))
    calls = calls_of(peer)
    run(calls.open())
    run(calls.close())
