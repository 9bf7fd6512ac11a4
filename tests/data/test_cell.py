from __future__ import annotations

import polars as pl

from rageval_spec.data.cell import Cell, list_cells, split_cells

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
