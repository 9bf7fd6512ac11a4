from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.reading.nugget_banks import read_banks
from tests.command_line import invoke

BANK = (
    '{"qid": "q1", "query": "How long?", "nuggets": [{"text": "30 days", "importance": "vital"}, "a receipt"]}\n'
    '{"qid":  "q2", "query": "Where?", "nuggets": ["in Bern"], "kept": 1}\n'
)


def save(path: Path, by: str, query_id: str, was: list[Any], now: list[Any]) -> Path:
    label = {"query_id": query_id, "value": {"was": was, "now": now}, "time": "2026-01-01T00:00:00.000Z"}
    saved = {"format": "rageval-nuggets", "version": 1, "previous": "abc", "annotator": by, "labels": [label]}
    path.write_text(json.dumps(saved))
    return path


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "nuggets.jsonl"
    path.write_text(BANK)
    return path


def test_an_edit_changes_its_line_alone_and_names_its_person_and_the_version_before(bank: Path) -> None:
    now = [{"id": "1", "text": "30 days", "importance": "okay"}, {"id": "3", "text": "by post"}]
    saved = save(bank.with_name("ann.json"), "ann", "q1", ["30 days", "a receipt"], now)
    done = invoke("review", "import", str(saved), "--into", str(bank))
    assert done.exit_code == 0, done.output
    assert "~ '30 days' (vital) → '30 days' (okay)" in done.output
    assert "- 'a receipt' (vital)" in done.output
    assert "+ 'by post' (vital)" in done.output
    first, second = bank.read_text().splitlines()
    assert second == BANK.splitlines()[1]
    assert json.loads(first)["metadata"]["edits"] == [
        {"by": "ann", "time": "2026-01-01T00:00:00.000Z", "previous": "abc"}
    ]
    assert [(one.id, one.text, one.importance) for one in read_banks(bank)["q1"].nuggets] == [
        ("1", "30 days", "okay"), ("3", "by post", "vital"),
    ]  # fmt: skip


def test_two_people_edit_different_questions_of_one_page(bank: Path) -> None:
    ann = save(bank.with_name("ann.json"), "ann", "q1", ["30 days", "a receipt"], ["30 days"])
    bob = save(bank.with_name("bob.json"), "bob", "q2", ["in Bern"], ["in Zug"])
    assert invoke("review", "import", str(ann), str(bob), "--into", str(bank)).exit_code == 0
    assert [[one.text for one in of.nuggets] for of in read_banks(bank).values()] == [["30 days"], ["in Zug"]]
    assert json.loads(bank.read_text().splitlines()[1])["kept"] == 1


def test_what_changed_since_the_page_was_made_is_shown_and_not_overwritten(bank: Path) -> None:
    saved = save(bank.with_name("ann.json"), "ann", "q2", ["in Basel"], ["in Zug"])
    done = invoke("review", "import", str(saved), "--into", str(bank))
    assert done.exit_code == 3
    assert "'in Basel' (vital) → 'in Bern' (vital)" in done.output
    assert "'in Basel' (vital) → 'in Zug' (vital)" in done.output
    assert bank.read_text() == BANK


def test_nuggets_that_are_right_write_nothing(bank: Path) -> None:
    saved = save(bank.with_name("ann.json"), "ann", "q2", ["in Bern"], ["in Bern"])
    done = invoke("review", "import", str(saved), "--into", str(bank))
    assert "0 questions changed, 1 question right as they are" in done.output
    assert bank.read_text() == BANK


@pytest.mark.parametrize(
    ("now", "told"), [(["in Bern", "in Bern"], "has the same text"), ([""], "has no text"), (None, "must be a list")]
)
def test_what_cannot_be_nuggets_is_refused_with_its_place(bank: Path, now: Any, told: str) -> None:
    saved = save(bank.with_name("ann.json"), "ann", "q2", ["in Bern"], now)
    done = invoke("review", "import", str(saved), "--into", str(bank))
    assert done.exit_code == 3
    assert told in done.output
    assert "'q2': now" in done.output
    assert bank.read_text() == BANK


def test_the_file_of_nuggets_must_be_named(bank: Path) -> None:
    saved = save(bank.with_name("ann.json"), "ann", "q2", ["in Bern"], [])
    assert "--into nuggets.jsonl" in invoke("review", "import", str(saved), "-o", "labels.csv").output
