"""Sentences on ties: one for each system if there are few, and one for all if there are many."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.evaluation import Evaluation, TieRange
from rageval_spec.reports.shared.ties import describe_ties
from tests.sample_evaluation import make_evaluation


def tied(systems: int, datasets: tuple[str, ...] = ("golden",)) -> Evaluation:
    """An evaluation in which every system has ties; the last system has the widest range."""
    evaluation = make_evaluation(datasets, [f"s{number}" for number in range(systems)], {"map": (0.5,), "rr": (0.5,)})
    cells = [
        replace(cell, ties=TieRange(0.5 - int(cell.system[1:]) / 100, 0.5, 2 + int(cell.system[1:])))
        for cell in evaluation.aggregates
    ]
    return replace(evaluation, aggregates=tuple(cells))


def test_a_few_systems_have_a_sentence_each() -> None:
    assert describe_ties(tied(2), "golden") == [
        "decide the value of 2 queries of s0: map between 0.500 and 0.500, rr between 0.500 and 0.500",
        "decide the value of 3 queries of s1: map between 0.490 and 0.500, rr between 0.490 and 0.500",
    ]
    assert describe_ties(tied(1), "golden")[0].startswith("decide the value of 2 queries: map ")


def test_many_systems_have_one_sentence_below_the_last_table() -> None:
    evaluation = tied(10, ("golden", "other"))
    assert describe_ties(evaluation, "golden") == []
    assert describe_ties(evaluation, "other") == [
        "decide the value of up to 11 queries of 10 systems; the widest ranges are "
        "map of s9 on golden between 0.410 and 0.500, rr of s9 on golden between 0.410 and 0.500; "
        "the JSON report lists all of them"
    ]


def test_metrics_without_ties_are_not_mentioned() -> None:
    evaluation = tied(2)
    untied = tuple(replace(cell, ties=None) for cell in evaluation.aggregates)
    assert describe_ties(replace(evaluation, aggregates=untied), "golden") == []
