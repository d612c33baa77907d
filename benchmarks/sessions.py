"""Many sessions from one client: on a stock server against its own clients, and with stragglers among them."""

from __future__ import annotations

import contextlib

from benchmarks.pairs import Comparison, Row, Scale, compare
from benchmarks.rollouts import StockClients, at_half, lockstep, remote
from benchmarks.servers import event_loop, ours, peer


def run_on_stock(scale: Scale) -> list[Row]:
    """The rows of a vector of environments on a stock server."""
    count = 4 if scale.quick else 16
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(peer("stock")).url
        envs = stack.enter_context(remote(url, count))
        clients = StockClients(url, count)
        stack.callback(clients.close)
        work = f"{count} sessions on a stock server, lockstep ({event_loop()})"
        against, free = f"{count} stock async clients, lockstep", f"{count} stock async clients, each for itself"
        seconds = scale.seconds

        def rate() -> float:
            return lockstep(envs, seconds).rate

        def cpu() -> float:
            return lockstep(envs, seconds).cpu_us

        comparisons = [
            Comparison(work, against, "steps/s", rate, lambda: clients.lockstep(seconds).rate, ("≥", 1.0)),
            Comparison(work, against, "µs client CPU/step", cpu, lambda: clients.lockstep(seconds).cpu_us, ("≤", 0.5)),
            Comparison(work, free, "steps/s", rate, lambda: clients.each_for_itself(seconds).rate),
            Comparison(work, free, "µs client CPU/step", cpu, lambda: clients.each_for_itself(seconds).cpu_us),
        ]
        return [compare(comparison, scale.pairs) for comparison in comparisons]


def run_stragglers(scale: Scale) -> list[Row]:
    """The row of heavy-tailed sleeps."""
    count = 8 if scale.quick else 64
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(ours("benchmarks.envs:Sleepy")).url
        envs = stack.enter_context(remote(url, count, vectorization="threads"))
        comparison = Comparison(
            f"{count} envs, sleeps of 1 ms, one in 20 of 50 ms, one vector session with a thread each, "
            f"send/recv at half ({event_loop()})",
            "lockstep of the same",
            "steps/s",
            lambda: at_half(envs, scale.seconds).rate,
            lambda: lockstep(envs, scale.seconds).rate,
            ("≥", 5),
        )
        return [compare(comparison, scale.pairs)]
