"""Sessions at ``/mcp`` whose calls are cut short: by a close, a cancellation, a fork, the end of a loop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from openenv_gym.errors import SessionLostError, SessionStateError
from openenv_gym.loopless import drive
from tests.openenv_gym.transports.conftest import WAIT_S, Run, Start
from tests.openenv_gym.transports.mcp_peer import Peer, calls_of


@pytest.fixture
def peer(serve_tcp: Start) -> Peer:
    peer = Peer()
    peer.url = serve_tcp(peer)
    return peer


def test_closed_under_a_call_it_raises_there_and_ends_on_the_server(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    drive(calls.open())
    peer.began.clear()
    release = peer.wait["tools/call"] = threading.Event()
    caught: list[BaseException] = []

    def call() -> None:
        try:
            run(calls.call_tool("look", {}))
        except SessionLostError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert peer.began.wait(WAIT_S)
    timer = threading.Timer(0.05, release.set)
    timer.start()
    drive(calls.close())
    thread.join(WAIT_S)
    timer.join()
    assert isinstance(caught[0], SessionLostError)
    assert "closed it" in str(caught[0].reason)
    assert peer.methods == ["create", "call", "close"]


def test_closed_while_it_opens_it_leaves_none_on_the_server(peer: Peer) -> None:
    calls = calls_of(peer)

    def closing(request: dict[str, Any]) -> dict[str, Any]:
        calls._closings += 1
        return peer.usual(request)

    peer.answers["openenv/session/create"] = closing
    with pytest.raises(SessionStateError):
        drive(calls.open())
    assert peer.methods == ["create", "close"]
    assert calls.session_id is None
    drive(calls.close())


def test_closing_never_fails_over_a_server_that_is_gone(peer: Peer, run: Run) -> None:
    calls = calls_of(peer, close_timeout_s=0.05)
    run(calls.open())
    peer.wait["openenv/session/close"] = threading.Event()
    run(calls.close())
    peer.wait["openenv/session/close"].set()
    again = calls_of(peer, close_timeout_s=0)
    run(again.open())
    run(again.close())
    assert peer.methods == ["create", "close", "create"]
    lonely = calls_of(peer)
    run(lonely.open())
    peer.answers["openenv/session/close"] = lambda _: None
    run(lonely.close())


def test_a_forked_child_has_lost_the_session_and_leaves_the_parents(peer: Peer, run: Run) -> None:
    calls = calls_of(peer)
    run(calls.open())
    # As the child sees it.
    calls._process = os.getpid() + 1
    with pytest.raises(SessionLostError) as caught:
        run(calls.call_tool("look", {}))
    assert caught.value.reason == "a process was forked"
    run(calls.close())
    assert peer.methods == ["create"]
    run(calls.open())
    assert calls.session_id == "2"
    run(calls.close())


def test_an_interrupted_call_leaves_nothing_for_the_next(peer: Peer) -> None:
    calls = calls_of(peer)

    async def main() -> Any:
        await calls.open()
        peer.began.clear()
        release = peer.wait["tools/call"] = threading.Event()
        task = asyncio.create_task(calls.call_tool("look", {"n": 1}))
        while not peer.began.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        return await calls.call_tool("look", {"n": 2})

    assert asyncio.run(main())["data"] == {"n": 2}
    drive(calls.close())


def test_a_call_of_a_closed_loop_is_passed_by(peer: Peer) -> None:
    calls = calls_of(peer)
    drive(calls.open())
    release = peer.wait["tools/call"] = threading.Event()
    peer.began.clear()
    loop = asyncio.new_event_loop()
    task = loop.create_task(calls.call_tool("look", {"n": 1}))
    while not peer.began.is_set():
        loop.run_until_complete(asyncio.sleep(0.005))
    loop.close()
    release.set()
    assert drive(calls.call_tool("look", {"n": 2}))["data"] == {"n": 2}
    drive(calls.close())
    # What is left of it is nobody's.
    task._log_destroy_pending = False
    task.get_coro().close()


def test_a_task_that_waits_in_the_same_thread_is_not_waited_for(peer: Peer) -> None:
    calls = calls_of(peer)
    release = peer.wait["tools/call"] = threading.Event()

    async def main() -> None:
        await calls.open()
        peer.began.clear()
        task = asyncio.create_task(calls.call_tool("look", {}))
        while not peer.began.is_set():
            await asyncio.sleep(0.005)
        with pytest.raises(SessionStateError, match="await it"):
            drive(calls.call_tool("look", {}))
        release.set()
        await task
        await calls.close()

    asyncio.run(main())
