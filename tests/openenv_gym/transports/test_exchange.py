"""Requests over one kept HTTP connection, blocking and awaited: the same answers and the same failures."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import Any

import pytest

from openenv_gym.errors import (
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    SessionStateError,
    UnreachableError,
)
from openenv_gym.loopless import drive
from openenv_gym.transports import exchange as module
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.exchange import HttpExchange
from tests.openenv_gym.transports.conftest import WAIT_S, Answer, Run, Start, wait_until

JSON_TYPE = {"Content-Type": "application/json"}
SECRET = {"Authorization": "Bearer secret", "X-Key": "hidden"}


def exchange_of(base_url: str, **settings: Any) -> HttpExchange:
    return HttpExchange(base_url, "/mcp", ConnectionSettings(**settings))


def read_body(sock: socket.socket) -> tuple[bytes, bytes]:
    """One request: its head and its body; ``ConnectionError`` where the client has left."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(1_000_000)
    return head, body


def answer_with(body: bytes, *, head: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (len(body), head) + body


class Echo:
    """Answers each request with its body, on connections that it counts."""

    def __init__(self) -> None:
        self.connections = 0
        self.heads: list[bytes] = []
        self.sockets: list[socket.socket] = []

    def __call__(self, sock: socket.socket) -> None:
        self.connections += 1
        self.sockets.append(sock)
        while True:
            head, body = read_body(sock)
            self.heads.append(head)
            sock.sendall(answer_with(body))


def test_requests_follow_each_other_on_one_connection(serve_tcp: Start, run: Run) -> None:
    echo = Echo()
    exchange = exchange_of(serve_tcp(echo) + "/a/prefix/", headers={**SECRET, "Accept": "application/json, x/y"})

    async def ask() -> list[bytes]:
        return [await exchange.post(body, WAIT_S) for body in (b"1", b"2" * 3_000_000, b"3")]

    assert run(ask()) == [b"1", b"2" * 3_000_000, b"3"]
    assert echo.connections == 1
    head = echo.heads[0].decode()
    assert head.startswith("POST /a/prefix/mcp HTTP/1.1")
    assert "authorization: Bearer secret" in head
    assert "accept: application/json, x/y" in head
    exchange.drop()


def test_the_connection_belongs_to_no_loop(serve_tcp: Start) -> None:
    echo = Echo()
    exchange = exchange_of(serve_tcp(echo))
    for run in (asyncio.run, drive, asyncio.run):
        assert run(exchange.post(b"1", WAIT_S)) == b"1"
    assert echo.connections == 1
    exchange.drop()
    exchange.drop()


def test_a_connection_that_the_server_has_closed_is_not_used_again(serve_tcp: Start, run: Run) -> None:
    connections = []

    def script(sock: socket.socket) -> None:
        connections.append(sock)
        sock.sendall(answer_with(read_body(sock)[1]))

    exchange = exchange_of(serve_tcp(script))
    for _ in range(3):
        assert run(exchange.post(b"1", WAIT_S)) == b"1"
        connection = exchange._connection
        assert connection is not None
        connection._stream.wait(WAIT_S)
    assert len(connections) == 3
    exchange.drop()


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", answer_with(b"x")[:-1]])
def test_a_cut_says_that_it_may_be_done_or_not(serve_tcp: Start, run: Run, start: bytes) -> None:
    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.sendall(start)

    exchange = exchange_of(serve_tcp(script))
    with pytest.raises(UnreachableError, match="may be done or not"):
        run(exchange.post(b"1", WAIT_S))


def test_a_reset_is_a_cut(serve_tcp: Start, run: Run) -> None:
    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with pytest.raises(UnreachableError, match="cut"):
        run(exchange_of(serve_tcp(script)).post(b"1", WAIT_S))


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxx"])
def test_an_answer_that_comes_too_late_is_never_taken_for_another(serve_tcp: Start, run: Run, start: bytes) -> None:
    late = threading.Event()
    bodies: list[bytes] = []

    def script(sock: socket.socket) -> None:
        bodies.append(read_body(sock)[1])
        if len(bodies) == 1:
            sock.sendall(start)
            late.wait(WAIT_S)
        sock.sendall(answer_with(bodies[-1]))

    exchange = exchange_of(serve_tcp(script))
    with pytest.raises(RequestTimeoutError, match=r"within 0\.05 s") as caught:
        run(exchange.post(b"1", 0.05))
    assert caught.value.timeout_s == 0.05
    late.set()
    assert run(exchange.post(b"2", WAIT_S)) == b"2"
    exchange.drop()


def test_answers_in_chunks_and_until_the_end_are_read(serve_tcp: Start, run: Run) -> None:
    answers = [
        (
            b"HTTP/1.1 100 Continue\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        ),
        b"HTTP/1.0 200 OK\r\n\r\nabc",
    ]

    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.sendall(answers.pop(0))

    exchange = exchange_of(serve_tcp(script))
    assert run(exchange.post(b"1", WAIT_S)) == run(exchange.post(b"1", WAIT_S)) == b"abc"
    exchange.drop()


def test_what_is_not_http_is_a_protocol_error(serve_tcp: Start, run: Run) -> None:
    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    with pytest.raises(ProtocolError, match=r"HTTP/1\.1"):
        run(exchange_of(serve_tcp(script)).post(b"1", WAIT_S))


@pytest.mark.parametrize("announced", [True, False])
def test_sizes_have_a_limit_each_way(serve_tcp: Start, run: Run, announced: bool) -> None:
    big = b" " * 1_100_000

    def script(sock: socket.socket) -> None:
        read_body(sock)
        head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: %d\r\n" % len(big) if announced else b"")
        sock.sendall(head + b"\r\n" + big)

    exchange = exchange_of(serve_tcp(script), max_message_size_mb=1)
    with pytest.raises(MessageTooLargeError, match="nothing was sent"):
        run(exchange.post(big, WAIT_S))
    with pytest.raises(MessageTooLargeError, match="answer") as caught:
        run(exchange.post(b"1", WAIT_S))
    assert (caught.value.limit, caught.value.setting) == (1024 * 1024, "max_message_size_mb")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, {}, b""), "wants a token"),
        ((404, JSON_TYPE, b'{"detail":"Not Found"}'), "no document at this path.*it said: Not Found"),
        ((421, JSON_TYPE, b'{"error":{"code":-32000,"message":"set OPENENV_ALLOWED_HOSTS"}}'), "OPENENV_ALLOWED_HOSTS"),
        ((403, JSON_TYPE, b'{"error":"no way"}'), "it said: no way"),
        ((403, JSON_TYPE, b"[1]"), "refuses"),
        ((503, {}, b'"' + b"x" * 70_000 + b'"'), "asleep"),
        ((200, {"Content-Type": "text/html"}, b"<html>hello"), "web page"),
    ],
)
def test_a_status_says_what_to_check_and_what_the_server_said(
    serve_http: Start, run: Run, answer: Answer, words: str
) -> None:
    base_url = serve_http(lambda _: answer)
    with pytest.raises(UnreachableError, match=words) as caught:
        run(exchange_of(base_url, headers=SECRET).post(b"{}", WAIT_S))
    assert (caught.value.status, caught.value.url) == (answer[0], f"{base_url}/mcp")
    assert "secret" not in str(caught.value)


