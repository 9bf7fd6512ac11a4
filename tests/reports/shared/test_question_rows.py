from __future__ import annotations

import polars as pl

from rageval_spec.reports.shared.question_rows import (
    flatten,
    gather,
    list_blocks,
    list_systems,
    protect_lines,
)
from tests.answered_evaluation import BRIDGE, answered, sample, value


def test_systems_are_those_with_values() -> None:
    assert list_systems(answered([value("q1", "token_f1", 1.0, "v2")], [BRIDGE])) == ["v2"]


def test_questions_follow_the_samples_and_those_without_one_come_last() -> None:
    values = [value(query, "token_f1", 1.0) for query in ("q0", "q1", "q2")]
    rows = gather(list_blocks(answered(values, [sample("q2"), BRIDGE])))
    assert rows["query_id"].to_list() == ["q2", "q1", "q0"]
    assert rows["question"].to_list() == ["Question q2?", "Question q1?", None]


def test_a_system_without_rows_gives_the_columns() -> None:
    rows = gather(list_blocks(answered([value("q1", "token_f1", 1.0)], [BRIDGE]), "v9"))
    assert rows.height == 0 and "answer" in rows.columns


def test_cells_keep_their_lines_and_nothing_else_that_a_spreadsheet_acts_on() -> None:
    assert protect_lines("a\n=b\r\x07") == r"a" + "\n" + r"=b\r\x07"
    assert protect_lines("@x") == "'@x"
    assert protect_lines("'x") == "'x"
    assert protect_lines("") == ""
    hostile = answered([value("q1", "-x", 1.0)], [BRIDGE])
    assert "'-x" in flatten(gather(list_blocks(hostile))).columns


def test_only_the_texts_that_need_it_are_changed_and_items_of_lists_are_looked_at_too() -> None:
    rows = pl.DataFrame(
        {"answer": ["=1", "fine", None, "a\x07"], "contexts": [["x", "- y"], ["-1", "z"], None, ["\x07"]]}
    )
    assert flatten(rows).to_dict(as_series=False) == {
        "answer": ["'=1", "fine", None, r"a\x07"],
        "contexts": ["x\n\n- y", "'-1\n\nz", None, r"\x07"],
    }
