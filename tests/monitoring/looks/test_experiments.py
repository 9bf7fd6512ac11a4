"""A/B tests in production: two values of an attribute, looked at any time."""

from pathlib import Path
from typing import Any

import numpy as np

from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.looks.experiments import Experiment, read_experiment
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import ExperimentNode
from tests.monitoring.seen_traces import BEGAN, fill, open_ledger

RANDOM = np.random.default_rng(5)


def begin(folder: Path) -> tuple[Ledger, Series]:
    ledger = open_ledger(folder)
    ledger.arms_by = "variant"
    return ledger, Series(ledger.find_series("faithfulness", "", {}, BEGAN), "faithfulness")


def add(ledger: Ledger, series: Series, variant: str, mean: float, count: int) -> None:
    values = (RANDOM.random(count) < mean).astype(float).tolist()
    fill(ledger, series.id, values, prefix=variant, metadata={"variant": variant})


def read(ledger: Ledger, series: Series, **others: Any) -> Experiment:
    return read_experiment(ledger, series, ExperimentNode(by="variant", metric="faithfulness", **others), 0.95)


def test_the_better_system_is_named_once_that_is_sure(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series, "a", 0.6, 20)
    add(ledger, series, "b", 0.9, 20)
    early = read(ledger, series)
    assert early.better is None
    assert early.tell().endswith("too few to compare")
    add(ledger, series, "a", 0.6, 400)
    add(ledger, series, "b", 0.9, 400)
    late = read(ledger, series)
    assert late.better == "b"
    assert "b is better" in late.tell()


def test_equal_systems_have_no_better_one(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series, "a", 0.8, 300)
    add(ledger, series, "b", 0.8, 300)
    assert read(ledger, series).better is None


def test_lost_traces_are_told_in_place_of_a_winner(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series, "a", 0.5, 600)
    add(ledger, series, "b", 0.9, 300)
    found = read(ledger, series)
    assert found.has_wrong_shares and found.better is None
    assert "66.7% and 33.3% of the traces" in found.tell()
    assert not read(ledger, series, shares={"a": "67%", "b": "33%"}).has_wrong_shares


def test_a_sample_that_keeps_all_errors_has_the_shares_of_the_traffic(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    for variant, errors in (("a", 0), ("b", 600)):
        rest = [1.0] * ((2000 - errors) // 10)
        fill(ledger, series.id, rest, weight=10.0, prefix=f"{variant}-rest", metadata={"variant": variant})
        fill(ledger, series.id, [0.0] * errors, prefix=f"{variant}-errors", metadata={"variant": variant})
    found = read(ledger, series)
    assert not found.has_wrong_shares
    assert found.shares is not None and np.allclose(found.shares.shares, 0.5, atol=0.01)


def test_an_attribute_with_other_values_is_a_problem_that_is_told(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    assert read(ledger, series).tell() == "variant has 0 values; a test needs two"
    for one in "abc":
        add(ledger, series, one, 0.8, 5)
    assert read(ledger, series).tell() == "variant has 3 values: a, b, c; a test needs two"
