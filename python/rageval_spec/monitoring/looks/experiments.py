"""Two systems in production, told apart by an attribute of their traces, compared at any time.

The test may be looked at as often as one likes, and it can be stopped once it is sure. A system that does not get its
share of the traces is compared wrongly; that is checked, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from rageval_spec.dataclass import dataclass
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import ExperimentNode, read_share
from rageval_spec.statistics.ab_testing import SequentialTest, ShareCheck, check_shares, compare_streams
from rageval_spec.statistics.window_summaries import WindowSummary
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent, format_signed

_CERTAIN = 0.01
"""The p-value below which shares are surely not those that were set."""
_SUMS = {
    "weight": "j.weight",
    "weight2": "j.weight * j.weight",
    "value": "j.weight * j.value",
    "value2": "j.weight * j.value * j.value",
    "weight2_value": "j.weight * j.weight * j.value",
    "weight2_value2": "j.weight * j.weight * j.value * j.value",
}
_SAMPLED = "COALESCE(t.weight, j.weight)"
"""How many traces one of the sample stands for. Its judgement weighs more where the budget left others out."""
_MOST_NAMED = 5


@dataclass(frozen=True)
class Experiment:
    """What an A/B test has come to.

    Attributes:
        names: the two values of the attribute, the first one in order first.
        arms: the values of the metric, of each.
        test: the second less the first; None with too few values.
        shares: how the traces are shared; None without two values of the attribute.
        problem: why there is no test.
    """

    metric: str
    by: str
    names: tuple[str, ...]
    arms: tuple[WindowSummary, ...] = ()
    test: SequentialTest | None = None
    shares: ShareCheck | None = None
    problem: str | None = None
    lower_is_better: bool = False
    confidence: float = 0.95

    @property
    def has_wrong_shares(self) -> bool:
        return self.shares is not None and self.shares.sequential < _CERTAIN

    @property
    def better(self) -> str | None:
        """The system that is surely better; None as long as none is, or the shares are wrong."""
        if self.test is None or self.has_wrong_shares or self.test.p_value > 1 - self.confidence:
            return None
        return self.names[int((self.test.difference > 0) is not self.lower_is_better)]

    def tell(self) -> str:
        """What it has come to, in a sentence."""
        if self.problem is not None:
            return self.problem
        shown = " and ".join(
            f"{format_number(arm.mean)} of {count_noun(arm.count, 'judged trace')} ({name})"
            for name, arm in zip(self.names, self.arms, strict=True)
            if arm.mean is not None
        )
        if self.has_wrong_shares and self.shares is not None:
            got = " and ".join(format_percent(share) for share in self.shares.shares)
            return f"{self.by} gets {got} of the traces, not the shares that were set; traces are lost: {shown}"
        if self.test is None:
            return f"{self.metric} by {self.by}: {shown or 'no judged trace'}, too few to compare"
        difference = f"{format_signed(self.test.difference)} {format_interval(self.test.interval)}"
        sure = f"{self.better} is better" if self.better else "neither is surely better"
        return f"{self.metric} by {self.by}: {sure}: {shown}; difference {difference}"


def read_experiment(ledger: Ledger, series: Series, node: ExperimentNode, confidence: float) -> Experiment:
    """What the A/B test of a spec has come to, of all traces of the series since the test began."""
    counts, arms = _read_arms(ledger, series, node.by)
    names = tuple(node.shares) if node.shares else tuple(sorted(counts))
    named = [name for name in names if name in counts] + sorted(counts.keys() - set(names))
    if len(names) != 2 or any(name not in names for name in counts):
        some = ", ".join(named[:_MOST_NAMED]) + (", ..." if len(named) > _MOST_NAMED else "")
        told = f"{node.by} has {count_noun(len(named), 'value')}{': ' if some else ''}{some}; a test needs two"
        return Experiment(series.name, node.by, tuple(named), problem=told)
    shares = [read_share(node.shares[name]) for name in names] if node.shares else [0.5, 0.5]
    first, second = (arms.get(name, WindowSummary()) for name in names)
    return Experiment(
        series.name,
        node.by,
        names,
        (first, second),
        compare_streams(first, second, confidence=confidence),
        check_shares([counts.get(name, 0) for name in names], [one / sum(shares) for one in shares]),
        lower_is_better=series.lower_is_better,
        confidence=confidence,
    )


def _read_arms(ledger: Ledger, series: Series, by: str) -> tuple[Mapping[str, int], Mapping[str, WindowSummary]]:
    """How many traces each value of the attribute has, and the summary of those that were judged.

    A sample that keeps all errors, or a least number of each system, has other shares than the traffic. So traces count
    by the weights that the sample gave them, all together as many as these are worth.
    """
    judged = "CASE WHEN j.state = 'judged' THEN"
    sums = ", ".join(f"SUM({judged} {term} ELSE 0 END)" for term in _SUMS.values())
    rows = ledger.connection.execute(
        f"SELECT j.arm, SUM({_SAMPLED}), SUM({_SAMPLED} * {_SAMPLED}), SUM({judged} 1 ELSE 0 END), {sums} "
        "FROM rageval_judgements j LEFT JOIN rageval_traces t ON t.trace_id = j.trace_id AND t.monitor = ? "
        "WHERE j.series = ? AND j.arm IS NOT NULL GROUP BY j.arm ORDER BY j.arm",
        (ledger.monitor, series.id),
    )
    weights, arms = {}, {}
    for arm, weight, weight2, values, *moments in rows:
        column, _, name = str(arm).partition("=")
        if column == by:
            exact = {key: Fraction(total or 0) for key, total in zip(_SUMS, moments, strict=True)}
            weights[name], arms[name] = (weight, weight2), WindowSummary(int(values), exact)
    worth = [sum(column) for column in zip(*weights.values(), strict=True)] or [0.0, 1.0]
    return {name: round(weight * worth[0] / worth[1]) for name, (weight, _) in weights.items()}, arms
