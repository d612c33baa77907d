"""Exceptions of signal handlers, and interrupts at any point of a call: they come out, and nothing is left behind."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from openenv_gym.errors import RequestTimeoutError, SessionLostError
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import BlockingTransport, connect
from openenv_gym.transports.turns import Turn
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.transports.conftest import WAIT_S, ScriptedPeer, interrupted_at, wait_until

Start = Callable[..., str]
Open = Callable[..., BlockingTransport]


class AlarmError(Exception):
    """A signal handler's own."""


@pytest.fixture(params=[AlarmError, TimeoutError, EOFError, MemoryError])
def failure(request: pytest.FixtureRequest) -> Exception:
    return request.param("from a handler")


def check_lost(transport: BlockingTransport) -> None:
    """The transport is over, at once and for good, and its socket closes."""
    with pytest.raises(SessionLostError):
        transport.send(b"next")
    with pytest.raises(SessionLostError):
        transport.receive(0.1)
    transport.close()
    assert transport.closed
    assert transport.fileno() == -1
    assert transport._turns.holder is None


def test_what_is_raised_in_the_parser_comes_out_as_it_is(
    echoing: BlockingTransport, failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(_: object) -> None:
        raise failure

    echoing.send(b"x")
    monkeypatch.setattr(echoing._protocol, "recv_frame", interrupt)
    monkeypatch.setattr(echoing._framing, "_limit", 0)  # so that the frame is the protocol's to judge
    with pytest.raises(type(failure)) as caught:
        echoing.receive(WAIT_S)
    assert caught.value is failure
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING], (
        "an exception that comes out is not logged as well"
    )
    assert echoing.closed
    check_lost(echoing)


@pytest.mark.parametrize("method", ["recv_into", "send"])
def test_what_is_raised_beside_a_system_call_is_not_taken_for_the_networks(
    echoing: BlockingTransport, failure: Exception, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            if name == method:
                raise failure
            return getattr(real, name)

    if method == "recv_into":
        echoing.send(b"x")
    real = echoing._stream._socket
    monkeypatch.setattr(echoing._stream, "_socket", Interrupted())
    with pytest.raises(type(failure)) as caught:
        perform(echoing, "send" if method == "send" else "receive")
    assert caught.value is failure
    monkeypatch.undo()
    check_lost(echoing)


def test_what_is_raised_in_the_handshake_comes_out_as_it_is(
    serve_websocket: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise AlarmError

    base_url = serve_websocket()
    monkeypatch.setattr("websockets.http11.Response.parse", interrupt)
    with pytest.raises(AlarmError):
        connect(base_url, ConnectionSettings())


def test_a_handler_that_closes_the_connection_ends_the_call_it_interrupts(
    serve_scripted: Start, open_transport: Open
) -> None:
    main = threading.get_ident()
    sent = threading.Event()

    def script(peer: ScriptedPeer) -> None:
        peer.receive()
        # Not before the client waits, or the handler would meet another call.
        assert sent.wait(WAIT_S)
        wait_until(lambda: transport._turns.holder is not None)
        signal.pthread_kill(main, signal.SIGUSR1)
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script))
    transport.send(b"go")
    old = signal.signal(signal.SIGUSR1, lambda *_: transport.close())
    try:
        sent.set()
        with pytest.raises((SessionLostError, RequestTimeoutError)):
            # Python itself may miss a signal just before a system call; the timeout bounds that.
            transport.receive(2.0)
    finally:
        signal.signal(signal.SIGUSR1, old)
    check_lost(transport)


POINTS = [*range(1, 60, 2), *range(60, 400, 7)]


@pytest.mark.parametrize("call", ["send", "receive", "pending", "close"])
@apart
def test_an_interrupt_anywhere_leaves_a_lost_transport_that_closes(
    serve_websocket: Start, open_transport: Open, call: str
) -> None:
    base_url = serve_websocket()
    reached = 0
    for point in POINTS:
        transport = open_transport(base_url)
        if call == "receive":
            transport.send(b"x")
        with contextlib.suppress(SessionLostError), interrupted_at(point, within="openenv_gym"):
            try:
                perform(transport, call)
            except KeyboardInterrupt:
                reached += 1
        transport.close()
        check_lost(transport)
    assert reached > 20


def perform(transport: BlockingTransport, call: str) -> None:
    if call == "send":
        transport.send(b"y")
    elif call == "receive":
        transport.receive(WAIT_S)
    elif call == "pending":
        assert not transport.pending
    else:
        transport.close()


def test_an_interrupt_after_the_work_of_a_call_loses_the_connection(
    echoing: BlockingTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Turn) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    echoing.send(b"x")
    monkeypatch.setattr(echoing._turns, "give_back", interrupt)
    with pytest.raises(KeyboardInterrupt):
        echoing.receive(WAIT_S)
    assert echoing.closed, "its answer is lost, and the next must not be taken for it"
    check_lost(echoing)


def test_an_interrupted_close_is_finished_by_the_next(
    echoing: BlockingTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(echoing, "saying_goodbye", interrupt)
        patch.setattr(echoing, "_release", interrupt)
        with pytest.raises(KeyboardInterrupt):
            echoing.close()
    assert echoing.closed
    assert echoing.fileno() != -1
    echoing.close()
    assert echoing.fileno() == -1


def test_a_call_that_had_just_ended_when_it_was_cut_is_closed_all_the_same(
    echoing: BlockingTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Turn()
    assert echoing._turns.take(call)
    monkeypatch.setattr(echoing._stream, "cut", lambda: echoing._turns.give_back(call))
    echoing.close()
    assert echoing.fileno() == -1


def test_a_connection_that_was_cut_and_left_is_closed_by_the_keeper(
    serve_websocket: Start, open_transport: Open
) -> None:
    transport = open_transport(serve_websocket(lambda connection: connection.recv()))
    call = Turn()
    assert transport._turns.take(call)
    transport.close()
    assert transport.fileno() != -1, "it is the call's to close"
    transport._turns.give_back(call)
    wait_until(lambda: transport.fileno() == -1)


def test_a_failure_of_the_keepers_reading_is_told_by_the_next_call(
    echoing: BlockingTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise MemoryError("too much")

    monkeypatch.setattr(echoing, "_visit", fail)
    echoing.tend()
    assert echoing.closed
    with pytest.raises(SessionLostError, match="too much"):
        echoing.send(b"x")


def test_a_connect_that_fails_at_its_end_leaves_no_socket(
    serve_websocket: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()

    def note(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            connection.recv()
        left.set()

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    base_url = serve_websocket(note)
    monkeypatch.setattr("openenv_gym.transports.blocking.keeper.add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        connect(base_url, ConnectionSettings())
    assert left.wait(WAIT_S)
