from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.engines.local import Local, LocalNode
from rageval_spec.errors import DataError, RagevalError, StoreWarning
from rageval_spec.pipeline import ranking_values as values
from rageval_spec.pipeline.execute import Execution, execute
from rageval_spec.pipeline.plan import build_parts, make_plan
from rageval_spec.pipeline.work import Work
from rageval_spec.plugin import Context
from rageval_spec.spec import load
from rageval_spec.store.folder import FolderStore, Store
from rageval_spec.store.memory import MemoryStore
from tests.tiny import Counting, Failing, FailingStored, Install, Length, install, write_spec

__all__ = ["install"]


def evaluate(
    folder: Path, store: Store | None = None, limit: int | None = None, workers: int = 2, **sections: Any
) -> Execution:
    spec = load(write_spec(folder, **sections))
    parts, store = build_parts(spec), store or MemoryStore()
    plan = make_plan(spec, parts, store.fingerprint, limit)
    return execute(Work(spec, parts, plan, store, Local(LocalNode(workers=workers), Context("local")), limit))


def column(execution: Execution, system: str, metric: str, name: str = "value") -> dict[str, Any]:
    """One column of a cell, by query."""
    rows = execution.values.filter(pl.col("system") == system, pl.col("metric") == metric)
    return dict(rows.select("query_id", name).iter_rows())


def messages(execution: Execution, code: str) -> list[str]:
    return [note.message for note in execution.notes if note.code == code]


def test_every_query_of_every_system_has_a_value_of_every_metric(tmp_path: Path) -> None:
    execution = evaluate(tmp_path)
    assert execution.values.columns == list(values.COLUMNS)
    assert execution.values.height == 4 * 2 * 2
    assert execution.failures == ()
    assert column(execution, "good", "rr") == {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}
    assert column(execution, "tied", "rr") == {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 1.0}
    assert set(execution.values["status"]) == {"scored"}
    cells = execution.values.select("system", "metric").unique(maintain_order=True).rows()
    assert cells == [("good", "rr"), ("good", "precision@1"), ("tied", "rr"), ("tied", "precision@1")]


def test_missing_queries_score_0_and_are_counted(tmp_path: Path) -> None:
    execution = evaluate(tmp_path)
    assert messages(execution, "missing_queries") == ["1 of 4 queries is not in the run and scores 0"]
    (note,) = [note for note in execution.notes if note.code == "missing_queries"]
    assert (note.dataset, note.system, note.count) == ("fruit", "good", 1)


def test_missing_queries_are_left_out_where_the_spec_says_so(tmp_path: Path) -> None:
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


def test_queries_that_nobody_judged_are_counted(tmp_path: Path) -> None:
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


def test_auto_keeps_it_where_the_datasets_benchmark_does(tmp_path: Path) -> None:
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


def test_a_limit_takes_the_first_queries_of_the_qrels(tmp_path: Path) -> None:
    execution = evaluate(tmp_path, limit=2)
    assert column(execution, "good", "rr") == {"q1": 1.0, "q2": 1.0}
    assert messages(execution, "limited") == ["only the first 2 of 4 queries are evaluated"]
    assert messages(execution, "unjudged_queries") == []


