"""The tables of the history, the same in SQLite and in PostgreSQL, and the migrations that make them.

`rageval_records` has a row for each record, small enough to list ten thousand of them. The numbers are in
`rageval_aggregates`, and whole files (the results as JSON, the values as Parquet) in `rageval_contents`. A label is a
row of `rageval_labels`, so that moving it changes no record.
"""

from __future__ import annotations

from collections.abc import Sequence

RECORD_COLUMNS = (
    "id",
    "time",
    "name",
    "git_commit",
    "branch",
    "is_dirty",
    "ci",
    "outcome",
    "spec_digest",
    "cost",
    "seconds",
    "gates",
    "meaning",
)
AGGREGATE_COLUMNS = (
    "record_id",
    "dataset",
    "system",
    "metric",
    "slice",
    "statistic",
    "mean",
    "low",
    "high",
    "scored",
    "total",
)

MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE rageval_records (
            id TEXT PRIMARY KEY, time TEXT NOT NULL, name TEXT NOT NULL, git_commit TEXT, branch TEXT,
            is_dirty INTEGER, ci TEXT NOT NULL, outcome TEXT NOT NULL, spec_digest TEXT NOT NULL,
            cost DOUBLE PRECISION, seconds DOUBLE PRECISION, gates TEXT NOT NULL, meaning TEXT NOT NULL
        )""",
        "CREATE INDEX rageval_records_time ON rageval_records (time)",
        """CREATE TABLE rageval_labels (
            label TEXT PRIMARY KEY, record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            time TEXT NOT NULL
        )""",
        """CREATE TABLE rageval_aggregates (
            record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            dataset TEXT NOT NULL, system TEXT NOT NULL, metric TEXT NOT NULL, slice TEXT, statistic TEXT NOT NULL,
            mean DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION,
            scored INTEGER NOT NULL, total INTEGER NOT NULL
        )""",
        "CREATE INDEX rageval_aggregates_record ON rageval_aggregates (record_id)",
        "CREATE INDEX rageval_aggregates_metric ON rageval_aggregates (metric)",
        """CREATE TABLE rageval_contents (
            record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            part TEXT NOT NULL, content BYTES NOT NULL, PRIMARY KEY (record_id, part)
        )""",
    ),
)
"""The statements that lead from each schema version to the next. Entries are only ever added at the end.

`BYTES` stands for the database's type of byte strings. The empty database has version 0.
"""
