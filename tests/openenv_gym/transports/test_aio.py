"""Awaited calls of a connection."""

import asyncio
import threading
import time

import pytest
from websockets.frames import Opcode

from openenv_gym.errors import RequestTimeoutError, SessionLostError, SessionStateError
from openenv_gym.transports.aio import SocketCalls, ThreadCalls, awaited
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.memory import memory_pair
from tests.openenv_gym.transports.conftest import WAIT_S, wait_until


class NoReaders(asyncio.SelectorEventLoop):
    """A loop that cannot watch sockets, as the proactor's."""

    def add_reader(self, fd, callback, *args):
        raise NotImplementedError


def run(coroutine, *, loop=asyncio.new_event_loop):
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(coroutine)


@pytest.fixture(params=[asyncio.new_event_loop, NoReaders], ids=["readers", "threads"])
def loop(request):
    return request.param


def quiet(connection):
    for _ in connection:
        pass


def test_sockets_are_watched_and_everything_else_is_waited_for_in_threads(echoing):
    assert isinstance(awaited(echoing), SocketCalls)
    assert isinstance(awaited(memory_pair()[0]), ThreadCalls)


def test_calls_of_loops_and_threads_may_alternate(echoing, loop):
    calls = SocketCalls(echoing)

    async def talk(text):
        await calls.send(text)
        return (await calls.receive(5.0)).payload

    assert run(talk(b"one"), loop=loop) == b"one"
    echoing.send(b"two")
    assert echoing.receive(5.0).payload == b"two"
    assert run(talk(b"three"), loop=loop) == b"three"


def test_large_messages_go_both_ways(echoing, loop):
    payload = b"x" * (8 * 2**20)

    async def talk():
        calls = SocketCalls(echoing)
        await calls.send(payload)
        return (await calls.receive(20.0)).payload

    assert run(talk(), loop=loop) == payload


def test_binary_messages_stay_binary(echoing):
    async def talk():
        calls = SocketCalls(echoing)
        await calls.send(b"\xff", text=False)
        return await calls.receive(5.0)

    assert run(talk()) == (b"\xff", False)


def test_a_message_over_tls_that_the_socket_has_read_already_is_found(
    serve_websocket, open_transport, server_context, authority_file
):
    url = serve_websocket(ssl=server_context)
    transport = open_transport(url, ConnectionSettings(ca_file=authority_file, close_timeout_s=0.2))

    async def talk():
        calls = SocketCalls(transport)
        for size in (1, 200_000, 3):
            await calls.send(b"y" * size)
            assert len((await calls.receive(10.0)).payload) == size

    run(talk())


def test_a_timeout_ends_the_connection(serve_websocket, open_transport, loop):
    transport = open_transport(serve_websocket(quiet))

    async def wait():
        with pytest.raises(RequestTimeoutError) as caught:
            await SocketCalls(transport).receive(0.1)
        return caught.value.timeout_s

    assert run(wait(), loop=loop) == 0.1
    assert transport.closed
    assert transport.fileno() == -1


