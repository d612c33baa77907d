"""Calls of tools: one client that calls one tool again and again, in both modes, and many sessions at once."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Any

from openenv.core.mcp_client import MCPToolClient as StockToolClient

from benchmarks.clients import Watch
from benchmarks.pairs import Comparison, Measure, Row, Scale, alone, compare, rounds
from benchmarks.servers import event_loop, ours, peer
from openenv_gym.errors import OpenEnvGymError
from openenv_gym.mcp_client import MCPToolClient

_CALLS = 32
_TEXT = "Hello, world!"
_SESSIONS, _FEW = 200, 8


def run(scale: Scale) -> list[Row]:
    """All rows of this group."""
    loop, peers = event_loop(), "stock client + server"
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(ours("benchmarks.envs:tools", "--mode", "simulation")).url
        closed = stack.enter_context(ours("benchmarks.envs:tools", "--mode", "production")).url
        stock = _rate(StockToolClient, stack.enter_context(peer("stock-tools")).url, scale.seconds)
        simulation = _rate(functools.partial(MCPToolClient, mode="simulation"), url, scale.seconds)
        production = _rate(functools.partial(MCPToolClient, mode="production"), closed, scale.seconds)
        rows = [
            compare(Comparison(f"simulation ({loop})", peers, "calls/s", simulation, stock, ("≥", 4.0)), scale.pairs),
            compare(Comparison(f"production ({loop})", peers, "calls/s", production, stock, ("≥", 1.7)), scale.pairs),
        ]
        sessions = _FEW if scale.quick else _SESSIONS
        work = f"{sessions} sessions, half in each mode, {_CALLS} calls each: calls answered with their own value"
        answered = [asyncio.run(_crowd((url, closed), sessions)) for _ in rounds(scale.pairs, work)]
    return [*rows, alone(work, "%", answered, ("≥", 100))]


def _rate(make: Callable[..., Any], url: str, seconds: float) -> Measure:
    """Calls a second of one client, blocking; both packages' clients begin with a reset where they are told to."""

    def measure() -> float:
        with make(base_url=url).sync() as client:
            if not client.use_production_mode:
                client.reset()
            watch = Watch(seconds)
            while watch.running():
                for _ in range(_CALLS):
                    client.call_tool("echo", text=_TEXT)
                watch.steps += _CALLS
            return watch.pace().rate

    return measure


async def _crowd(urls: tuple[str, str], sessions: int) -> float:
    """So many sessions at once; percent of all calls that were answered, each with its own value."""
    modes = ("simulation", "production")
    good = await asyncio.gather(*(_visit(urls[each % 2], modes[each % 2], each) for each in range(sessions)))
    return 100.0 * sum(good) / (sessions * _CALLS)


async def _visit(url: str, mode: str, number: int) -> int:
    """Calls of one session that were answered; each names the session and the call, so that none is another's."""
    good = 0
    with contextlib.suppress(OpenEnvGymError):
        async with MCPToolClient(base_url=url, mode=mode) as client:
            if not client.use_production_mode:
                await client.reset()
            for count in range(_CALLS):
                text = f"{number} {count}"
                good += await client.call_tool("echo", text=text) == text
    return good
