"""One client and one CartPole: steps a second, JSON text frames, one thread a session on the server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import gymnasium

import openenv_gym  # noqa: F401  (registers the ids)
from benchmarks.pairs import Row, compare
from benchmarks.servers import event_loop, serving
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import connect

# One step's answer of CartPole, as long as the real ones.
_FRAME = (
    b'{"type":"observation","data":{"observation":{"obs":[0.0273956,-0.0061180,0.0358530,0.0197265]},"reward":1.0,'
    b'"done":false,"metadata":{"terminated":false,"truncated":false,"info":{}}},"id":12345}'
)


def run(pairs: int, seconds: float) -> list[Row]:
    """All rows of this group."""
    loop = event_loop()
    with contextlib.ExitStack() as stack:
        ours, stock, echo = (stack.enter_context(serving(kind)) for kind in ("ours", "stock", "echo"))
        remote = _remote_env(stack, ours, seconds)
        return [
            compare((f"CartPole, 1 env, thread ({loop})", *peer), remote, measure, pairs)
            for peer, measure in (
                (("stock async client + server", "steps/s", ("≥", 1.8)), lambda: _stock_async(stock, seconds)),
                (("stock sync client + server", "steps/s", ("≥", 1.8)), lambda: _stock_sync(stock, seconds)),
                (("bare WebSocket echo", "steps/s", ("≥", 0.35)), _echo(stack, echo, seconds)),
                (("env in process", "steps/s", None), lambda: _in_process(seconds)),
            )
        ]


def _steps(env: gymnasium.Env, seconds: float) -> float:
    """Steps a second of a loop that resets at each end."""
    actions = [index % 2 for index in range(64)]
    env.reset(seed=0)
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        steps += len(actions)
    return steps / elapsed


def _remote_env(stack: contextlib.ExitStack, url: str, seconds: float) -> Callable[[], float]:
    env = gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=url, disable_env_checker=True)
    stack.callback(env.close)
    return lambda: _steps(env, seconds)


def _in_process(seconds: float) -> float:
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    try:
        return _steps(env, seconds)
    finally:
        env.close()


def _echo(stack: contextlib.ExitStack, url: str, seconds: float) -> Callable[[], float]:
    transport = connect(url, ConnectionSettings())
    stack.callback(transport.close)

    def measure() -> float:
        trips, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            for _ in range(64):
                transport.send(_FRAME)
                transport.receive(60.0)
            trips += 64
        return trips / elapsed

    return measure


def _stock_async(url: str, seconds: float) -> float:
    from openenv.core import GenericEnvClient  # noqa: PLC0415

    async def measure() -> float:
        async with GenericEnvClient(base_url=url) as client:
            await client.reset(seed=0)
            steps, started = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - started) < seconds:
                for index in range(64):
                    result = await client.step({"action": index % 2})
                    if result.done:
                        await client.reset()
                steps += 64
            return steps / elapsed

    return asyncio.run(measure())


def _stock_sync(url: str, seconds: float) -> float:
    from openenv.core import GenericEnvClient  # noqa: PLC0415

    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(seed=0)
        steps, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            for index in range(64):
                result = client.step({"action": index % 2})
                if result.done:
                    client.reset()
            steps += 64
        return steps / elapsed
