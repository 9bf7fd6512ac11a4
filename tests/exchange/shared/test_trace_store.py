""""""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.exchange.shared.trace_store import TraceStore


def read_all(store: TraceStore) -> list[list[Any]]:
    return [store.read(trace) for trace in store.list_traces()]


def test_traces_leave_newest_first_and_their_parts_by_time() -> None:
    with closing(TraceStore()) as store:
        store.add([("a", "2", 2, {"n": 2}), ("b", "1", 3, {"n": 3}), ("a", "1", 1, {"n": 1}), ("c", "1", None, {})])
        assert read_all(store) == [[{"n": 3}], [{"n": 1}, {"n": 2}], [{}]]
        assert [*store.list_traces(since=1, until=3)] == ["a"]
        assert [*store.list_traces(limit=2, newest_first=False)] == ["a", "b"]


def test_the_last_part_with_a_name_counts() -> None:
    with closing(TraceStore()) as store:
        store.add([("a", "1", 5, {"n": 1}), ("a", "1", 4, {"n": 2}), ("b", "1", None, {"n": 3})])
        assert read_all(store) == [[{"n": 2}], [{"n": 3}]]


def test_odd_texts_are_kept() -> None:
    with closing(TraceStore()) as store:
        store.add([("\ud800\0'", "\0", None, {"text": "\ud800 \0"})])
        assert read_all(store) == [[{"text": "\ud800 \0"}]]


def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    with closing(TraceStore()) as store:
        store.add([("a", "1", None, {"n": 1})])
    assert not list(tmp_path.iterdir())
