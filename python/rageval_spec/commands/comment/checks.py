"""The rows of a comment's table: each gate and each metric with its number now, its number before, and the test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.commands.compare.metrics import MetricChange, compare_metrics
from rageval_spec.commands.compare.text import describe_difference
from rageval_spec.history.comparability import find_comparability
from rageval_spec.reports.shared.card_text import format_change, shorten
from rageval_spec.reports.shared.evaluation_markdown import SIGNS
from rageval_spec.reports.shared.legend import is_improvement, significance_mark
from rageval_spec.reports.shared.markup import escape, quote_cell
from rageval_spec.reports.shared.outcomes import worst_first
from rageval_spec.wording import format_interval, format_mean, format_number, tell_apart

if TYPE_CHECKING:
    from rageval_spec.commands.results import Opened
    from rageval_spec.data.cell import Cell
    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, GateOutcome

HEADER = ("Check", "Head", "Base", "Difference [interval]", "Improved", "Regressed")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Check:
    """A row; all texts are plain but `name`, which is Markdown.

    Attributes:
        name: the sign of the outcome, the metric with its place, and the bound.
        head, base: the numbers; "–" if there is none.
        difference: with its interval and whether it is significant; "" without a base.
        test: the paired test, for the counts of questions that improved and regressed.
        reason: why the gate did not pass; "" for other rows.
        is_gate: whether the row is a gate's.
    """

    name: str
    head: str
    base: str
    difference: str
    test: Comparison | None
    reason: str = ""
    is_gate: bool = False

    def list_cells(self) -> list[str]:
        """The cells of the row, as Markdown."""
        counts = ("", "") if self.test is None else (str(self.test.wins), str(self.test.losses))
        return [self.name, *map(escape, (self.head, self.base, self.difference)), *counts]


def list_checks(evaluation: Evaluation, baseline: Opened | None) -> list[Check]:
    """A row for each gate, worst first, then one for each metric of a system that no gate looks at."""
    return [*_Table(evaluation, baseline).list_rows()]


class _Table:
    def __init__(self, evaluation: Evaluation, baseline: Opened | None) -> None:
        self.evaluation = evaluation
        changes = [] if baseline is None else _compare_all(evaluation, baseline)
        self.changes = {change.after.cell: change for change in changes}
        self.has_baseline = baseline is not None

    def list_rows(self) -> Iterator[Check]:
        gates = worst_first(self.evaluation.gates)
        yield from map(self._describe_gate, gates)
        gated = {gate.cell for gate in gates}
        for aggregate in self.evaluation.aggregates:
            if aggregate.cell not in gated:
                yield self._describe(aggregate.cell, "")

    def _describe_gate(self, gate: GateOutcome) -> Check:
        row = self._describe(gate.cell, gate.bound, self._find_asked(gate))
        reason = "" if gate.outcome == "pass" else f"{SIGNS[gate.outcome]} {gate.reason}"
        name = f"{SIGNS[gate.outcome]} {row.name}"
        return Check(name, row.head, row.base, row.difference, row.test, reason, is_gate=True)

    def _find_asked(self, gate: GateOutcome) -> Comparison | None:
        """The comparison with another system of the spec that the gate asked for."""
        return self.evaluation.find_asked(gate) if gate.baseline in self.evaluation.systems else None

    def _describe(self, cell: Cell, bound: str, asked: Comparison | None = None) -> Check:
        head = self.evaluation.aggregate(cell.dataset, cell.system, cell.metric, cell.slice)
        name = self._name(cell, bound)
        change = self.changes.get(cell)
        if change is not None and asked is None:
            return _compare(name, change)
        test = asked or (None if self.has_baseline else self._find_test(cell))
        shown = "–" if head is None else format_mean(head)
        if test is None or head is None:
            return Check(name, shown, "–", "", None)
        base = self.evaluation.aggregate(cell.dataset, test.baseline, cell.metric, cell.slice)
        shown, before = _tell_apart(head, base)
        if base is None and test.baseline_mean is not None:
            before = format_number(test.baseline_mean)
        return Check(name, shown, f"{before} ({test.baseline})", _describe_test(test, self.evaluation), test)

    def _find_test(self, cell: Cell) -> Comparison | None:
        """The comparison that a gate asked for, or else the one with the first system."""
        asked = next((one for one in self.evaluation.baselines if one.cell == cell), None)
        return asked or self.evaluation.comparison(cell.dataset, cell.system, cell.metric, cell.slice)

    def _name(self, cell: Cell, bound: str) -> str:
        """The metric, then what tells its cell from others, then the bound."""
        places = (
            cell.system if len(self.evaluation.systems) > 1 else "",
            cell.dataset if len(self.evaluation.datasets) > 1 else "",
            cell.slice or "",
        )
        shown = [quote_cell(shorten(name, _LONGEST_NAME)) for name in (cell.metric, *filter(None, places))]
        return " · ".join(shown) + (f" {escape(shorten(bound, _LONGEST_NAME))}" if bound else "")


def _compare_all(evaluation: Evaluation, baseline: Opened) -> list[MetricChange]:
    known = find_comparability(evaluation, baseline.evaluation, baseline.name)
    return compare_metrics(evaluation, baseline.evaluation, known)


def _compare(name: str, change: MetricChange) -> Check:
    head, base = _tell_apart(change.after, change.before)
    interval = format_interval(change.comparison.interval) if change.comparison and change.difference else ""
    return Check(name, head, base, f"{describe_difference(change)} {interval}".strip(), change.comparison)


def _tell_apart(head: Aggregate, base: Aggregate | None) -> tuple[str, str]:
    if base is None:
        return format_mean(head), "–"
    if head.mean is None or base.mean is None or head.statistic == "sum":
        return format_mean(head), format_mean(base)
    return tell_apart(head.mean, base.mean)


def _describe_test(test: Comparison, evaluation: Evaluation) -> str:
    if not test.difference:
        return "="
    mark = significance_mark(test)
    is_better = is_improvement(test, evaluation)
    word = "" if is_better is None else " better" if is_better else " worse"
    told = f" {mark}{word}" if mark else ""
    return f"{format_change(test.difference)}{told} {format_interval(test.interval)}".strip()
