"""Paired values: differences, wins, and what weights change."""

from __future__ import annotations

from array import array

import pytest

from rageval_spec.data.cell import Cell
from rageval_spec.data.design import Design
from rageval_spec.statistics.layout import lay_out
from rageval_spec.statistics.pairs import Pairs
from tests.statistics.test_aggregate import METRICS

CELL = Cell("golden", "bot", "map")
VALUES, BASE = array("d", [1.0, 0.5, 0.0]), array("d", [0.5, 0.5, 0.5])


def test_pairs_that_all_count_the_same() -> None:
    pairs = Pairs(CELL, METRICS["map"], VALUES, BASE)
    assert pairs.difference() == pairs.plain_difference() == 0.0
    assert pairs.wins_and_losses() == (1, 1)
    assert pairs.summarize(BASE) == 0.5
    assert pairs.placed is None


def test_wins_of_a_metric_whose_low_values_are_good() -> None:
    values, base = array("d", [1.0, 1.0]), array("d", [2.0, 3.0])
    assert Pairs(CELL, METRICS["latency"], values, base).wins_and_losses() == (2, 0)


def test_weighted_pairs() -> None:
    design = Design({}, {"a": 3.0, "b": 1.0, "c": 0.0})
    pairs = Pairs(CELL, METRICS["map"], VALUES, BASE, lay_out(design, ["a", "b", "c"], ["a", "b", "c"]))
    assert pairs.difference() == pytest.approx(0.375)
    assert pairs.plain_difference() == 0.0
    assert pairs.summarize(VALUES) == pytest.approx(0.875)


def test_a_difference_of_percentiles() -> None:
    pairs = Pairs(CELL, METRICS["latency@p50"], VALUES, BASE)
    assert (pairs.percent, pairs.difference()) == (50, 0.0)
