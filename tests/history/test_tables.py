"""The tables hold every column that records are written with."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.history.tables import AGGREGATE_COLUMNS, MIGRATIONS, RECORD_COLUMNS
from tests.history.records import opened


def test_the_migrations_make_the_columns_that_are_written(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        for table, columns in (("rageval_records", RECORD_COLUMNS), ("rageval_aggregates", AGGREGATE_COLUMNS)):
            found = [name for _, name, *_ in history.connection.execute(f"PRAGMA table_info({table})")]
            assert found == list(columns)
        assert history.connection.find_version() == len(MIGRATIONS)
