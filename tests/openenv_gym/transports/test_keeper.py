"""The one thread that answers for idle connections."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator

import pytest
from websockets.sync.server import ServerConnection

from openenv_gym.errors import SessionLostError
from openenv_gym.transports import blocking
from openenv_gym.transports import connection as connection_module
from openenv_gym.transports.blocking import BlockingTransport
from openenv_gym.transports.keeper import INTERVAL_S, Keeper
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.transports.conftest import WAIT_S, ScriptedPeer, echo, interrupted_at, wait_until

Start = Callable[..., str]
Open = Callable[..., BlockingTransport]


class Connection:
    """Always readable; counts what a keeper does to it."""

    def __init__(self) -> None:
        self.tended = threading.Semaphore(0)
        self.abandoned = False
        self.socket, self._peer = socket.socketpair()
        self._peer.send(b"x")
        weakref.finalize(self, close_all, self.socket, self._peer)

    def fileno(self) -> int:
        return self.socket.fileno()

    def tend(self) -> None:
        self.tended.release()

    def abandon(self) -> None:
        self.abandoned = True


def close_all(*sockets: socket.socket) -> None:
    for sock in sockets:
        sock.close()


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper(interval_s=0.02)
    yield keeper
    for connection in list(keeper._connections.values()):
        keeper.remove(connection)
    join(keeper)


@pytest.fixture
def quick_keeper(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """Connections are tended by a keeper of this test's own, in its own rhythm."""
    for module in (blocking, connection_module):
        monkeypatch.setattr(module, "keeper", keeper)
    return keeper


def join(keeper: Keeper) -> None:
    wait_until(lambda: not keeper.running)


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "openenv-gym-keeper"]


def test_the_interval_is_well_within_what_servers_wait() -> None:
    assert 0 < INTERVAL_S <= 0.2


def test_no_thread_runs_without_a_connection(keeper: Keeper) -> None:
    assert not keeper.running


def test_one_named_daemon_thread_tends_every_connection(keeper: Keeper) -> None:
    before = keepers()
    connections = [Connection(), Connection()]
    for connection in connections:
        keeper.add(connection)
    for _ in range(3):
        assert all(connection.tended.acquire(timeout=WAIT_S) for connection in connections)
    (thread,) = [thread for thread in keepers() if thread not in before]
    assert thread.daemon


def test_a_connection_with_nothing_to_read_costs_no_visit(keeper: Keeper) -> None:
    silent, busy = Connection(), Connection()
    silent.socket.recv(1)
    for connection in (silent, busy):
        keeper.add(connection)
    for _ in range(3):
        assert busy.tended.acquire(timeout=WAIT_S)
    assert not silent.tended.acquire(blocking=False)


def test_a_connection_under_a_number_that_was_used_before_is_tended(keeper: Keeper) -> None:
    first = Connection()
    keeper.add(first)
    assert first.tended.acquire(timeout=WAIT_S)
    second = Connection()
    number = first.fileno()
    first.socket.close()
    os.dup2(second.fileno(), number)
    second.socket.close()
    with socket.socket(fileno=number) as second.socket:
        keeper.add(second)
        keeper.remove(first)
        assert second.tended.acquire(timeout=WAIT_S)
        keeper.remove(second)


def test_a_number_that_outlives_its_connection_is_watched_no_longer(keeper: Keeper) -> None:
    connection = Connection()
    number = connection.fileno()
    keeper._watch.add(number)
    keeper._round()
    assert keeper._watch.readable() == []
    assert not connection.tended.acquire(blocking=False)


