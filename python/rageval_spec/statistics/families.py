"""Families: the sets of comparisons that are corrected together, chosen so that a comparison has only one p-value.

The comparisons that gates request are fixed before the numbers are known, so they form their own family, like the
primary endpoints of a trial. The other comparisons of a table form another family. Therefore no gate depends on metrics
without a gate, and the table shows the gate's own p-value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from rageval_spec import kernels
from rageval_spec.data.evaluation import Comparison

_Pair: TypeAlias = tuple[str, str | None, str, frozenset[str]]


def adjust(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons, with `p_adjusted` from Holm's correction over all of them on one dataset."""
    adjusted = list(comparisons)
    for dataset in {comparison.dataset for comparison in comparisons}:
        family = [index for index, comparison in enumerate(comparisons) if comparison.dataset == dataset]
        p_values = kernels.holm([comparisons[index].p_value for index in family])
        for index, p_value in zip(family, p_values, strict=True):
            adjusted[index] = replace(comparisons[index], p_adjusted=p_value)
    return tuple(adjusted)


def share_highest(families: Mapping[str, Sequence[Comparison]]) -> dict[str, tuple[Comparison, ...]]:
    """The families, after a comparison that several of them have took the highest of its `p_adjusted` in all.

    Gates on two baselines can ask for the same pair of systems, each from its own side.
    """
    highest = _find_highest(one for family in families.values() for one in family)
    return {
        name: tuple(replace(one, p_adjusted=highest[one.pair]) for one in family) for name, family in families.items()
    }


def adjust_table(table: Sequence[Comparison], gated: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Adjust the comparisons of a table, some of which gates request; the order stays.

    A comparison that is also in `gated`, in either direction, takes its `p_adjusted` from there. The other comparisons
    form one family on each dataset.
    """
    known = _find_highest(gated)
    rest = iter(adjust([comparison for comparison in table if comparison.pair not in known]))
    return tuple(
        replace(comparison, p_adjusted=known[comparison.pair]) if comparison.pair in known else next(rest)
        for comparison in table
    )


def _find_highest(comparisons: Iterable[Comparison]) -> dict[_Pair, float]:
    highest: dict[_Pair, float] = {}
    for comparison in comparisons:
        pair = comparison.pair
        highest[pair] = max(comparison.p_adjusted, highest.get(pair, 0.0))
    return highest
