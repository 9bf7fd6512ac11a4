"""Weighted means beside plain ones, and what reports say of questions that belong together or count differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.wording import count_noun, format_interval, format_number, format_percent, format_signed

if TYPE_CHECKING:
    from rageval_spec.data.design import CellDesign
    from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Interval

Row: TypeAlias = tuple[str, ...]
TITLE = "Weighted and plain means"
HEADER: Row = ("metric", "weighted", "plain", "scored", "effective n")
NUMBERS = frozenset(range(1, len(HEADER)))
"""The columns with numbers."""
_NEGLIGIBLE = 1e-9


def describe_design(evaluation: Evaluation, dataset: str) -> Iterator[tuple[str, str]]:
    """What the legend of a dataset's table says of its clusters and weights, as pairs of a mark and its meaning."""
    design = evaluation.designs.get(dataset)
    if design is None:
        return
    if design.cluster is not None:
        questions = count_noun(design.questions, "question")
        told = f"intervals and tests: {questions} in {count_noun(design.clusters or 0, 'cluster')} ({design.cluster})"
        if design.without_cluster:
            told += f", {design.without_cluster} of them on their own, because they have no value"
        yield "n", told
    if design.is_weighted:
        kind = "the mix of production in" if design.weights is not None else "the column"
        yield "w", f"weighted by {kind} {design.source}, and so are gates and comparisons; '{TITLE}' shows both"


def list_weighted(evaluation: Evaluation, digits: int) -> list[Row]:
    """A row for each weighted mean and difference, with the cells of `HEADER`; no row if nothing is weighted."""
    means = [_describe_mean(one, evaluation, digits) for one in evaluation.aggregates]
    differences = [_describe_difference(one, evaluation, digits) for one in evaluation.every_comparison]
    return [row for row in (*means, *differences) if row is not None]


def explain_weights(evaluation: Evaluation) -> Iterator[str]:
    """What the rows mean, and what of production they leave out, in sentences."""
    yield (
        "The weighted means are the numbers of the tables above, of gates and of comparisons. A plain mean counts "
        "every question the same. 'effective n' is how many questions of equal weight would tell as much."
    )
    for dataset, design in evaluation.designs.items():
        absent = [one for one in design.strata if one.share and not one.questions]
        if absent:
            share, names = format_percent(sum(one.share for one in absent)), ", ".join(one.name for one in absent)
            yield f"{dataset} has no evaluated question for {share} of production: {names}."
    for one in evaluation.aggregates:
        if one.design is not None and one.design.uncovered > _NEGLIGIBLE:
            share = format_percent(one.design.uncovered)
            yield f"{_name(one, evaluation)} leaves out {share} of production, which has no scored question."


def _describe_mean(one: Aggregate, evaluation: Evaluation, digits: int) -> Row | None:
    if one.design is None or one.design.plain is None or one.mean is None:
        return None
    number = format_number(one.mean, digits)
    return _name(one, evaluation), *_list_cells(number, one.interval, one.design, one.scored, digits, is_signed=False)


def _describe_difference(one: Comparison, evaluation: Evaluation, digits: int) -> Row | None:
    if one.design is None or one.design.plain is None:
        return None
    number = format_signed(one.difference, digits)
    name = f"{_name(one, evaluation)} vs {one.baseline}"
    return name, *_list_cells(number, one.interval, one.design, one.queries, digits, is_signed=True)


def _list_cells(
    number: str, interval: Interval | None, design: CellDesign, scored: int, digits: int, *, is_signed: bool
) -> Row:
    assert design.plain is not None and design.effective is not None
    plain = format_signed(design.plain, digits) if is_signed else format_number(design.plain, digits)
    return f"{number} {format_interval(interval, digits)}".rstrip(), plain, str(scored), f"{design.effective:.0f}"


def _name(one: Aggregate | Comparison, evaluation: Evaluation) -> str:
    where = f" on {one.dataset}" if len(evaluation.datasets) > 1 else ""
    return f"{one.metric} of {one.system}{where}"
