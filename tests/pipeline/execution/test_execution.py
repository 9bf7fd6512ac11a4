from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import DataError, RagevalError, StoreWarning
from rageval_spec.pipeline.values import ranking_values as values
from rageval_spec.store.store import FolderStore
from tests.pipeline.executing import column, evaluate, messages
from tests.tiny import Counting, Failing, FailingStored, Install, Length, install, write_spec

__all__ = ["install"]


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


def test_a_limit_takes_the_first_queries_of_the_qrels(tmp_path: Path) -> None:
    execution = evaluate(tmp_path, limit=2)
    assert column(execution, "good", "rr") == {"q1": 1.0, "q2": 1.0}
    assert messages(execution, "limited") == ["only the first 2 of 4 queries were evaluated"]
    assert messages(execution, "unjudged_queries") == []


def test_a_system_retrieves_only_for_judged_queries(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    execution = evaluate(tmp_path, store, systems={"bm25": {"use": "bm25"}})
    (table,) = (tmp_path / "store" / "tables").iterdir()
    run = store.load(table.name)
    assert run is not None
    assert set(run["query_id"]) <= {"q1", "q2", "q3", "q4"}  # and not q8
    assert column(execution, "bm25", "rr")["q2"] == 1.0


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


def test_a_failed_system_whose_run_would_be_stored_does_not_stop_the_others(tmp_path: Path, install: Install) -> None:
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


def test_a_part_that_the_dataset_lacks_is_named(tmp_path: Path) -> None:
    datasets = {"fruit": {"use": "trec", "qrels": "data/qrels/test.tsv"}}
    with pytest.raises(RagevalError, match="bm25 needs a dataset's corpus, but the dataset 'fruit' has none"):
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
    assert column(execution, "good", "length", "reason")["q4"] == "the metric returned no value"
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
def test_the_number_of_workers_changes_nothing(tmp_path: Path, workers: int) -> None:
    systems = {f"bm25-{k1}": {"use": "bm25", "k1": k1} for k1 in (0.5, 0.9, 1.2, 2.0)}
    execution = evaluate(tmp_path, systems=systems, workers=workers)
    alone = [evaluate(tmp_path, systems={name: node}).values for name, node in systems.items()]
    assert_frame_equal(execution.values, pl.concat(alone))
