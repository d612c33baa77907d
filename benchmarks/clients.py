"""The clients that are measured, one session each: a loop of steps that resets at each end.

All give the rate and the CPU time of this process. ``rollouts.py`` has those of many sessions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
from openenv.core import GenericEnvClient as StockClient

import openenv_gym

ACTIONS = [index % 2 for index in range(64)]


class Pace(NamedTuple):
    """How fast a client went.

    Attributes:
        rate: steps a second, of all its environments together.
        cpu_us: microseconds of CPU time a step, of the client's process alone.
    """

    rate: float
    cpu_us: float


class Watch:
    """Wall and CPU time of a loop."""

    def __init__(self, seconds: float) -> None:
        self.steps = 0
        self._seconds = seconds
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def running(self) -> bool:
        """Whether there is time left."""
        return time.perf_counter() - self._wall < self._seconds

    def pace(self) -> Pace:
        """How fast the steps went that were counted."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Pace(self.steps / wall, cpu / self.steps * 1e6)


def gymnasium_loop(env: gymnasium.Env, seconds: float) -> Pace:
    """The loop of a Gymnasium user."""
    env.reset(seed=0)
    watch = Watch(seconds)
    while watch.running():
        for action in ACTIONS:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        watch.steps += len(ACTIONS)
    return watch.pace()


def sync_loop(client: Any, seconds: float) -> Pace:
    """The loop of OpenEnv's synchronous API, for either package's client."""
    client.reset(seed=0)
    watch = Watch(seconds)
    while watch.running():
        for action in ACTIONS:
            if client.step({"action": action}).done:
                client.reset()
        watch.steps += len(ACTIONS)
    return watch.pace()


async def async_loop(client: Any, seconds: float) -> Pace:
    """The loop of OpenEnv's asynchronous API, for either package's client."""
    await client.reset(seed=0)
    watch = Watch(seconds)
    while watch.running():
        for action in ACTIONS:
            if (await client.step({"action": action})).done:
                await client.reset()
        watch.steps += len(ACTIONS)
    return watch.pace()


def stock_sync(url: str, seconds: float) -> Pace:
    """OpenEnv's own client, synchronous."""
    with StockClient(base_url=url).sync() as client:
        return sync_loop(client, seconds)


def ours_sync(url: str, seconds: float) -> Pace:
    """This project's client, synchronous."""
    with openenv_gym.GenericEnvClient(base_url=url).sync() as client:
        return sync_loop(client, seconds)


def stock_async(url: str, seconds: float) -> Pace:
    """OpenEnv's own client, asynchronous."""
    return _on_a_loop(StockClient, url, seconds)


def ours_async(url: str, seconds: float) -> Pace:
    """This project's client, asynchronous."""
    return _on_a_loop(openenv_gym.GenericEnvClient, url, seconds)


def _on_a_loop(make: Callable[..., Any], url: str, seconds: float) -> Pace:
    async def measure() -> Pace:
        async with make(base_url=url) as client:
            return await async_loop(client, seconds)

    return asyncio.run(measure())