def test_dropped_under_a_call_it_raises_there(serve_tcp: Start, run: Run) -> None:
    asked = threading.Event()

    def script(sock: socket.socket) -> None:
        read_body(sock)
        asked.set()
        sock.recv(1)

    exchange = exchange_of(serve_tcp(script))

    def drop() -> None:
        assert asked.wait(WAIT_S)
        exchange.drop()

    thread = threading.Thread(target=drop)
    thread.start()
    with pytest.raises(UnreachableError, match="cut"):
        run(exchange.post(b"1", WAIT_S))
    thread.join(WAIT_S)


def test_dropped_while_it_connects_it_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch, serve_tcp: Start) -> None:
    echo = Echo()
    exchange = exchange_of(serve_tcp(echo))
    dial = module.dial
    dialed = []

    def dropping(url: str, settings: ConnectionSettings) -> Any:
        dialed.append(dial(url, settings))
        exchange.drop()
        return dialed[-1]

    monkeypatch.setattr(module, "dial", dropping)
    with pytest.raises(SessionStateError, match="closed while it connected"):
        drive(exchange.post(b"1", WAIT_S))
    assert dialed[0].socket.fileno() == -1


def test_a_cancelled_call_cuts_its_connection(serve_tcp: Start) -> None:
    asked = threading.Event()
    left = threading.Event()
    bodies: list[bytes] = []

    def script(sock: socket.socket) -> None:
        bodies.append(read_body(sock)[1])
        if len(bodies) == 1:
            asked.set()
            assert sock.recv(1) == b""
            left.set()
        else:
            sock.sendall(answer_with(bodies[-1]))

    exchange = exchange_of(serve_tcp(script))

    async def main() -> bytes:
        task = asyncio.create_task(exchange.post(b"1", None))
        while not asked.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await exchange.post(b"2", WAIT_S)

    assert asyncio.run(main()) == b"2"
    assert left.wait(WAIT_S)
    exchange.drop()


def test_a_loop_that_cannot_watch_sockets_waits_in_a_thread(serve_tcp: Start) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError

    async def main() -> bytes:
        # As Windows' own loop does. The thread that waits tells this one through a pipe it watches already.
        asyncio.get_running_loop().add_reader = refuse  # type: ignore[method-assign]
        return await exchange.post(b"1", WAIT_S)

    exchange = exchange_of(serve_tcp(unhurried))
    assert asyncio.run(main()) == b"1"
    exchange.drop()


def unhurried(sock: socket.socket) -> None:
    """Takes its time before it reads and before it answers."""
    pause = threading.Event()
    pause.wait(0.05)
    body = read_body(sock)[1]
    pause.wait(0.05)
    sock.sendall(answer_with(body[:1]))


@pytest.mark.parametrize("timeout_s", [WAIT_S, None])
def test_a_long_request_is_written_as_fast_as_it_is_read(serve_tcp: Start, run: Run, timeout_s: float | None) -> None:
    exchange = exchange_of(serve_tcp(unhurried))
    assert run(exchange.post(b"1" * 20_000_000, timeout_s)) == b"1"
    exchange.drop()


def test_a_forked_child_has_a_connection_of_its_own(serve_tcp: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = Echo()
    exchange = exchange_of(serve_tcp(echo))
    assert drive(exchange.post(b"1", WAIT_S)) == b"1"
    connection = exchange._connection
    assert connection is not None
    # As the child sees it; closing its copy leaves the parent's connection as it is.
    connection._process = os.getpid() + 1
    assert not connection.usable
    exchange.drop()
    assert connection._stream.fileno() == -1
    wait_until(lambda: echo.sockets[0].fileno() == -1)
