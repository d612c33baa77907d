"""Coroutines without an event loop."""

import asyncio
import contextvars
import threading

import pytest

from openenv_gym import loopless as loopless_module
from openenv_gym.loopless import blocking, drive, in_thread, loopless, loopless_names, off_the_loop, pause

WAIT_S = 10.0


class Base:
    @loopless
    async def step(self):
        return blocking()

    @loopless
    async def reset(self):
        return await self.step()

    async def other(self):
        return None


def test_a_marked_coroutine_runs_on_the_calling_thread():
    assert drive(Base().reset()) is True
    assert asyncio.run(Base().reset()) is False
    assert not blocking()


def test_a_drive_that_was_interrupted_before_it_cleaned_up_makes_no_later_wait_block(monkeypatch):
    left = Base().step()
    monkeypatch.setattr(loopless_module._here, "driven", left)
    left.close()
    assert not blocking()
    assert asyncio.run(Base().step()) is False


def test_an_exception_comes_out_as_it_is():
    async def fail():
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError):
        drive(fail())
    assert not blocking()


def test_a_coroutine_that_needs_a_loop_is_told_so_and_closed():
    ended = []

    async def sleep():
        try:
            await asyncio.sleep(0)
        finally:
            ended.append(True)

    with pytest.raises(RuntimeError, match="needs no event loop"):
        drive(sleep())
    assert ended == [True]


def test_driving_inside_a_driven_coroutine_leaves_it_driven():
    async def outer():
        drive(Base().step())
        return blocking()

    assert drive(outer()) is True


def test_an_unmarked_method_in_a_marked_ones_place_makes_all_need_a_loop():
    class Replaced(Base):
        async def step(self):
            return 1

    class Marked(Base):
        @loopless
        async def step(self):
            return 1

    assert loopless_names(Base) == loopless_names(Marked) == {"step", "reset"}
    assert loopless_names(Replaced) == frozenset()


def test_blocking_work_is_done_in_place_or_in_a_thread():
    async def where():
        return await off_the_loop(threading.get_ident, discard=print)

    assert drive(where()) == threading.get_ident()
    assert asyncio.run(where()) != threading.get_ident()


def test_a_pause_is_one_of_the_thread_or_of_the_task():
    drive(pause(0.0))
    asyncio.run(pause(0.0))


def test_an_error_of_the_work_is_the_callers():
    def fail():
        raise SystemExit(3)

    async def work():
        with pytest.raises(SystemExit):
            await in_thread(fail, discard=print)

    asyncio.run(work())


@pytest.mark.parametrize("daemon", [False, True])
def test_a_result_that_nobody_waits_for_is_discarded(daemon):
    begun, go_on, discarded = threading.Event(), threading.Event(), []
    done = threading.Event()

    def work():
        begun.set()
        assert go_on.wait(WAIT_S)
        return "result"

    def discard(result):
        discarded.append(result)
        done.set()

    async def leave():
        task = asyncio.create_task(in_thread(work, discard=discard, daemon=daemon))
        await asyncio.to_thread(begun.wait, WAIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert discarded == []
    go_on.set()
    assert done.wait(WAIT_S)
    assert discarded == ["result"]


def test_a_result_that_came_just_before_the_caller_left_is_discarded_too():
    discarded = threading.Event()

    async def leave():
        told = threading.Event()
        task = asyncio.create_task(in_thread(told.set, discard=lambda _: discarded.set()))
        await asyncio.sleep(0)
        assert told.wait(WAIT_S)
        wait_for_thread("openenv-gym-work")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert discarded.wait(WAIT_S)


def test_a_result_for_a_closed_loop_is_discarded():
    go_on, discarded = threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    work = in_thread(lambda: go_on.wait(WAIT_S), discard=lambda _: discarded.set())
    task = loop.create_task(work)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    go_on.set()
    assert discarded.wait(WAIT_S)
    task._log_destroy_pending = False


def wait_for_thread(name):
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(WAIT_S)


def test_context_variables_go_along_into_the_thread():
    where = contextvars.ContextVar("where", default="nowhere")

    async def ask():
        where.set("here")
        return await in_thread(where.get, discard=print)

    assert asyncio.run(ask()) == "here"
