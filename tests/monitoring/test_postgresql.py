"""Detectors, windows, sketches and experiments on a PostgreSQL server: the same numbers as on SQLite."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rageval_spec.history.database import open_history
from rageval_spec.monitoring.feeds.spans import SpanFileFeed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.looks import windows
from rageval_spec.monitoring.looks.detectors import Detectors
from rageval_spec.monitoring.looks.experiments import read_experiment
from rageval_spec.monitoring.looks.windows import Span, WindowReader
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import ExperimentNode
from rageval_spec.statistics.intervals import Resampling
from tests.history.servers import run_server
from tests.monitoring.feeds.polling import judge_due, poll
from tests.monitoring.feeds.test_spans import as_json, name, root, step
from tests.monitoring.looks.test_detectors import RULE
from tests.monitoring.seen_traces import BEGAN, fill, open_ledger

VALUES = (np.random.default_rng(1).random(300) < 0.9).astype(float).tolist()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Ledger]:
    with run_server() as (url, _), open_history(url) as history:
        yield Ledger(history.connection, "bot", "a")


def read_all(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    ledger.arms_by = "variant"
    series = Series(ledger.find_series("faithfulness", "", {}, BEGAN), "faithfulness")
    reader = WindowReader(ledger, 60, Resampling(permutations=199))
    now = fill(ledger, series.id, VALUES, prefix="a", weight=2.5, metadata={"variant": "a"}) + 30
    rule = RULE.__class__(**{**RULE.__dict__, "largest": 2.5})
    first = Detectors(ledger.connection, reader).read(rule, series, now)
    now = fill(ledger, series.id, VALUES[::-1], prefix="b", began=now, metadata={"variant": "b"}) + 30
    second = Detectors(ledger.connection, reader).read(rule, series, now)
    node = ExperimentNode(by="variant", metric="faithfulness")
    span = Span(BEGAN, now)
    with monkeypatch.context() as few:
        few.setattr(windows, "MANY", 100)
        part, summary = reader.read_part(series, span, now), reader.read_or_sum(series, span)
    experiment = read_experiment(ledger, series, node, 0.95)
    return [first, second, summary, len(part.values) > 0, experiment]


def test_numbers_are_those_of_sqlite(tmp_path: Path, postgresql: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_all(postgresql, monkeypatch) == read_all(open_ledger(tmp_path), monkeypatch)


def test_spans_are_gathered_limited_and_forgotten(tmp_path: Path, postgresql: Ledger) -> None:
    path, feed = tmp_path / "spans.json", SpanFileFeed("spans", 60, postgresql, tmp_path / "spans.json")
    path.write_bytes(as_json(root(1)) + as_json(root(2)))
    for second in range(0, 7260, 30):
        poll(feed, postgresql, BEGAN + second)
        with path.open("ab") as file:
            file.write(as_json(step(1, 10 + second)))
    assert sorted(judge_due(postgresql, BEGAN + 7260)) == [name(1), name(2)]
    assert postgresql.forget(trace_id=name(1), gathered={name(1)}) == 1
    poll(feed, postgresql, BEGAN + 7290)
    poll(feed, postgresql, BEGAN + 7400)
    kept = "SELECT trace_id FROM rageval_spans WHERE feed = 'spans'"
    assert postgresql.connection.execute(kept) == []
    assert feed.remarks() == ["1 trace got spans too late to be judged once more"]
