"""Time to import this package, and to the first step of an embedded environment; each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.pairs import Row, compare

_FIRST_STEP = """
import gymnasium, openenv_gym, time
started = time.perf_counter()
env = gymnasium.make("openenv/echo-v0")
env.reset(seed=0)
env.step("Hello, World!")
print(time.perf_counter() - started)
env.close()
"""


def run(pairs: int) -> list[Row]:
    """All rows of this group."""
    return [
        compare(
            ("import openenv_gym", "import gymnasium", "s", "≤ 1.5"),
            lambda: _import("openenv_gym"),
            lambda: _import("gymnasium"),
            pairs,
        ),
        compare(("embedded echo, make to first step", "two seconds", "s", "≤ 1"), _first_step, lambda: 2.0, pairs),
    ]


def _import(module: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - started


def _first_step() -> float:
    done = subprocess.run([sys.executable, "-c", _FIRST_STEP], check=True, capture_output=True, text=True)
    return float(done.stdout)
