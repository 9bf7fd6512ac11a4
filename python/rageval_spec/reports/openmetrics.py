"""`openmetrics`: means, interval ends, counts and gate outcomes as metrics that Prometheus and GitLab read.

All metrics are gauges without timestamps, so the same text is valid as OpenMetrics 1.0 and in the older text format of
Prometheus (`promtool check metrics`). GitLab shows it in a merge request as `artifacts:reports:metrics`. For the
textfile collector of Prometheus' node exporter, set `path:` to a name that ends in `.prom`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, get_args

from rageval_spec.data.evaluation import Evaluation, Overall
from rageval_spec.diagnostics import make_visible
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.outcomes import Cell, GateOutcome

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
        lines = [line for family in _list_families(evaluation) if family.samples for line in family.render()]
        return "".join(f"{line}\n" for line in (*lines, "# EOF")).encode("utf-8", "backslashreplace")


class _Family(NamedTuple):
    """A metric with its samples: pairs of labels and a number."""

    name: str
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]

    def render(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} gauge"
        for labels, number in self.samples:
            told = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
            yield f"{self.name}{{{told}}} {number!r}"


def _list_families(evaluation: Evaluation) -> Iterator[_Family]:
    spec = {"spec": evaluation.name}
    verdicts: tuple[Overall, ...] = get_args(Overall)
    states = [({**spec, "outcome": one}, float(one == evaluation.verdict)) for one in verdicts]
    yield _Family("rageval_outcome", "The outcome of the evaluation: 1 for its outcome and 0 for the others.", states)
    yield _Family("rageval_failures", "Systems and metrics that failed.", [(spec, float(len(evaluation.failures)))])
    yield from _list_taken_over(evaluation, spec)
    yield from _list_aggregates(evaluation, spec)
    yield from _list_gates(evaluation, spec)


def _list_taken_over(evaluation: Evaluation, spec: Mapping[str, str]) -> Iterator[_Family]:
    cells = [({**spec, "dataset": one.dataset, "system": one.system}, one) for one in evaluation.provenance.taken_over]
    counts = [(cell, float(one.answers)) for cell, one in cells]
    yield _Family("rageval_answers_taken_over", "Answers that were not asked in this evaluation.", counts)
    times = [(cell, datetime.fromisoformat(one.first).timestamp()) for cell, one in cells if one.first is not None]
    told = "When the first answer that was taken over was asked, in seconds since 1970."
    yield _Family("rageval_answers_first_asked_seconds", told, times)
    versions = [(cell, float(len(one.versions))) for cell, one in cells if one.versions]
    yield _Family("rageval_answers_versions", "Versions of the code that the answers mix.", versions)


def _list_aggregates(evaluation: Evaluation, spec: Mapping[str, str]) -> Iterator[_Family]:
    sliced = (aggregate for one in evaluation.slices for aggregate in one.aggregates)
    cells = [({**spec, **_name_cell(one.cell)}, one) for one in (*evaluation.aggregates, *sliced)]
    means = [({**cell, "statistic": one.statistic}, one.mean) for cell, one in cells if one.mean is not None]
    yield _Family("rageval_value", "The mean of a metric, or the statistic that its label names.", means)
    ends = [
        ({**cell, "confidence": repr(one.confidence)}, one) for cell, of in cells if (one := of.interval) is not None
    ]
    low, high = ([(cell, pick(one)) for cell, one in ends] for pick in (attrgetter("low"), attrgetter("high")))
    yield _Family("rageval_interval_low", "The low end of the confidence interval of rageval_value.", low)
    yield _Family("rageval_interval_high", "The high end of the confidence interval of rageval_value.", high)
    scored = [(cell, float(one.scored)) for cell, one in cells]
    yield _Family("rageval_queries_scored", "Queries that have a value of the metric.", scored)
    totals = [(cell, float(one.total)) for cell, one in cells]
    yield _Family("rageval_queries", "All queries that the metric was asked for.", totals)


def _list_gates(evaluation: Evaluation, spec: Mapping[str, str]) -> Iterator[_Family]:
    gates = [({**spec, **_name_gate(gate)}, gate) for gate in evaluation.gates]
    states = [({**labels, "outcome": one}, float(one == gate.outcome)) for labels, gate in gates for one in _OUTCOMES]
    yield _Family("rageval_gate_outcome", "The outcome of a gate: 1 for its outcome and 0 for the others.", states)
    observed = [(labels, gate.observed) for labels, gate in gates if gate.observed is not None]
    yield _Family("rageval_gate_observed", "The number that a gate looked at.", observed)


def _name_cell(cell: Cell) -> dict[str, str]:
    """The labels of a cell; `slice` is empty, and so absent to Prometheus, for all queries."""
    return {"dataset": cell.dataset, "system": cell.system, "metric": cell.metric, "slice": cell.slice or ""}


def _name_gate(gate: GateOutcome) -> dict[str, str]:
    return {"gate": str(gate.gate + 1), **_name_cell(gate.cell), "bound": gate.bound}


def _escape(value: str) -> str:
    """A label's value: control characters visible, and backslashes and quotes escaped."""
    return make_visible(value).replace("\\", "\\\\").replace('"', '\\"')


PLUGIN = OpenmetricsReport
