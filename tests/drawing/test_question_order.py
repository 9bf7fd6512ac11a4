"""The questions that a filter chooses, and their order.

Values of a baseline beside those of an evaluation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import collect_base_values
from rageval_spec.drawing.question_order import (
    BaselineValues,
    Filter,
    find_base_values,
    list_baselines,
    match_systems,
    rank_questions,
)
from rageval_spec.errors import UsageError
from tests.answered_evaluation import answered, bridges, sample, value


def ids(evaluation: Evaluation, baseline: Evaluation | None = None, **wanted: Any) -> list[str]:
    table = rank_questions(evaluation, Filter(**wanted), None if baseline is None else BaselineValues("main", baseline))
    return [f"{system} {query}" for _, system, query, *_ in table.iter_rows()]


def test_failed_questions_come_first_then_those_with_the_worst_value() -> None:
    assert ids(bridges()) == ["v1 q3", "v1 q1", "v1 q2"]


def test_a_question_occurs_once_for_each_system_with_the_value_that_decided() -> None:
    table = rank_questions(bridges(), Filter())
    assert table.select("query_id", "metric", "value", "badness").rows()[1:] == [
        ("q1", "token_f1", 0.25, 0.75),
        ("q2", "token_f1", 0.9, pytest.approx(0.1)),
    ]


def test_seconds_count_only_if_they_are_asked_for() -> None:
    slow = [value("q1", "token_f1", 0.2), value("q1", "latency", 1.0), value("q2", "token_f1", 0.8),
            value("q2", "latency", 60.0)]  # fmt: skip
    assert ids(answered(slow)) == ["v1 q1", "v1 q2"]
    assert ids(answered(slow), metric="latency") == ["v1 q2", "v1 q1"]
    assert ids(answered([row for row in slow if row["metric"] == "latency"])) == ["v1 q2", "v1 q1"]


def test_a_scale_beyond_1_goes_from_the_lowest_to_the_highest_value() -> None:
    numbers = {"q1": (1.0, 0.9), "q2": (5.0, 0.9), "q3": (2.0, 0.1)}
    rows = [
        value(query, name, pair[at]) for query, pair in numbers.items() for at, name in ((0, "grade"), (1, "token_f1"))
    ]
    assert rank_questions(answered(rows), Filter())["badness"].to_list() == [1.0, 0.9, pytest.approx(0.1)]


def test_equal_worst_values_are_ordered_by_the_mean_then_by_place() -> None:
    rows = [value("a", "token_f1", 0.0), value("a", "ndcg@10", 1.0), value("b", "token_f1", 0.0),
            value("b", "ndcg@10", 0.5), value("c", "token_f1", 0.0), value("c", "ndcg@10", 0.5)]  # fmt: skip
    assert ids(answered(rows)) == ["v1 b", "v1 c", "v1 a"]


def test_questions_without_any_value_come_last() -> None:
    assert ids(answered([value("a", "token_f1", None), value("b", "token_f1", 1.0)])) == ["v1 b", "v1 a"]


def test_bounds_leave_themselves_out() -> None:
    rows = [value("a", "token_f1", 0.2), value("b", "token_f1", 0.5), value("c", "token_f1", 0.7)]
    assert ids(answered(rows), below=0.5) == ["v1 a"]
    assert ids(answered(rows), above=0.5) == ["v1 c"]
    assert ids(answered(rows), above=0.2, below=0.7) == ["v1 b"]


def test_bounds_concern_the_metric_that_is_named() -> None:
    assert ids(bridges(), metric="faithfulness", below=0.6) == ["v1 q1"]
    with pytest.raises(UsageError, match="a bound needs a metric; name one of faithfulness, token_f1"):
        ids(bridges(), below=0.5)


def test_systems_without_the_metric_are_left_out_but_not_questions_without_a_value() -> None:
    rows = [value("a", "ndcg@10", 0.1, "bm25"), value("a", "token_f1", None, "v1"), value("b", "token_f1", 0.9, "v1")]
    assert ids(answered(rows), metric="token_f1") == ["v1 b", "v1 a"]


Form: TypeAlias = Literal["NFC", "NFD"]


@pytest.mark.parametrize("kept", ["NFC", "NFD"])
@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_a_slice_is_found_however_its_accents_are_written(kept: Form, written: Form) -> None:
    name = normalize(kept, "lang=é")
    evaluation = answered([value("q1", "token_f1", 0.1)], [sample("q1", slices=[name])])
    assert ids(evaluation, slice=normalize(written, "lang=é")) == ["v1 q1"]


def test_filters_compose() -> None:
    places = [(query, system, dataset) for dataset in ("d1", "d2") for system in ("s1", "s2") for query in ("q1", "q2")]
    rows = [
        value(query, "token_f1", {"q1": 0.1, "q2": 0.9}[query], system, dataset) for query, system, dataset in places
    ]
    causes, slices = {"q1": "both", "q2": "fine"}, {"s1": ["hard", "all"], "s2": ["all"]}
    samples = [sample(*place, cause=causes[place[0]], slices=slices[place[1]]) for place in places]
    evaluation = answered(rows, samples)
    assert len(ids(evaluation)) == 8
    assert ids(evaluation, dataset="d1", system="s2") == ["s2 q1", "s2 q2"]
    assert ids(evaluation, slice="hard", cause="fine") == ["s1 q2", "s1 q2"]
    assert ids(evaluation, slice="all", limit=1) == ["s1 q1"]


def test_failed_are_those_without_an_answer_and_those_with_an_error() -> None:
    rows = [value("a", "token_f1", 0.5), value("b", "token_f1", None, status="error"), value("c", "token_f1", 0.0)]
    samples = [sample("a"), sample("b"), sample("c"), sample("d", answer=None, error="timeout"),
               sample("e", answer=None, status="unfinished")]  # fmt: skip
    assert ids(answered(rows, samples), failed=True) == ["v1 b", "v1 d", "v1 e"]


def test_regressed_are_ordered_by_how_far_they_fell() -> None:
    now = answered([value("a", "token_f1", 0.5), value("b", "token_f1", 0.1), value("c", "token_f1", 0.9),
                    value("d", "latency", 2.0)])  # fmt: skip
    before = answered([value("a", "token_f1", 0.9), value("b", "token_f1", 0.2), value("c", "token_f1", 0.8),
                       value("d", "latency", 1.0)])  # fmt: skip
    assert ids(now, before, regressed=True) == ["v1 a", "v1 b"]
    assert ids(now, before, regressed=True, metric="latency") == ["v1 d"]


def test_a_regressed_question_shows_the_value_that_fell() -> None:
    now, before = (answered([value("a", "token_f1", 0.1), value("a", "ndcg@10", number)]) for number in (0.6, 0.9))
    assert rank_questions(now, Filter())["metric"].to_list() == ["token_f1"]
    assert rank_questions(now, Filter(regressed=True), BaselineValues("main", before)).select(
        "metric", "value"
    ).rows() == [("ndcg@10", 0.6)]


def test_bounds_apply_before_a_fall_is_looked_for() -> None:
    now, before = (answered([value("a", "token_f1", first), value("b", "token_f1", 0.7)]) for first in (0.2, 0.9))
    assert ids(now, before, regressed=True, metric="token_f1", below=0.5) == ["v1 a"]
    assert ids(now, before, regressed=True, metric="token_f1", above=0.5) == []


def test_a_question_that_failed_and_had_a_value_has_regressed() -> None:
    now = answered([value("a", "token_f1", None)], [sample("a", answer=None, error="timeout")])
    assert ids(now, answered([value("a", "token_f1", 0.1)]), regressed=True) == ["v1 a"]


def test_without_a_baseline_regressed_means_worse_than_the_first_system() -> None:
    rows = [value("a", "token_f1", 0.5, "s1"), value("a", "token_f1", 0.4, "s2"), value("b", "token_f1", 0.5, "s1"),
            value("b", "token_f1", 0.6, "s2")]  # fmt: skip
    assert ids(answered(rows), regressed=True) == ["s2 a"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"metric": "faithfullness"}, "unknown metric 'faithfullness'; did you mean 'faithfulness'?"),
        ({"system": "v9"}, "unknown system 'v9'; these results have v1"),
        ({"dataset": "silver"}, "unknown dataset 'silver'; these results have golden"),
        ({"slice": "hard"}, "unknown slice 'hard'; the results have no slices"),
        ({"cause": "retrieval"}, "no causes: a spec needs answer_correctness"),
    ],
)
def test_unknown_names_are_errors_that_say_what_there_is(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ids(bridges(), **wanted)


def changes(evaluation: Evaluation, baseline: BaselineValues | None = None) -> list[tuple[Any, ...]]:
    """System, metric, query id, base value and the name of the baseline."""
    return sorted(find_base_values(evaluation, baseline).drop("dataset").rows())


def gated(gates: list[dict[str, Any]]) -> Evaluation:
    """Three systems, of which an earlier evaluation, `main`, has two."""
    rows = [value("q", "ndcg@10", number, system) for system, number in (("v1", 0.1), ("v2", 0.2), ("v3", 0.3))]
    before = answered([value("q", "ndcg@10", 0.7, "v1"), value("q", "ndcg@10", 0.8, "v2")])
    now = answered(rows, spec={"gates": gates})
    return replace(now, load_base_values=lambda: collect_base_values(now.values, {"main": before.values}))


def test_systems_are_matched_by_name() -> None:
    assert match_systems(["a", "b"], ["b", "c"]) == {"b": "b"}


def test_two_single_systems_are_compared_whatever_their_names() -> None:
    assert match_systems(["v2"], ["v1"]) == {"v2": "v1"}
    assert match_systems(["v2", "v3"], ["v1", "v0"]) == {}


def test_the_first_system_with_a_metric_is_the_baseline_of_the_others() -> None:
    rows = [value("q", "ndcg@10", 0.1, "bm25"), value("q", "ndcg@10", 0.2, "v1"), value("q", "token_f1", 0.3, "v1"),
            value("q", "token_f1", 0.4, "v2")]  # fmt: skip
    assert changes(answered(rows)) == [("v1", "ndcg@10", "q", 0.1, "bm25"), ("v2", "token_f1", "q", 0.3, "v1")]


def test_values_that_are_not_scored_are_no_baseline() -> None:
    now, before = answered([value("q", "token_f1", 0.1, "v2")]), answered([value("q", "token_f1", None, "v1")])
    assert changes(now, BaselineValues("main", before)) == []
    assert changes(before, BaselineValues("main", now)) == [("v1", "token_f1", "q", 0.1, "main")]


def test_a_baseline_of_a_gate_goes_before_the_first_system() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "main"}])
    assert list_baselines(now) == ["main"]
    assert changes(now) == [("v1", "ndcg@10", "q", 0.7, "main"), ("v2", "ndcg@10", "q", 0.8, "main"),
                            ("v3", "ndcg@10", "q", 0.1, "v1")]  # fmt: skip


def test_the_baseline_of_the_gate_on_a_metric_goes_before_those_of_other_metrics() -> None:
    gates = [{"metric": "token_f1", "baseline": "main"}, {"metric": "ndcg@10", "baseline": "v2"}]
    assert changes(gated(gates)) == [("v1", "ndcg@10", "q", 0.2, "v2"), ("v2", "ndcg@10", "q", 0.8, "main"),
                                     ("v3", "ndcg@10", "q", 0.2, "v2")]  # fmt: skip


def test_a_baseline_can_be_named() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "main"}])
    assert [row[3:] for row in changes(now, BaselineValues("main"))] == [(0.7, "main"), (0.8, "main")]
    assert [row[3:] for row in changes(now, BaselineValues("v3"))] == [(0.3, "v3"), (0.3, "v3")]


def test_a_baseline_without_values_is_not_one() -> None:
    now = gated([{"metric": "ndcg@10", "baseline": "gone"}, {"metric": "ndcg@10", "min": 0.5}])
    assert list_baselines(now) == ["main"]
