"""Time to import this package, and to the first step of an embedded environment; each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.pairs import Comparison, Row, Scale, alone, compare, rounds

_FIRST_STEP = """
import gymnasium, openenv_gym, time
started = time.perf_counter()
env = gymnasium.make("openenv/echo-v0")
env.reset(seed=0)
env.step("Hello, World!")
print(time.perf_counter() - started)
env.close()
"""


def run(scale: Scale) -> list[Row]:
    """All rows of this group."""
    imports = Comparison(
        "import openenv_gym",
        "import gymnasium",
        "s",
        lambda: _import("openenv_gym"),
        lambda: _import("gymnasium"),
        ("≤", 1.5),
    )
    first_steps = [_first_step() for _ in rounds(scale.pairs, "first step")]
    return [compare(imports, scale.pairs), alone("embedded echo, make to first step", "s", first_steps, ("≤", 2.0))]


def _import(module: str) -> float:
    program = f"import time; started = time.perf_counter(); import {module}; print(time.perf_counter() - started)"
    return _printed(program)


def _first_step() -> float:
    return _printed(_FIRST_STEP)


def _printed(program: str) -> float:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return float(done.stdout)
