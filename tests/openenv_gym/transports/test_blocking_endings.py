"""How a connection over a real socket ends, and what a call then says: timeouts, closes, cuts, limits, interrupts."""

from __future__ import annotations

import signal
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest
from websockets.frames import Opcode
from websockets.sync.server import ServerConnection

from openenv_gym.errors import (
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
)
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import BlockingTransport
from openenv_gym.transports.turns import Turn
from tests.openenv_gym.transports.conftest import WAIT_S, ScriptedPeer, wait_until

Start = Callable[..., str]
Open = Callable[..., BlockingTransport]


def test_a_timeout_closes_and_a_late_reply_is_never_delivered(serve_scripted: Start, open_transport: Open) -> None:
    closes: list[int] = []

    def script(peer: ScriptedPeer) -> None:
        peer.receive()
        frame = peer.receive(until=Opcode.CLOSE)
        closes.append(struct.unpack("!H", bytes(frame.data[:2]))[0] if frame else 0)
        peer.send(b"late")

    transport = open_transport(serve_scripted(script))
    transport.send(b"x")
    with pytest.raises(RequestTimeoutError) as caught:
        transport.receive(0.05)
    assert caught.value.timeout_s == 0.05
    assert transport.closed
    wait_until(lambda: closes == [1001])
    with pytest.raises(SessionLostError, match=r"0\.05 s"):
        transport.receive(0.05)
    with pytest.raises(SessionLostError):
        transport.send(b"x")


