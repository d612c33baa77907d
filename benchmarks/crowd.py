"""A crowd of open sessions on one server process, each stepping now and then: success, latency, memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

import numpy as np

import openenv_gym
from benchmarks.pairs import Comparison, Row, Scale, alone, rounds, row_of
from benchmarks.servers import Server, event_loop, ours
from openenv_gym.errors import OpenEnvGymError

T = TypeVar("T")

_FEW, _MANY = 64, 2048
_STEPS_A_SECOND = 1700
_OPENING_AT_ONCE = 32


class Visit(NamedTuple):
    """What was seen of one crowd.

    Attributes:
        success: percent of all requests, openings and resets included, that got their answer.
        p99_ms: 99 of 100 steps took at most so long, from the time they were due.
        kb_a_session: growth of the server's memory by a session, in kB.
    """

    success: float
    p99_ms: float
    kb_a_session: float


def run(scale: Scale) -> list[Row]:
    """All rows of this group."""
    many, rate = (_FEW + 8, 200) if scale.quick else (_MANY, _STEPS_A_SECOND)
    seconds = scale.seconds if scale.quick else max(10.0, scale.seconds)
    pairs = [
        (visit(many, rate, seconds), visit(_FEW, rate, scale.seconds)) for _ in rounds(scale.pairs, f"{many} sessions")
    ]
    crowd = [big for big, _ in pairs]
    name = f"{many} sessions, {rate} steps/s in all, INLINE ({event_loop()})"
    memory = Comparison(name, f"{_FEW} sessions", "kB/session", ours=_unused, theirs=_unused, must=("≤", 1.0))
    return [
        alone(f"{name}: requests that succeed", "%", (one.success for one in crowd), ("≥", 99.9)),
        alone(f"{name}: p99 of a step", "ms", (one.p99_ms for one in crowd), ("≤", 20), 10),
        alone(f"{name}: memory", "kB/session", (one.kb_a_session for one in crowd), ("≤", 120)),
        row_of(memory, ((big.kb_a_session, small.kb_a_session) for big, small in pairs)),
    ]


def visit(sessions: int, rate: float, seconds: float) -> Visit:
    """Open so many sessions on a new server and step them at a rate, all together."""
    with ours("CartPole-v1") as server:
        return asyncio.run(_visit(server, sessions, rate, seconds))


async def _visit(server: Server, sessions: int, rate: float, seconds: float) -> Visit:
    # The first session loads what all the others share.
    async with openenv_gym.GenericEnvClient(base_url=server.url) as first:
        await first.reset(seed=0)
        await first.step({"action": 0})
    before = server.memory_kb
    crowd = _Crowd(server.url, sessions)
    try:
        await crowd.enter()
        await crowd.play(rate, seconds)
        after = server.memory_kb
    finally:
        await crowd.leave()
    return Visit(crowd.success, crowd.p99_ms, (after - before) / sessions)


class _Crowd:
    """Clients on one event loop.

    Args:
        url: the server.
        sessions: how many.
    """

    def __init__(self, url: str, sessions: int) -> None:
        self._clients = [openenv_gym.GenericEnvClient(base_url=url) for _ in range(sessions)]
        self._requests = self._failures = 0
        self._latencies_s: list[float] = []

    @property
    def success(self) -> float:
        return 100.0 * (1 - self._failures / self._requests)

    @property
    def p99_ms(self) -> float:
        return float(np.percentile(self._latencies_s, 99)) * 1e3

    async def enter(self) -> None:
        """Open all sessions, some at a time."""
        places = asyncio.Semaphore(_OPENING_AT_ONCE)

        async def one(client: openenv_gym.GenericEnvClient) -> None:
            async with places:
                await self._counted(client.connect())
                await self._counted(client.reset(seed=0))

        await asyncio.gather(*map(one, self._clients))

    async def play(self, rate: float, seconds: float) -> None:
        """Step one session after another; a step is due at its time, however late the ones before it are."""
        began, sent = time.perf_counter(), 0
        under_way: set[asyncio.Task[None]] = set()
        while (passed := time.perf_counter() - began) < seconds:
            while sent < passed * rate:
                client = self._clients[sent % len(self._clients)]
                task = asyncio.create_task(self._step(client, sent, began + sent / rate))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                sent += 1
            await asyncio.sleep(0.001)
        await asyncio.gather(*under_way)

    async def _step(self, client: openenv_gym.GenericEnvClient, number: int, due: float) -> None:
        result = await self._counted(client.step({"action": number // len(self._clients) % 2}))
        if result is None:
            return
        self._latencies_s.append(time.perf_counter() - due)
        if result.done:
            await self._counted(client.reset())

    async def _counted(self, request: Awaitable[T]) -> T | None:
        """The answer; None where there is none."""
        self._requests += 1
        try:
            return await request
        except OpenEnvGymError:
            self._failures += 1
            return None

    async def leave(self) -> None:
        """Close all sessions."""
        for client in self._clients:
            with contextlib.suppress(OpenEnvGymError):
                await client.close()


def _unused() -> float:
    raise AssertionError("the pairs are measured by visit()")
