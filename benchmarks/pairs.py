"""Interleaved pairs: A, B, A, B … in one run, and the ratio pair by pair.

These machines are shared and drift; a ratio within one pair does not see the drift, a median over pairs not the
outliers.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable
from typing import Literal, TypeAlias

from rich.progress import track

Bound: TypeAlias = tuple[Literal["≥", "≤"], float]


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        work: what was done, the event loop named.
        ours, theirs: medians in ``unit``.
        ratios: ours / theirs, pair by pair.
        must: the bound the ratio has to keep, such as ``("≥", 1.8)``; None where there is none.
    """

    work: str
    against: str
    unit: str
    ours: float
    theirs: float
    ratios: tuple[float, ...]
    must: Bound | None

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
        return (
            self.work,
            f"{self.ours:,.4g} {self.unit}",
            f"{self.against}: {self.theirs:,.4g} {self.unit}",
            f"{self.ratio:.2f}",
            f"{min(self.ratios):.2f} – {max(self.ratios):.2f}",
            "" if self.must is None else f"{self.must[0]} {self.must[1]:g}{'' if self.met else '  MISSED'}",
        )

    def as_json(self) -> dict[str, object]:
        """The row with its median."""
        return {**dataclasses.asdict(self), "ratio": self.ratio, "met": self.met}


def compare(
    work: tuple[str, str, str, Bound | None], ours: Callable[[], float], theirs: Callable[[], float], pairs: int
) -> Row:
    """Measure both in turn, after one uncounted pair.

    Args:
        work: its name, the peer's name, the unit, the bound.
        ours: measures this project, in the unit.
        theirs: measures the peer, in the unit.
        pairs: counted pairs.
    """
    name, against, unit, must = work
    ours(), theirs()
    measured = [(ours(), theirs()) for _ in track(range(pairs), description=name, transient=True)]
    return Row(
        work=name,
        against=against,
        unit=unit,
        ours=statistics.median(mine for mine, _ in measured),
        theirs=statistics.median(other for _, other in measured),
        ratios=tuple(mine / other for mine, other in measured),
        must=must,
    )
