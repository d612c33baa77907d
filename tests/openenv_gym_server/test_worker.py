"""Tests of ``openenv_gym_server.worker``."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from openenv_gym_server import worker as worker_module
from openenv_gym_server.errors import SessionEndedError
from openenv_gym_server.worker import Worker

WAIT_S = 10.0


@pytest.fixture(params=[False, True], ids=["plain", "with a loop"])
def worker(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    worker = Worker("tested", may_be_async=request.param)
    yield worker
    worker.stop()
    assert worker.join(WAIT_S)


def test_jobs_run_in_order_on_one_named_thread(worker: Worker) -> None:
    seen: list[tuple[int, str]] = []
    futures = [worker.submit(lambda n=n: seen.append((n, threading.current_thread().name))) for n in range(20)]
    for future in futures:
        future.result(WAIT_S)
    assert seen == [(n, "tested") for n in range(20)]


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(1), KeyboardInterrupt()])
def test_whatever_a_job_raises_is_handed_over_and_the_thread_serves_on(worker: Worker, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        worker.submit(fail).result(WAIT_S)
    assert worker.submit(lambda: 1).result(WAIT_S) == 1


def test_a_job_is_awaited_on_the_callers_loop(worker: Worker) -> None:
    async def main() -> tuple[int, str]:
        value = await worker.run(lambda: 1)
        with pytest.raises(SystemExit):
            await worker.run(exit_now)
        return value, await worker.run(lambda: threading.current_thread().name)

    def exit_now() -> None:
        raise SystemExit(1)

    assert asyncio.run(main()) == (1, "tested")


def test_a_cancelled_or_vanished_caller_harms_nobody(worker: Worker) -> None:
    go, done = threading.Event(), threading.Event()

    def job() -> None:
        assert go.wait(WAIT_S)
        done.set()

    def failing() -> None:
        raise ValueError

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.run(job), 0.01)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.run(failing), 0.01)
        go.set()
        await worker.run(lambda: None)
        go.clear()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(worker.run(job), 0.01)

    asyncio.run(main())
    go.set()
    assert done.wait(WAIT_S)
    assert worker.submit(lambda: 1).result(WAIT_S) == 1


def test_a_factory_finds_the_loop_its_coroutines_will_run_on() -> None:
    worker = Worker("tested", may_be_async=True)
    found = worker.submit(asyncio.get_event_loop).result(WAIT_S)

    async def running() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert worker.submit(lambda: worker.wait_for(running())).result(WAIT_S) is found
    worker.stop()
    assert worker.join(WAIT_S)
    assert found.is_closed()


def test_background_tasks_go_on_between_two_jobs() -> None:
    worker = Worker("tested", may_be_async=True)
    ticked, ended = threading.Event(), threading.Event()

    async def tick() -> None:
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            ticked.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def begin() -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(tick())

    task = worker.submit(lambda: worker.wait_for(begin())).result(WAIT_S)
    assert ticked.wait(WAIT_S)
    assert not task.done()
    worker.stop()
    assert worker.join(WAIT_S)
    assert ended.is_set()
    assert task.cancelled()


def test_a_background_task_that_exits_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker("tested", may_be_async=True)
    raised = threading.Event()

    async def leave() -> None:
        await asyncio.sleep(0)
        raised.set()
        raise SystemExit(1)

    async def begin() -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(leave())

    task = worker.submit(lambda: worker.wait_for(begin())).result(WAIT_S)
    assert raised.wait(WAIT_S)
    assert worker.submit(lambda: 1).result(WAIT_S) == 1
    assert worker.submit(lambda: 2).result(WAIT_S) == 2
    assert isinstance(worker.submit(task.exception).result(WAIT_S), SystemExit)
    worker.stop()
    assert worker.join(WAIT_S)


def test_a_loop_that_is_not_needed_is_given_up() -> None:
    worker = Worker("tested", may_be_async=True)
    found = worker.submit(asyncio.get_event_loop).result(WAIT_S)
    worker.submit(worker.drop_loop).result(WAIT_S)
    assert found.is_closed()
    assert worker.submit(lambda: 1).result(WAIT_S) == 1
    worker.stop()
    assert worker.join(WAIT_S)


def test_an_awaitable_that_nobody_expected_is_awaited_all_the_same() -> None:
    worker = Worker("tested")

    async def value() -> int:
        await asyncio.sleep(0)
        return 5

    assert worker.submit(lambda: worker.wait_for(value())).result(WAIT_S) == 5
    assert worker.submit(lambda: 1).result(WAIT_S) == 1
    worker.stop()
    assert worker.join(WAIT_S)


def test_a_thread_does_not_wait_for_itself() -> None:
    worker = Worker("tested")
    assert worker.submit(worker.join, 5.0).result(WAIT_S) is False
    worker.stop()
    assert worker.join(WAIT_S)


def test_a_stopped_worker_refuses_jobs_at_once() -> None:
    worker = Worker("tested")
    worker.stop()
    worker.stop()
    with pytest.raises(SessionEndedError):
        worker.submit(lambda: 1)

    async def main() -> None:
        with pytest.raises(SessionEndedError):
            await asyncio.wait_for(worker.run(lambda: 1), WAIT_S)

    asyncio.run(main())
    assert worker.join(WAIT_S)


def test_whoever_stops_waiting_does_not_end_the_job(worker: Worker) -> None:
    go = threading.Event()
    future = worker.submit(go.wait, WAIT_S)
    assert not future.cancel()
    go.set()
    assert future.result(WAIT_S)


@pytest.fixture
def looping():  # type: ignore[no-untyped-def]
    worker = Worker("tested", may_be_async=True)
    yield worker
    worker.stop()
    assert worker.join(WAIT_S)


async def _exit() -> None:
    raise SystemExit


def _stop() -> None:
    asyncio.get_running_loop().stop()


def _stop_soon() -> None:
    asyncio.get_running_loop().call_soon(_stop)


def _exit_in_background() -> None:
    _kept.append(asyncio.get_running_loop().create_task(_exit()))


def _cancel_all_others() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


def _cancel_all_later() -> None:
    asyncio.get_running_loop().call_later(0.01, _cancel_everything)


def _cancel_everything() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


_kept: list[asyncio.Task[None]] = []


@pytest.mark.parametrize(
    "harm",
    [_stop, _stop_soon, _exit_in_background, _cancel_all_others, _cancel_all_later],
    ids=lambda harm: harm.__name__,
)
def test_nothing_that_is_done_to_the_loop_keeps_the_thread_from_its_jobs(
    looping: Worker, harm: Callable[[], None]
) -> None:
    async def step(pause: int) -> int:
        harm()
        for _ in range(pause):
            await asyncio.sleep(0)
        return pause

    for pause in (0, 1, 5):
        assert looping.submit(lambda pause=pause: looping.wait_for(step(pause))).result(WAIT_S) == pause
        for _ in range(3):
            assert looping.submit(lambda: 1).result(WAIT_S) == 1
    _kept.clear()


def test_a_closed_loop_is_replaced(looping: Worker) -> None:
    async def one() -> int:
        return 1

    def close() -> None:
        asyncio.get_event_loop_policy().get_event_loop().close()

    looping.submit(close).result(WAIT_S)
    assert looping.submit(lambda: 2).result(WAIT_S) == 2
    assert looping.submit(lambda: looping.wait_for(one())).result(WAIT_S) == 1


def test_a_background_task_that_does_not_heed_its_cancellation_does_not_keep_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_module, "CANCELLATION_S", 0.05)
    tasks: list[Any] = []

    async def deaf() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(deaf()))
        await asyncio.sleep(0)

    worker = Worker("tested", may_be_async=True)
    worker.submit(lambda: worker.wait_for(begin())).result(WAIT_S)
    worker.stop()
    assert worker.join(WAIT_S)
    assert "do not heed their cancellation" in caplog.text
    tasks.clear()
    gc.collect()
