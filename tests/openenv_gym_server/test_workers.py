"""Tests of ``openenv_gym_server.workers``."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.workers import Workers
from tests.text_envs import Bare, Echo, make_bare, make_broken, make_echo

WAIT_S = 10.0


class Bound(Echo):
    REQUIRES_SINGLE_THREAD_EXECUTOR = True


def make_bound() -> Bound:
    return Bound()


def workers_of(env: Any) -> Workers:
    return Workers(EnvironmentFactory(env))


def ended(workers: Workers) -> bool:
    workers.stop()
    return asyncio.run(workers.join(time.monotonic() + WAIT_S)) == 0


def test_environments_that_declare_nothing_get_a_thread_each() -> None:
    workers = workers_of(Bare)
    first, second = workers.take("a"), workers.take("b")
    assert first is not None
    assert second is not None
    assert first is not second
    for worker in (first, second):
        assert not workers.is_shared(worker)
        workers.release(worker)
    assert ended(workers)


@pytest.mark.parametrize("env", [Bound, Echo()])
def test_environments_bound_to_one_thread_share_it(env: Any) -> None:
    workers = workers_of(env)
    first = workers.take("a")
    assert first is not None
    assert workers.take("b") is first
    workers.release(first)
    assert first.submit(lambda: 1).result(WAIT_S) == 1
    assert ended(workers)


@pytest.mark.parametrize(("made", "shared"), [(Bound(), True), (Echo(), False)])
def test_a_functions_first_environment_tells_and_nobody_gets_a_thread_meanwhile(made: Echo, shared: bool) -> None:
    workers = workers_of(lambda: made)
    first = workers.take("a")
    assert first is not None
    assert workers.take("b") is None

    async def main() -> None:
        waiting = asyncio.ensure_future(workers.settled())
        await asyncio.sleep(0)
        assert not waiting.done()
        workers.learn_from(made)
        await asyncio.wait_for(waiting, WAIT_S)
        await workers.settled()

    asyncio.run(main())
    second = workers.take("b")
    assert second is not None
    assert (second is first) is shared
    workers.release(first)
    workers.release(second)
    assert ended(workers)


def test_a_function_that_fails_leaves_its_thread_to_the_next_try() -> None:
    workers = workers_of(make_bound)
    first = workers.take("a")
    assert first is not None
    workers.learn_from(None)
    workers.release(first)
    assert workers.take("b") is first
    workers.stop()
    assert workers.take("c") is not first
    assert ended(workers)


def test_the_question_is_asked_on_the_thread_that_environments_will_share() -> None:
    made: list[Bound] = []

    def make() -> Bound:
        made.append(Bound())
        return made[-1]

    workers = workers_of(make)
    assert workers.ask() is True
    assert workers.ask() is True
    assert [env.closed for env in made] == [1]
    worker = workers.take("a")
    assert worker is not None
    assert made[0].threads == {worker.submit(threading.get_ident).result(WAIT_S)}
    assert ended(workers)


@pytest.mark.parametrize(("make", "answer"), [(make_echo, True), (make_bare, False), (make_broken, None)])
def test_what_is_made_for_the_question_is_closed_with_its_thread(
    make: Any, answer: bool | None, caplog: pytest.LogCaptureFixture
) -> None:
    workers = workers_of(make)
    assert workers.ask() is answer
    assert ("no such device" in caplog.text) is (answer is None)
    assert ended(workers)


def test_a_question_waits_for_the_environment_that_is_being_made_already() -> None:
    workers = workers_of(make_echo)
    first = workers.take("a")
    assert first is not None
    answers: list[bool | None] = []
    asking = threading.Thread(target=lambda: answers.append(workers.ask()))
    asking.start()
    workers.learn_from(Echo())
    asking.join(WAIT_S)
    assert answers == [True]
    workers.release(first)
    assert ended(workers)


def test_an_asynchronous_close_is_awaited_and_a_failing_one_passed_over() -> None:
    closed = threading.Event()

    class Async(Echo):
        async def close(self) -> None:  # type: ignore[override]
            closed.set()

    class Failing(Echo):
        def close(self) -> None:
            raise OSError("stuck")

    for kind in (Async, Failing):
        workers = workers_of(lambda kind=kind: kind())
        assert workers.ask() is True
        assert ended(workers)
    assert closed.is_set()


def test_threads_that_have_ended_are_forgotten() -> None:
    workers = workers_of(Bare)
    for _ in range(40):
        worker = workers.take("a")
        assert worker is not None
        worker.stop()
        assert worker.join(WAIT_S)
    assert len(workers._workers) < 40
    assert ended(workers)


def test_what_a_function_makes_is_decided_by_the_first_it_made() -> None:
    assert workers_of(Echo).decided
    workers = workers_of(make_echo)
    assert not workers.decided
    assert workers.ask() is True
    assert workers.decided
    assert ended(workers)
