from __future__ import annotations

import pickle
import tempfile
from typing import IO

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import join_blocks, only_queries
from rageval_spec.errors import RagevalError
from rageval_spec.store import stored_tables
from rageval_spec.store.stored_tables import StoredTable, load_table

TABLE = pl.DataFrame(
    {
        "query_id": [f"q{number}" for number in range(9)],
        "answer": [None if number == 4 else f"answer {number}" for number in range(9)],
        "contexts": [None if number == 2 else [f"text {number}"] * (number % 3) for number in range(9)],
    }
)


def store(table: pl.DataFrame, rows: int = 2) -> StoredTable:
    return StoredTable.write(table.iter_slices(rows))


@given(st.lists(st.none() | st.integers(0, 8), max_size=20), st.integers(1, 9))
def test_rows_are_gathered_as_from_a_frame(places: list[int | None], rows: int) -> None:
    wanted = pl.Series(places, dtype=pl.UInt32)
    assert store(TABLE, rows).gather(wanted).equals(TABLE.select(pl.all().gather(wanted)))


@given(st.permutations(range(9)), st.integers(1, 9))
def test_rows_in_another_order_are_put_in_order(order: list[int], rows: int) -> None:
    places = pl.Series(order, dtype=pl.UInt32)
    taken, expected = store(TABLE, rows).take(places), TABLE.select(pl.all().gather(places))
    assert taken.load().equals(expected)
    ordered = taken.in_order()
    assert ordered.rows.is_sorted()
    assert ordered.load().equals(expected)
    assert ordered.select("query_id", "contexts").equals(expected.select("query_id", "contexts"))


def test_a_stored_table_is_joined_as_a_frame_is() -> None:
    queries = pl.DataFrame({"query_id": ["q7", "other", "q1"], "text": ["a", "b", "c"]})
    flag = pl.lit(value=True)
    joined = [
        pl.concat([*join_blocks(queries, answers.with_columns(is_answered=flag).drop(["contexts"]))])
        for answers in (TABLE, store(TABLE))
    ]
    assert joined[0].equals(joined[1])
    assert joined[0]["is_answered"].to_list() == [True, None, True]
    assert load_table(only_queries(store(TABLE), queries)).equals(only_queries(TABLE, queries))


def test_few_blocks_are_in_memory() -> None:
    stored = store(TABLE, 1)
    stored.load()
    assert len(stored.blocks._open) == stored_tables._MOST_OPEN


def test_another_process_gets_a_frame() -> None:
    assert pickle.loads(pickle.dumps(store(TABLE).take(pl.Series([3, 1], dtype=pl.UInt32)))).equals(TABLE[[3, 1]])


def test_a_full_disk_is_an_error_that_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(prefix: str) -> IO[bytes]:
        raise OSError(28, f"No space left on device for {prefix}")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(RagevalError, match=r"there is no room for texts: No space .* in the variable TMPDIR"):
        store(TABLE)
