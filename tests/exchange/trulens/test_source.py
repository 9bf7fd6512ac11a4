from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.trulens.source import TrulensSourceNode
from tests.exchange.trulens.database import add_older, make_database
from tests.exchange.trulens.reading import read


def test_records_are_read_newest_first(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    assert [trace.question for trace in read(path)] == ["Question 3?", "Question 2?", "Question 1?", "Old question?"]
    assert [trace.question for trace in read(path, limit=2)] == ["Question 3?", "Question 2?"]
    assert [trace.question for trace in read(path, app="legacy")] == ["Old question?"]
    assert [trace.question for trace in read(path, app="support", limit=1)] == ["Question 3?"]


def test_a_dataset_s_ground_truths_are_questions_with_references(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    (truth,) = read(path, dataset="golden")
    assert (truth.id, truth.question, truth.references, truth.relevant) == ("q1", "Why?", ("So.",), ("d1",))
    with pytest.raises(UsageError, match="there is no dataset 'silver'; its datasets are golden"):
        read(path, dataset="silver")


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    before = path.read_bytes()
    read(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["t.sqlite"]


def test_a_file_that_is_no_database_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nope\.sqlite: there is no such file"):
        read(tmp_path / "nope.sqlite")
    page = tmp_path / "page.sqlite"
    page.write_text("<!DOCTYPE html>" * 100)
    with pytest.raises(DataError, match=r"page\.sqlite: not a SQLite database, or a damaged one"):
        read(page)
    half = make_database(tmp_path / "half.sqlite", 40)
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    with pytest.raises(DataError, match=r"half\.sqlite: not a SQLite database, or a damaged one"):
        read(half)


@pytest.mark.parametrize("settings", [{"since": "7d"}, {"app": "x"}])
def test_a_dataset_cannot_be_narrowed(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="a dataset has none"):
        TrulensSourceNode(path="x", dataset="golden", **settings)


def test_an_app_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    add_older(path)
    with pytest.raises(UsageError, match="there is no app 'suport'; its apps are legacy, support"):
        read(path, app="suport")


def test_a_folder_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this is a folder; name the SQLite file in it"):
        read(tmp_path)
