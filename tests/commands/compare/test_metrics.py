"""The numbers of two evaluations, with paired tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.commands.compare.metrics import MetricChange
from rageval_spec.commands.compare.metrics import compare_metrics as compare_known
from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.data.evaluation import Evaluation, Interval
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.history.comparability import find_comparability
from tests.commands.compare.results import AFTER, BEFORE, evaluation


def compare_metrics(now: Evaluation, earlier: Evaluation, name: str = "before") -> list[MetricChange]:
    return compare_known(now, earlier, find_comparability(now, earlier, name))


def test_the_difference_is_of_the_questions_in_both_with_a_test() -> None:
    before = evaluation(BEFORE)
    found, latency = compare_metrics(evaluation(AFTER), before, "before")
    assert found.difference == pytest.approx((-0.8 + 0.6 - 0.1) / 5)
    assert found.is_worse is True
    assert found.comparison is not None
    assert (found.comparison.queries, found.comparison.wins, found.comparison.losses) == (5, 1, 2)
    assert found.comparison.baseline == "before"
    assert (latency.comparison, latency.difference, latency.is_worse) == (None, 0.0, None)


def test_questions_of_one_side_do_not_count() -> None:
    (found, _) = compare_metrics(evaluation(AFTER), evaluation({"q1": 0.9, "q3": 0.9}), "before")
    assert found.difference == pytest.approx(-0.45)
    assert found.before.mean == pytest.approx(0.9)


def test_low_values_can_be_good() -> None:
    before, after = (evaluation(numbers, lower_is_better=("token_f1",)) for numbers in (BEFORE, AFTER))
    found = compare_metrics(after, before, "before")[0]
    assert (found.is_worse, found.comparison and found.comparison.wins) == (False, 2)


def test_a_single_system_is_compared_whatever_its_name() -> None:
    found = compare_metrics(evaluation(AFTER, "v2"), evaluation(BEFORE, "v1"), "before")
    assert [(one.system, one.before.system) for one in found] == [("v2", "v1")] * 2
    assert found[0].comparison is not None


def test_questions_with_another_text_are_not_compared() -> None:
    prints = {query: Fingerprint("other" if query == "q1" else "a", "b") for query in AFTER}
    after = evaluation(AFTER, load_fingerprints=lambda: Fingerprints({"golden": prints}))
    found = compare_metrics(after, evaluation(BEFORE))[0]
    assert found.comparison is not None
    assert (found.comparison.queries, found.comparison.wins, found.comparison.losses) == (4, 1, 1)
    assert found.difference == pytest.approx((0.6 - 0.1) / 4)


def test_a_metric_whose_data_changed_is_not_worse_but_not_comparable() -> None:
    prints = {query: Fingerprint("a", "other" if query == "q1" else "b") for query in AFTER}
    after = evaluation(AFTER, load_fingerprints=lambda: Fingerprints({"golden": prints}))
    found = compare_metrics(after, evaluation(BEFORE))[0]
    assert found.comparison is not None
    assert [change.told for change in found.comparison.changes] == ["the reference of 1 query changed"]
    assert (found.comparison.is_comparable, found.is_worse) == (False, None)


def test_the_interval_is_that_of_the_gate_which_holds_though_the_evaluation_stopped_early() -> None:
    ordinary = compare_metrics(evaluation(AFTER), evaluation(BEFORE))[0].comparison
    assert ordinary is not None
    sequence = Interval(-0.6, 0.4, 0.95, "betting")
    gated = replace(ordinary, baseline="main", interval=sequence)
    found = compare_metrics(evaluation(AFTER, baselines=(gated,)), evaluation(BEFORE))[0].comparison
    assert found is not None
    assert (ordinary.interval != sequence, found.interval) == (True, sequence)


def test_clusters_and_weights_of_the_later_evaluation_count_on_both_sides() -> None:
    summary = DesignSummary(6, cluster="source", weight="traffic")
    weights = {f"q{number}": float(number) for number in range(10)}
    design = Design({f"q{number}": number // 3 for number in range(10)}, weights, summary=summary)
    plain = evaluation(AFTER)
    later = replace(plain, load_question_designs=lambda: {plain.datasets[0]: design})
    found = compare_metrics(later, evaluation(BEFORE), "before")[0]
    assert found.comparison is not None and found.comparison.design is not None
    assert found.comparison.design.plain == pytest.approx((-0.8 + 0.6 - 0.1) / 5)
    assert found.difference == found.comparison.difference != found.comparison.design.plain
    assert found.comparison.design.clusters is not None