def test_a_connection_that_takes_over_the_number_just_then_stays_watched(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection()
    number = connection.fileno()
    keeper._watch.add(number)
    discard = keeper._watch.discard

    def arrive_and_discard(descriptor: int) -> None:
        keeper._connections[number] = connection
        discard(descriptor)

    monkeypatch.setattr(keeper._watch, "discard", arrive_and_discard)
    keeper._round()
    assert keeper._watch.readable() == [number]
    keeper._connections.clear()


def test_the_thread_ends_with_the_last_connection_and_comes_back(keeper: Keeper) -> None:
    connection = Connection()
    keeper.add(connection)
    keeper.remove(connection)
    join(keeper)
    keeper.add(connection)
    assert connection.tended.acquire(timeout=WAIT_S)


def test_a_connection_nobody_holds_is_collected_and_the_thread_ends(keeper: Keeper) -> None:
    connection = Connection()
    gone = weakref.ref(connection)
    keeper.add(connection)
    assert connection.tended.acquire(timeout=WAIT_S)
    del connection
    join(keeper)
    gc.collect()
    assert gone() is None


def test_after_a_fork_the_old_connections_are_abandoned_and_new_ones_tended(keeper: Keeper) -> None:
    inherited = Connection()
    keeper.add(inherited)
    keeper.forked()
    assert inherited.abandoned
    assert not keeper.running
    fresh = Connection()
    keeper.add(fresh)
    assert fresh.tended.acquire(timeout=WAIT_S)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_connection_that_fails_the_keeper_does_not_end_it_for_good(keeper: Keeper) -> None:
    class Failing(Connection):
        def tend(self) -> None:
            raise MemoryError

    failing = Failing()
    keeper.add(failing)
    join(keeper)
    keeper.remove(failing)
    other = Connection()
    keeper.add(other)
    assert other.tended.acquire(timeout=WAIT_S)


def compute(seconds: float) -> None:
    """Keep the calling thread busy and away from its connection, as a learner does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def test_a_learner_that_computes_keeps_its_session(
    serve_websocket: Start, open_transport: Open, quick_keeper: Keeper
) -> None:
    transport = open_transport(serve_websocket(ping_interval=0.2, ping_timeout=0.4))
    transport.send(b"before")
    assert transport.receive(WAIT_S).payload == b"before"
    compute(1.5)
    transport.send(b"after")
    assert transport.receive(WAIT_S).payload == b"after"


def test_a_client_that_sleeps_keeps_its_session_with_an_impatient_server(
    serve_websocket: Start, open_transport: Open
) -> None:
    transport = open_transport(serve_websocket(ping_interval=0.3, ping_timeout=0.5))
    threading.Event().wait(2.0)
    assert not transport.closed
    transport.send(b"after")
    assert transport.receive(WAIT_S).payload == b"after"


def test_a_caller_at_work_is_not_disturbed(serve_scripted: Start, open_transport: Open) -> None:
    def script(peer: ScriptedPeer) -> None:
        peer.receive()
        peer.send(b"answer")
        peer.wait_for_end()

    transport = open_transport(serve_scripted(script))
    blocking.keeper.remove(transport)
    transport.send(b"x")
    wait_until(lambda: transport._stream.wait(0))
    transport.tend()
    assert not transport._inbox, "a call has just been"
    transport.tend()
    assert transport._inbox, "no call came since"


@pytest.mark.parametrize("point", range(1, 60))
@apart
def test_an_interrupt_while_adding_or_removing_blocks_nobody(keeper: Keeper, point: int) -> None:
    connection = Connection()
    for call in (keeper.add, keeper.remove):
        with interrupted_at(point, within="openenv_gym"), contextlib.suppress(KeyboardInterrupt):
            call(connection)
    other = Connection()
    keeper.add(other)
    assert other.tended.acquire(timeout=WAIT_S)
    keeper.remove(other)


def test_without_a_keeper_the_same_learner_loses_it(
    serve_websocket: Start, open_transport: Open, quick_keeper: Keeper
) -> None:
    transport = open_transport(serve_websocket(ping_interval=0.2, ping_timeout=0.4))
    quick_keeper.remove(transport)
    compute(1.5)
    with pytest.raises(SessionLostError):
        transport.receive(WAIT_S)


def test_an_answer_and_a_close_that_come_meanwhile_are_kept(
    serve_websocket: Start, open_transport: Open, quick_keeper: Keeper
) -> None:
    def answer_and_leave(connection: ServerConnection) -> None:
        connection.send(connection.recv())
        connection.close(1001, "restart")

    transport = open_transport(serve_websocket(answer_and_leave))
    transport.send(b"x")
    deadline = time.monotonic() + WAIT_S
    while not transport.closed:
        assert time.monotonic() < deadline
        compute(0.01)
    assert transport.receive(WAIT_S).payload == b"x"
    with pytest.raises(SessionLostError, match="1001: restart"):
        transport.receive(WAIT_S)
    join(quick_keeper)


def test_calls_and_keeper_take_turns(serve_websocket: Start, open_transport: Open, quick_keeper: Keeper) -> None:
    quick_keeper.interval_s = 0.0001
    transport = open_transport(serve_websocket(echo, ping_interval=0.01))
    for number in range(500):
        payload = b"%d" % number * 100
        transport.send(payload)
        assert transport.receive(WAIT_S).payload == payload


def test_a_forked_child_opens_a_session_of_its_own_with_its_own_keeper(
    serve_websocket: Start, open_transport: Open
) -> None:
    base_url = serve_websocket()
    open_transport(base_url)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        names = [thread.name for thread in keepers()]
        transport = open_transport(base_url)
        transport.send(b"child")
        own = transport.receive(WAIT_S).payload == b"child" and blocking.keeper.running
        os._exit(7 if own and "openenv-gym-keeper" not in names else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
