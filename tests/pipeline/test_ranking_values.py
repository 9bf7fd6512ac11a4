"""Tables of values: a query without a valid row gets an error, never a 0 or NaN."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import DataError
from rageval_spec.pipeline import ranking_values as values

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
                "the metric returned no value", "no reference", "the metric returned 'scored' without a value",
                "the value is not a finite number", None,
            ],
        }
    )  # fmt: skip
    assert_frame_equal(values.check_values(table, QUERIES), expected)


def test_an_unknown_status_is_an_error() -> None:
    table = pl.DataFrame({"query_id": ["a"], "value": [1], "status": ["fine"], "reason": [None]})
    row = values.check_values(table, QUERIES).row(0)
    assert row == ("a", None, "error", "the metric returned the unknown status 'fine'")


def test_a_metrics_table_without_a_column_or_with_two_values_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'status', 'reason'"):
        values.check_values(pl.DataFrame({"query_id": ["a"], "value": [1.0]}), QUERIES)
    twice = pl.DataFrame({"query_id": ["a", "a"], "value": [1.0, 2.0], "status": "scored", "reason": "none"})
    with pytest.raises(DataError, match="several values"):
        values.check_values(twice, QUERIES)


def test_labelled_tables_have_all_columns_in_their_order() -> None:
    labelled = values.label(values.error_values(QUERIES, "gone"), "golden", "bot", "rr")
    assert labelled.columns == list(values.COLUMNS)
    assert labelled.row(0, named=True)["reason"] == "gone"
    assert set(labelled["dataset"]) == {"golden"}
    assert labelled["tie_low"].dtype == pl.Float64


def test_concatenating_no_tables_gives_a_table_without_rows() -> None:
    empty = values.concatenate([])
    assert (empty.height, empty.columns) == (0, list(values.COLUMNS))
    labelled = values.label(values.error_values(QUERIES, "gone"), "golden", "bot", "rr")
    assert_frame_equal(values.concatenate([labelled]), labelled)
