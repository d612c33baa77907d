"""Tests of ``openenv_gym_server.reaper``; what becomes of real sessions is tested with ``sessions.py``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openenv_gym_server.reaper import Reaper
from openenv_gym_server.session import Session
from openenv_gym_server.settings import ServerSettings
from openenv_gym_server.worker import Worker

WAIT_S = 10.0


class Idle(Session):
    """A session that is idle whenever it is asked."""

    def idle_for(self, seconds: float) -> bool:
        self.asked = seconds
        return True


@pytest.fixture
def worker() -> Any:
    worker = Worker("reaper-test")
    yield worker
    worker.stop()
    assert worker.join(WAIT_S)


def run(sessions: list[Session], settings: ServerSettings, told: asyncio.Event | None = None) -> list[tuple[str, str]]:
    """Have the reaper end what it ends, until no session is left, and until a peer was told where one is to be."""
    ended: list[tuple[str, str]] = []

    async def main() -> None:
        gone = asyncio.Event()

        def end(session: Session, reason: str) -> None:
            ended.append((session.id, reason))
            sessions.remove(session)
            session.ending = reason
            gone.set()

        reaper = Reaper(settings, lambda: list(sessions), end)
        reaper.watch()
        reaper.watch()  # again is harmless
        assert sum(task.get_name() == "openenv-reaper" for task in asyncio.all_tasks()) == 1
        await asyncio.wait_for(gone.wait(), WAIT_S)
        if told is not None:
            await asyncio.wait_for(told.wait(), WAIT_S)
        await reaper.stop()
        await reaper.stop()

    asyncio.run(main())
    return ended


def test_a_session_that_is_idle_for_too_long_is_ended_and_told(worker: Worker) -> None:
    settings = ServerSettings(session_timeout_s=0.05)
    session = Idle("one", "socket", worker, settings)
    told: list[str] = []
    heard = asyncio.Event()

    async def farewell(reason: str) -> None:
        told.append(reason)
        heard.set()

    session.farewell = farewell
    (ended,) = run([session], settings, heard)
    assert ended == ("one", told[0])
    assert told == ["Session one was idle for more than 0.05 s and has ended"]
    assert session.asked == 0.05


def test_a_peer_that_takes_no_farewell_holds_nobody_up(worker: Worker) -> None:
    settings = ServerSettings(session_timeout_s=0.05, close_timeout_s=3600)
    deaf, other = Idle("deaf", "socket", worker, settings), Idle("other", "socket", worker, settings)

    async def farewell(reason: str) -> None:
        await asyncio.Event().wait()

    deaf.farewell = farewell
    ended: list[str] = []

    async def main() -> None:
        both = asyncio.Event()
        sessions: list[Session] = [deaf, other]

        def end(session: Session, reason: str) -> None:
            session.ending = reason
            ended.append(session.id)
            if len(ended) == 2:
                both.set()

        reaper = Reaper(settings, lambda: list(sessions), end)
        reaper.watch()
        await asyncio.wait_for(both.wait(), WAIT_S)
        await reaper.stop()

    asyncio.run(main())
    assert ended == ["deaf", "other"]


def test_peers_that_take_no_farewell_are_waited_for_all_at_once_and_given_up(worker: Worker) -> None:
    settings = ServerSettings(session_timeout_s=0.05, close_timeout_s=0.05)
    begun: list[str] = []
    given_up: list[str] = []

    async def main() -> None:
        all_given_up = asyncio.Event()

        def deaf(name: str) -> Idle:
            async def farewell(reason: str) -> None:
                begun.append(name)
                try:
                    await asyncio.Event().wait()
                finally:
                    given_up.append(str(len(begun)))
                    if len(given_up) == 3:
                        all_given_up.set()

            session = Idle(name, "socket", worker, settings)
            session.farewell = farewell
            return session

        def end(session: Session, reason: str) -> None:
            session.ending = reason

        sessions: list[Session] = [deaf(name) for name in "abc"]
        reaper = Reaper(settings, lambda: list(sessions), end)
        reaper.watch()
        await asyncio.wait_for(all_given_up.wait(), WAIT_S)
        await reaper.stop()

    asyncio.run(main())
    assert begun == ["a", "b", "c"]
    assert given_up == ["3", "3", "3"]


@pytest.mark.parametrize(
    ("kind", "attached", "timeout_s", "watched"),
    [
        ("socket", False, None, False),
        ("socket", False, 5.0, True),
        ("kept", False, None, True),
        ("kept", True, None, False),
    ],
)
def test_only_sessions_that_can_be_idle_for_too_long_are_watched(
    worker: Worker, kind: Any, attached: bool, timeout_s: float | None, watched: bool
) -> None:
    settings = ServerSettings(session_timeout_s=timeout_s)
    session = Session("one", kind, worker, settings)
    session.attached = attached

    async def tasks() -> int:
        reaper = Reaper(settings, lambda: [session], lambda *_: None)
        reaper.watch()
        found = sum(task.get_name() == "openenv-reaper" for task in asyncio.all_tasks())
        await reaper.stop()
        return found

    assert asyncio.run(tasks()) == int(watched)
