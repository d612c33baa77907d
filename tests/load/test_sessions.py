"""Many sessions at once on one real server: each has its own environment and thread, and disturbs no other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from openenv_gym.types import Action, ConcurrencyConfig, Observation
from openenv_gym_server.app import HTTPEnvServer
from openenv_gym_server.environment import Environment
from openenv_gym_server.settings import ServerSettings
from tests.serving import serve
from tests.sockets import until

WAIT_S = 30.0
SESSIONS = 200
STEPS = 5


class Say(Action):
    message: str


class Heard(Observation):
    said: list[str]
    thread: int


class Diary(Environment[Say, Heard, Any]):
    """Keeps what it was told and on which threads; on request it hangs or raises."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    made: list[Diary]
    hanging: threading.Semaphore
    leave: threading.Event

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.threads: list[tuple[str, int]] = []
        self._note("create")
        self.made.append(self)

    def reset(self, seed: int | None = None) -> Heard:
        self._note("reset")
        self.said.clear()
        return self._heard()

    def step(self, action: Say) -> Heard:
        self._note("step")
        if action.message == "hang":
            self.hanging.release()
            assert self.leave.wait(WAIT_S)
        if action.message == "raise":
            raise ArithmeticError("as asked for")
        self.said.append(action.message)
        return self._heard()

    @property
    def state(self) -> dict[str, Any]:
        self._note("state")
        return {"episode_id": None, "step_count": len(self.said), "said": list(self.said)}

    def close(self) -> None:
        self._note("close")

    def _note(self, what: str) -> None:
        self.threads.append((what, threading.get_ident()))

    def _heard(self) -> Heard:
        return Heard(said=list(self.said), thread=threading.get_ident(), reward=1.0)


@pytest.fixture
def diary() -> type[Diary]:
    """A fresh class, so that what one test leaves behind is no other's."""
    return type("Diary", (Diary,), {"made": [], "hanging": threading.Semaphore(0), "leave": threading.Event()})


