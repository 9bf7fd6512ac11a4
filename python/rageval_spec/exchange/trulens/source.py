"""Reads the records of an app, or the ground truths of a dataset, from TruLens's database."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.source import Source, WindowNode
from rageval_spec.exchange.shared.span_traces import SpanReader
from rageval_spec.exchange.shared.windows import parse_moment
from rageval_spec.exchange.trulens import events, records
from rageval_spec.exchange.trulens.database import DATASETS, EVENTS, RECORDS, TRUTHS, list_tables, open_to_read
from rageval_spec.exchange.trulens.events import read_events
from rageval_spec.exchange.trulens.records import read_records, read_truths
from rageval_spec.plugin.inputs import InputFile

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.plugin import Context


class TrulensSourceNode(WindowNode):
    """What to read from TruLens: the records of its database, or the ground truths of a dataset."""

    path: str = Field(description="TruLens's SQLite file, such as `default.sqlite`.")
    app: str | None = Field(default=None, min_length=1, description="Only records of this app, by name. Default: all.")
    dataset: str | None = Field(
        default=None, min_length=1, description="The dataset whose ground truths to read in place of records, by name."
    )

    @model_validator(mode="after")
    def _check_choice(self) -> TrulensSourceNode:
        if self.dataset is not None and (self.since or self.until or self.app):
            raise ValueError("since, until and app select records; a dataset has none")
        return self


class TrulensSource(Source[TrulensSourceNode]):
    """Reads records newest first: those kept as spans, then those of the tables of earlier versions."""

    node_type = TrulensSourceNode
    summary = "Read records, or the ground truths of a dataset, from TruLens's SQLite file."
    examples = (
        "import trulens default.sqlite --app support --since 7d -o traces.jsonl",
        "import trulens default.sqlite --dataset golden -o golden.jsonl",
    )

    def __init__(self, node: TrulensSourceNode, context: Context) -> None:
        """Open nothing yet."""
        super().__init__(node, context)
        self._reader = SpanReader("trulens")

    def inputs(self) -> Sequence[InputFile]:
        """The database."""
        return (InputFile(self._path, ("path",)),)

    def read(self) -> Iterator[Trace]:
        """The records, or the ground truths, as traces.

        Raises:
            UsageError: there is no such file, app or dataset.
            DataError: the file is no database of TruLens, or a row cannot be read.
        """
        found = self._read_records() if self.node.dataset is None else self._read_truths(self.node.dataset)
        return islice(found, self.node.limit)

    def remarks(self) -> Sequence[str]:
        """What was left out."""
        return self._reader.remarks()

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)

    def _read_records(self) -> Iterator[Trace]:
        now = datetime.now(UTC)
        moments = [None if text is None else parse_moment(text, now) for text in (self.node.since, self.node.until)]
        with open_to_read(self._path) as connection:
            tables = list_tables(connection, self._path)
            if self.node.app is not None:
                self._check_app(self.node.app, connection, tables)
            window = self._path, self.node.app, moments[0], moments[1], self.node.limit
            if EVENTS in tables:
                yield from read_events(connection, *window, self._reader)
            if RECORDS in tables:
                yield from read_records(connection, *window)

    def _check_app(self, app: str, connection: sqlite3.Connection, tables: Collection[str]) -> None:
        apps = events.list_apps(connection) if EVENTS in tables else set()
        apps |= records.list_apps(connection) if RECORDS in tables else set()
        if app not in apps:
            there = f"its apps are {', '.join(sorted(apps))}" if apps else "it has none"
            raise UsageError(f"{self._path}: there is no app {app!r}; {there}")

    def _read_truths(self, dataset: str) -> Iterator[Trace]:
        with open_to_read(self._path) as connection:
            if not list_tables(connection, self._path) >= {DATASETS, TRUTHS}:
                raise DataError(f"{self._path}: it has no datasets: it is of a version of TruLens before 1.0")
            yield from read_truths(connection, self._path, dataset)
