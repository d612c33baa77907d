"""The pair without sockets behaves as a transport does."""

from __future__ import annotations

import threading

import pytest

from openenv_gym.errors import MessageTooLargeError, RequestTimeoutError, SessionLostError, SessionStateError
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports.base import Frame, Transport
from openenv_gym.transports.memory import memory_pair


def test_a_handler_answers_each_message() -> None:
    client, server = memory_pair(lambda frame: [frame.payload, Frame(b"\0", text=False)])
    transport: Transport = client
    transport.send(b"hello")
    assert transport.receive(1.0) == Frame(b"hello", text=True)
    assert transport.receive(1.0) == Frame(b"\0", text=False)
    assert server.received == [Frame(b"hello", text=True)]
    assert client.subprotocol == SUBPROTOCOL


def test_a_single_frame_and_no_answer_are_answers_too() -> None:
    client, server = memory_pair(lambda frame: Frame(b"x", text=False) if frame.text else None)
    client.send(b"a", text=False)
    client.send(b"b")
    assert client.receive(1.0) == Frame(b"x", text=False)
    assert len(server.received) == 2


def test_the_test_can_play_the_server_by_hand() -> None:
    client, server = memory_pair()
    client.send(b"ping")
    assert server.receive().payload == b"ping"
    with pytest.raises(TimeoutError):
        server.receive(timeout_s=0.01)
    server.send(b"pong")
    assert client.receive(None).payload == b"pong"


def test_a_timeout_loses_the_session_and_its_late_reply() -> None:
    client, server = memory_pair()
    server.stall()
    client.send(b"a")
    server.send(b"late")
    with pytest.raises(RequestTimeoutError) as caught:
        client.receive(60.0)
    assert caught.value.timeout_s == 60.0
    server.resume()
    assert client.closed
    with pytest.raises(SessionLostError):
        client.receive(1.0)


def test_a_late_reply_arrives_where_nobody_waited() -> None:
    client, server = memory_pair()
    server.stall()
    server.send(b"late")
    server.resume()
    assert client.receive(1.0).payload == b"late"


def test_a_real_timeout_passes_in_real_time() -> None:
    client, _ = memory_pair()
    with pytest.raises(RequestTimeoutError):
        client.receive(0.02)


def test_messages_before_a_close_arrive_first_and_then_its_code() -> None:
    client, server = memory_pair()
    server.send(b"last")
    server.close(4000, "enough")
    assert client.closed
    client.send(b"ignored")
    assert client.receive(1.0).payload == b"last"
    with pytest.raises(SessionLostError, match="4000: enough"):
        client.receive(1.0)
    with pytest.raises(SessionLostError, match="4000: enough"):
        client.send(b"x")


def test_a_close_for_size_is_said_to_be_one() -> None:
    client, server = memory_pair()
    client.send(b"four")
    server.close(1009)
    with pytest.raises(MessageTooLargeError) as caught:
        client.send(b"x")
    assert (caught.value.size, caught.value.setting) == (4, "max_message_size_mb")
    assert client.closed


def test_a_cut_connection_is_lost() -> None:
    client, server = memory_pair()
    server.cut()
    server.send(b"nothing arrives any more")
    with pytest.raises(SessionLostError, match="cut"):
        client.receive(1.0)


def test_limits_hold_both_ways() -> None:
    client, server = memory_pair(max_message_bytes=3)
    with pytest.raises(MessageTooLargeError):
        client.send(b"four")
    assert not client.closed
    server.send(b"four")
    with pytest.raises(MessageTooLargeError):
        client.receive(1.0)
    assert client.closed


def test_closing_twice_is_once_and_ends_every_call() -> None:
    client, _ = memory_pair()
    client.close()
    client.close()
    with pytest.raises(SessionLostError, match="closed"):
        client.send(b"x")


def test_a_close_from_elsewhere_and_a_second_call_end_as_on_a_socket() -> None:
    entered = threading.Event()
    failures: list[BaseException] = []
    client, _ = memory_pair(lambda _: entered.set())

    def call() -> None:
        client.send(b"x")
        try:
            client.receive(None)
        except SessionLostError as error:
            failures.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(5)
    while not client._in_call.locked() and thread.is_alive():
        thread.join(0.001)
    with pytest.raises(SessionStateError):
        client.send(b"y")
    client.close()
    thread.join(5)
    assert [type(failure) for failure in failures] == [SessionLostError]


def test_it_is_ready_where_there_is_something_to_read_or_an_end_and_has_no_descriptor() -> None:
    client, server = memory_pair()
    assert (client.ready, client.fileno()) == (False, -1)
    server.send(b"x")
    assert client.ready
    client.receive(1.0)
    assert not client.ready
    server.close()
    assert client.ready
