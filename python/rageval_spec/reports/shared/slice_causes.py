"""The causes of questions in slices: the counts of each slice, and where a cause is more frequent than elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rageval_spec.data.diagnosis import Cause, CauseCount
    from rageval_spec.data.evaluation import Evaluation

_FEWEST = 5
"""Slices with fewer questions are not tested, as in `Evaluation.weakest`."""
_ALPHA = 0.05
_TESTED: tuple[Cause, ...] = ("retrieval", "generation", "both", "lucky")


@dataclass(frozen=True, slots=True)
class FrequentCause:
    """A cause that is significantly more frequent in a slice than among the other questions.

    Attributes:
        count: the slice's questions with this cause.
        others, others_total: the number of the other questions with this cause, and of all other questions.
        p_adjusted: from Fisher's exact test (one-sided), with Holm's correction over all slices, systems and causes of
            the dataset.
    """

    count: CauseCount
    others: int
    others_total: int
    p_adjusted: float


def list_frequent_causes(evaluation: Evaluation) -> list[FrequentCause]:
    """The causes that stand out in slices, the most significant first.

    Where questions belong together or count differently, there is no test: Fisher's is of questions that are drawn one
    by one.
    """
    found: list[FrequentCause] = []
    for dataset in (name for name in evaluation.datasets if name not in evaluation.designs):
        found += _test([pair for pair in _pair(evaluation) if pair[0].dataset == dataset])
    return sorted(found, key=lambda one: one.p_adjusted)


def _pair(evaluation: Evaluation) -> Iterator[tuple[CauseCount, CauseCount]]:
    """Each count of a slice that is tested, with the same cause's count of all questions."""
    counts = () if evaluation.diagnosis is None else evaluation.diagnosis.counts
    whole = {(one.dataset, one.system, one.cause): one for one in counts if one.slice is None}
    for one in counts:
        of_all = whole.get((one.dataset, one.system, one.cause))
        if (
            one.slice is not None
            and of_all is not None
            and one.cause in _TESTED
            and _FEWEST <= one.total < of_all.total
        ):
            yield one, of_all


def _test(pairs: Sequence[tuple[CauseCount, CauseCount]]) -> Iterator[FrequentCause]:
    if not pairs:
        return
    from rageval_spec import kernels
    from rageval_spec.statistics.proportions import find_p_of_excess

    p_values = [find_p_of_excess(one.count, one.total, whole.count, whole.total) for one, whole in pairs]
    for (one, whole), p_value in zip(pairs, kernels.holm(p_values), strict=True):
        if p_value < _ALPHA:
            yield FrequentCause(one, whole.count - one.count, whole.total - one.total, p_value)


def list_slice_counts(evaluation: Evaluation) -> dict[tuple[str, str], dict[str, list[CauseCount]]]:
    """By dataset and system, and then by slice in the evaluation's order, the counts of the causes that occur there."""
    counts = [] if evaluation.diagnosis is None else [one for one in evaluation.diagnosis.counts if one.slice]
    order = {(one.dataset, one.name): at for at, one in enumerate(evaluation.slices)}
    found: dict[tuple[str, str], dict[str, list[CauseCount]]] = {}
    for one in sorted(counts, key=lambda one: order.get((one.dataset, str(one.slice)), len(order))):
        found.setdefault((one.dataset, one.system), {}).setdefault(str(one.slice), []).append(one)
    return found
