"""What ``Transport`` promises, held by every transport: the same bodies over each of them, through ``connect``.

A new transport is one more entry in ``connect``.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest

from openenv_gym.errors import MessageTooLargeError, RequestTimeoutError, SessionLostError, SessionStateError
from openenv_gym.transports.aio import AsyncTransport, awaited
from openenv_gym.transports.base import ConnectionSettings, Frame, Transport
from openenv_gym.transports.blocking import connect as connect_blocking
from openenv_gym.transports.memory import memory_pair
from tests.openenv_gym.transports.conftest import wait_until

LIMIT = 4096
Handler = Callable[[bytes], "list[bytes] | None"]
"""The peer's answers to one message; None closes the connection after what was sent before."""


def over_memory(handler: Handler, serve_websocket) -> Transport:
    def answer(frame: Frame) -> list[bytes]:
        answers = handler(frame.payload)
        if answers is None:
            server.close()
        return answers or []

    client, server = memory_pair(answer, max_message_bytes=LIMIT)
    return client


def over_a_socket(handler: Handler, serve_websocket) -> Transport:
    def serve(connection) -> None:
        for message in connection:
            answers = handler(message.encode())
            if answers is None:
                return
            for answer in answers:
                connection.send(answer.decode())

    return connect_blocking(serve_websocket(serve), ConnectionSettings(max_message_size_mb=LIMIT / 2**20))


class Awaited:
    """The calls of tasks, each under an event loop of its own."""

    def __init__(self, transport: Transport, calls: AsyncTransport) -> None:
        self._transport, self._calls = transport, calls

    @property
    def closed(self) -> bool:
        return self._transport.closed

    @property
    def pending(self) -> bool:
        return self._transport.pending

    def send(self, payload: bytes, *, text: bool = True) -> None:
        asyncio.run(self._calls.send(payload, text=text))

    def receive(self, timeout_s: float | None) -> Frame:
        return asyncio.run(self._calls.receive(timeout_s))

    def close(self) -> None:
        asyncio.run(self._calls.close())

    def drop(self, reason: str) -> None:
        self._transport.drop(reason)


def awaited_on_a_socket(handler: Handler, serve_websocket) -> Transport:
    transport = over_a_socket(handler, serve_websocket)
    return Awaited(transport, awaited(transport))


def awaited_in_threads(handler: Handler, serve_websocket) -> Transport:
    transport = over_memory(handler, serve_websocket)
    return Awaited(transport, awaited(transport))


@pytest.fixture(
    params=[over_memory, over_a_socket, awaited_on_a_socket, awaited_in_threads],
    ids=["memory", "blocking", "asyncio", "asyncio over threads"],
)
def connect(request, serve_websocket) -> Iterator[Callable[[Handler], Transport]]:
    """Connect to a peer that answers as the handler says."""
    with contextlib.ExitStack() as stack:

        def start(handler: Handler) -> Transport:
            transport = request.param(handler, serve_websocket)
            stack.callback(transport.close)
            return transport

        yield start


def test_a_message_comes_back_whole(connect):
    transport = connect(lambda message: [message])
    for text in ("", "x", "ö" * 1000):
        transport.send(text.encode())
        assert transport.receive(5.0) == Frame(text.encode(), text=True)


def test_messages_keep_their_order(connect):
    transport = connect(lambda message: [message, message + b"!"])
    transport.send(b"a")
    assert [transport.receive(5.0).payload for _ in range(2)] == [b"a", b"a!"]


def test_after_a_timeout_nothing_more_is_read(connect):
    late = threading.Event()

    def answer(message):
        if message == b"slow":
            late.set()
            return []
        return [message]

    transport = connect(answer)
    transport.send(b"slow")
    with pytest.raises(RequestTimeoutError) as caught:
        transport.receive(0.1)
    assert caught.value.timeout_s == 0.1
    assert late.wait(5)
    assert transport.closed
    for call in (lambda: transport.send(b"next"), lambda: transport.receive(1.0)):
        with pytest.raises(SessionLostError):
            call()


def test_what_came_before_the_end_is_given_first(connect):
    transport = connect(lambda message: [b"last words"] if message == b"speak" else None)
    transport.send(b"speak")
    transport.send(b"leave")
    assert transport.receive(5.0).payload == b"last words"
    with pytest.raises(SessionLostError):
        transport.receive(5.0)


def test_a_message_above_the_limit_is_not_sent_and_the_transport_goes_on(connect):
    transport = connect(lambda message: [message])
    with pytest.raises(MessageTooLargeError) as caught:
        transport.send(b"x" * (LIMIT + 1))
    assert (caught.value.size, caught.value.limit) == (LIMIT + 1, LIMIT)
    assert caught.value.setting == "max_message_size_mb"
    transport.send(b"y")
    assert transport.receive(5.0).payload == b"y"


def test_an_answer_above_the_limit_ends_it(connect):
    transport = connect(lambda message: [b"x" * (LIMIT + 1)])
    transport.send(b"more")
    with pytest.raises(MessageTooLargeError) as caught:
        transport.receive(5.0)
    assert caught.value.setting == "max_message_size_mb"
    assert transport.closed


def test_a_second_call_at_the_same_time_is_refused(connect):
    entered = threading.Event()
    transport = connect(lambda message: entered.set() or [])
    transport.send(b"quiet")
    assert entered.wait(5)
    waiting = threading.Thread(target=receive_until_closed, args=(transport,))
    waiting.start()
    wait_until(lambda: is_refused(lambda: transport.send(b"me too")))
    transport.close()
    waiting.join(10)
    assert not waiting.is_alive()


def receive_until_closed(transport: Transport) -> None:
    with pytest.raises(SessionLostError):
        receive_in_turn(transport)


def receive_in_turn(transport: Transport) -> Frame:
    while True:
        # The other thread's call may have come first.
        with contextlib.suppress(SessionStateError):
            return transport.receive(20.0)


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except SessionStateError:
        return True
    return False


def test_a_message_that_no_receive_has_taken_is_pending(connect):
    transport = connect(lambda message: [message, message])
    assert not transport.pending
    transport.send(b"twice")
    assert transport.receive(5.0).payload == b"twice"
    wait_until(lambda: transport.pending)
    assert transport.receive(5.0).payload == b"twice"
    assert not transport.pending
    assert not transport.closed


def test_asking_what_is_pending_finds_out_that_the_peer_has_closed(connect):
    transport = connect(lambda message: None)
    transport.send(b"leave")
    wait_until(lambda: transport.closed or transport.pending)
    assert transport.closed
    assert not transport.pending


def test_asking_what_is_pending_in_the_middle_of_a_call_is_refused(connect):
    transport = connect(lambda message: [])
    waiting = threading.Thread(target=receive_until_closed, args=(transport,))
    waiting.start()
    wait_until(lambda: is_refused(lambda: transport.pending))
    transport.close()
    waiting.join(10)
    assert not waiting.is_alive()


def test_closing_is_final_and_may_be_repeated(connect):
    transport = connect(lambda message: [message])
    transport.close()
    transport.close()
    assert transport.closed
    for call in (lambda: transport.send(b"x"), lambda: transport.receive(1.0)):
        with pytest.raises(SessionLostError):
            call()


def test_dropping_ends_a_call_in_flight_and_may_be_repeated(connect):
    transport = connect(lambda message: [])
    waiting = threading.Thread(target=receive_until_closed, args=(transport,))
    waiting.start()
    transport.drop("the test says so")
    waiting.join(10)
    assert not waiting.is_alive()
    transport.drop("again")
    assert transport.closed
    with pytest.raises(SessionLostError):
        transport.send(b"x")
