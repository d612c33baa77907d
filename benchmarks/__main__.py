"""``python -m benchmarks single|startup``: run one group, print a table, write JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import single, startup
from benchmarks.machine import describe_machine
from benchmarks.pairs import Row

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
Pairs = Annotated[int, typer.Option(help="Interleaved pairs a row; the median is reported.", min=1)]
Output = Annotated[Path, typer.Option(help="Where the JSON goes.")]
Enforce = Annotated[bool, typer.Option("--enforce", help="Exit with 1 where a bound is missed.")]
_RESULTS = Path("benchmarks/results")


@app.command("single")
def single_command(
    pairs: Pairs = 7,
    seconds: Annotated[float, typer.Option(help="Length of one measurement.")] = 1.0,
    output: Output = _RESULTS / "single.json",
    enforce: Enforce = False,
) -> None:
    """One environment, one client: steps a second against the stock package and against a bare echo."""
    _report("single", single.run(pairs, seconds), output, enforce=enforce)


@app.command("startup")
def startup_command(pairs: Pairs = 7, output: Output = _RESULTS / "startup.json", enforce: Enforce = False) -> None:
    """Time to import, and to the first step of an embedded environment."""
    _report("startup", startup.run(pairs), output, enforce=enforce)


def _report(name: str, rows: list[Row], output: Path, *, enforce: bool) -> None:
    machine = describe_machine()
    table = Table(title=f"{name} · {machine['summary']}", title_justify="left")
    for column in ("work", "this project", "against", "ratio (median)", "min – max", "must"):
        table.add_column(column)
    for row in rows:
        table.add_row(*row.cells())
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine, "rows": [row.as_json() for row in rows]}, indent=2) + "\n")
    if enforce and not all(row.met for row in rows):
        sys.exit(1)


app()