def test_a_cancelled_call_closes_the_socket_at_once(serve_websocket, open_transport, loop):
    transport = open_transport(serve_websocket(quiet))

    async def wait():
        task = asyncio.create_task(SocketCalls(transport).receive(None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transport.fileno() == -1

    run(wait(), loop=loop)
    with pytest.raises(SessionLostError, match="interrupted"):
        transport.receive(1.0)


def test_a_second_task_is_refused_and_the_first_goes_on(serve_websocket, open_transport):
    transport = open_transport(serve_websocket(quiet))

    async def both():
        calls = SocketCalls(transport)
        first = asyncio.create_task(calls.receive(None))
        await asyncio.sleep(0)
        for call in (calls.receive(1.0), calls.send(b"x")):
            with pytest.raises(SessionStateError):
                await call
        assert not transport.closed
        await calls.close()
        with pytest.raises(SessionLostError):
            await first
        assert transport.fileno() == -1

    run(both())


def test_a_thread_may_close_under_a_task_and_a_task_under_a_thread(serve_websocket, open_transport):
    async def wait(transport):
        threading.Timer(0.05, transport.close).start()
        with pytest.raises(SessionLostError):
            await SocketCalls(transport).receive(WAIT_S)

    run(wait(open_transport(serve_websocket(quiet))))
    transport = open_transport(serve_websocket(quiet))
    raised = threading.Event()

    def receive():
        with pytest.raises(SessionLostError):
            transport.receive(WAIT_S)
        raised.set()

    thread = threading.Thread(target=receive)
    thread.start()
    wait_until(lambda: transport._turns.holder is not None)
    run(SocketCalls(transport).close())
    assert raised.wait(WAIT_S)
    thread.join()


def test_closing_waits_for_the_peer_s_close_no_longer_than_it_may(serve_scripted, open_transport):
    closed = threading.Event()

    def deaf(peer):
        peer.receive(until=Opcode.CLOSE)
        closed.set()
        peer.wait_for_end()

    transport = open_transport(serve_scripted(deaf), ConnectionSettings(close_timeout_s=0.1))
    run(SocketCalls(transport).close())
    assert closed.wait(WAIT_S)
    assert transport.fileno() == -1
    run(SocketCalls(transport).close())


def test_pings_between_calls_and_between_loops_are_answered(serve_scripted, open_transport):
    ponged = threading.Event()

    def pinging(peer):
        peer.receive(until=Opcode.TEXT)
        peer.send(b"are you there", opcode=Opcode.PING)
        assert peer.receive(until=Opcode.PONG).data == b"are you there"
        ponged.set()
        peer.wait_for_end()

    transport = open_transport(serve_scripted(pinging))
    run(SocketCalls(transport).send(b"hello"))
    assert ponged.wait(WAIT_S)


def test_a_task_left_on_a_closed_loop_holds_nobody_up(serve_websocket, open_transport):
    transport = open_transport(serve_websocket(quiet))
    loop = asyncio.new_event_loop()
    task = loop.create_task(SocketCalls(transport).receive(None))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    transport.drop("its loop is gone")
    assert transport.fileno() == -1
    task._log_destroy_pending = False
    task.get_coro().close()


def test_a_cancelled_call_in_a_thread_drops_the_transport():
    client, _ = memory_pair()

    async def wait():
        task = asyncio.create_task(ThreadCalls(client).receive(None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(wait())
    assert client.closed


def test_no_task_closes_the_socket_that_another_task_still_watches(serve_websocket, open_transport):
    transport = open_transport(serve_websocket(quiet))

    async def wait():
        call = asyncio.create_task(SocketCalls(transport).receive(None))
        await asyncio.sleep(0)
        transport.drop("enough")
        await SocketCalls(transport).close()
        still_open = transport.fileno() != -1
        with pytest.raises(SessionLostError):
            await call
        return still_open

    assert run(wait())
    assert transport.fileno() == -1


def test_the_socket_stays_with_the_loop_between_calls_that_follow_one_another_and_no_longer(echoing):
    watched = []

    class Counting(asyncio.SelectorEventLoop):
        def add_reader(self, fd, callback, *args):
            if fd == echoing.fileno():
                watched.append(fd)
            super().add_reader(fd, callback, *args)

    async def talk():
        calls = SocketCalls(echoing)
        for _ in range(5):
            await calls.send(b"hello")
            await calls.receive(5.0)
        count, descriptor = len(watched), echoing.fileno()
        for _ in range(2):
            await asyncio.sleep(0)
        return count, asyncio.get_running_loop().remove_reader(descriptor)

    assert run(talk(), loop=Counting) == (1, False)


def test_a_thread_that_closes_right_after_a_call_cuts_the_socket_and_the_loop_closes_it(echoing):
    async def talk():
        calls = SocketCalls(echoing)
        await calls.send(b"hello")
        await calls.receive(5.0)
        closer = threading.Thread(target=echoing.close)
        closer.start()
        closer.join(WAIT_S)
        held = echoing.fileno() != -1
        for _ in range(2):
            await asyncio.sleep(0)
        return held

    assert run(talk())
    assert echoing.fileno() == -1


def test_a_loop_that_was_stopped_between_two_calls_keeps_nobody_from_closing(echoing):
    loop = asyncio.new_event_loop()
    calls = SocketCalls(echoing)

    async def talk():
        await calls.send(b"hello")
        await calls.receive(5.0)
        loop.stop()

    task = loop.create_task(talk())
    loop.run_forever()
    assert task.done()
    loop.close()
    echoing.close()
    assert echoing.fileno() == -1


def test_a_shorter_timeout_counts_after_a_longer_one_and_a_longer_one_after_a_shorter(serve_websocket, open_transport):
    def answer_twice(connection):
        for number, message in enumerate(connection):
            if number < 3:
                connection.send(message)

    async def talk(last_s):
        calls = SocketCalls(open_transport(serve_websocket(answer_twice)))
        for timeout_s in (60.0, 0.5, None):
            await calls.send(b"hello")
            await calls.receive(timeout_s)
        await calls.send(b"hello")
        started = time.monotonic()
        with pytest.raises(RequestTimeoutError):
            await calls.receive(last_s)
        return time.monotonic() - started

    assert 0.05 <= run(talk(0.05)) < 5.0
    assert 0.7 <= run(talk(0.7)) < 5.0
