"""The event loop in a thread of its own."""

import asyncio
import contextvars
import threading
import time
from concurrent.futures import CancelledError

import pytest

from openenv_gym.errors import SessionLostError, SessionStateError
from openenv_gym.loop_thread import LoopThread

WAIT_S = 10.0


@pytest.fixture
def thread():
    thread = LoopThread()
    yield thread
    thread.stop()


def test_coroutines_run_there_and_their_results_and_errors_come_back(thread):
    async def name():
        await asyncio.sleep(0)
        return threading.current_thread().name

    async def fail():
        raise ArithmeticError("no")

    assert not thread.running
    assert thread.run(name) == "openenv-gym-loop"
    with pytest.raises(ArithmeticError):
        thread.run(fail)
    assert thread.running


def test_context_variables_go_along(thread):
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    async def read():
        return variable.get()

    assert thread.run(read) == "set"


def test_it_stops_and_starts_again(thread):
    async def answer():
        return 42

    thread.stop()
    thread.run(answer)
    thread.stop()
    thread.stop()
    assert not thread.running
    assert thread.run(answer) == 42


def test_what_still_runs_is_cancelled_when_it_stops(thread):
    ended = threading.Event()

    async def begin():
        async def rest():
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        thread.task = asyncio.create_task(rest())
        await asyncio.sleep(0)

    thread.run(begin)
    thread.stop()
    assert ended.wait(WAIT_S)


def test_a_call_from_its_own_thread_is_refused(thread):
    async def call():
        with pytest.raises(SessionStateError) as caught:
            thread.run(call)
        return caught.value.expected

    assert thread.run(call) == "another thread"


def test_an_interrupt_of_the_waiting_thread_cancels_the_coroutine(thread, monkeypatch):
    ended = []

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    def interrupt(self, timeout=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.run(wait)
    assert ended == [True]


def test_stopping_from_within_ends_it_too(thread):
    async def stop():
        thread.stop()
        return "stopped"

    async def answer():
        return 42

    assert thread.run(stop) == "stopped"
    assert thread.run(answer) == 42


def test_a_call_under_way_when_it_stops_is_a_lost_session(thread):
    begun = threading.Event()
    caught = []

    async def wait():
        begun.set()
        await asyncio.Event().wait()

    def call():
        with pytest.raises(SessionLostError) as error:
            thread.run(wait)
        caught.append(error.value.reason)

    caller = threading.Thread(target=call)
    caller.start()
    assert begun.wait(WAIT_S)
    thread.stop()
    caller.join(WAIT_S)
    assert caught == ["the client was closed in the middle of a call"]


def test_a_coroutine_that_is_cancelled_by_itself_says_so(thread):
    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        thread.run(cancelled)


def test_no_call_waits_for_ever_however_often_another_thread_stops_it(thread):
    async def answer():
        return 42

    answers = []

    def call():
        for _ in range(200):
            try:
                answers.append(thread.run(answer))
            except SessionLostError:
                answers.append(None)

    callers = [threading.Thread(target=call, daemon=True) for _ in range(2)]
    for caller in callers:
        caller.start()
    deadline = time.monotonic() + 3 * WAIT_S
    while any(caller.is_alive() for caller in callers):
        assert time.monotonic() < deadline, "a call waits for a loop that is gone"
        thread.stop()
    assert len(answers) == 400
    assert set(answers) <= {42, None}