class Peer:
    """A bare client of one session."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        await self.socket.send(json.dumps({"type": kind, **fields}))
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            return json.loads(await self.socket.recv())["data"]

    async def say(self, message: str) -> dict[str, Any]:
        return await self.ask("step", data={"message": message})


@contextlib.asynccontextmanager
async def peers_of(url: str, count: int) -> AsyncIterator[list[Peer]]:
    async with contextlib.AsyncExitStack() as stack:

        async def open_one() -> Peer:
            address = url.replace("http", "ws", 1) + "/ws"
            socket = connect(address, compression=None, proxy=None, open_timeout=WAIT_S, ping_interval=None)
            return Peer(await stack.enter_async_context(socket))

        yield await all_of(open_one() for _ in range(count))


async def all_of(work: Iterable[Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*work)


def test_two_hundred_sessions_keep_to_their_own_environments_and_threads(diary: type[Diary]) -> None:
    app, server = serving_diary(diary, max_concurrent_envs=SESSIONS)

    async def play(number: int, peer: Peer) -> int:
        for episode in range(2):
            assert (await peer.ask("reset"))["observation"]["said"] == []
            said: list[str] = []
            for step in range(STEPS):
                said.append(f"{number}/{episode}/{step}")
                answer = await peer.say(said[-1])
                assert answer["observation"]["said"] == said
            assert (await peer.ask("state"))["said"] == said
        return answer["observation"]["thread"]

    async def main() -> list[int]:
        async with peers_of(url, SESSIONS) as peers:
            return await all_of(play(number, peer) for number, peer in enumerate(peers))

    with serve(app) as url:
        threads = asyncio.run(main())
        until(lambda: server.active_sessions == 0)
    assert len(set(threads)) == SESSIONS
    # The server may ask for the state more often than the client does, but never from elsewhere.
    calls = ["create", *(["reset"] + ["step"] * STEPS) * 2, "close"]
    assert [[what for what, _ in env.threads if what != "state"] for env in diary.made] == [calls] * SESSIONS
    assert {len({thread for _, thread in env.threads}) for env in diary.made} == {1}
    assert all("state" in dict(env.threads) for env in diary.made)


def test_sessions_that_hang_or_raise_touch_no_other(diary: type[Diary]) -> None:
    app, _ = serving_diary(diary, max_concurrent_envs=40)

    async def main() -> None:
        async with peers_of(url, 40) as peers:
            await all_of(peer.ask("reset") for peer in peers)
            hanging, raising, playing = peers[:10], peers[10:20], peers[20:]
            waiting = [asyncio.create_task(peer.say("hang")) for peer in hanging]
            for _ in hanging:
                assert await asyncio.to_thread(diary.hanging.acquire, timeout=WAIT_S)
            for step in range(STEPS):
                failures = all_of(peer.say("raise") for peer in raising)
                answers = await all_of(peer.say(f"{number} {step}") for number, peer in enumerate(playing))
                assert {failure["code"] for failure in await failures} == {"EXECUTION_ERROR"}
                for number, answer in enumerate(answers):
                    assert answer["observation"]["said"] == [f"{number} {each}" for each in range(step + 1)]
            assert not any(task.done() for task in waiting)
            diary.leave.set()
            assert {tuple(answer["observation"]["said"]) for answer in await all_of(waiting)} == {("hang",)}
            assert {(await peer.say("on"))["reward"] for peer in raising} == {1.0}

    with serve(app) as url:
        asyncio.run(main())


def test_of_racing_clients_exactly_as_many_as_fit_get_a_session(diary: type[Diary]) -> None:
    app, server = serving_diary(diary, max_concurrent_envs=8)

    async def main() -> None:
        for _ in range(5):
            async with peers_of(url, 40) as peers:
                answers = await all_of(outcome(peer) for peer in peers)
                refused = [answer for answer in answers if "code" in answer]
                assert len(answers) - len(refused) == 8
                assert {(each["code"], each["active_sessions"], each["max_sessions"]) for each in refused} == {
                    ("CAPACITY_REACHED", 8, 8)
                }
                assert server.get_capacity_status().is_at_capacity

    async def outcome(peer: Peer) -> dict[str, Any]:
        # A full server may have closed before the question; its refusal is read first in any case.
        with contextlib.suppress(ConnectionClosed):
            await peer.socket.send('{"type":"reset"}')
        return await peer.hear()

    with serve(app) as url:
        asyncio.run(main())
        until(lambda: server.active_sessions == 0)


def test_idle_sessions_end_and_those_at_work_do_not(diary: type[Diary]) -> None:
    """Over sockets, and over HTTP, where a session has no socket that would show that its client is there."""
    app, server = serving_diary(diary, ServerSettings(session_timeout_s=0.2))

    async def main() -> None:
        async with peers_of(url, 20) as peers, httpx.AsyncClient(base_url=url, timeout=WAIT_S) as http:
            begun = await all_of(http.post("/reset", headers={"X-OpenEnv-Session": "new"}) for _ in range(4))
            names = [{"X-OpenEnv-Session": answer.headers["X-OpenEnv-Session"]} for answer in begun]
            at_work = [asyncio.create_task(peer.say("hang")) for peer in peers[:10]]
            body = {"action": {"message": "hang"}}
            at_work += [asyncio.create_task(http.post("/step", json=body, headers=name)) for name in names[:2]]
            for _ in at_work:
                assert await asyncio.to_thread(diary.hanging.acquire, timeout=WAIT_S)
            farewells = await all_of(peer.hear() for peer in peers[10:])
            assert {farewell["code"] for farewell in farewells} == {"SESSION_ERROR"}
            await asyncio.to_thread(until, lambda: server.active_sessions == len(at_work))
            assert [(await http.get("/state", headers=name)).status_code for name in names[2:]] == [404, 404]
            assert not any(task.done() for task in at_work)
            diary.leave.set()
            *spoken, first, second = await all_of(at_work)
            assert {tuple(answer["observation"]["said"]) for answer in spoken} == {("hang",)}
            assert [answer.json()["observation"]["said"] for answer in (first, second)] == [["hang"], ["hang"]]

    with serve(app) as url:
        asyncio.run(main())
        until(lambda: server.active_sessions == 0)


def test_a_concurrency_config_sets_capacity_and_idle_time(diary: type[Diary]) -> None:
    config = ConcurrencyConfig(max_concurrent_envs=3, session_timeout=0.5)
    app, server = serving_diary(diary, concurrency_config=config)
    assert server.concurrency_config == config

    async def main() -> None:
        async with peers_of(url, 3) as peers:
            await all_of(peer.ask("reset") for peer in peers)
            status = server.get_capacity_status()
            assert (status.active_sessions, status.max_sessions, status.available_slots) == (3, 3, 0)
            async with peers_of(url, 1) as [fourth]:
                assert (await fourth.hear())["code"] == "CAPACITY_REACHED"
            assert {(await peer.hear())["code"] for peer in peers} == {"SESSION_ERROR"}
        await asyncio.to_thread(until, lambda: server.get_capacity_status().available_slots == 3)

    with serve(app) as url:
        asyncio.run(main())


def serving_diary(env: type[Diary], settings: ServerSettings | None = None, **more: Any) -> tuple[Any, Any]:
    server = HTTPEnvServer(env, Say, Heard, settings=settings, **more)
    app = FastAPI()
    server.register_routes(app)
    return app, server
