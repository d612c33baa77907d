"""Interleaved pairs: A, B, A, B … in one run, and the ratio pair by pair. The one way to compare here.

These machines are shared and drift; a ratio within one pair does not see the drift, a median over pairs not the
outliers.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from rich.progress import track

Bound: TypeAlias = tuple[Literal["≥", "≤"], float]
Measure: TypeAlias = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Scale:
    """How long a run takes.

    Attributes:
        pairs: counted pairs a row.
        seconds: the length of one measurement.
        quick: whether it is only to be seen that everything runs: fewer environments and sessions where there are many.
    """

    pairs: int = 7
    seconds: float = 1.0
    quick: bool = False


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What is to be measured for one row.

    Attributes:
        work: what is done, the vectorization and the server's event loop named.
        against: what it is compared with.
        unit: what both measure.
        ours: measures this project.
        theirs: measures the peer.
        must: the bound the median ratio has to keep, such as ``("≥", 1.8)``; None where there is none.
        goal: the ratio that is aimed at.
    """

    work: str
    against: str
    unit: str
    ours: Measure
    theirs: Measure
    must: Bound | None = None
    goal: float | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison's result.

    Attributes:
        work, against, unit, must, goal: as in ``Comparison``.
        ours, theirs: medians in ``unit``; no ``theirs`` where nothing is compared.
        ratios: ours / theirs, pair by pair; ours alone where nothing is compared.
    """

    work: str
    against: str
    unit: str
    ours: float
    theirs: float | None
    ratios: tuple[float, ...]
    must: Bound | None = None
    goal: float | None = None

    @property
    def met(self) -> bool:
        """Whether the median keeps the bound."""
        if self.must is None:
            return True
        sign, bound = self.must
        return self.ratio >= bound if sign == "≥" else self.ratio <= bound

    @property
    def ratio(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        sign = "" if self.must is None else self.must[0]
        compared = self.theirs is not None
        return (
            self.work,
            f"{self.against}: {self.theirs:,.4g} {self.unit}" if compared else "–",
            f"{self.ours:,.4g} {self.unit}",
            f"{self.ratio:,.2f}" if compared else "",
            f"{min(self.ratios):,.2f} – {max(self.ratios):,.2f}",
            "" if self.must is None else f"{sign} {self.must[1]:g}{'' if self.met else '  MISSED'}",
            "" if self.goal is None else f"{sign} {self.goal:g}",
        )

    def as_json(self) -> dict[str, object]:
        """The row with its median."""
        return {**dataclasses.asdict(self), "ratio": self.ratio, "met": self.met}


def compare(comparison: Comparison, pairs: int) -> Row:
    """Measure both in turn, after one uncounted pair."""
    comparison.ours(), comparison.theirs()
    measured = [(comparison.ours(), comparison.theirs()) for _ in rounds(pairs, comparison.work)]
    return row_of(comparison, measured)


def rounds(count: int, what: str) -> Iterable[int]:
    """So many rounds, shown as they pass where somebody looks on."""
    return track(range(count), description=what, transient=True, disable=not sys.stdout.isatty())


def row_of(comparison: Comparison, measured: Iterable[tuple[float, float]]) -> Row:
    """The row of pairs that were measured."""
    ours, theirs = zip(*measured, strict=True)
    return Row(
        work=comparison.work,
        against=comparison.against,
        unit=comparison.unit,
        ours=statistics.median(ours),
        theirs=statistics.median(theirs),
        ratios=tuple(mine / other for mine, other in zip(ours, theirs, strict=True)),
        must=comparison.must,
        goal=comparison.goal,
    )


def alone(work: str, unit: str, measured: Iterable[float], must: Bound | None = None, goal: float | None = None) -> Row:
    """A row of what is compared with its bound alone."""
    values = tuple(measured)
    return Row(work, "", unit, statistics.median(values), None, values, must, goal)
