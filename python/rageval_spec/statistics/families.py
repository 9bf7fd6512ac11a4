"""Which comparisons are corrected together, so that one comparison has one p-value wherever it is shown.

What gates ask for is decided before anybody sees a number: it is a family of its own, as primary endpoints of a trial
are. The other comparisons of a table are another family. So no gate depends on metrics that no gate asks for, and the
table shows the gate's own number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from rageval_spec import kernels
from rageval_spec.data.evaluation import Comparison

_Pair: TypeAlias = tuple[str, str, frozenset[str]]


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with `p_adjusted` by Holm's correction over all of them on one dataset."""
    adjusted = list(comparisons)
    for dataset in {comparison.dataset for comparison in comparisons}:
        family = [index for index, comparison in enumerate(comparisons) if comparison.dataset == dataset]
        p_values = kernels.holm([comparisons[index].p_value for index in family])
        for index, p_value in zip(family, p_values, strict=True):
            adjusted[index] = replace(comparisons[index], p_adjusted=p_value)
    return tuple(adjusted)


def adjust_table(table: Sequence[Comparison], gated: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons of a table, in its order, some of which gates ask for.

    A comparison that is in `gated` too, in either direction, takes `p_adjusted` from there: the highest, where gates on
    several baselines ask for it. The others are a family of their own on each dataset.
    """
    known: dict[_Pair, float] = {}
    for comparison in gated:
        pair = _pair(comparison)
        known[pair] = max(comparison.p_adjusted, known.get(pair, 0.0))
    rest = iter(adjust([comparison for comparison in table if _pair(comparison) not in known]))
    return tuple(
        replace(comparison, p_adjusted=known[_pair(comparison)]) if _pair(comparison) in known else next(rest)
        for comparison in table
    )


def _pair(comparison: Comparison) -> _Pair:
    """What is compared, whichever of the two systems is the baseline: the test is the same."""
    return comparison.dataset, comparison.metric, frozenset((comparison.system, comparison.baseline))
