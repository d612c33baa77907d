"""The gates of the Makefile check what they say they check."""

from __future__ import annotations

import re

import pytest

from tests.house.repository import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_pattern_of_the_full_coverage_gate_names_a_file() -> None:
    (patterns,) = re.findall(r"^FULLY_COVERED := (\S+)$", MAKEFILE, flags=re.MULTILINE)
    assert [pattern for pattern in patterns.split(",") if not list(ROOT.glob(pattern))] == []


@pytest.mark.parametrize("gate", ["lint", "types", "imports", "house", "coverage"])
def test_make_check_runs_the_gate(gate: str) -> None:
    (gates,) = re.findall(r"^check: (.+?)  ## ", MAKEFILE, flags=re.MULTILINE)
    assert gate in gates.split()


def test_every_target_is_explained_by_make_help() -> None:
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.*## \S", MAKEFILE, flags=re.MULTILINE))
    assert sorted(targets - explained) == []
