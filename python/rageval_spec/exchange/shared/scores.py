"""The values of an evaluation next to the traces that they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.data.trace import TraceLink
from rageval_spec.errors import UsageError
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Score:
    """One value of a metric for one answer.

    Attributes:
        link: the answer's trace; None if it was not read from one.
        value: the number; None if the answer could not be scored, and `reason` says why.
        status: `scored`, `unscorable` or `error`.
        details: what the value was computed from, as JSON text; None if the metric keeps none.
        sample: the answer's row of the samples table.
    """

    dataset: str
    system: str
    query_id: str
    metric: str
    value: float | None
    status: str
    reason: str | None
    link: TraceLink | None
    sample: Mapping[str, Any]
    details: str | None = None

    @property
    def key(self) -> str:
        """Names the value at a destination: dataset, system, question and metric."""
        return "/".join((self.dataset, self.system, self.query_id, self.metric))


class Scores:
    """The values of an evaluation in the order of its samples, then of its metrics.

    Only those whose answer has a trace of `tool`, unless that is None. After iteration, `missing` counts the answers
    that were left out because they have none.
    """

    def __init__(self, evaluation: Evaluation, tool: str | None) -> None:
        """Read nothing yet."""
        self._evaluation = evaluation
        self._tool = tool
        self.missing = 0
        self._tools: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Score]:
        """The values, block by block of the samples.

        Raises:
            UsageError: no answer has a trace of this tool; the message says what to do.
        """
        found, self.missing = False, 0
        for sample, values in list_rows(self._evaluation):
            link = TraceLink.load(sample["trace"])
            if self._tool is not None and (link is None or link.tool != self._tool):
                self.missing += 1
                self._tools.update([] if link is None else [link.tool])
                continue
            found = True
            for metric, row in values.items():
                key = sample["dataset"], sample["system"], sample["query_id"], metric
                yield Score(*key, row["value"], row["status"], row["reason"], link, sample, row.get("details"))
        if not found:
            raise UsageError(self._explain_none())

    def remarks(self) -> list[str]:
        """How many answers were left out because they have no trace of the tool; call it after iterating."""
        if not self.missing:
            return []
        return [f"{count_noun(self.missing, 'answer')} without a trace of {self._tool} left out"]

    def _explain_none(self) -> str:
        others = f"; their traces are of {', '.join(sorted(self._tools))}" if self._tools else ""
        return (
            f"no answer has a trace of {self._tool}{others}; evaluate answers that were read from it: "
            f"systems: {{prod: {{use: {self._tool}}}}}, or a file of: rageval-spec import {self._tool} -o traces.jsonl"
        )


def list_rows(evaluation: Evaluation) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Each row of the samples with its values by metric, in the order of the evaluation's metrics."""
    order = {name: place for place, name in enumerate(evaluation.metrics)}
    for block in evaluation.iterate_samples():
        values = _values_of(evaluation, block)
        for sample in block.iter_rows(named=True):
            rows = values.get((sample["dataset"], sample["system"], sample["query_id"]), ())
            ordered = sorted(rows, key=lambda row: order.get(row["metric"], len(order)))
            yield sample, {row["metric"]: row for row in ordered}


def _values_of(evaluation: Evaluation, block: pl.DataFrame) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    keys = ["dataset", "system", "query_id"]
    rows = evaluation.values.join(block.select(keys), on=keys, how="semi", maintain_order="left")
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault((row["dataset"], row["system"], row["query_id"]), []).append(row)
    return found
