"""The programs beside the packages run: every example, and every group of benchmarks in its shortest form."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.house.repository import ROOT

EXAMPLES = ["demo.py"]
GROUPS = {"single": ["--pairs", "1", "--seconds", "0.05"], "startup": ["--pairs", "1"]}


def run(*arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_test_here():
    assert sorted(path.name for path in (ROOT / "examples").glob("*.py")) == EXAMPLES


def test_the_demo_finds_every_environment_identical():
    rows = [line for line in run("examples/demo.py", "--episodes", "1").splitlines() if "-v" in line and "│" in line]
    assert len(rows) >= 7
    assert all("yes" in row for row in rows)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_benchmarks_writes_its_rows(group, tmp_path):
    output = tmp_path / "rows.json"
    table = run("-m", "benchmarks", group, *GROUPS[group], "--output", str(output))
    rows = json.loads(output.read_text())["rows"]
    assert rows
    assert all(row["ratio"] > 0 for row in rows)
    assert group in table
