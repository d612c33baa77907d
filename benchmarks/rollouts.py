"""The clients that are measured, many sessions each: vectors of environments, and the stock package's own clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from openenv.core import GenericEnvClient as StockClient

import openenv_gym  # noqa: F401  (registers the ids)
from benchmarks.clients import Pace, Watch
from benchmarks.peers import SIZES, receive_into

_ACTIONS = 16


@contextlib.contextmanager
def remote(url: str, num_envs: int, **settings: Any) -> Iterator[Any]:
    """This project's vector of environments on one server."""
    envs = gymnasium.make_vec("openenv/remote-v0", num_envs=num_envs, base_url=url, **settings)
    try:
        yield envs
    finally:
        envs.close()


@contextlib.contextmanager
def local(num_envs: int, vectorization: str) -> Iterator[VectorEnv]:
    """A vector of CartPoles in this process, or in one process each (``"async"``)."""
    envs = gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode=vectorization)
    try:
        yield envs
    finally:
        envs.close()


def lockstep(envs: VectorEnv, seconds: float) -> Pace:
    """The loop of a learner: a step of all environments, and then the next."""
    actions = _actions(envs.num_envs)
    envs.reset(seed=0)
    watch = Watch(seconds)
    index = 0
    while watch.running():
        envs.step(actions[index % _ACTIONS])
        index += 1
        watch.steps += envs.num_envs
    return watch.pace()


def at_half(envs: Any, seconds: float) -> Pace:
    """The loop of a learner that goes on as soon as half of the environments have answered."""
    actions = _actions(envs.num_envs)[0]
    envs.reset(seed=0)
    watch = Watch(seconds)
    envs.send(actions, np.arange(envs.num_envs))
    while watch.running():
        env_ids = envs.recv(min_envs=envs.num_envs // 2)[-1]
        watch.steps += len(env_ids)
        envs.send(actions[env_ids], env_ids)
    pace = watch.pace()
    waiting = envs.num_envs
    while waiting:
        waiting -= len(envs.recv(min_envs=1)[-1])
    return pace


def _actions(num_envs: int) -> Any:
    return np.random.default_rng(0).integers(0, 2, (_ACTIONS, num_envs))


class StockClients:
    """Asynchronous clients of the stock package on one event loop (asyncio's).

    Args:
        url: the server.
        count: how many.
    """

    def __init__(self, url: str, count: int) -> None:
        self._runner = asyncio.Runner()
        self._clients = [StockClient(base_url=url) for _ in range(count)]
        self._runner.run(self._all("connect"))

    def each_for_itself(self, seconds: float) -> Pace:
        """Let each step as fast as it can: the most that they can do."""
        return self._runner.run(self._measure(self._each_for_itself, seconds))

    def lockstep(self, seconds: float) -> Pace:
        """Step all, and then again: what a learner does that has one batch a step."""
        return self._runner.run(self._measure(self._lockstep, seconds))

    async def _measure(self, loop: Callable[[Watch], Awaitable[None]], seconds: float) -> Pace:
        await asyncio.gather(*(client.reset(seed=index) for index, client in enumerate(self._clients)))
        watch = Watch(seconds)
        await loop(watch)
        return watch.pace()

    async def _each_for_itself(self, watch: Watch) -> None:
        async def play(client: Any) -> None:
            action = 0
            while watch.running():
                action = 1 - action
                await _step(client, action)
                watch.steps += 1

        await asyncio.gather(*map(play, self._clients))

    async def _lockstep(self, watch: Watch) -> None:
        action = 0
        while watch.running():
            action = 1 - action
            await asyncio.gather(*(_step(client, action) for client in self._clients))
            watch.steps += len(self._clients)

    async def _all(self, method: str) -> None:
        await asyncio.gather(*(getattr(client, method)() for client in self._clients))

    def close(self) -> None:
        """Close all."""
        self._runner.run(self._all("close"))
        self._runner.close()


async def _step(client: Any, action: int) -> None:
    if (await client.step({"action": action})).done:
        await client.reset()


class RawSocket:
    """A socket that moves the bytes of a vector's steps and does nothing else.

    Args:
        url: the server, ``python -m benchmarks.peers raw``.
        num_envs: how many environments' steps one message is worth.
        sizes: the bytes of a request and of its answer.
    """

    def __init__(self, url: str, num_envs: int, sizes: tuple[int, int]) -> None:
        self._num_envs = num_envs
        self._request, self._answer = bytes(sizes[0]), memoryview(bytearray(sizes[1]))
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(SIZES.pack(*sizes))

    def measure(self, seconds: float) -> Pace:
        """Move them for so long."""
        watch = Watch(seconds)
        while watch.running():
            self._socket.sendall(self._request)
            receive_into(self._socket, self._answer)
            watch.steps += self._num_envs
        return watch.pace()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
