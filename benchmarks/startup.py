"""Time to import this package, and to the first step of an embedded environment; each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

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
            ("import openenv_gym", "import gymnasium", "s", ("≤", 1.5)),
            lambda: _import("openenv_gym"),
            lambda: _import("gymnasium"),
            pairs,
        ),
        compare(("embedded echo, make to first step", "two seconds", "s", ("≤", 1.0)), _first_step, lambda: 2.0, pairs),
    ]


def _import(module: str) -> float:
    program = f"import time; started = time.perf_counter(); import {module}; print(time.perf_counter() - started)"
    return _printed(program)


def _first_step() -> float:
    return _printed(_FIRST_STEP)


def _printed(program: str) -> float:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return float(done.stdout)
