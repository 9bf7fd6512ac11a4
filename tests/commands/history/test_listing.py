"""Records as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rageval_spec.commands.history.listing import list_records, show_record
from rageval_spec.history.database import Chosen
from tests.history.records import make_id, make_record, opened
from tests.sample_evaluation import make_hostile_evaluation


def test_a_star_marks_changed_files_and_names_are_harmless(tmp_path: Path) -> None:
    record = make_record(1, make_hostile_evaluation())
    dirty = replace(record, row={**record.row, "is_dirty": 1})
    with opened(tmp_path, dirty) as history:
        listed, shown = list_records(history, Chosen(), "text"), show_record(history, make_id(1), "text")
    assert "cccccccc*" in listed and f"{'c' * 40} (with changed files)" in shown
    assert "\x1b" not in listed + shown and len(listed.splitlines()) == 2
