"""Tests of ``openenv_gym_server.eviction``, and of full servers that end sessions by it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from openenv_gym.errors import CapacityError
from openenv_gym.messages import OpenSettings
from openenv_gym_server.errors import SessionNotFoundError
from openenv_gym_server.eviction import EVICTABLE_AFTER_S, MAX_REMEMBERED, EndedSessions, making_room
from openenv_gym_server.session import Session
from openenv_gym_server.sessions import Sessions
from openenv_gym_server.settings import ServerSettings
from tests.openenv_gym_server.climbing import calling, climber, server_of
from tests.openenv_gym_server.test_sessions import WAIT_S, run, sessions_of
from tests.text_envs import Echo

LONG = EVICTABLE_AFTER_S + 1


def left_alone(session: Session, seconds: float = LONG) -> Session:
    """The session, idle for so long."""
    session.active_at -= seconds
    return session


async def full(sessions: Sessions, *idle: float) -> list[Session]:
    """Kept sessions, one for each time of idleness."""
    return [left_alone(await sessions.open("kept"), seconds) for seconds in idle]


def playing(body: Callable[[Sessions], Awaitable[None]], env: Any = Echo, **settings: Any) -> Sessions:
    sessions = sessions_of(env, **settings)
    run(sessions, lambda: body(sessions))
    return sessions


def test_a_full_server_ends_the_kept_session_that_was_idle_longest() -> None:
    async def body(sessions: Sessions) -> None:
        kept = await full(sessions, LONG, LONG + 10, LONG + 5)
        await sessions.open("socket")
        assert [each.ending is not None for each in kept] == [False, True, False]
        with pytest.raises(SessionNotFoundError, match="ended to make room") as caught:
            sessions.kept(kept[1].id)
        assert str(caught.value).startswith(f"Unknown session_id: {kept[1].id} (it had been idle")
        assert len(sessions) == 3

    playing(body, max_concurrent_envs=3)


def test_a_server_with_room_ends_none() -> None:
    async def body(sessions: Sessions) -> None:
        (kept,) = await full(sessions, LONG)
        await sessions.open("socket")
        assert kept.ending is None

    playing(body, max_concurrent_envs=2)


@pytest.mark.parametrize("why", ["young", "attached", "socket"])
def test_a_session_that_is_in_use_is_not_ended_for_another(why: str) -> None:
    async def body(sessions: Sessions) -> None:
        session = await sessions.open("socket" if why == "socket" else "kept")
        session.attached = why == "attached"
        left_alone(session, EVICTABLE_AFTER_S - 10 if why == "young" else LONG)
        with pytest.raises(CapacityError):
            await sessions.open("kept")
        assert session.ending is None

    playing(body, max_concurrent_envs=1)


def test_a_session_whose_environment_is_at_work_is_not_ended_for_another() -> None:
    async def body(sessions: Sessions) -> None:
        leave = threading.Event()
        session = await sessions.open("kept")
        work = asyncio.ensure_future(session.run(lambda hosted: leave.wait(WAIT_S)))
        await asyncio.sleep(0)  # so that it is begun
        left_alone(session)
        with pytest.raises(CapacityError):
            await sessions.open("kept")
        leave.set()
        assert await work

    playing(body, max_concurrent_envs=1)


def test_as_many_are_ended_as_a_session_of_several_needs_or_none() -> None:
    async def body(sessions: Sessions) -> None:
        kept = await full(sessions, LONG, LONG + 1, LONG + 2, 0)
        with pytest.raises(CapacityError):
            await sessions.open("socket", OpenSettings(num_envs=4))
        with pytest.raises(CapacityError):
            await sessions.open("socket", OpenSettings(num_envs=9))
        assert not any(each.ending for each in kept)
        assert making_room(kept, 2) == [kept[2], kept[1]]
        await sessions.open("socket", OpenSettings(num_envs=2))
        assert [each.ending is not None for each in kept] == [False, True, True, False]

    playing(body, max_concurrent_envs=4)


def test_many_who_come_at_once_each_get_the_place_of_one() -> None:
    async def body(sessions: Sessions) -> None:
        kept = await full(sessions, LONG, LONG, LONG, 0)
        opened = await asyncio.gather(*(sessions.open("socket") for _ in range(5)), return_exceptions=True)
        assert [type(each) for each in opened].count(CapacityError) == 2
        assert [each.ending is not None for each in kept] == [True, True, True, False]

    playing(body, max_concurrent_envs=4)


def test_one_that_never_ends_does_not_keep_the_others_places_from_newcomers() -> None:
    leave = threading.Event()

    async def body(sessions: Sessions) -> None:
        stuck, idle = await full(sessions, 0, LONG)
        work = asyncio.ensure_future(stuck.run(lambda hosted: leave.wait(WAIT_S)))
        await asyncio.sleep(0)  # so that it is begun
        sessions.begin_end(stuck, "it was closed")
        await sessions.open("socket")
        assert idle.ending is not None
        leave.set()
        await work

    playing(body, max_concurrent_envs=2, close_timeout_s=0.1)


def test_of_a_session_that_nothing_is_known_of_it_is_said_that_it_is_unknown() -> None:
    async def body(sessions: Sessions) -> None:
        with pytest.raises(SessionNotFoundError) as caught:
            sessions.kept("x" * 100_000)
        assert str(caught.value) == f"Unknown session_id: {'x' * 200}"

    playing(body)


def test_only_so_many_ends_are_remembered() -> None:
    ended = EndedSessions()
    for number in range(MAX_REMEMBERED + 1):
        ended.add(str(number), "it was closed")
    assert ended.reason_of("0") is None
    assert ended.reason_of("1") == ended.reason_of(str(MAX_REMEMBERED)) == "it was closed"


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_a_client_over_mcp_is_told_why_its_session_is_gone(mode: str) -> None:
    server = server_of(climber(), ServerSettings(max_concurrent_envs=1))
    app = FastAPI()
    server.register_routes(app, mode)
    with TestClient(app) as client:

        def ask(method: str, **params: Any) -> Any:
            return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()

        lost = ask("openenv/session/create")["result"]["session_id"]
        assert ask("openenv/session/create")["error"]["data"] == {"active_sessions": 1, "max_sessions": 1}
        session = server._sessions.get(lost)
        assert session is not None
        left_alone(session)
        assert ask("openenv/session/create")["result"]["session_id"] != lost
        error = ask("tools/call", session_id=lost, **calling("climb")["params"])["error"]
        assert (error["code"], error["message"][:20]) == (-32602, "Unknown session_id: ")
        assert "to make room" in error["message"]
