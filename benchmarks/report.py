"""What is made of the rows: a table on the terminal, a JSON file, and beside it the table in Markdown and a chart."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.pairs import Row

_COLUMNS = ("work", "against", "this project", "ratio (median)", "min – max", "must", "goal")
_MISSED, _MET = "#c0392b", "#2a7f62"


def show(name: str, rows: Sequence[Row], machine: Mapping[str, str]) -> None:
    """Print one group's table."""
    table = Table(title=f"{name} · {machine['summary']}", title_justify="left")
    for column in _COLUMNS:
        table.add_column(column)
    for row in rows:
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def write(groups: Mapping[str, Sequence[Row]], machine: Mapping[str, str], output: Path) -> None:
    """Write all groups as JSON, and beside it as a table in Markdown and, of the bounded rows, as a chart (PNG)."""
    rows = [{"group": name, **row.as_json()} for name, rows in groups.items() for row in rows]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    output.with_suffix(".md").write_text(_markdown(groups, machine), "utf-8")
    compared = [row for rows in groups.values() for row in rows if row.theirs is not None and row.must is not None]
    if compared:
        _draw(compared, machine, output.with_suffix(".png"))


def _markdown(groups: Mapping[str, Sequence[Row]], machine: Mapping[str, str]) -> str:
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *(row.cells() for rows in groups.values() for row in rows)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    versions = ", ".join(
        f"{name} {version}" for name, version in machine.items() if name not in {"summary", "processor"}
    )
    return f"{table}\n\n{machine['processor']}, {machine['summary']}; {versions}.\n"


def _draw(rows: Sequence[Row], machine: Mapping[str, str], output: Path) -> None:
    """Each row's median ratio as a bar, its range, bound and goal beside it; on a logarithmic axis."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  (an extra)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        print("no chart: it needs matplotlib, pip install 'openenv-gym[bench]'", file=sys.stderr)
        return
    figure = Figure(figsize=(14, 1.2 + 0.42 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    places = range(len(rows))
    axes.barh(places, [row.ratio for row in rows], color=[_MET if row.met else _MISSED for row in rows], height=0.6)
    for place, row in enumerate(rows):
        axes.plot([min(row.ratios), max(row.ratios)], [place, place], color="black", linewidth=1)
        axes.annotate(f" {row.ratio:,.3g}", (max(row.ratio, *row.ratios), place), va="center", fontsize=8)
    must = [(row.must[1], place) for place, row in enumerate(rows) if row.must is not None]
    goal = [(row.goal, place) for place, row in enumerate(rows) if row.goal is not None]
    for points, marker, label in ((must, "|", "must"), (goal, "d", "goal")):
        if points:
            axes.scatter(*zip(*points, strict=True), marker=marker, s=90, color="black", zorder=3, label=label)
    axes.axvline(1.0, color="grey", linewidth=0.8, linestyle=":")
    labels = [
        f"{row.work}\n{'lower is better, ' if row.must and row.must[0] == '≤' else ''}÷ {row.against}" for row in rows
    ]
    axes.set_yticks(places, labels, fontsize=7)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("this project ÷ the other, median of interleaved pairs")
    axes.set_title(f"{machine['processor']} · {machine['summary']}", fontsize=9, loc="left")
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(output, dpi=120)
