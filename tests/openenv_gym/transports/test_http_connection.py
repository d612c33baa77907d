"""One HTTP connection: when it may be used again, and that no server can hold a call or an event loop for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from openenv_gym.errors import MessageTooLargeError, ProtocolError, RequestTimeoutError, UnreachableError
from openenv_gym.transports import http_connection as module
from tests.openenv_gym.transports.conftest import WAIT_S, Run, Start
from tests.openenv_gym.transports.test_exchange import Echo, answer_with, exchange_of, read_body

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def test_one_that_was_silent_for_long_is_not_used_again(
    serve_tcp: Start, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So a request never meets the end that a server makes after some seconds of silence.
    monkeypatch.setattr(module, "_REUSED_FOR_S", 0.0)
    echo = Echo()
    exchange = exchange_of(serve_tcp(echo))
    assert run(exchange.post(b"1", WAIT_S)) == run(exchange.post(b"1", None))
    exchange.drop()
    assert echo.connections == 2


def test_an_answer_that_nobody_asked_for_ends_its_use(serve_tcp: Start, run: Run) -> None:
    connections: list[socket.socket] = []

    def script(sock: socket.socket) -> None:
        connections.append(sock)
        while True:
            # In one segment, so that the connection has read both.
            sock.sendall(answer_with(read_body(sock)[1]) + answer_with(b"forged"))

    exchange = exchange_of(serve_tcp(script))
    assert run(exchange.post(b"1", WAIT_S)) == b"1"
    connection = exchange._connection
    assert connection is not None
    assert not connection.usable
    assert run(exchange.post(b"2", WAIT_S)) == b"2"
    assert len(connections) == 2
    exchange.drop()


def endless(start: bytes, piece: bytes):
    """A script that answers with the start and then with the piece for as long as somebody reads."""

    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.sendall(start)
        while True:
            sock.sendall(piece * 1000)

    return script


def test_interim_answers_without_end_are_refused(serve_tcp: Start, run: Run) -> None:
    exchange = exchange_of(serve_tcp(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n")))
    with pytest.raises(ProtocolError, match="at most 32 interim"):
        run(exchange.post(b"1", WAIT_S))


def test_some_interim_answers_are_passed_over(serve_tcp: Start, run: Run) -> None:
    def script(sock: socket.socket) -> None:
        read_body(sock)
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 32 + answer_with(b"1"))

    exchange = exchange_of(serve_tcp(script))
    assert run(exchange.post(b"1", WAIT_S)) == b"1"
    exchange.drop()


@pytest.mark.parametrize("piece", [b"1\r\n \r\n", b"1;" + b"x" * 1000 + b"\r\n \r\n"])
def test_an_answer_that_keeps_coming_is_over_in_time(serve_tcp: Start, run: Run, piece: bytes) -> None:
    exchange = exchange_of(serve_tcp(endless(CHUNKED, piece)))
    with pytest.raises(RequestTimeoutError):
        run(exchange.post(b"1", 0.3))


@pytest.mark.parametrize(("start", "piece"), [(CHUNKED, b"1\r\n \r\n"), (HEAD + b"\r\n", b" " * 100)])
def test_an_answer_that_keeps_coming_lets_other_tasks_run(serve_tcp: Start, start: bytes, piece: bytes) -> None:
    exchange = exchange_of(serve_tcp(endless(start, piece)), max_message_size_mb=20)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(others())
        with pytest.raises((RequestTimeoutError, MessageTooLargeError)):
            await exchange.post(b"1", 0.5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert turns > 5


def test_an_address_that_http_cannot_carry_is_an_error_of_ours(serve_tcp: Start, run: Run) -> None:
    exchange = exchange_of(serve_tcp(Echo()))
    exchange.url += "/a b"
    with pytest.raises(UnreachableError, match="check base_url"):
        run(exchange.post(b"1", WAIT_S))
