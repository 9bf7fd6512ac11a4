"""Describes how far the order of tied documents could move the numbers of a report.

If only a few systems have ties, each gets a sentence below its table. Many systems share one sentence below the last
table, which names the widest ranges; the JSON report has all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rageval_spec.wording import count_noun, tell_apart

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Evaluation

_MOST_SENTENCES = 3
_RANGES_SHOWN = 3


def describe_ties(evaluation: Evaluation, dataset: str) -> list[str]:
    """The sentences to show below the table of a dataset; each continues after the word `ties`."""
    tied = _collect(evaluation)
    if len(tied) > _MOST_SENTENCES:
        return [_describe_all(tied, evaluation)] if dataset == evaluation.datasets[-1] else []
    name_system = len(evaluation.systems) > 1
    return [_describe(cells, name_system) for (of, _), cells in tied.items() if of == dataset]


def _collect(evaluation: Evaluation) -> dict[tuple[str, str], list[Aggregate]]:
    """The cells that ties could move, by dataset and system, the widest range first."""
    tied: dict[tuple[str, str], list[Aggregate]] = {}
    for cell in evaluation.aggregates:
        if cell.ties is not None and cell.ties.queries:
            tied.setdefault((cell.dataset, cell.system), []).append(cell)
    places = [(dataset, system) for dataset in evaluation.datasets for system in evaluation.systems]
    return {place: _widest_first(tied[place]) for place in places if place in tied}


def _widest_first(cells: Sequence[Aggregate]) -> list[Aggregate]:
    return sorted(cells, key=lambda cell: cell.ties.low - cell.ties.high if cell.ties else 0.0)


def _describe(cells: Sequence[Aggregate], name_system: bool) -> str:
    ranges = [_describe_range(cell) for cell in cells[:_RANGES_SHOWN]]
    more = len(cells) - len(ranges)
    return (
        f"decide the value of {_count_queries(cells)}"
        + (f" of {cells[0].system}" if name_system else "")
        + f": {', '.join(ranges)}"
        + (f", and less for {count_noun(more, 'other metric')}" if more else "")
    )


def _describe_all(tied: dict[tuple[str, str], list[Aggregate]], evaluation: Evaluation) -> str:
    cells = [cell for of_one in tied.values() for cell in of_one]
    systems = {system for _, system in tied}
    many_datasets = len(evaluation.datasets) > 1
    widest: dict[str, Aggregate] = {}
    for cell in _widest_first(cells):
        widest.setdefault(cell.metric, cell)
    ranges = [
        f"{cell.metric} of {cell.system}{f' on {cell.dataset}' if many_datasets else ''} between {_describe_ends(cell)}"
        for cell in [*widest.values()][:_RANGES_SHOWN]
    ]
    return (
        f"decide the value of {_count_queries(cells)} of {count_noun(len(systems), 'system')}; "
        f"the widest ranges are {', '.join(ranges)}; the JSON report lists all of them"
    )


def _count_queries(cells: Sequence[Aggregate]) -> str:
    """`3 queries`, or `up to 7 queries` if the cells have different numbers."""
    counts = {cell.ties.queries for cell in cells if cell.ties}
    return ("up to " if len(counts) > 1 else "") + count_noun(max(counts), "query", "queries")


def _describe_range(cell: Aggregate) -> str:
    return f"{cell.metric} between {_describe_ends(cell)}"


def _describe_ends(cell: Aggregate) -> str:
    assert cell.ties is not None, "only tied cells are described"
    return " and ".join(tell_apart(cell.ties.low, cell.ties.high))
