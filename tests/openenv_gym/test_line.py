"""The line in front of a client."""

import asyncio
import os
import threading

import pytest

from openenv_gym import line as module
from openenv_gym.errors import SessionLostError, SessionStateError
from openenv_gym.line import Line, Place
from tests.openenv_gym.interrupting import apart
from tests.openenv_gym.transports.conftest import interrupted_at, wait_until

WAIT_S = 10.0


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def other_threads_place():
    place = Place()
    place.thread = -1
    return place


def test_one_at_a_time_is_served_and_the_others_in_their_order():
    line, served = Line(), []
    first = other_threads_place()
    assert line.enter(first) is None

    def wait(number):
        place = Place()
        line.enter(place)
        served.append(number)
        line.leave(place)

    threads = []
    for number in range(5):
        threads.append(in_thread(lambda number=number: wait(number)))
        wait_until(lambda number=number: len(line._waiting) == number + 1)
    assert served == []
    line.leave(first)
    for thread in threads:
        thread.join(WAIT_S)
    assert served == [0, 1, 2, 3, 4]
    assert line.served is None


def test_who_hurries_does_not_pass_those_who_wait():
    line, steps = Line(), []
    entered = threading.Event()

    def step(name, times):
        for _ in range(times):
            place = Place()
            line.enter(place)
            entered.set()
            steps.append(name)
            line.leave(place)

    hurried = in_thread(lambda: step("a", 20_000))
    assert entered.wait(WAIT_S)
    step("b", 5)
    assert "b" in steps[: steps.index("b") + 1]
    hurried.join(WAIT_S)
    assert steps.count("b") == 5


def test_tasks_and_threads_wait_in_one_line():
    line, served = Line(), []
    first = other_threads_place()
    line.enter(first)

    async def wait():
        place = Place(asyncio.get_running_loop())
        await line.enter_awaited(place)
        served.append("task")
        line.leave(place)

    thread = in_thread(lambda: asyncio.run(wait()))
    wait_until(lambda: len(line._waiting) == 1)
    line.leave(first)
    thread.join(WAIT_S)
    assert served == ["task"]


def test_a_cancelled_wait_leaves_the_line():
    line = Line()
    first = other_threads_place()
    line.enter(first)

    async def wait():
        place = Place(asyncio.get_running_loop())
        task = asyncio.create_task(line.enter_awaited(place))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        line.leave(place)

    asyncio.run(wait())
    assert line._waiting == {}
    line.leave(first)
    line.enter(Place())


def test_the_next_is_woken_by_one_who_gives_up():
    line = Line()

    async def wait():
        loop = asyncio.get_running_loop()
        first, second, third = Place(loop), Place(loop), Place(loop)
        await line.enter_awaited(first)
        tasks = [asyncio.create_task(line.enter_awaited(place)) for place in (second, third)]
        await asyncio.sleep(0)
        line.leave(first)
        tasks[0].cancel()
        line.leave(second)
        await asyncio.wait_for(tasks[1], WAIT_S)
        line.leave(third)

    asyncio.run(wait())
    assert line.served is None


def test_a_thread_is_not_to_wait_for_a_task_of_its_own_loop():
    line = Line()

    async def call():
        place = Place(asyncio.get_running_loop())
        await line.enter_awaited(place)
        own = Place()
        with pytest.raises(SessionStateError):
            line.enter(own)
        line.leave(own)
        line.leave(place)

    asyncio.run(call())


def test_a_thread_passes_waiting_tasks_of_its_own_loop():
    line = Line()
    first = other_threads_place()
    line.enter(first)

    async def call():
        waiting = Place(asyncio.get_running_loop())
        task = asyncio.create_task(line.enter_awaited(waiting))
        await asyncio.sleep(0)
        line.leave(first)
        own = Place()
        line.enter(own)
        line.leave(own)
        await task
        line.leave(waiting)

    asyncio.run(call())


def test_a_call_that_a_signal_interrupted_gives_way_and_says_so():
    line = Line()
    interrupted, handler = Place(), Place()
    line.enter(interrupted)
    with pytest.raises(SessionLostError) as caught:
        line.enter(handler)
    assert caught.value.reason == "a call was interrupted"
    line.leave(handler)
    line.enter(handler)
    line.leave(interrupted)
    assert line.served is handler


@pytest.mark.parametrize("waiter", ["thread", "task"])
def test_one_whose_loop_was_closed_is_passed_by(waiter):
    line = Line()
    loop = asyncio.new_event_loop()
    gone, waiting_gone, place = Place(loop), Place(loop), Place()
    loop.run_until_complete(line.enter_awaited(gone))
    line._waiting[waiting_gone] = None
    loop.close()
    waiting_gone.wake()

    async def wait():
        place = Place(asyncio.get_running_loop())
        return await line.enter_awaited(place)

    reason = line.enter(place) if waiter == "thread" else asyncio.run(wait())
    assert reason == "its event loop was closed in the middle of a call"
    assert line._waiting == {}


def test_a_task_whose_loop_stands_still_holds_up_nobody_who_waits():
    line = Line()
    loop = asyncio.new_event_loop()
    first, stalled = other_threads_place(), Place(loop)
    line.enter(first)
    task = loop.create_task(line.enter_awaited(stalled))
    loop.run_until_complete(asyncio.sleep(0))
    line.leave(first)
    place = other_threads_place()
    line.enter(place)
    line.leave(place)
    loop.run_until_complete(task)
    assert line.served is stalled
    loop.close()


def test_a_forked_child_passes_by_who_was_served_in_the_parent(monkeypatch):
    line = Line()
    line.enter(other_threads_place())
    own = os.getpid()
    monkeypatch.setattr(module.os, "getpid", lambda: own + 1)
    assert line.enter(Place()) == "a process was forked"


def test_a_reason_waits_for_whoever_is_served_next():
    line = Line()
    line._unfinished.append("because")
    assert line.enter(Place()) == "because"
    line = Line()
    line._unfinished.append("because")

    async def enter():
        return await line.enter_awaited(Place(asyncio.get_running_loop()))

    assert asyncio.run(enter()) == "because"


def test_waking_early_or_twice_does_nothing():
    place = Place()
    place.wake()
    line, first = Line(), other_threads_place()
    line.enter(first)
    thread = in_thread(lambda: (line.enter(place), line.leave(place)))
    wait_until(lambda: place._lock is not None)
    place.wake()
    place.wake()
    line.leave(first)
    thread.join(WAIT_S)
    assert line.served is None


@apart
def test_an_interrupt_at_any_point_leaves_no_one_at_the_front():
    for point in range(1, 200):
        line, place, done = Line(), Place(), False
        try:
            with interrupted_at(point, within="openenv_gym/line.py"):
                try:
                    line.enter(place)
                    done = True
                finally:
                    line.leave(place)
        except KeyboardInterrupt:
            line.leave(place)
            assert line.served is None
            line.enter(place)
            line.leave(place)
        else:
            break
    assert done
