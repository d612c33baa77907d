"""The benchmarks run, group by group in their shortest form, and report what they measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import pairs, report
from benchmarks.__main__ import GROUPS
from benchmarks.pairs import Comparison, Row, alone, compare, row_of
from tests.house.repository import ROOT

MACHINE = {"summary": "two cores", "processor": "one of them"}


def row(ratios: tuple[float, ...] = (1.0, 3.0, 2.0), **fields: object) -> Row:
    return Row(**{"work": "w", "against": "a", "unit": "u", "ours": 6.0, "theirs": 3.0, "ratios": ratios, **fields})


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)


@pytest.mark.timeout(300)  # every server that takes part is a process that imports the whole of its package
@pytest.mark.programs
@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_benchmarks_writes_its_rows(group: str, tmp_path: Path) -> None:
    output = tmp_path / "rows.json"
    done = run(group, "--quick", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert f"{group} · " in done.stdout
    written = json.loads(output.read_text("utf-8"))
    assert {"summary", "processor", "openenv", "gymnasium"} <= written["machine"].keys()
    assert written["rows"]
    for each in written["rows"]:
        assert each["group"] == group
        # The memory of so few sessions may not be seen at all.
        assert each["ratio"] > 0 or "kB" in each["unit"]


def test_a_group_that_does_not_exist_is_refused_with_those_that_do() -> None:
    done = run("doubles")
    assert done.returncode == 2
    assert "single" in done.stderr


def test_pairs_are_interleaved_after_one_that_does_not_count() -> None:
    calls: list[str] = []
    times = iter([100.0, 6.0, 8.0, 10.0])

    def ours() -> float:
        calls.append("ours")
        return next(times)

    def theirs() -> float:
        calls.append("theirs")
        return 2.0

    measured = compare(Comparison("w", "a", "u", ours, theirs, ("≥", 4.0), 5.0), 3)
    assert calls == ["ours", "theirs"] * 4
    assert measured == row((3.0, 4.0, 5.0), ours=8.0, theirs=2.0, must=("≥", 4.0), goal=5.0)


@pytest.mark.parametrize(
    ("must", "met"), [(None, True), (("≥", 2.0), True), (("≥", 2.1), False), (("≤", 2.0), True), (("≤", 1.9), False)]
)
def test_the_median_ratio_has_to_keep_its_bound(must: pairs.Bound | None, met: bool) -> None:
    assert row(must=must).met is met
    assert ("MISSED" in row(must=must).cells()[5]) is not met


def test_what_is_compared_with_its_bound_alone_has_its_own_value_for_a_ratio() -> None:
    measured = alone("w", "ms", [3.0, 1.0, 2.0], ("≤", 2.0))
    assert (measured.ours, measured.theirs, measured.ratio, measured.met) == (2.0, None, 2.0, True)
    assert measured.cells()[3] == ""


def test_a_ratio_is_taken_within_its_pair() -> None:
    comparison = Comparison("w", "a", "u", float, float)
    assert row_of(comparison, [(1.0, 2.0), (9.0, 3.0)]).ratios == (0.5, 3.0)


def test_the_results_are_written_with_the_machine_and_drawn(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "rows.json"
    rows = [row(must=("≥", 1.0), goal=4.0), row(must=("≤", 1.0)), row(), alone("w", "ms", [1.0], ("≤", 2.0))]
    report.write({"some": rows}, MACHINE, output)
    written = json.loads(output.read_text("utf-8"))
    assert written["machine"] == MACHINE
    assert [each["met"] for each in written["rows"]] == [True, False, True, True]
    table = output.with_suffix(".md").read_text("utf-8")
    assert "| w | a: 3 u | 6 u | 2.00 | 1.00 – 3.00 | ≥ 1 | ≥ 4 |" in table  # noqa: RUF001
    assert "one of them, two cores" in table
    assert output.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_results_are_written_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    report.write({"some": [row(must=("≥", 1.0))]}, MACHINE, tmp_path / "rows.json")
    assert (tmp_path / "rows.json").exists()
    assert "openenv-gym[bench]" in capsys.readouterr().err


def test_a_missed_bound_is_an_exit_status_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import __main__ as program

    monkeypatch.setitem(GROUPS, "startup", lambda scale: [row(must=("≥", scale.pairs * 1000))])
    arguments = {"groups": ["startup"], "pairs": 1, "seconds": 1.0, "quick": False, "output": tmp_path / "rows.json"}
    program.main(**arguments, enforce=False)
    with pytest.raises(SystemExit) as caught:
        program.main(**arguments, enforce=True)
    assert caught.value.code == 1
