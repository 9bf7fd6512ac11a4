"""The outcome of a gate, and what it counts as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rageval_spec.data.cell import Cell
from rageval_spec.data.drop import Severity

Verdict = Literal["pass", "warn", "fail", "inconclusive"]
"""The outcome of a gate."""
Counted = Literal["pass", "warn", "fail"]
"""What the outcome of a gate contributes to the outcome of the evaluation."""
_RANKS: dict[tuple[Verdict, Counted], int] = {
    ("fail", "fail"): 0,
    ("inconclusive", "fail"): 1,
    ("inconclusive", "warn"): 2,
    ("warn", "warn"): 3,
    ("inconclusive", "pass"): 4,
    ("pass", "pass"): 5,
}


def rank_outcome(outcome: Verdict, counts_as: Counted | None) -> int:
    """The place of a gate's outcome in the order from worst (0) to best."""
    return _RANKS[outcome, _count(outcome, counts_as)]


def _count(outcome: Verdict, counts_as: Counted | None) -> Counted:
    return (counts_as or "warn") if outcome == "inconclusive" else outcome


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The outcome of a gate on one dataset and system.

    `bound` is what the gate requires, `observed` the number it looked at (None if there was none), and `reason` the
    sentence that explains the outcome. `counts_as` is what an inconclusive outcome counts as for the evaluation; it is
    None for every other outcome.

    Of a gate with a baseline, `baseline` is its name, `max_drop` the amount that the number may fall before the gate
    fails, and `severity` how bad the fall is, if it is and the gate says what that means.
    """

    gate: int
    dataset: str
    system: str
    metric: str
    outcome: Verdict
    bound: str
    observed: float | None
    reason: str
    slice: str | None = None
    counts_as: Counted | None = None
    baseline: str | None = None
    max_drop: float | None = None
    severity: Severity | None = None

    @property
    def cell(self) -> Cell:
        """The cell that the gate looked at."""
        return Cell(self.dataset, self.system, self.metric, self.slice)

    @property
    def counted(self) -> Counted:
        """What the outcome counts as for the evaluation; an inconclusive outcome warns unless `counts_as` differs."""
        return _count(self.outcome, self.counts_as)

    @property
    def rank(self) -> int:
        """The place of the outcome in the order from worst (0) to best."""
        return rank_outcome(self.outcome, self.counts_as)
