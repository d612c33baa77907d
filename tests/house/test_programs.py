"""The examples run. Those that learn are in ``test_learning_programs.py``, the benchmarks in ``test_benchmarks.py``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.repository import ROOT
from tests.trainers import TRAINERS

EXAMPLES = ["demo.py", "ppo_sb3_cartpole.py", "ppo_sharded.py"]
LEARNERS = EXAMPLES[1:]
"""They need the trainers, and have tests of their own."""


def run(*arguments, timeout_s=110):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_test_here():
    assert sorted(path.name for path in (ROOT / "examples").glob("*.py")) == EXAMPLES


def test_the_demo_finds_every_environment_identical():
    rows = [line for line in run("examples/demo.py", "--episodes", "1").splitlines() if "-v" in line and "│" in line]
    assert len(rows) >= 7
    assert all("yes" in row for row in rows)


@pytest.mark.parametrize("program", [each for each in EXAMPLES if TRAINERS or each not in LEARNERS])
def test_an_example_says_what_it_does_and_takes(program):
    text = run(f"examples/{program}", "--help")
    assert f"python examples/{program}" in text
    assert "--seed" in text
