"""One client and one CartPole: steps a second and CPU time, JSON text frames."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeAlias

import gymnasium

import openenv_gym  # noqa: F401  (registers the ids)
from benchmarks.clients import ACTIONS, Pace, Watch, gymnasium_loop, ours_async, ours_sync, stock_async, stock_sync
from benchmarks.pairs import Bound, Row, compare
from benchmarks.servers import event_loop, serving
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import connect

# One step's answer of CartPole, as long as the real ones.
_FRAME = (
    b'{"type":"observation","data":{"observation":{"obs":[0.0273956,-0.0061180,0.0358530,0.0197265]},"reward":1.0,'
    b'"done":false,"metadata":{"terminated":false,"truncated":false,"info":{}}},"id":12345}'
)

Client: TypeAlias = Callable[[str, float], Pace]
Measure: TypeAlias = Callable[[], float]
Comparison: TypeAlias = tuple[str, str, str, Bound | None, Measure, Measure]


def run(pairs: int, seconds: float) -> list[Row]:
    """All rows of this group."""
    with contextlib.ExitStack() as stack:
        urls = {kind: stack.enter_context(serving(kind)) for kind in ("thread", "inline", "stock", "echo")}

        def rate(client: Client, server: str) -> Measure:
            return lambda: client(urls[server], seconds).rate

        def cpu(client: Client, server: str) -> Measure:
            return lambda: client(urls[server], seconds).cpu_us

        thread, inline = (_remote_env(stack, urls[kind], seconds) for kind in ("thread", "inline"))
        floor = _echo(stack, urls["echo"], seconds)
        stock = rate(stock_async, "stock")
        stock_blocking = rate(stock_sync, "stock")
        cpu_of_stock = cpu(stock_async, "stock")
        cpu_of_stock_blocking = cpu(stock_sync, "stock")
        both, server, client = "stock client + server", "stock server", "stock client"
        comparisons: list[Comparison] = [
            ("env, thread", f"async {both}", "steps/s", ("≥", 1.8), thread, stock),
            ("env, thread", f"sync {both}", "steps/s", ("≥", 1.8), thread, stock_blocking),
            ("env, inline", f"async {both}", "steps/s", ("≥", 1.8), inline, stock),
            ("env, thread", "bare WebSocket echo", "steps/s", ("≥", 0.35), thread, floor),
            ("env, thread", "env in process", "steps/s", None, thread, lambda: _in_process(seconds)),
            ("stock async client, thread", server, "steps/s", ("≥", 1.3), rate(stock_async, "thread"), stock),
            ("stock async client, inline", server, "steps/s", ("≥", 1.3), rate(stock_async, "inline"), stock),
            ("stock sync client, thread", server, "steps/s", ("≥", 1.0), rate(stock_sync, "thread"), stock_blocking),
            ("stock sync client, inline", server, "steps/s", ("≥", 1.0), rate(stock_sync, "inline"), stock_blocking),
            ("sync client, stock server", client, "steps/s", ("≥", 1.0), rate(ours_sync, "stock"), stock_blocking),
            ("async client, stock server", client, "steps/s", None, rate(ours_async, "stock"), stock),
            ("sync client, stock server", client, "µs CPU", ("≤", 0.6), cpu(ours_sync, "stock"), cpu_of_stock_blocking),
            ("async client, stock server", client, "µs CPU", None, cpu(ours_async, "stock"), cpu_of_stock),
        ]
        loop = event_loop()
        return [
            compare((f"{work} ({loop})", against, unit, must), ours, theirs, pairs)
            for work, against, unit, must, ours, theirs in comparisons
        ]


def _remote_env(stack: contextlib.ExitStack, url: str, seconds: float) -> Measure:
    env = gymnasium.make("openenv/gym-v0", env_id="CartPole-v1", base_url=url, disable_env_checker=True)
    stack.callback(env.close)
    return lambda: gymnasium_loop(env, seconds).rate


def _in_process(seconds: float) -> float:
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    try:
        return gymnasium_loop(env, seconds).rate
    finally:
        env.close()


def _echo(stack: contextlib.ExitStack, url: str, seconds: float) -> Measure:
    transport = connect(url, ConnectionSettings())
    stack.callback(transport.close)

    def measure() -> float:
        watch = Watch(seconds)
        while watch.running():
            for _ in ACTIONS:
                transport.send(_FRAME)
                transport.receive(60.0)
            watch.steps += len(ACTIONS)
        return watch.pace().rate

    return measure
