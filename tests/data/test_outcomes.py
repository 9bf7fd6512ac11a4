"""Tests of confidence intervals as data.

What an evaluation records of questions that it did not ask.

Tests of diagnoses as data.

The values of earlier evaluations beside those of an evaluation.
"""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import replace

import polars as pl
import pytest

from rageval_spec.data.outcomes import (
    BASE_VALUES,
    Advice,
    AskedQuestions,
    CauseCount,
    Cell,
    Correction,
    Counted,
    Diagnosis,
    Drop,
    GateOutcome,
    Interval,
    Note,
    Overlap,
    RankCounts,
    Stopping,
    Verdict,
    collect_base_values,
    empty_base_values,
    list_cells,
    read_drop,
    split_cells,
)
from rageval_spec.data.outcomes import Interval as Reexported
from rageval_spec.data.results import dump_results, list_content, parse_results
from tests.answered_evaluation import answered, value
from tests.sample_evaluation import make_evaluation

VALUES = pl.DataFrame(
    [
        ("golden", "bot", "rr", "q2", 1.0),
        ("golden", "bm25", "rr", "q1", 0.5),
        ("golden", "bot", "rr", "q1", 0.25),
        ("silver", "bot", "map", "q1", None),
    ],
    schema=["dataset", "system", "metric", "query_id", "value"],
    orient="row",
)


def test_a_slice_is_a_different_cell_from_the_whole_dataset() -> None:
    whole, long_questions = Cell("golden", "bot", "rr"), Cell("golden", "bot", "rr", "long questions")
    assert {whole: 0.5, long_questions: 0.25}[Cell("golden", "bot", "rr")] == 0.5
    assert whole != long_questions


def test_cells_and_rows_keep_the_order_of_the_table() -> None:
    found = [(cell, rows["query_id"].to_list()) for cell, rows in split_cells(VALUES)]
    assert found == [
        (Cell("golden", "bot", "rr"), ["q2", "q1"]),
        (Cell("golden", "bm25", "rr"), ["q1"]),
        (Cell("silver", "bot", "map"), ["q1"]),
    ]


def test_cells_whose_rows_follow_one_another_are_split_in_the_same_way() -> None:
    ordered = VALUES.sort("system", "metric", maintain_order=True)
    found = [(cell, rows.rows()) for cell, rows in split_cells(ordered)]
    assert found == [
        (Cell("golden", "bm25", "rr"), [ordered.row(0)]),
        (Cell("silver", "bot", "map"), [ordered.row(1)]),
        (Cell("golden", "bot", "rr"), [ordered.row(2), ordered.row(3)]),
    ]


def test_each_cell_is_listed_once_in_the_order_of_the_table() -> None:
    expected = [Cell("golden", "bot", "rr"), Cell("golden", "bm25", "rr"), Cell("silver", "bot", "map")]
    assert list_cells(VALUES) == expected
    assert list_cells(VALUES.clear()) == []


def test_a_table_without_rows_has_no_cells() -> None:
    assert list(split_cells(VALUES.clear())) == []


def test_an_interval_is_also_found_beside_the_aggregates_that_hold_it() -> None:
    assert Reexported is Interval


def test_an_interval_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Interval(0.1, 0.2).low = 0.0  # type: ignore[misc]


def test_a_note_concerns_everything_and_warns_of_nothing_unless_it_says_so() -> None:
    note = Note("missing_queries", "2 of 40 queries are not in the run and score 0")
    assert (note.dataset, note.system, note.count, note.level) == (None, None, None, "note")


def test_equal_notes_are_one() -> None:
    """Several metrics make the same note about a system; a set of notes keeps one of them, also from workers."""
    note = Note("ties", "ties decide 3 queries", "golden", "bm25", 3, "warning")
    assert {note, pickle.loads(pickle.dumps(note))} == {note}


def outcome(verdict: Verdict, counts_as: Counted | None = None) -> GateOutcome:
    return GateOutcome(0, "golden", "bot", "rr", verdict, "≥ 0.5", 0.4, "", counts_as=counts_as)


def test_outcomes_are_in_order_from_the_worst() -> None:
    ordered = [
        outcome("fail"),
        outcome("inconclusive", "fail"),
        outcome("inconclusive", "warn"),
        outcome("warn"),
        outcome("inconclusive", "pass"),
        outcome("pass"),
    ]
    assert [one.rank for one in ordered] == list(range(6))


@pytest.mark.parametrize(
    ("verdict", "counts_as", "counted"),
    [("fail", None, "fail"), ("inconclusive", None, "warn"), ("inconclusive", "pass", "pass")],
)
def test_an_inconclusive_outcome_counts_as_it_says(verdict: Verdict, counts_as: Counted | None, counted: str) -> None:
    assert outcome(verdict, counts_as).counted == counted