def test_the_timeout_is_for_the_whole_message_however_it_drips(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.sock.sendall(b"\x81\x7f" + (1000).to_bytes(8, "big"))
        pause = threading.Event()
        while True:
            peer.sock.sendall(b"x")
            pause.wait(0.02)

    transport = open_transport(serve_scripted(script))
    start = time.monotonic()
    with pytest.raises(RequestTimeoutError):
        transport.receive(0.2)
    assert 0.2 <= time.monotonic() - start < 2


def test_frames_before_a_close_are_delivered_and_then_its_code(serve_websocket: Start, open_transport: Open) -> None:
    def leave(connection: ServerConnection) -> None:
        connection.send("one")
        connection.send("two")
        connection.close(4001, "enough")

    transport = open_transport(serve_websocket(leave))
    assert transport.receive(WAIT_S).payload == b"one"
    wait_until(lambda: transport.closed or bool(transport.tend()))
    transport.send(b"nobody reads this, and that is no reason to lose what came before")
    assert transport.receive(WAIT_S).payload == b"two"
    with pytest.raises(SessionLostError) as caught:
        transport.receive(WAIT_S)
    assert caught.value.reason == "the server closed the connection with code 4001: enough"
    with pytest.raises(SessionLostError, match="4001"):
        transport.send(b"x")


def test_a_close_met_while_sending_is_raised(serve_websocket: Start, open_transport: Open) -> None:
    transport = open_transport(serve_websocket(lambda connection: connection.close(1000)))
    wait_until(lambda: transport.closed or bool(transport.tend()))
    with pytest.raises(SessionLostError, match="code 1000"):
        transport.send(b"x")


def test_a_close_without_a_code_says_so(serve_scripted: Start, open_transport: Open) -> None:
    transport = open_transport(serve_scripted(lambda peer: peer.send(b"", opcode=Opcode.CLOSE)))
    with pytest.raises(SessionLostError, match="without a code"):
        transport.receive(WAIT_S)


def test_a_cut_connection_is_lost(serve_scripted: Start, open_transport: Open) -> None:
    transport = open_transport(serve_scripted(lambda _: None))
    with pytest.raises(SessionLostError, match="cut without a closing handshake"):
        transport.receive(WAIT_S)


def test_a_reset_connection_is_lost(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.receive()
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    transport = open_transport(serve_scripted(script))
    transport.send(b"x")
    with pytest.raises(SessionLostError, match="reset"):
        transport.receive(WAIT_S)


def test_what_the_server_said_before_it_reset_the_connection_is_read(
    serve_scripted: Start, open_transport: Open
) -> None:
    gone = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.send(b"why")
        peer.sock.shutdown(socket.SHUT_RDWR)
        gone.set()

    transport = open_transport(serve_scripted(script))
    assert gone.wait(WAIT_S)
    for _ in range(5):
        transport.send(b"x" * 100_000)
    assert transport.receive(WAIT_S).payload == b"why"
    with pytest.raises(SessionLostError):
        transport.receive(WAIT_S)


def test_a_connection_that_breaks_while_sending_is_lost(serve_scripted: Start, open_transport: Open) -> None:
    gone = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sock.close()
        gone.set()

    transport = open_transport(serve_scripted(script))
    assert gone.wait(WAIT_S)
    with pytest.raises(SessionLostError):
        transport.send(b"x" * 20_000_000)


def test_a_close_for_size_names_the_servers_limit(serve_websocket: Start, open_transport: Open) -> None:
    transport = open_transport(serve_websocket(max_size=1000))
    transport.send(b"x" * 2000)
    with pytest.raises(MessageTooLargeError, match="limit of the server") as caught:
        transport.receive(WAIT_S)
    assert (caught.value.size, caught.value.setting) == (2000, "max_message_size_mb")
    with pytest.raises(SessionLostError, match="1009"):
        transport.receive(WAIT_S)


def test_a_close_for_size_that_a_send_raises_is_told_from_a_refusal_by_closed(
    serve_websocket: Start, open_transport: Open
) -> None:
    transport = open_transport(serve_websocket(max_size=1000), ConnectionSettings(max_message_size_mb=0.01))
    with pytest.raises(MessageTooLargeError, match="nothing was sent"):
        transport.send(b"x" * 20_000)
    assert not transport.closed
    transport.send(b"x" * 2000)
    wait_until(lambda: transport.closed)
    with pytest.raises(MessageTooLargeError, match="limit of the server"):
        transport.send(b"y")
    assert transport.closed


def test_a_close_is_known_without_a_call_as_soon_as_the_keeper_has_read_it(
    serve_scripted: Start, open_transport: Open
) -> None:
    left = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        assert left.wait(WAIT_S)
        peer.send(b"\x03\xe9restart", opcode=Opcode.CLOSE)

    transport = open_transport(serve_scripted(script))
    assert not transport.closed
    left.set()
    wait_until(lambda: transport.closed)
    with pytest.raises(SessionLostError, match="1001: restart"):
        transport.send(b"x")


def test_an_incoming_message_above_the_limit_is_refused_by_its_header(
    serve_scripted: Start, open_transport: Open
) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.sock.sendall(b"\x82\x7f" + (2**40).to_bytes(8, "big"))
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script), ConnectionSettings(max_message_size_mb=1))
    with pytest.raises(MessageTooLargeError, match="this client's limit") as caught:
        transport.receive(WAIT_S)
    assert (caught.value.size, caught.value.limit) == (2**40, 1024 * 1024)
    assert caught.value.setting == "max_message_size_mb"
    assert transport.closed


def test_fragments_together_above_the_limit_are_refused(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.send(b"x" * 700_000, fin=False)
        peer.send(b"x" * 700_000, opcode=Opcode.CONT)
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script), ConnectionSettings(max_message_size_mb=1))
    with pytest.raises(MessageTooLargeError) as caught:
        transport.receive(WAIT_S)
    assert caught.value.size == 1_400_000


def test_an_outgoing_message_above_the_limit_is_not_sent(serve_websocket: Start, open_transport: Open) -> None:
    transport = open_transport(serve_websocket(), ConnectionSettings(max_message_size_mb=0.001))
    with pytest.raises(MessageTooLargeError, match="outgoing") as caught:
        transport.send(b"x" * 2000)
    assert (caught.value.size, caught.value.limit) == (2000, 1048)
    transport.send(b"small")
    assert transport.receive(WAIT_S).payload == b"small"


