"""Diagnoses an evaluation: the cause of each question, counted for all queries and for each slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS, Advice, CauseCount, Diagnosis
from rageval_spec.diagnosis.evidence import Choice, choose_metrics, find_judged_contexts

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.data.evaluation import Aggregate
    from rageval_spec.pipeline.execute import Execution
    from rageval_spec.spec.nodes import Spec


@dataclass(frozen=True)
class Diagnosed:
    """A diagnosis (None if there can be none), and the causes by dataset and system: `query_id, cause`."""

    diagnosis: Diagnosis | None = None
    causes: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict)


def diagnose(
    spec: Spec,
    execution: Execution,
    aggregates: Sequence[Aggregate],
    slices: pl.DataFrame | None = None,
    designs: Mapping[str, Design] | None = None,
) -> Diagnosed:
    """Sort the questions of all systems that answer.

    There is no diagnosis if no metric of the spec says whether answers are right, or if neither a metric nor judged
    documents say whether contexts have what was needed.

    Args:
        spec: its `diagnosis:` names metrics and thresholds.
        execution: the values, and the answers.
        aggregates: the means, for the advice.
        slices: `dataset, query_id, slices` (a list of names), if the spec declares slices.
        designs: the clusters and weights of each dataset's questions, if the spec has any.
    """
    answered = {(part.dataset, part.system): part for part in execution.samples if not part.retrieves}
    has_judgements = any(part.qrels is not None for part in answered.values())
    choice = choose_metrics(spec.diagnosis, spec.metrics, has_judgements=has_judgements)
    if choice is None or not answered:
        return Diagnosed()
    from rageval_spec.diagnosis.advice import advise
    from rageval_spec.diagnosis.causes import count_causes, find_causes

    needs_judged = choice.retrieval == JUDGED_DOCUMENTS
    judged = {cell: find_judged_contexts(part.answers, part.qrels) for cell, part in answered.items() if needs_judged}
    causes = find_causes(execution.values, choice, spec.diagnosis, judged)
    counts = list(count_causes(causes, spec.statistics.confidence, designs=designs))
    for name, rows in _split_by_slice(causes, slices):
        counts += count_causes(rows, spec.statistics.confidence, name, designs)
    words = {metric.name: metric.node.use for metric in spec.metrics}
    advice = tuple(advise(causes, aggregates, words))
    of_cells = causes.partition_by("dataset", "system", as_dict=True, maintain_order=True)
    labels = {
        (str(dataset), str(system)): rows.select("query_id", "cause") for (dataset, system), rows in of_cells.items()
    }
    return Diagnosed(_describe(spec, choice, tuple(counts), advice), labels)


def _describe(spec: Spec, choice: Choice, counts: tuple[CauseCount, ...], advice: tuple[Advice, ...]) -> Diagnosis:
    return Diagnosis(*choice, spec.diagnosis.wrong_below, spec.diagnosis.right_from, counts, advice)


def _split_by_slice(causes: pl.DataFrame, slices: pl.DataFrame | None) -> Iterator[tuple[str, pl.DataFrame]]:
    """The causes of each slice, in the order in which the slices first occur."""
    if slices is None:
        return
    members = slices.select("dataset", "query_id", slice="slices").explode("slice").drop_nulls("slice")
    joined = causes.join(members, on=["dataset", "query_id"], how="inner", maintain_order="left_right")
    for (name,), rows in joined.group_by("slice", maintain_order=True):
        yield str(name), rows.drop("slice")
