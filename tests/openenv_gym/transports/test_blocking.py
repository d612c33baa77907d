"""Messages over a real socket: whole, in order, both ways at once, over TLS, beside keeper and fork."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import warnings
from collections.abc import Callable

import pytest
from websockets.frames import Opcode
from websockets.sync.server import ServerConnection

from openenv_gym.errors import (
    SessionLostError,
    SessionStateError,
)
from openenv_gym.messages import SUBPROTOCOL
from openenv_gym.transports import stream
from openenv_gym.transports.base import ConnectionSettings, Frame, Transport
from openenv_gym.transports.blocking import BlockingTransport
from openenv_gym.transports.keeper import keeper
from openenv_gym.transports.turns import Turn
from tests.openenv_gym.transports.conftest import WAIT_S, ScriptedPeer, wait_until

Start = Callable[..., str]
Open = Callable[..., BlockingTransport]


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 3_000_001])
def test_a_message_comes_back_as_it_was_sent(echoing: Transport, size: int, text: bool) -> None:
    payload = b"x" * size
    echoing.send(payload, text=text)
    assert echoing.receive(WAIT_S) == Frame(payload, text)


def test_messages_come_in_order(echoing: Transport) -> None:
    for number in range(50):
        echoing.send(b"%d" % number)
    assert [echoing.receive(WAIT_S).payload for _ in range(50)] == [b"%d" % number for number in range(50)]


def test_no_thread_reads_the_socket_and_small_frames_leave_at_once(serve_scripted: Start, open_transport: Open) -> None:
    base_url = serve_scripted(ScriptedPeer.wait_for_end)
    before = set(threading.enumerate())
    transport = open_transport(base_url)
    assert {thread.name for thread in set(threading.enumerate()) - before} <= {"openenv-gym-keeper"}
    assert transport._stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_subprotocol_is_what_the_server_agreed_to(serve_websocket: Start, open_transport: Open) -> None:
    assert open_transport(serve_websocket(subprotocols=[SUBPROTOCOL])).subprotocol == SUBPROTOCOL
    assert open_transport(serve_websocket()).subprotocol is None


def test_fragments_are_joined_and_a_ping_between_them_is_answered(serve_scripted: Start, open_transport: Open) -> None:
    pongs: list[bytes] = []

    def script(peer: ScriptedPeer) -> None:
        peer.send(b"one ", fin=False)
        peer.send(b"beat", opcode=Opcode.PING)
        peer.send(b"two ", opcode=Opcode.CONT, fin=False)
        peer.send(b"", opcode=Opcode.CONT, fin=False)
        peer.send(b"unsolicited", opcode=Opcode.PONG)
        peer.send(b"three", opcode=Opcode.CONT)
        peer.send(b"\1", opcode=Opcode.BINARY, fin=False)
        peer.send(b"\2", opcode=Opcode.CONT)
        frame = peer.receive(until=Opcode.PONG)
        pongs.append(bytes(frame.data if frame else b""))
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script))
    assert transport.receive(WAIT_S) == Frame(b"one two three", text=True)
    assert transport.receive(WAIT_S) == Frame(b"\1\2", text=False)
    wait_until(lambda: pongs == [b"beat"])


def test_a_frame_that_came_with_the_handshake_is_there(serve_tcp: Start, open_transport: Open) -> None:
    def script(sock: socket.socket) -> None:
        sent: list[bytes] = []

        class Gathering:
            recv = staticmethod(sock.recv)
            sendall = staticmethod(sent.append)

        peer = ScriptedPeer(Gathering())  # type: ignore[arg-type]
        peer.send(b"early")
        sock.sendall(b"".join(sent))
        while sock.recv(1000):
            pass

    assert open_transport(serve_tcp(script)).receive(WAIT_S).payload == b"early"


def test_a_server_that_needs_pongs_keeps_a_waiting_client(serve_websocket: Start, open_transport: Open) -> None:
    def answer_late(connection: ServerConnection) -> None:
        connection.recv()
        threading.Event().wait(0.6)
        connection.send("late")

    transport = open_transport(serve_websocket(answer_late, ping_interval=0.1, ping_timeout=0.2))
    transport.send(b"x")
    assert transport.receive(WAIT_S).payload == b"late"


@pytest.mark.parametrize("no_limit", [None, 0])
def test_no_timeout_waits_until_the_answer(echoing: Transport, no_limit: float | None) -> None:
    echoing.send(b"x")
    assert echoing.receive(no_limit).payload == b"x"


def test_a_second_call_is_refused_and_the_first_still_gets_its_answer(
    serve_websocket: Start, open_transport: Open
) -> None:
    release = threading.Event()

    def answer_when_told(connection: ServerConnection) -> None:
        connection.recv()
        release.wait(WAIT_S)
        connection.send("answer")

    transport = open_transport(serve_websocket(answer_when_told))
    answers: list[Frame] = []
    transport.send(b"x")
    thread = threading.Thread(target=lambda: answers.append(transport.receive(WAIT_S)))
    thread.start()
    wait_until(lambda: transport._turns.holder is not None)
    with pytest.raises(SessionStateError) as caught:
        transport.send(b"y")
    assert (caught.value.expected, caught.value.state) == ("idle", "in a call")
    release.set()
    thread.join(WAIT_S)
    assert answers == [Frame(b"answer", text=True)]


def test_both_ends_may_send_large_messages_at_once(serve_scripted: Start, open_transport: Open) -> None:
    size = 16_000_000
    received: list[int] = []

    def script(peer: ScriptedPeer) -> None:
        # This peer reads nothing until all of its own message is taken.
        peer.send(b"s" * size, opcode=Opcode.BINARY)
        frame = peer.receive()
        received.append(len(frame.data) if frame else 0)
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script))
    transport.send(b"c" * size, text=False)
    assert len(transport.receive(WAIT_S).payload) == size
    wait_until(lambda: received == [size])


@pytest.mark.parametrize("buffer_size", [1000, 65_536])
def test_large_messages_cross_tls(
    serve_websocket: Start,
    open_transport: Open,
    server_context: ssl.SSLContext,
    authority_file: str,
    monkeypatch: pytest.MonkeyPatch,
    buffer_size: int,
) -> None:
    # A buffer below the 16 KiB of a TLS record leaves decrypted bytes where no poll() sees them.
    monkeypatch.setattr(stream, "_FIRST_BUFFER", buffer_size)
    monkeypatch.setattr(stream, "_LARGEST_BUFFER", buffer_size)
    transport = open_transport(serve_websocket(ssl=server_context), ConnectionSettings(ca_file=authority_file))
    for size in (10, 16_000, 1_000_000):
        transport.send(b"x" * size)
        assert len(transport.receive(WAIT_S).payload) == size
    transport.close()


def test_what_is_pending_is_found_in_fragments_and_behind_tls(
    serve_scripted: Start, open_transport: Open, server_context: ssl.SSLContext, authority_file: str
) -> None:
    go = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.send(b"beat", opcode=Opcode.PING)
        assert peer.receive(until=Opcode.PONG)
        peer.send(b"beg", fin=False)
        assert go.wait(WAIT_S)
        peer.send(b"un", opcode=Opcode.CONT)
        peer.wait_for_end()

    base_url = serve_scripted(script, context=server_context)
    transport = open_transport(base_url, ConnectionSettings(ca_file=authority_file, close_timeout_s=0.2))
    wait_until(lambda: transport.pending)
    assert not transport._inbox, "its end is still to come"
    go.set()
    assert transport.receive(WAIT_S).payload == b"begun"
    assert not transport.pending


def test_asking_what_is_pending_ends_under_a_flood_of_pings(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        while True:
            peer.send(b"beat" * 30, opcode=Opcode.PING)

    transport = open_transport(serve_scripted(script), ConnectionSettings(close_timeout_s=0.1))
    for _ in range(3):
        assert not transport.pending


def test_both_ends_may_send_large_messages_at_once_over_tls(
    serve_scripted: Start, open_transport: Open, server_context: ssl.SSLContext, authority_file: str
) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.send(b"s" * 8_000_000, opcode=Opcode.BINARY)
        peer.receive()
        peer.send(b"done")
        peer.wait_for_end()

    base_url = serve_scripted(script, context=server_context)
    transport = open_transport(base_url, ConnectionSettings(ca_file=authority_file, close_timeout_s=0.2))
    transport.send(b"c" * 8_000_000, text=False)
    assert len(transport.receive(WAIT_S).payload) == 8_000_000
    assert transport.receive(WAIT_S).payload == b"done"


def test_a_forked_child_cannot_use_the_connection_and_the_parent_keeps_it(echoing: BlockingTransport) -> None:
    with warnings.catch_warnings():
        # Python 3.12 and later warn of threads at a fork; that they do not come along is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            echoing.send(b"child")
        except SessionLostError as error:
            echoing.close()
            os._exit(7 if "forked" in str(error) and echoing.closed else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    echoing.send(b"parent")
    assert echoing.receive(WAIT_S).payload == b"parent"


def test_the_keeper_leaves_a_flood_to_flow_control(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        while True:
            peer.send(b"x" * 100_000)

    transport = open_transport(serve_scripted(script), ConnectionSettings(max_message_size_mb=0.5, close_timeout_s=0.1))
    keeper.remove(transport)
    wait_until(lambda: bool(transport.tend() or transport._inbox))
    for _ in range(100):
        transport.tend()
    assert 0 < sum(len(frame.payload) for frame in transport._inbox) < 4 * 1024 * 1024


def test_pongs_the_peer_does_not_read_stop_the_reading_and_nothing_else(
    serve_scripted: Start, open_transport: Open
) -> None:
    def script(peer: ScriptedPeer) -> None:
        while True:
            peer.send(b"beat" * 30, opcode=Opcode.PING)

    transport = open_transport(serve_scripted(script), ConnectionSettings(close_timeout_s=0.1))
    keeper.remove(transport)
    wait_until(lambda: bool(transport.tend() or transport._output))
    transport.tend()
    assert transport._output
    assert not transport.closed


def test_the_keeper_leaves_a_connection_in_a_call_alone(echoing: BlockingTransport) -> None:
    call = Turn()
    assert echoing._turns.take(call)
    echoing.tend()
    assert echoing._turns.holder is call
    echoing._turns.give_back(call)
    echoing.send(b"x")
    assert echoing.receive(WAIT_S).payload == b"x"


def test_a_message_has_arrived_only_when_it_is_whole(serve_scripted: Start, open_transport: Open) -> None:
    go_on = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.send(b"one ", fin=False)
        assert go_on.wait(WAIT_S)
        peer.send(b"two", opcode=Opcode.CONT)
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script))
    wait_until(lambda: transport.pending)
    assert not transport.arrived
    go_on.set()
    wait_until(lambda: transport.arrived)
    assert transport.ready  # no poll tells of it any more
    assert transport.receive(WAIT_S).payload == b"one two"
    assert not transport.ready
