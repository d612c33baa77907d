"""``python -m benchmarks [GROUP…]``: run groups of comparisons, print tables, write JSON and a chart."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import crowd, payloads, report, sessions, single, startup, tools, vector
from benchmarks.machine import describe_machine
from benchmarks.pairs import Row, Scale

GROUPS: dict[str, Callable[[Scale], list[Row]]] = {
    "single": single.run,
    "vector": vector.run,
    "frames": payloads.run_frames,
    "texts": payloads.run_texts,
    "on-stock": sessions.run_on_stock,
    "stragglers": sessions.run_stragglers,
    "tools": tools.run,
    "crowd": crowd.run,
    "startup": startup.run,
}
_QUICK = Scale(pairs=1, seconds=0.05, quick=True)


def main(  # noqa: PLR0917  (one parameter an option)
    groups: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(GROUPS)}; none: all of them.")] = None,
    pairs: Annotated[int, typer.Option(help="Interleaved pairs a row; the median is reported.", min=1)] = 7,
    seconds: Annotated[float, typer.Option(help="Length of one measurement.", min=0.001)] = 1.0,
    quick: Annotated[bool, typer.Option("--quick", help="Only see that everything runs.")] = False,
    output: Annotated[Path | None, typer.Option(help="Where the JSON goes; the chart goes beside it.")] = None,
    enforce: Annotated[bool, typer.Option("--enforce", help="Exit with 1 where a bound is missed.")] = False,
) -> None:
    """Measure this project, its peers and the limit, side by side in one run."""
    names = groups or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        raise typer.BadParameter(f"expected groups of {', '.join(GROUPS)}, got {', '.join(unknown)}")
    scale = _QUICK if quick else Scale(pairs, seconds)
    machine = describe_machine()
    output = output or Path("benchmarks/results") / f"{'-'.join(groups or ['all'])}.json"
    measured: dict[str, list[Row]] = {}
    for name in names:
        measured[name] = GROUPS[name](scale)
        report.show(name, measured[name], machine)
        # After each: a later one that fails takes nothing away.
        report.write(measured, machine, output)
    if enforce and not all(row.met for rows in measured.values() for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(main)
    app()
