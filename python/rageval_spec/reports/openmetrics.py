"""`openmetrics`: means, interval ends, counts and gate outcomes as metrics that Prometheus and GitLab read.

All metrics are gauges without timestamps, so the same text is valid as OpenMetrics 1.0 and in the older text format of
Prometheus (`promtool check metrics`). GitLab shows it in a merge request as `artifacts:reports:metrics`. For the
textfile collector of Prometheus' node exporter, set `path:` to a name that ends in `.prom`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import ClassVar, get_args

from rageval_spec.data.evaluation import Evaluation, Overall
from rageval_spec.data.outcomes import Cell
from rageval_spec.drawing.openmetrics import MetricFamily, MetricSample, render_families
from rageval_spec.plugin import Report, ReportNode

_OUTCOMES = ("pass", "warn", "fail", "inconclusive")
"""Every outcome that a gate can have, so that a series does not end when the outcome changes."""


class OpenmetricsNode(ReportNode):
    """Settings of the report `openmetrics`: the numbers and gate outcomes as metrics for Prometheus and GitLab."""


class OpenmetricsReport(Report[OpenmetricsNode]):
    """Renders an evaluation as OpenMetrics text."""

    node_type = OpenmetricsNode
    known_as = ("prometheus", "metrics", "gitlab_metrics")
    filename: ClassVar[str | None] = "metrics.txt"

    def render(self, evaluation: Evaluation) -> bytes:
        """The exposition in UTF-8; a number that could not be computed has no line."""
        return render_families(MetricFamily(*family) for family in _list_families(evaluation))


def _list_families(evaluation: Evaluation) -> Iterator[tuple[str, str, Sequence[MetricSample]]]:
    """The metrics: the name and the help of each, and its samples."""
    spec = {"spec": evaluation.name}
    states: list[MetricSample] = [({**spec, "outcome": one}, one == evaluation.verdict) for one in get_args(Overall)]
    yield "rageval_outcome", "The outcome of the evaluation: 1 for its outcome and 0 for the others.", states
    yield "rageval_failures", "Systems and metrics that failed.", [(spec, len(evaluation.failures))]
    taken = [({**spec, "dataset": one.dataset, "system": one.system}, one) for one in evaluation.provenance.taken_over]
    counts = [(labels, one.answers) for labels, one in taken]
    yield "rageval_answers_taken_over", "Answers that were not asked in this evaluation.", counts
    told = "When the first answer that was taken over was asked, in seconds since 1970."
    times = [(labels, datetime.fromisoformat(one.first).timestamp()) for labels, one in taken if one.first is not None]
    yield "rageval_answers_first_asked_seconds", told, times
    versions = [(labels, len(one.versions) or None) for labels, one in taken]
    yield "rageval_answers_versions", "Versions of the code that the answers mix.", versions
    sliced = (aggregate for one in evaluation.slices for aggregate in one.aggregates)
    cells = [({**spec, **_name_cell(one.cell)}, one) for one in (*evaluation.aggregates, *sliced)]
    means = [({**labels, "statistic": one.statistic}, one.mean) for labels, one in cells]
    yield "rageval_value", "The mean of a metric, or the statistic that its label names.", means
    ends = [
        ({**labels, "confidence": repr(one.interval.confidence)}, one.interval)
        for labels, one in cells
        if one.interval is not None
    ]
    for side in ("low", "high"):
        told = f"The {side} end of the confidence interval of rageval_value."
        yield f"rageval_interval_{side}", told, [(labels, getattr(one, side)) for labels, one in ends]
    scored = [(labels, one.scored) for labels, one in cells]
    yield "rageval_queries_scored", "Queries that have a value of the metric.", scored
    totals = [(labels, one.total) for labels, one in cells]
    yield "rageval_queries", "All queries that the metric was asked for.", totals
    gates = [
        ({**spec, "gate": str(gate.gate + 1), **_name_cell(gate.cell), "bound": gate.bound}, gate)
        for gate in evaluation.gates
    ]
    states = [({**labels, "outcome": one}, one == gate.outcome) for labels, gate in gates for one in _OUTCOMES]
    yield "rageval_gate_outcome", "The outcome of a gate: 1 for its outcome and 0 for the others.", states
    yield (
        "rageval_gate_observed",
        "The number that a gate looked at.",
        [(labels, one.observed) for labels, one in gates],
    )


def _name_cell(cell: Cell) -> dict[str, str]:
    """The labels of a cell; `slice` is empty, and so absent to Prometheus, for all queries."""
    return {"dataset": cell.dataset, "system": cell.system, "metric": cell.metric, "slice": cell.slice or ""}


PLUGIN = OpenmetricsReport
