"""One client and one CartPole: steps a second, and the client's CPU time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import gymnasium

import openenv_gym  # noqa: F401  (registers the ids)
from benchmarks.clients import ACTIONS, Pace, Watch, gymnasium_loop, ours_async, ours_sync, stock_async, stock_sync
from benchmarks.pairs import Bound, Comparison, Measure, Row, Scale, compare
from benchmarks.servers import event_loop, ours, peer
from openenv_gym.transports.base import ConnectionSettings
from openenv_gym.transports.blocking import connect

# One step's answer of CartPole, as long as the real ones.
_FRAME = (
    b'{"type":"observation","data":{"observation":{"obs":[0.0273956,-0.0061180,0.0358530,0.0197265]},"reward":1.0,'
    b'"done":false,"metadata":{"terminated":false,"truncated":false,"info":{}}},"id":12345}'
)

Client: TypeAlias = Callable[[str, float], Pace]


def run(scale: Scale) -> list[Row]:
    """All rows of this group."""
    seconds = scale.seconds
    with contextlib.ExitStack() as stack:
        urls = {
            "thread": stack.enter_context(ours("benchmarks.envs:thread_cartpole")).url,
            "INLINE": stack.enter_context(ours("CartPole-v1")).url,
            "stock": stack.enter_context(peer("stock")).url,
            "echo": stack.enter_context(peer("echo")).url,
        }

        def rate(client: Client, server: str) -> Measure:
            return lambda: client(urls[server], seconds).rate

        def cpu(client: Client, server: str) -> Measure:
            return lambda: client(urls[server], seconds).cpu_us

        thread, inline = (_remote_env(stack, urls[kind], seconds) for kind in ("thread", "INLINE"))
        floor = _echo(stack, urls["echo"], seconds)
        stock = rate(stock_async, "stock")
        stock_blocking = rate(stock_sync, "stock")
        cpu_of_stock = cpu(stock_async, "stock")
        cpu_of_stock_blocking = cpu(stock_sync, "stock")
        both, server, client = "stock client + server", "stock server", "stock client"
        ours_blocking, ours_awaiting = (f"{kind} client, stock server" for kind in ("sync", "async"))
        cpu_unit = "µs CPU/step"
        stock_clients: list[tuple[str, Client, Measure, Bound]] = [
            ("async", stock_async, stock, ("≥", 1.3)),
            ("sync", stock_sync, stock_blocking, ("≥", 1.0)),
        ]
        comparisons = [
            Comparison("1 env, thread", f"async {both}", "steps/s", thread, stock, ("≥", 2.2), 4),
            Comparison("1 env, INLINE", f"async {both}", "steps/s", inline, stock, ("≥", 3.0), 4),
            Comparison("1 env, thread", f"sync {both}", "steps/s", thread, stock_blocking, ("≥", 2.2)),
            Comparison("1 env, thread", "bare WebSocket echo", "steps/s", thread, floor, ("≥", 0.35)),
            Comparison("1 env, INLINE", "bare WebSocket echo", "steps/s", inline, floor),
            Comparison("1 env, thread", "env in process", "steps/s", thread, lambda: _in_process(seconds)),
            *(
                Comparison(f"stock {kind} client, {place}", server, "steps/s", rate(client_of, place), peer_of, must)
                for kind, client_of, peer_of, must in stock_clients
                for place in ("thread", "INLINE")
            ),
            Comparison(ours_blocking, client, "steps/s", rate(ours_sync, "stock"), stock_blocking, ("≥", 1.0)),
            Comparison(ours_awaiting, client, "steps/s", rate(ours_async, "stock"), stock),
            Comparison(ours_blocking, client, cpu_unit, cpu(ours_sync, "stock"), cpu_of_stock_blocking, ("≤", 0.6)),
            Comparison(ours_awaiting, client, cpu_unit, cpu(ours_async, "stock"), cpu_of_stock),
        ]
        loop = event_loop()
        return [compare(dataclasses.replace(each, work=f"{each.work} ({loop})"), scale.pairs) for each in comparisons]


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