def test_a_system_is_asked_for_judged_queries_alone(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    execution = evaluate(tmp_path, store, systems={"bm25": {"use": "bm25"}})
    (table,) = (tmp_path / "store" / "tables").iterdir()
    run = store.load(table.name)
    assert run is not None
    assert set(run["query_id"]) <= {"q1", "q2", "q3", "q4"}  # and not q8
    assert column(execution, "bm25", "rr")["q2"] == 1.0


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
    assert in_place.notes == as_table.notes


# Failures


def test_a_system_that_fails_does_not_stop_the_others(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    systems = {"broken": {"use": "failing"}, "good": {"use": "file", "path": "data/good.run"}}
    execution = evaluate(tmp_path, systems=systems)
    assert column(execution, "good", "rr")["q1"] == 1.0
    assert set(column(execution, "broken", "rr", "status").values()) == {"error"}
    assert set(column(execution, "broken", "rr").values()) == {None}
    reason = "ConnectionError: nobody at the other end"
    assert set(column(execution, "broken", "precision@1", "reason").values()) == {reason}
    (failure,) = execution.failures
    assert str(failure) == f"broken on fruit: {reason}"
    assert isinstance(failure.error, ConnectionError)
    assert messages(execution, "failed") == [reason]


def test_the_same_for_a_system_whose_run_would_be_stored(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", FailingStored)
    install("systems", "counting", Counting)
    execution = evaluate(tmp_path, systems={"broken": {"use": "failing"}, "sound": {"use": "counting"}})
    assert [failure.system for failure in execution.failures] == ["broken"]
    assert column(execution, "sound", "rr")["q1"] == 1.0


def test_a_bad_run_file_names_its_line(tmp_path: Path) -> None:
    write_spec(tmp_path)
    (tmp_path / "data" / "good.run").write_text("q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 high t\n")
    execution = evaluate(tmp_path)
    (failure,) = execution.failures
    assert "good.run:2" in failure.message
    assert column(execution, "tied", "rr")["q1"] == 1.0


def test_a_document_twice_is_an_error_unless_the_spec_says_otherwise(tmp_path: Path) -> None:
    write_spec(tmp_path)
    (tmp_path / "data" / "good.run").write_text("q1 Q0 d1 1 0.9 t\nq1 Q0 d1 2 0.8 t\n")
    (failure,) = evaluate(tmp_path).failures
    assert "d1" in failure.message
    assert evaluate(tmp_path, ranking={"duplicates": "first"}).failures == ()


def test_what_the_dataset_lacks_is_named(tmp_path: Path) -> None:
    datasets = {"fruit": {"use": "trec", "qrels": "data/qrels/test.tsv"}}
    with pytest.raises(RagevalError, match="bm25 reads the corpus, and the dataset 'fruit' has none"):
        evaluate(tmp_path, datasets=datasets, systems={"bm25": {"use": "bm25"}})


def test_a_dataset_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    write_spec(tmp_path)
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\tmuch\n")
    with pytest.raises(DataError, match=r"test\.tsv:2"):
        evaluate(tmp_path)


# Metrics in Python


def test_a_metric_in_python(tmp_path: Path, install: Install) -> None:
    install("metrics", "length", Length)
    execution = evaluate(tmp_path, metrics=[{"use": "length"}, "rr"])
    assert column(execution, "tied", "length") == {"q1": 2.0, "q2": 2.0, "q3": 1.0, "q4": 1.0}
    assert column(execution, "good", "length")["q4"] is None
    assert column(execution, "good", "length", "reason")["q4"] == "the metric gave no value"
    assert column(execution, "good", "length", "status")["q4"] == "error"


def test_a_metric_that_fails_leaves_the_others_alone(tmp_path: Path, install: Install) -> None:
    class Broken(Length):
        def compute(self, *tables: Any) -> pl.DataFrame:
            raise ZeroDivisionError("division by zero")

    install("metrics", "length", Broken)
    execution = evaluate(tmp_path, metrics=[{"use": "length"}, "rr"])
    assert {(failure.system, failure.metric) for failure in execution.failures} == {
        ("good", "length"),
        ("tied", "length"),
    }
    assert set(column(execution, "good", "length", "status").values()) == {"error"}
    assert column(execution, "good", "rr")["q1"] == 1.0
    assert messages(execution, "failed")[0] == "length: ZeroDivisionError: division by zero"


QUERIES = pl.DataFrame({"query_id": ["a", "b", "c", "d", "e"]})


def test_a_metrics_table_never_turns_into_nan_or_a_silent_0() -> None:
    table = pl.DataFrame(
        {
            "query_id": ["e", "d", "c", "b"],
            "value": [0.5, float("nan"), None, 7.0],
            "status": ["scored", "scored", "scored", "unscorable"],
            "reason": [None, None, None, "no reference"],
        }
    )
    expected = pl.DataFrame(
        {
            "query_id": ["a", "b", "c", "d", "e"],
            "value": [None, None, None, None, 0.5],
            "status": ["error", "unscorable", "error", "error", "scored"],
            "reason": [
                "the metric gave no value", "no reference", "scored without a value",
                "the value is not a finite number", None,
            ],
        }
    )  # fmt: skip
    assert_frame_equal(values.check_values(table, QUERIES), expected)


def test_an_unknown_status_is_an_error() -> None:
    table = pl.DataFrame({"query_id": ["a"], "value": [1], "status": ["fine"], "reason": [None]})
    row = values.check_values(table, QUERIES).row(0)
    assert row == ("a", None, "error", "the metric gave the unknown status 'fine'")


def test_a_metrics_table_without_a_column_or_with_two_values_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'status', 'reason'"):
        values.check_values(pl.DataFrame({"query_id": ["a"], "value": [1.0]}), QUERIES)
    twice = pl.DataFrame({"query_id": ["a", "a"], "value": [1.0, 2.0], "status": "scored", "reason": "none"})
    with pytest.raises(DataError, match="several values"):
        values.check_values(twice, QUERIES)


# The store


def test_a_costly_run_is_made_once(tmp_path: Path, install: Install) -> None:
    install("systems", "counting", Counting)
    store, systems = FolderStore(tmp_path / "store"), {"costly": {"use": "counting"}}
    Counting.asked.clear()
    first = evaluate(tmp_path, store, systems=systems)
    second = evaluate(tmp_path, store, systems=systems, metrics=["rr", "map"])
    assert Counting.asked == ["costly"]
    assert column(first, "costly", "rr") == column(second, "costly", "rr")
    evaluate(tmp_path, store, systems={"costly": {"use": "counting", "answer": "d2"}})
    evaluate(tmp_path, store, systems=systems, limit=1)
    assert Counting.asked == ["costly"] * 3


def test_a_damaged_run_is_made_again_with_a_warning(tmp_path: Path, install: Install) -> None:
    install("systems", "counting", Counting)
    store, systems = FolderStore(tmp_path / "store"), {"costly": {"use": "counting"}}
    first = evaluate(tmp_path, store, systems=systems)
    (partition,) = (tmp_path / "store").rglob("*.parquet")
    partition.write_bytes(b"PAR1")
    Counting.asked.clear()
    with pytest.warns(StoreWarning, match="damaged"):
        second = evaluate(tmp_path, store, systems=systems)
    assert Counting.asked == ["costly"]
    assert_frame_equal(first.values, second.values)


def test_prepared_runs_are_not_stored(tmp_path: Path) -> None:
    evaluate(tmp_path, FolderStore(tmp_path / "store"))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_change_nothing(tmp_path: Path, workers: int) -> None:
    systems = {f"bm25-{k1}": {"use": "bm25", "k1": k1} for k1 in (0.5, 0.9, 1.2, 2.0)}
    execution = evaluate(tmp_path, systems=systems, workers=workers)
    alone = [evaluate(tmp_path, systems={name: node}).values for name, node in systems.items()]
    assert_frame_equal(execution.values, pl.concat(alone))
