"""Records that could not be sent wait in files, and are sent once."""

from __future__ import annotations

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
        assert pending.send(history, [aside, aside, tmp_path / "absent"]) == 2
        assert [entry.id for entry in history.entries()] == [make_id(2), make_id(1)]
        assert pending.send(history, [aside]) == 0
    assert [path.name for path in aside.iterdir()] == ["record-x.pending.json"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"row": {}, "contents": {}, "aggregates": [], "labels": []}'])
def test_a_file_that_is_not_a_record_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record-1.pending.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a record"):
        pending.read(path)
