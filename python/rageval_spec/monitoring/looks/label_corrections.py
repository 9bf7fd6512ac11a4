"""Means of windows corrected by what people say of some of their answers (PPI, as in evaluations)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from rageval_spec.calibration.labelled_items import weigh
from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.labels import Label, average_labels, digest_answer, find_ends
from rageval_spec.data.outcomes import LABEL, LABEL_WEIGHT
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import RagevalError
from rageval_spec.libraries import pl
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.looks.windows import WindowNumbers, WindowValues
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.pipeline.planning.preflight import choose_labels
from rageval_spec.plugin import Labels
from rageval_spec.statistics.raters.label_correction import Rule, correct_aggregates

_LIVE = "live"


@dataclass(frozen=True)
class LabelCorrector:
    """Corrects the means of metrics that name `labels:`. A label's query id is the id of a trace.

    A label that names the digest of an answer counts only while the trace has this answer.
    """

    ledger: Ledger
    labels: Mapping[str, Labels[Any]]

    def correct(self, series: Series, found: WindowValues, numbers: WindowNumbers, confidence: float) -> WindowNumbers:
        """The numbers with the corrected mean and interval; with the judge's and the reason where that is not possible.

        Numbers of a metric without labels, of a percentile, and of a window without values stay as they are.
        """
        metric = series.metric
        source = None if metric is None else metric.node.labels
        if metric is None or source is None or series.percent is not None or numbers.value is None:
            return numbers
        bounds, problem = find_ends(*metric.bounds), None
        means: dict[str, tuple[float, float]] = {}
        try:
            means = self._read(series, str(source), set(found.trace_ids))
        except (RagevalError, OSError) as error:
            problem = str(error)
        low, high = bounds
        rows = [means.get(one) for one in found.trace_ids]
        frame = pl.DataFrame(
            {
                "dataset": _LIVE,
                "system": _LIVE,
                "metric": series.name,
                "query_id": found.trace_ids,
                "value": found.values,
                "status": "scored",
                LABEL: [None if row is None else low + (high - low) * row[0] for row in rows],
                LABEL_WEIGHT: [None if row is None else row[1] for row in rows],
            },
            schema_overrides={LABEL: pl.Float64, LABEL_WEIGHT: pl.Float64},
        )
        count = len(rows)
        judged = Aggregate(_LIVE, _LIVE, series.name, numbers.value, numbers.interval, count, count)
        weights = dict(zip(found.trace_ids, found.weights.tolist(), strict=True))
        designs = {_LIVE: Design(weights=weights)} if len({*weights.values()}) > 1 else None
        rule = Rule(str(source), bounds, metric.node.correction, problem)
        (corrected,) = correct_aggregates([judged], frame, {series.name: rule}, confidence, designs)
        if corrected.mean is None:
            return replace(numbers, correction=corrected.correction)
        return replace(numbers, value=corrected.mean, interval=corrected.interval, correction=corrected.correction)

    def _read(self, series: Series, source: str, wanted: set[str]) -> dict[str, tuple[float, float]]:
        """The mean of the labels of each trace, from 0 to 1, and its weight."""
        assert series.metric is not None
        plugin = self.labels[source]
        chosen = choose_labels(plugin.read(), series.name, series.metric.node.use)
        some = [one for one in chosen if one.claim is None and one.query_id in wanted]
        kept = self.ledger.read_traces([one.query_id for one in some if one.answer])
        answers = {name: one.trace.answer for name, one in kept.items()}
        of_trace: dict[str, list[Label]] = defaultdict(list)
        for one in some:
            if not one.answer or digest_answer(answers.get(one.query_id) or "") == one.answer:
                of_trace[one.query_id].append(one.put_on(plugin.scale))
        weights = weigh([*of_trace.values()]) or [1.0] * len(of_trace)
        return {
            name: (average_labels(of, plugin.scale), weight)
            for (name, of), weight in zip(of_trace.items(), weights, strict=True)
        }
