"""``pool`` when it ends early: iterations that are left, consumers that are cancelled, and ``close``."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from openenv_gym import client_pool
from openenv_gym.errors import SessionLostError, SessionStateError
from tests.openenv_gym.talking import gate, serve_talk
from tests.openenv_gym.test_client_pool import run, say, talk_pool, until


def test_leaving_the_iteration_cancels_what_is_under_way():
    async def play(url):
        async def rollout(client, word):
            await client.reset()
            return (await client.step(word)).observation

        async with talk_pool(url) as clients:
            with gate("held") as arrived:
                async with contextlib.aclosing(clients.map(rollout, ["a", "wait held"])) as results:
                    assert await anext(results) == "a"
                    await until(arrived.is_set)
                await until(lambda: clients.stats.in_use == 0)
                assert clients.stats.failed == 1

    with serve_talk("ours") as url:
        run(play(url))


def test_cancelling_the_consumer_cancels_the_rollouts():
    async def play(url):
        begun, ended = [], []

        async def rollout(client, task):
            await client.reset()
            begun.append(task)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(task)

        async def consume(clients):
            async for _ in clients.map(rollout, range(2)):
                pass

        async with talk_pool(url, max_sessions=2) as clients:
            task = asyncio.create_task(consume(clients))
            await until(lambda: len(begun) == 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert sorted(ended) == [0, 1]

    with serve_talk("ours") as url:
        run(play(url))


def test_closing_ends_rollouts_wherever_they_are():
    async def play(url):
        async def hang(client, task):
            await client.reset()
            await client.step("wait for_ever")

        async def block(clients):
            async with clients.session() as client:
                await client.reset()
                await client.step("wait for_ever")

        async def consume(clients):
            async for _ in clients.map(hang, range(3)):
                pass

        clients = talk_pool(url, max_sessions=4)
        with gate("for_ever") as arrived:
            consumer, blocked = asyncio.create_task(consume(clients)), asyncio.create_task(block(clients))
            await until(arrived.is_set)
            await until(lambda: clients.stats.in_use == 4)
            late = asyncio.create_task(block(clients))
            await until(lambda: clients.stats.waiting == 1)
            await clients.close()
            for task, kind in ((consumer, SessionStateError), (blocked, SessionLostError), (late, SessionStateError)):
                with pytest.raises(kind):
                    await task
        await clients.close()
        with pytest.raises(SessionStateError):
            await anext(clients.map(say, "a"))
        assert clients.stats.in_use + clients.stats.idle + clients.stats.waiting == 0

    with serve_talk("ours") as url:
        run(play(url))


def test_a_rollout_that_does_not_let_itself_be_cancelled_is_left_behind(monkeypatch):
    monkeypatch.setattr(client_pool, "_CANCEL_TIMEOUT_S", 0.05)

    async def play(url):
        release = asyncio.Event()

        begun = asyncio.Event()

        async def stubborn(client, task):
            await client.reset()
            begun.set()
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
            return task

        clients = talk_pool(url)
        result = asyncio.ensure_future(anext(clients.map(stubborn, [1])))
        await begun.wait()
        await clients.close()
        assert not result.done()
        release.set()
        assert await result == 1
        await until(lambda: clients.stats.in_use == 0)

    with serve_talk("ours") as url:
        run(play(url))


def test_a_pool_can_be_closed_by_one_of_its_rollouts():
    async def play(url):
        async def rollout(client, task):
            await clients.close()
            return "closed"

        clients = talk_pool(url)
        assert await anext(clients.map(rollout, [1])) == "closed"

    with serve_talk("ours") as url:
        run(play(url))