@pytest.mark.parametrize(
    ("written", "read", "shown"),
    [
        (0.02, Drop(0.02), "0.02"),
        (0, Drop(0.0), "0.0"),
        ("5%", Drop(0.05, is_share=True), "5%"),
        ("2.5 %", Drop(0.025, is_share=True), "2.5%"),
        ("150%", Drop(1.5, is_share=True), "150%"),
    ],
)
def test_a_drop_is_an_amount_or_a_share(written: float | str, read: Drop, shown: str) -> None:
    assert read_drop(written) == read
    assert str(read) == shown


@pytest.mark.parametrize("written", [-0.1, float("nan"), float("inf"), "5", "-5%", "five%", ""])
def test_anything_else_is_refused(written: float | str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        read_drop(written)


def test_a_share_is_of_the_size_of_the_baseline() -> None:
    share = read_drop("5%")
    assert share.resolve(0.42) == pytest.approx(0.021)
    assert share.resolve(-2.0) == pytest.approx(0.1)
    assert share.resolve(0.0) == 0.0
    assert read_drop(0.02).resolve(0.42) == 0.02


def test_a_correction_without_a_number_says_why() -> None:
    found = Correction("ppi", 0.8, Interval(0.7, 0.9), None, None, 0, None, "people", reason="no answer has labels")
    assert (found.labelled, found.worth, found.is_clipped) == (None, None, False)
    assert found.reason == "no answer has labels"


PART = AskedQuestions("golden", 148, 500, "decided", "every gate was decided")


def test_a_dataset_is_found_by_name() -> None:
    stopping = Stopping(0.95, 30, 20, 7, (PART,))
    assert stopping.find("golden") is PART
    assert stopping.find("other") is None
    assert PART.is_part
    assert not AskedQuestions("golden", 500, 500, "all", "not every gate was decided earlier").is_part


def test_results_without_stopping_do_not_name_it() -> None:
    evaluation = make_evaluation()
    assert "stopping" not in list_content(evaluation)
    assert parse_results(dump_results(evaluation), "results.json").stopping is None


def test_a_diagnosis_is_the_same_after_it_was_written_and_read() -> None:
    count = CauseCount(
        "golden", "bm25", "retrieval", 3, 40, 0.075, Interval(0.02, 0.2, 0.95, "wilson"), "difficulty=hard"
    )
    diagnosis = Diagnosis("recall@20", "token_f1", None, 0.5, 0.7, (count,), (Advice("golden", "bm25", "Look."),))
    evaluation = replace(make_evaluation(), diagnosis=diagnosis)

    read = parse_results(dump_results(evaluation), "results.json")

    assert read.diagnosis == diagnosis


def test_values_of_the_same_cell_and_query_are_kept_for_each_earlier_evaluation() -> None:
    now = answered([value("q1", "token_f1", 0.5), value("q2", "token_f1", None)]).values
    main = answered([value("q1", "token_f1", 0.6), value("q2", "token_f1", 0.7), value("q9", "token_f1", 0.8)]).values
    older = answered([value("q1", "token_f1", 0.1), value("q1", "ndcg@10", 0.2), value("q2", "token_f1", None)]).values
    table = collect_base_values(now, {"main": main, "previous": older})
    assert table.columns == [*BASE_VALUES]
    assert table.drop("dataset", "system").rows() == [
        ("main", "token_f1", "q1", 0.6),
        ("main", "token_f1", "q2", 0.7),
        ("previous", "token_f1", "q1", 0.1),
    ]


def test_without_an_earlier_evaluation_there_are_none() -> None:
    assert collect_base_values(answered([value("q1", "token_f1", 0.5)]).values, {}).equals(empty_base_values())


def test_the_queries_of_an_evaluation_are_those_that_are_the_same_changed_or_new() -> None:
    overlap = Overlap("golden", "main", same=37, changed=2, added=1, removed=5)
    assert (overlap.total, overlap.is_complete) == (40, False)
    assert Overlap("golden", "main", same=40).is_complete
    assert not Overlap("golden", "main", same=40, removed=1).is_complete


def test_ranks_are_counted_in_groups() -> None:
    ranks = pl.Series([1, 1, 2, 3, 4, 10, 11, 5000, 0])
    counted = RankCounts.of(Cell("golden", "bm25", "rr"), ranks)
    assert counted.ranks == {"1": 2, "2-3": 2, "4-10": 2, "11-": 2, "none": 1}
    assert counted.queries == 9
