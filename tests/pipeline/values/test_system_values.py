"""The values of one system, with missing, tied and unjudged documents and self-retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.pipeline.executing import column, evaluate, messages
from tests.tiny import Install, Length, install, write_spec

__all__ = ["install"]


def test_missing_queries_score_0_and_are_counted(tmp_path: Path) -> None:
    execution = evaluate(tmp_path)
    assert messages(execution, "missing_queries") == ["1 of 4 queries is not in the run and scores 0"]
    (note,) = [note for note in execution.notes if note.code == "missing_queries"]
    assert (note.dataset, note.system, note.count) == ("fruit", "good", 1)


def test_missing_queries_are_excluded_if_the_spec_says_so(tmp_path: Path) -> None:
    execution = evaluate(tmp_path, ranking={"missing": "skip"})
    assert column(execution, "good", "rr") == {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": None}
    assert column(execution, "good", "rr", "status")["q4"] == "unscorable"
    assert column(execution, "good", "rr", "reason")["q4"] == "the query is not in the run"
    assert column(execution, "good", "rr", "reason")["q1"] is None
    assert column(execution, "good", "rr", "tie_low")["q4"] is None
    assert column(execution, "tied", "rr")["q4"] == 1.0
    assert messages(execution, "missing_queries") == ["1 of 4 queries is not in the run and is left out"]


def test_queries_without_a_relevant_document(tmp_path: Path) -> None:
    execution = evaluate(tmp_path)
    assert messages(execution, "no_relevant_documents") == ["1 of 4 queries has no relevant document and scores 0"]
    skipped = evaluate(tmp_path, ranking={"no_relevant": "skip"})
    assert column(skipped, "tied", "rr") == {"q1": 1.0, "q2": 0.5, "q3": None, "q4": 1.0}
    assert column(skipped, "tied", "rr", "status")["q3"] == "unscorable"
    assert column(skipped, "tied", "rr", "reason")["q3"] == "the query has no relevant document"
    assert messages(skipped, "no_relevant_documents") == ["1 of 4 queries has no relevant document and is left out"]


def test_unjudged_queries_are_counted(tmp_path: Path) -> None:
    execution = evaluate(tmp_path)
    assert messages(execution, "unjudged_queries") == ["1 query of the run is not in the qrels and is ignored"]


def test_the_range_over_all_orders_of_ties(tmp_path: Path) -> None:
    grades = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"
    evaluate(tmp_path)
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(grades)
    execution = evaluate(tmp_path, systems={"tied": {"use": "file", "path": "data/tied.run"}})
    assert column(execution, "tied", "rr") == {"q1": 0.5}  # trec_eval: d2 before d1
    assert column(execution, "tied", "rr", "tie_low") == {"q1": 0.5}
    assert column(execution, "tied", "rr", "tie_high") == {"q1": 1.0}
    off = evaluate(tmp_path, ranking={"tie_range": False}, systems={"tied": {"use": "file", "path": "data/tied.run"}})
    assert off.values["tie_low"].null_count() == off.values.height


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        ({"ties": "input"}, {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 1.0}),
        ({"relevance_level": 2}, {"q1": 0.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}),
        ({"judged_only": True}, {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 1.0}),
    ],
)
def test_ranking_settings_reach_the_kernel(tmp_path: Path, ranking: dict[str, Any], expected: dict[str, float]) -> None:
    assert column(evaluate(tmp_path, ranking=ranking), "tied", "precision@1") == expected


def test_depth_cuts_rankings(tmp_path: Path) -> None:
    execution = evaluate(tmp_path, metrics=["num_ret"], ranking={"depth": 2})
    assert column(execution, "good", "num_ret") == {"q1": 2.0, "q2": 1.0, "q3": 1.0, "q4": 0.0}


SELF = "q1 Q0 q1 1 0.9 t\nq1 Q0 d1 2 0.8 t\nq2 Q0 q2 1 0.9 t\n"


@pytest.mark.parametrize(("setting", "expected"), [("auto", 1.0), ("drop", 1.0), ("keep", 0.5)])
def test_a_document_whose_id_is_the_querys(tmp_path: Path, setting: str, expected: float) -> None:
    system = {"self": {"use": "file", "path": "data/self.run"}}
    write_spec(tmp_path)
    (tmp_path / "data" / "self.run").write_text(SELF)
    execution = evaluate(tmp_path, systems=system, ranking={"self_retrieval": setting})
    assert column(execution, "self", "rr")["q1"] == expected
    told = messages(execution, "self_retrieval")
    assert [message.partition(",")[0] for message in told] == (
        ["2 retrieved documents with the id of the query were dropped"] if expected == 1.0 else []
    )


def test_auto_follows_the_benchmark_of_the_dataset(tmp_path: Path) -> None:
    write_spec(tmp_path)
    (tmp_path / "data" / "self.run").write_text(SELF)
    execution = evaluate(
        tmp_path,
        datasets={"fruit": {"use": "trec", "qrels": "data/qrels/test.tsv"}},
        systems={"self": {"use": "file", "path": "data/self.run"}},
    )
    assert column(execution, "self", "rr")["q1"] == 0.5


def test_two_names_for_one_measure(tmp_path: Path) -> None:
    execution = evaluate(tmp_path, metrics=["rr", {"use": "rr", "as": "reciprocal rank"}])
    assert column(execution, "tied", "rr") == column(execution, "tied", "reciprocal rank")


SPREAD = """q2 Q0 d1 1 0.9 t
q1 Q0 d2 1 0.5 t
q2 Q0 d3 2 0.9 t
q9 Q0 d3 2 0.9 t
q1 Q0 d1 2 0.5 t
q4 Q0 d5 1 -3e-2 t
"""


@pytest.mark.parametrize("ties", ["trec_eval", "input", "float64", "ranx"])
def test_a_run_file_read_in_place_gives_what_its_table_gives(tmp_path: Path, install: Install, ties: str) -> None:
    install("metrics", "length", Length)
    write_spec(tmp_path)
    (tmp_path / "data" / "good.run").write_text(SPREAD)
    metrics = ["rr", "ndcg@10", "map", "num_ret", "bpref"]
    settings = {"ties": ties, "self_retrieval": "keep"}
    in_place = evaluate(tmp_path, metrics=metrics, ranking=settings)
    as_table = evaluate(tmp_path, metrics=[*metrics, {"use": "length"}], ranking=settings)
    assert_frame_equal(in_place.values, as_table.values.filter(pl.col("metric") != "length"))
    own = "length: 1 of 4 queries failed; the first: the metric returned no value"
    assert list(in_place.notes) == [note for note in as_table.notes if note.message != own]
