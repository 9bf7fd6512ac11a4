from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evaluation import Evaluation, Provenance, SliceResult
from rageval_spec.data.outcomes import Cell, Counted, GateOutcome, Verdict
from rageval_spec.data.tables import SAMPLES, SampleTable, empty_samples
from tests.sample_evaluation import make_evaluation


def with_gates(*outcomes: Verdict) -> Evaluation:
    gates = tuple(
        GateOutcome(number, "golden", "bm25", "map", outcome, "", None, "") for number, outcome in enumerate(outcomes)
    )
    return replace(make_evaluation(), gates=gates, failures=())


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [((), "pass"), (("pass",), "pass"), (("pass", "warn"), "warn"), (("warn", "fail", "pass"), "fail")],
)
def test_the_worst_gate_is_the_verdict(outcomes: tuple[Verdict, ...], verdict: str) -> None:
    assert with_gates(*outcomes).verdict == verdict


@pytest.mark.parametrize("counts_as", ["fail", "warn", "pass"])
def test_an_inconclusive_gate_counts_as_the_spec_says(counts_as: Counted) -> None:
    evaluation = with_gates("pass", "inconclusive")
    passed, undecided = evaluation.gates
    assert evaluation.verdict == "warn"
    assert replace(evaluation, gates=(passed, replace(undecided, counts_as=counts_as))).verdict == counts_as


def test_a_failure_or_no_score_is_an_error_whatever_the_gates_say() -> None:
    assert replace(with_gates("pass"), failures=("bm25 on golden: gone",)).verdict == "error"
    nothing = tuple(replace(aggregate, scored=0) for aggregate in make_evaluation().aggregates)
    evaluation = replace(with_gates("pass"), aggregates=nothing)
    assert evaluation.scored_nothing
    assert evaluation.verdict == "error"


def test_reports_of_other_packages_find_the_provenance_in_the_evaluation() -> None:
    evaluation: Any = make_evaluation()
    assert evaluation.settings and evaluation.versions
    for one in fields(Provenance):
        assert getattr(evaluation, one.name) is getattr(evaluation.provenance, one.name)
    assert pickle.loads(pickle.dumps(evaluation)).settings == evaluation.settings
    assert not hasattr(evaluation, "unknown")


def test_numbers_are_found_by_their_cell() -> None:
    evaluation = make_evaluation(("golden", "scifact"))
    aggregate = evaluation.aggregate("scifact", "dense", "map")
    assert aggregate is not None
    assert aggregate.cell == Cell("scifact", "dense", "map")
    comparison = evaluation.comparison("golden", "dense", "map")
    assert comparison is not None
    assert comparison.cell == Cell("golden", "dense", "map")
    assert evaluation.comparison("golden", "bm25", "map") is None  # nothing is compared with itself
    assert evaluation.aggregate("golden", "nobody", "map") is None


def test_all_gates_of_a_cell_are_found() -> None:
    evaluation = with_gates("pass", "fail")
    assert [gate.outcome for gate in evaluation.outcomes("golden", "bm25", "map")] == ["pass", "fail"]
    assert evaluation.outcomes("golden", "dense", "map") == ()


def test_samples_are_loaded_once_when_first_read() -> None:
    made: list[pl.DataFrame] = []

    def load() -> pl.DataFrame:
        made.append(empty_samples())
        return made[-1]

    evaluation = replace(make_evaluation(), sample_table=SampleTable(lambda: [load()]))
    assert made == []
    assert evaluation.samples is evaluation.samples
    assert len(made) == 1
    assert make_evaluation().samples.columns == list(SAMPLES)


def test_the_numbers_of_a_slice_are_found_beside_those_of_all_queries() -> None:
    evaluation = make_evaluation()
    whole = evaluation.aggregates[0]
    part = replace(whole, mean=0.25, slice="difficulty=hard")
    sliced = SliceResult(whole.dataset, "difficulty=hard", "difficulty", "difficulty is hard", 12, (part,), ())
    evaluation = replace(evaluation, slices=(sliced,))

    assert evaluation.aggregate(whole.dataset, whole.system, whole.metric) == whole
    assert evaluation.aggregate(whole.dataset, whole.system, whole.metric, "difficulty=hard") == part


def test_columns_and_rows_of_samples_are_found_without_the_whole_table() -> None:
    samples = pl.concat([empty_samples(), pl.DataFrame({"query_id": ["q1", "q2", "q3"]})], how="diagonal")
    evaluation = replace(make_evaluation(), sample_table=SampleTable(lambda: samples.iter_slices(2)))
    assert evaluation.select_samples("query_id", "unknown").equals(samples.select("query_id"))
    wanted = pl.DataFrame({"query_id": ["q3", "q1", "q9"]})
    assert evaluation.find_samples(wanted).get_column("query_id").to_list() == ["q1", "q3"]
    assert evaluation.find_samples(wanted.tail(1)).equals(empty_samples())
    assert "samples" not in evaluation.__dict__
