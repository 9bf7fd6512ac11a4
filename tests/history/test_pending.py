"""Records that could not be sent wait in files, and are sent once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.history import pending
from tests.history.records import make_id, make_record, opened


def test_a_kept_record_is_read_unchanged(tmp_path: Path) -> None:
    record = make_record(1, None, "main")
    assert pending.read(pending.keep(record, tmp_path / "new")) == record


def test_kept_records_are_sent_once_and_their_files_removed(tmp_path: Path) -> None:
    aside = tmp_path / "results"
    for number in (1, 2):
        pending.keep(make_record(number), aside)
    (aside / "record-x.pending.json").write_text("{}")
    with opened(tmp_path, make_record(1)) as history:
        sent = pending.send(history, [aside, aside, tmp_path / "absent"])
        assert sent.records == 2
        assert [entry.id for entry in history.entries()] == [make_id(2), make_id(1)]
        assert pending.send(history, [aside]).records == 0
    assert [path.name for path in aside.iterdir()] == ["record-x.pending.json"]
    assert [problem.split(":")[0] for problem in sent.problems] == [
        f"the record in {aside / 'record-x.pending.json'} waits still"
    ]


def test_a_record_that_the_history_refuses_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    refused = make_record(1)
    pending.keep(replace(refused, aggregates=[("too", "short")]), tmp_path)
    pending.keep(make_record(2), tmp_path)
    with opened(tmp_path) as history:
        sent = pending.send(history, [tmp_path])
        assert [entry.id for entry in history.entries()] == [make_id(2)]
    assert sent.records == 1 and "waits still" in sent.problems[0]
    assert [path.name for path in tmp_path.glob("*.pending.json")] == [f"record-{make_id(1)}.pending.json"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"row": {}, "contents": {}, "aggregates": [], "labels": []}'])
def test_a_file_that_is_not_a_record_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record-1.pending.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a record"):
        pending.read(path)
