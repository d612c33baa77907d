"""Tests of ``openenv_gym_server.sessions``."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from openenv_gym.errors import CapacityError, EnvironmentFactoryError, InvalidActionError
from openenv_gym.messages import OpenSettings
from openenv_gym_server.errors import SessionEndedError, SessionNotFoundError
from openenv_gym_server.factories import EnvironmentFactory
from openenv_gym_server.models import Models
from openenv_gym_server.session import Limit
from openenv_gym_server.sessions import MAX_ABANDONED, MAX_BORROWED, Sessions
from openenv_gym_server.settings import DEFAULT_CAPACITY, ServerSettings
from tests.text_envs import Bare, Broken, Echo, Heard, Say, make_bare, make_broken, make_echo

WAIT_S = 10.0


def _made(kind: type[Any]) -> Any:
    return kind()


def sessions_of(env: Any = Echo, **settings: Any) -> Sessions:
    return Sessions(EnvironmentFactory(env), Models(Say, Heard), ServerSettings(**settings))


def run(sessions: Sessions, body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        try:
            await body()
        finally:
            await sessions.shutdown()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("env", "settings", "limit"),
    [
        (Echo, {}, DEFAULT_CAPACITY),
        (Bare, {}, 1),
        (Echo, {"max_concurrent_envs": 3}, 3),
        (Echo, {"max_concurrent_envs": "unlimited"}, sys.maxsize),
        (Echo(), {}, 1),
        (make_echo, {}, 1),
    ],
)
def test_the_limit_follows_the_setting_and_what_the_environment_declares(env: Any, settings: Any, limit: int) -> None:
    assert sessions_of(env, **settings).limit == limit


def test_a_functions_environments_are_known_once_there_is_one() -> None:
    sessions = sessions_of(make_echo)

    async def body() -> None:
        await sessions.open("socket")
        assert sessions.limit == DEFAULT_CAPACITY
        await sessions.open("socket")

    run(sessions, body)


def test_admission_is_without_a_race() -> None:
    sessions = sessions_of(max_concurrent_envs=3)

    async def body() -> None:
        results = await asyncio.gather(*(sessions.open("socket") for _ in range(10)), return_exceptions=True)
        refused = [result for result in results if isinstance(result, CapacityError)]
        assert len(refused) == 7
        assert (refused[0].active_sessions, refused[0].max_sessions) == (3, 3)
        assert len(sessions) == 3

    run(sessions, body)


def test_a_new_session_waits_for_one_that_is_about_to_end() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def close(self) -> None:
            assert leave.wait(WAIT_S)

    sessions = sessions_of(Slow, max_concurrent_envs=1)

    async def body() -> None:
        first = await sessions.open("socket")
        sessions.begin_end(first, "tested")
        asyncio.get_running_loop().call_later(0.05, leave.set)
        await sessions.open("socket")

    run(sessions, body)


def test_a_session_that_does_not_end_in_time_keeps_its_slot() -> None:
    leave = threading.Event()

    class Stuck(Echo):
        def close(self) -> None:
            assert leave.wait(WAIT_S)

    sessions = sessions_of(Stuck, max_concurrent_envs=1, close_timeout_s=0.05, shutdown_timeout_s=0.05)

    async def body() -> None:
        first = await sessions.open("socket")
        await sessions.end(first, "tested")
        assert len(sessions) == 1
        with pytest.raises(CapacityError):
            await sessions.open("socket")
        await sessions.shutdown()
        leave.set()
        await asyncio.wrap_future(first.gone)
        assert len(sessions) == 0

    run(sessions, body)


def test_ending_twice_closes_once() -> None:
    sessions = sessions_of()

    async def body() -> None:
        session = await sessions.open("socket")
        assert session.hosted is not None
        env = session.hosted.env
        await asyncio.gather(sessions.end(session, "one"), sessions.end(session, "two"))
        assert env.closed == 1
        assert session.ending == "one"

    run(sessions, body)


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(1)])
def test_a_close_that_raises_frees_the_slot(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    class Grumpy(Echo):
        def close(self) -> None:
            raise error

    sessions = sessions_of(Grumpy)

    async def body() -> None:
        session = await sessions.open("socket")
        await sessions.end(session, "tested")
        assert len(sessions) == 0

    run(sessions, body)
    assert "raised in close()" in caplog.text


def test_a_failed_making_frees_the_slot() -> None:
    sessions = sessions_of(Broken)

    async def body() -> None:
        with pytest.raises(EnvironmentFactoryError):
            await sessions.open("socket")
        with pytest.raises(InvalidActionError):
            await sessions.open("socket", OpenSettings(env_kwargs={"a": 1}))

    run(sessions, body)
    assert len(sessions) == 0


def test_environments_that_want_one_thread_share_it() -> None:
    class Bound(Echo):
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

    for factory in (Bound, functools.partial(_made, Bound)):
        sessions = sessions_of(factory, max_concurrent_envs=4)

        async def body(sessions: Sessions = sessions) -> None:
            threads: set[int] = set()
            for _ in range(3):
                session = await sessions.open("socket")
                threads.add(await session.run(lambda hosted: hosted.reset({}) and threading.get_ident()))  # type: ignore[arg-type]
            threads.add(await sessions.borrow(lambda hosted: threading.get_ident(), Limit(None, "nothing")))
            await sessions.end(session, "tested")
            threads.add(await sessions.borrow(lambda hosted: threading.get_ident(), Limit(None, "nothing")))
            assert len(threads) == 1

        run(sessions, body)


def test_an_asynchronous_environment_has_one_loop_from_its_making_on() -> None:
    loops: set[int] = set()

    class Async(Echo):
        def __init__(self) -> None:
            super().__init__()
            loops.add(id(asyncio.get_event_loop()))
            self.tasks: list[asyncio.Task[None]] = []

        async def reset(self, seed: int | None = None) -> Heard:  # type: ignore[override]
            loops.add(id(asyncio.get_running_loop()))
            self.tasks.append(asyncio.get_running_loop().create_task(asyncio.sleep(0)))
            return Heard(echo="ready")

        async def step(self, action: Say) -> Heard:  # type: ignore[override]
            loops.add(id(asyncio.get_running_loop()))
            await self.tasks[0]
            return Heard(echo=action.message)

        async def close(self) -> None:  # type: ignore[override]
            loops.add(id(asyncio.get_running_loop()))

    for factory in (Async, functools.partial(_made, Async)):
        loops.clear()
        sessions = sessions_of(factory)

        async def body(sessions: Sessions = sessions) -> None:
            session = await sessions.open("socket")
            await session.run(lambda hosted: hosted.reset({}))
            envelope = await session.run(lambda hosted: hosted.step({"message": "x"}))
            assert envelope.observation["echo"] == "x"
            await sessions.end(session, "tested")
            assert len(loops) == 1
            assert id(asyncio.get_running_loop()) not in loops

        run(sessions, body)


def test_kept_sessions_are_found_attached_and_detached() -> None:
    sessions = sessions_of()

    async def body() -> None:
        kept = await sessions.open("kept")
        owned = await sessions.open("socket")
        assert sessions.kept(kept.id) is kept
        assert sessions.get(owned.id) is owned
        for session_id in (owned.id, "none"):
            with pytest.raises(SessionNotFoundError) as caught:
                sessions.kept(session_id)
            assert caught.value.session_id == session_id
        assert sessions.attach(kept.id) is kept
        with pytest.raises(SessionNotFoundError, match="already has"):
            sessions.attach(kept.id)
        await sessions.detach(kept)
        assert sessions.attach(kept.id) is kept
        kept.end_at_detach = True
        await sessions.detach(kept)
        with pytest.raises(SessionNotFoundError):
            sessions.kept(kept.id)

    run(sessions, body)


def test_a_session_that_is_being_made_cannot_be_used_yet() -> None:
    leave = threading.Event()

    class Slow(Echo):
        def __init__(self) -> None:
            assert leave.wait(WAIT_S)
            super().__init__()

    sessions = sessions_of(Slow)

    async def body() -> None:
        opening = asyncio.ensure_future(sessions.open("kept"))
        while not len(sessions):
            await asyncio.sleep(0)
        (session_id,) = sessions.ids()
        with pytest.raises(SessionNotFoundError, match="still initializing"):
            sessions.attach(session_id)
        leave.set()
        await opening

    run(sessions, body)


def test_concurrency_is_asked_of_an_environment_where_only_it_can_tell() -> None:
    assert sessions_of(make_echo).supports_concurrency
    assert not sessions_of(make_bare).supports_concurrency
    assert not sessions_of(make_broken).supports_concurrency
    assert sessions_of(Echo).supports_concurrency


def test_sessions_can_be_opened_again_after_a_shutdown() -> None:
    sessions = sessions_of(session_timeout_s=10)

    async def body() -> None:
        await sessions.open("kept")
        await sessions.shutdown()
        assert len(sessions) == 0
        await sessions.open("kept")

    run(sessions, body)


def test_a_session_whose_thread_was_stopped_is_forgotten() -> None:
    sessions = sessions_of()

    async def body() -> None:
        session = await sessions.open("socket")
        session.worker.stop()
        await asyncio.wait_for(sessions.end(session, "tested"), WAIT_S)
        assert len(sessions) == 0

    run(sessions, body)


@pytest.mark.parametrize("capacity", [None, "unlimited"])
def test_a_full_server_of_undeclared_environments_says_why_there_is_one_and_what_to_do(capacity: Any) -> None:
    sessions = sessions_of(Bare, max_concurrent_envs=capacity)

    async def body() -> None:
        await sessions.open("socket")
        with pytest.raises(CapacityError) as caught:
            await sessions.open("socket")
        for part in ("Bare does not declare SUPPORTS_CONCURRENT_SESSIONS", "disturb", "Close the other session"):
            assert part in str(caught.value)

    run(sessions, body)


def test_requests_that_hang_free_their_places_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openenv_gym_server.sessions.DEFAULT_REQUEST_TIMEOUT_S", 0.05)
    monkeypatch.setattr("openenv_gym_server.sessions.DEFAULT_QUESTION_TIMEOUT_S", 0.05)
    leave = threading.Event()
    sessions = sessions_of()

    def hang(_: object) -> None:
        assert leave.wait(WAIT_S)

    async def body() -> None:
        limit = Limit.step(sessions.settings)
        hung = [sessions.borrow(hang, limit) for _ in range(MAX_BORROWED)] + [sessions.ask(hang)]
        for error in await asyncio.gather(*hung, return_exceptions=True):
            assert isinstance(error, SessionEndedError)
            assert "reset_timeout_s, step_timeout_s" in str(error)
        assert sessions._borrowed.free == MAX_BORROWED
        leave.set()

    run(sessions, body)
    assert sessions._abandoned.free == MAX_ABANDONED


@pytest.mark.parametrize("lent", [False, True])
@pytest.mark.parametrize("awaited", [False, True])
def test_an_environment_that_cannot_be_hosted_is_closed_unless_it_is_lent(lent: bool, awaited: bool) -> None:
    closed: list[int] = []

    class Unhosted(Echo):
        @property
        def codec(self) -> Any:
            raise LookupError("no codec")

        def close(self) -> Any:
            async def close_later() -> None:
                closed.append(threading.get_ident())

            return close_later() if awaited else closed.append(threading.get_ident())

    sessions = sessions_of(Unhosted() if lent else Unhosted)

    async def body() -> None:
        with pytest.raises(EnvironmentFactoryError, match="no codec"):
            await sessions.open("socket")

    run(sessions, body)
    assert len(closed) == (0 if lent else 1)
    assert threading.get_ident() not in closed
    assert len(sessions) == 0