def test_a_peer_that_breaks_rfc_6455_is_a_protocol_error(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.send(b"masked", mask=True)
        peer.wait_for_end()

    with pytest.raises(ProtocolError, match="masking"):
        open_transport(serve_scripted(script)).receive(WAIT_S)


def test_an_interrupt_while_waiting_closes_the_transport(serve_scripted: Start, open_transport: Open) -> None:
    main = threading.get_ident()
    sent = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.receive()
        # Not before the client waits, or the interrupt would meet the test itself.
        assert sent.wait(WAIT_S)
        wait_until(lambda: transport._turns.holder is not None)
        signal.pthread_kill(main, signal.SIGINT)
        peer.receive(until=Opcode.CLOSE)
        peer.send(b"late")

    transport = open_transport(serve_scripted(script))
    transport.send(b"go")
    sent.set()
    with pytest.raises(KeyboardInterrupt):
        # Python itself may miss a signal just before a system call; the timeout bounds that.
        transport.receive(1.0)
    transport.close()
    with pytest.raises(SessionLostError):
        transport.receive(0.1)


def test_a_close_from_another_thread_ends_the_call_in_flight(serve_websocket: Start, open_transport: Open) -> None:
    transport = open_transport(serve_websocket(lambda connection: connection.recv()))
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            transport.receive(None)
        except SessionLostError as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: transport._turns.holder is not None)
    transport.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert "while a call was in flight" in str(failures[0])
    transport.close()


def test_closing_says_1000_once(serve_websocket: Start, open_transport: Open) -> None:
    codes: list[int | None] = []

    def note(connection: ServerConnection) -> None:
        for _ in connection:
            pass
        codes.append(connection.close_code)

    transport = open_transport(serve_websocket(note))
    transport.close()
    transport.close()
    assert transport.closed
    wait_until(lambda: codes == [1000])
    with pytest.raises(SessionLostError, match="this client closed it"):
        transport.receive(1)


def test_an_interrupt_while_closing_leaves_no_socket(serve_scripted: Start, open_transport: Open) -> None:
    main = threading.get_ident()

    def script(peer: ScriptedPeer) -> None:
        peer.sock.recv(1000)
        signal.pthread_kill(main, signal.SIGINT)
        peer.sock.recv(1000)

    transport = open_transport(serve_scripted(script), ConnectionSettings(close_timeout_s=1.0))
    with pytest.raises(KeyboardInterrupt):
        transport.close()
    assert transport.fileno() == -1
    assert transport._turns.holder is None


def test_closing_waits_no_longer_than_its_timeout(serve_scripted: Start, open_transport: Open) -> None:
    end = threading.Event()
    transport = open_transport(serve_scripted(lambda _: end.wait(WAIT_S)), ConnectionSettings(close_timeout_s=0.1))
    start = time.monotonic()
    transport.close()
    assert time.monotonic() - start < 2
    end.set()


def test_closing_waits_no_longer_under_a_flood(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        while True:
            peer.send(b"x" * 1000)

    transport = open_transport(serve_scripted(script), ConnectionSettings(close_timeout_s=0.1))
    start = time.monotonic()
    transport.close()
    assert time.monotonic() - start < 2


def test_closing_a_connection_the_server_has_cut_is_quiet(serve_scripted: Start, open_transport: Open) -> None:
    gone = threading.Event()
    transport = open_transport(serve_scripted(lambda _: gone.set()), ConnectionSettings(close_timeout_s=WAIT_S))
    assert gone.wait(WAIT_S)
    start = time.monotonic()
    transport.close()
    assert transport.closed
    assert time.monotonic() - start < WAIT_S / 2


def test_a_peer_that_reads_nothing_is_a_timeout(serve_scripted: Start, open_transport: Open) -> None:
    end = threading.Event()
    settings = ConnectionSettings(step_timeout_s=0.1, reset_timeout_s=0.1, close_timeout_s=0.1)
    transport = open_transport(serve_scripted(lambda _: end.wait(WAIT_S)), settings)
    with pytest.raises(RequestTimeoutError):
        transport.send(b"x" * 50_000_000)
    end.set()
    assert transport.closed


def test_a_close_in_the_middle_of_a_call_is_quiet_and_final(echoing: BlockingTransport) -> None:
    assert echoing._turns.take(Turn())
    echoing.close()
    # An interrupt may have left the mark of a call behind; the connection is lost all the same.
    with pytest.raises(SessionLostError, match="while a call was in flight"):
        echoing.send(b"x")
    echoing.close()
    assert echoing.fileno() == -1
