"""Tests of ``openenv_gym_server.sessions``: whose thread an environment gets, and for how long."""

from __future__ import annotations

import asyncio
import functools
import threading

import pytest

from openenv_gym_server import sessions as module
from openenv_gym_server.errors import OvertimeError, SessionEndedError
from openenv_gym_server.session import Limit
from tests.openenv_gym_server.test_sessions import WAIT_S, _made, run, sessions_of
from tests.text_envs import Echo, Heard


def borrowed_threads() -> int:
    return sum(thread.name == "openenv-request" for thread in threading.enumerate())


def test_requests_that_are_given_up_still_count_until_their_environments_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_BORROWED", 3)
    # Else the next in the queue could get the place of one that was given up, in the moment before its own time is up.
    monkeypatch.setattr(module, "MAX_ABANDONED", 0)
    before = borrowed_threads()
    leave = threading.Event()

    class Slow(Echo):
        def reset(self, seed: int | None = None) -> Heard:
            assert leave.wait(WAIT_S)
            return Heard()

    sessions = sessions_of(Slow, reset_timeout_s=0.02)

    async def body() -> None:
        limit = Limit.reset(sessions.settings)
        requests = (sessions.borrow(lambda hosted: hosted.reset({}), limit) for _ in range(20))
        errors = await asyncio.gather(*requests, return_exceptions=True)
        assert {type(error) for error in errors} == {OvertimeError}
        assert sum("busy with other requests" in str(error) for error in errors) == 17
        assert borrowed_threads() == before + 3
        # Questions have turns of their own, and one that is free is answered at once.
        assert (await sessions.ask(lambda hosted: hosted.metadata()))["name"] == "Slow"
        leave.set()
        assert (await sessions.borrow(lambda hosted: hosted.reset({}), Limit(WAIT_S, "a"))).observation["echo"] == ""

    run(sessions, body)
    assert borrowed_threads() == before


def test_environments_of_a_function_that_want_one_thread_never_get_two() -> None:
    threads: list[int] = []
    leave = threading.Event()

    class Bound(Echo):
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

        def __init__(self) -> None:
            super().__init__()
            threads.append(threading.get_ident())
            assert leave.wait(WAIT_S)

    def make() -> Bound:
        return Bound()

    make.SUPPORTS_CONCURRENT_SESSIONS = True  # type: ignore[attr-defined]
    sessions = sessions_of(make, max_concurrent_envs=4)

    async def body() -> None:
        opening = [asyncio.ensure_future(sessions.open("socket")) for _ in range(3)]
        lending = asyncio.ensure_future(sessions.borrow(lambda hosted: None, Limit(None, "a")))
        until = asyncio.get_running_loop().time() + WAIT_S
        while not threads and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0)
        assert len(threads) == 1
        leave.set()
        await asyncio.wait_for(asyncio.gather(*opening, lending), WAIT_S)
        assert len(threads) == 4
        assert len(set(threads)) == 1

    run(sessions, body)


def test_the_question_of_concurrency_is_asked_on_the_thread_that_is_shared_later() -> None:
    threads: list[int] = []

    class Bound(Echo):
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

        def __init__(self) -> None:
            super().__init__()
            threads.append(threading.get_ident())

    sessions = sessions_of(functools.partial(_made, Bound), max_concurrent_envs=4)
    assert sessions.supports_concurrency

    async def body() -> None:
        await sessions.open("socket")
        assert len(threads) == 2
        assert len(set(threads)) == 1

    run(sessions, body)


def test_a_request_that_is_given_up_while_another_environment_is_made_leaves_its_turn() -> None:
    leave, begun = threading.Event(), threading.Event()

    def make() -> Echo:
        begun.set()
        assert leave.wait(WAIT_S)
        return Echo()

    sessions = sessions_of(make)

    async def body() -> None:
        opening = asyncio.ensure_future(sessions.open("socket"))
        await asyncio.to_thread(begun.wait, WAIT_S)
        free = sessions._borrowed.free
        with pytest.raises(SessionEndedError, match="busy"):
            await sessions.borrow(lambda hosted: None, Limit(0.01, "a"))
        assert sessions._borrowed.free == free
        leave.set()
        await opening

    run(sessions, body)
