"""CartPole in one vector session: environment steps a second, against vectors in process and against stock clients."""

from __future__ import annotations

import contextlib

from gymnasium.vector import VectorEnv

from benchmarks.pairs import Comparison, Measure, Row, Scale, compare
from benchmarks.rollouts import StockClients, local, lockstep, remote
from benchmarks.servers import event_loop, ours, peer

_FEW, _MANY = 64, 1024


def run(scale: Scale) -> list[Row]:
    """All rows of this group."""
    few, many = (8, 16) if scale.quick else (_FEW, _MANY)
    loop = event_loop()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(ours("CartPole-v1")).url
        stock = stack.enter_context(peer("stock")).url
        clients = StockClients(stock, few)
        stack.callback(clients.close)

        def rate(envs: VectorEnv) -> Measure:
            return lambda: lockstep(envs, scale.seconds).rate

        def cost(envs: VectorEnv) -> Measure:
            return lambda: 1e6 / lockstep(envs, scale.seconds).rate

        few_sync, many_sync = (stack.enter_context(remote(url, n, vectorization="sync")) for n in (few, many))
        few_own, many_own = (
            stack.enter_context(remote(url, n, vectorization="vector_entry_point")) for n in (few, many)
        )
        local_sync, local_async = (stack.enter_context(local(few, kind)) for kind in ("sync", "async"))
        local_own = stack.enter_context(local(many, "vector_entry_point"))
        one, own = (
            f"{few} envs, one vector session, sync ({loop})",
            f"{many} envs, one vector session, own vector entry",
        )
        stepped = f"{few} async clients + one stock server ({loop})"
        comparisons = [
            Comparison(one, "SyncVectorEnv in process", "steps/s", rate(few_sync), rate(local_sync), ("≥", 0.6), 0.8),
            Comparison(one, "AsyncVectorEnv", "steps/s", rate(few_sync), rate(local_async), ("≥", 5), 8),
            Comparison(
                one,
                stepped,
                "steps/s",
                rate(few_sync),
                lambda: clients.each_for_itself(scale.seconds).rate,
                ("≥", 15),
                25,
            ),
            Comparison(
                f"{own} point ({loop})",
                "the same in process",
                "steps/s",
                rate(many_own),
                rate(local_own),
                ("≥", 0.18),
                0.35,
            ),
            Comparison(
                f"{many} envs, one vector session, sync ({loop})",
                f"{few} envs",
                "µs/env step",
                cost(many_sync),
                cost(few_sync),
                ("≤", 1),
            ),
            Comparison(f"{own} point ({loop})", f"{few} envs", "µs/env step", cost(many_own), cost(few_own), ("≤", 1)),
        ]
        return [compare(comparison, scale.pairs) for comparison in comparisons]
