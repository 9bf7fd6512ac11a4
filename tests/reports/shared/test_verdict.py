from __future__ import annotations

from dataclasses import replace

import polars as pl

from rageval_spec.data.base_values import empty_base_values
from rageval_spec.data.evaluation import GateOutcome
from rageval_spec.reports.shared.verdict import describe_headline
from tests.sample_evaluation import make_evaluation


def test_a_failed_gate_is_named_with_its_reason() -> None:
    assert str(describe_headline(make_evaluation())) == (
        "Not ready: 1 of 3 gates failed, 1 warned. ndcg@10 of bm25 is 0.412, below the minimum 0.450."
    )


def test_a_drop_from_another_system_is_told_with_both_means() -> None:
    reason = "map of dense is below bm25"
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "drop from bm25 ≤ 0.02", -0.1, reason, baseline="bm25")
    evaluation = replace(
        make_evaluation(metrics={"map": (0.358, 0.307)}), gates=(drop, replace(drop, gate=1, outcome="pass"))
    )
    assert str(describe_headline(evaluation)) == (
        "Not ready: 1 of 2 gates failed. map fell from 0.358 (bm25) to 0.307 (dense)."
    )
    graded = describe_headline(replace(evaluation, gates=(replace(drop, severity="medium"),)))
    assert graded.reason == "map fell from 0.358 (bm25) to 0.307 (dense), a regression of medium severity."
    unknown = describe_headline(replace(evaluation, gates=(replace(drop, baseline="main"),)))
    assert unknown.reason == "map of dense is below bm25."


def test_a_drop_from_an_earlier_evaluation_is_told_with_both_means() -> None:
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "drop from main ≤ 0.02", -0.25, "below", baseline="main")
    rows = [("main", "golden", "dense", "map", query_id, number) for query_id, number in (("q1", 0.5), ("q2", 1.0))]
    earlier = pl.DataFrame(rows, schema=empty_base_values().schema, orient="row")
    evaluation = replace(make_evaluation(), gates=(drop,), load_base_values=lambda: earlier)
    assert describe_headline(evaluation).reason == "map of dense fell from 0.750 (main) to 0.500."
    sliced = replace(evaluation, gates=(replace(drop, slice="long"),))
    assert describe_headline(sliced).reason == "below."


def test_means_that_differ_read_differently() -> None:
    drop = GateOutcome(0, "golden", "dense", "map", "fail", "no drop from bm25", -0.1, "below", baseline="bm25")
    evaluation = replace(make_evaluation(metrics={"map": (0.35801, 0.35799)}), gates=(drop,))
    assert describe_headline(evaluation).reason == "map fell from 0.35801 (bm25) to 0.35799 (dense)."


def test_passing_warning_and_no_gates() -> None:
    evaluation = make_evaluation()
    passed, warned, _ = evaluation.gates
    told = {
        (passed,): "Ready: the only gate passed.",
        (passed, passed): "Ready: all 2 gates passed.",
        (): "Complete: the spec has no gates.",
    }
    for gates, sentence in told.items():
        assert str(describe_headline(replace(evaluation, gates=gates))) == sentence
    assert str(describe_headline(replace(evaluation, gates=(passed, warned)))).startswith(
        "Ready, with warnings: 1 of 2 gates warned, none failed. ndcg@10 of dense is 0.488"
    )


def test_an_inconclusive_gate_leaves_the_evaluation_undecided() -> None:
    evaluation = make_evaluation()
    passed = evaluation.gates[0]
    undecided = replace(passed, outcome="inconclusive", reason="map of bm25 is 0.4, with the minimum 0.5 inside")
    assert str(describe_headline(replace(evaluation, gates=(passed, undecided)))) == (
        "Undecided: 1 of 2 gates is inconclusive, none failed. map of bm25 is 0.4, with the minimum 0.5 inside."
    )
    strict = replace(undecided, counts_as="fail")
    assert describe_headline(replace(evaluation, gates=(passed, strict))).title == "Not ready"
    accepted = replace(undecided, counts_as="pass")
    assert describe_headline(replace(evaluation, gates=(passed, accepted))).title == "Ready"


def test_a_broken_evaluation_is_incomplete() -> None:
    evaluation = replace(make_evaluation(), failures=("dense on golden: the model is gone", "x: y"))
    assert str(describe_headline(evaluation)) == (
        "Incomplete: 2 parts of the evaluation failed. dense on golden: the model is gone."
    )
    nothing = replace(evaluation, failures=(), aggregates=(), gates=())
    assert str(describe_headline(nothing)) == "Incomplete: nothing could be scored."
