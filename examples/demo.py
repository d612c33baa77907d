"""Serve real Gymnasium environments, step them over the wire, and compare every step with the local environment.

Run with ``python examples/demo.py``. Each environment gets a server process of its own on this machine; the same
actions go to it and to a local copy, and observations (bytes, dtype, shape), rewards, flags and infos must be
identical.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import openenv_gym  # noqa: F401  (registers openenv/*)

ENVIRONMENTS = (
    "CartPole-v1",
    "Acrobot-v1",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "FrozenLake-v1",
    "CliffWalking-v1",
    "Blackjack-v1",
)


@dataclasses.dataclass
class Outcome:
    """What came of one environment."""

    env_id: str
    episodes: int
    steps: int
    seconds: float
    local_seconds: float
    difference: str | None


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal to the bit: types, dtypes, shapes, bytes, keys in order."""
    if isinstance(left, np.ndarray):
        return (
            isinstance(right, np.ndarray)
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict) and list(left) == list(right) and all(same(left[key], right[key]) for key in left)
        )
    if isinstance(left, tuple | list):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, int | float | np.generic):
        # Gymnasium's discrete observations are ints or numpy integers; both hold the same number.
        return (
            np.asarray(left).dtype == np.asarray(right).dtype
            and np.asarray(left).tobytes() == np.asarray(right).tobytes()
        )
    return type(left) is type(right) and bool(left == right)


def compare(env_id: str, episodes: int, seed: int, progress: Progress) -> Outcome:
    """Roll out the same episodes on a served and on a local environment."""
    task = progress.add_task(env_id, total=episodes)
    steps, seconds, local_seconds = 0, 0.0, 0.0
    with gymnasium.make("openenv/gym-v0", env_id=env_id) as served, gymnasium.make(env_id) as local:
        served.action_space.seed(seed)
        for episode in range(episodes):
            if not same(local.reset(seed=seed + episode), served.reset(seed=seed + episode)):
                return Outcome(env_id, episode, steps, seconds, local_seconds, f"reset of episode {episode}")
            over = False
            while not over:
                action = served.action_space.sample()
                started = time.perf_counter()
                remote = served.step(action)
                seconds += time.perf_counter() - started
                steps += 1
                started = time.perf_counter()
                expected = local.step(action)
                local_seconds += time.perf_counter() - started
                if not same((expected[0], float(expected[1]), *expected[2:]), remote):
                    return Outcome(
                        env_id, episode, steps, seconds, local_seconds, f"step {steps}: {expected} became {remote}"
                    )
                over = remote[2] or remote[3]
            progress.advance(task)
    return Outcome(env_id, episodes, steps, seconds, local_seconds, None)


def main() -> int:
    """Print the table; the exit status is 1 if anything differed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--episodes", type=int, default=5, help="episodes an environment (default: 5)")
    arguments.add_argument("--seed", type=int, default=0, help="seed of the first episode (default: 0)")
    options = arguments.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 100)
    columns = TextColumn("{task.description:28}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console) as progress:
        outcomes = [compare(env_id, options.episodes, options.seed, progress) for env_id in ENVIRONMENTS]
    table = Table(title="Gymnasium environments, stepped over the wire", title_justify="left")
    table.add_column("env")
    for name in ("episodes", "steps", "steps/s served", "steps/s local"):
        table.add_column(name, justify="right")
    table.add_column("identical")
    for row in outcomes:
        rates = (f"{row.steps / seconds:,.0f}" if seconds else "-" for seconds in (row.seconds, row.local_seconds))
        identical = f"no: {row.difference}" if row.difference else "yes"
        table.add_row(row.env_id, str(row.episodes), f"{row.steps:,}", *rates, identical)
    console.print(table)
    console.print(
        "identical: every observation (dtype, shape, bytes), reward, flag and info that came over the wire equals the "
        "local environment's.\nNext: openenv-gym serve CartPole-v1, and the examples in README.md."
    )
    return int(any(row.difference for row in outcomes))


if __name__ == "__main__":
    sys.exit(main())
