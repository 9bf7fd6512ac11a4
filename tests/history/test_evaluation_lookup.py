"""A name means a label, a results folder or a record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.database import HistoryError
from rageval_spec.history.evaluation_lookup import SearchPlaces, check_label, find_record, list_labels
from rageval_spec.history.saved_evaluations import RECORD, save_evaluation
from tests.history.records import make_id, make_marked_evaluation, make_record, opened


def places_in(folder: Path) -> SearchPlaces:
    return SearchPlaces(folder / "labels", folder / "history.db", folder)


def test_without_a_database_labels_and_folders_are_found(tmp_path: Path) -> None:
    save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
    places = places_in(tmp_path)
    assert find_record("main", places).label == "main"
    assert find_record("labels/main", places).evaluation.name == "support-bot"
    with pytest.raises(DataError, match=r"baseline 'mian' is neither a label .*did you mean 'main'.* nor a record"):
        find_record("mian", places)
    assert not (tmp_path / "history.db").exists()


def test_labels_of_the_database_and_records_are_found(tmp_path: Path) -> None:
    other = replace(make_marked_evaluation(), name="other")
    save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
    with opened(tmp_path, make_record(1, other, "nightly"), make_record(2)):
        pass
    places = places_in(tmp_path)
    assert find_record("nightly", places).evaluation.name == "other"
    assert find_record("0002", places).id == make_id(2)
    assert list_labels(places) == ("main", "nightly")
    with pytest.raises(DataError, match="neither"):
        find_record("0003", places)


@pytest.mark.parametrize(
    ("time", "name"), [("2030-01-01T00:00:00+00:00", "folder"), ("2020-01-01T00:00:00+00:00", "base")]
)
def test_the_label_that_was_set_last_counts(tmp_path: Path, time: str, name: str) -> None:
    saved = save_evaluation(replace(make_marked_evaluation(), name="folder"), "main", tmp_path / "labels")
    kept = json.loads((saved / RECORD).read_text())
    (saved / RECORD).write_text(json.dumps({**kept, "time": time}))
    with opened(tmp_path, make_record(1, replace(make_marked_evaluation(), name="base"), "main")):
        pass
    assert find_record("main", places_in(tmp_path)).evaluation.name == name


def test_a_folder_of_the_same_record_is_read_because_it_has_the_samples(tmp_path: Path) -> None:
    evaluation = make_marked_evaluation()
    save_evaluation(replace(evaluation, name="folder"), "main", tmp_path / "labels", make_id(1))
    with opened(tmp_path, make_record(1, replace(evaluation, name="base"), "main")):
        pass
    assert find_record("main", places_in(tmp_path)).evaluation.name == "folder"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("previous", 4),
        ("branch:main", 2),
        ("branch:topic", None),
        ("commit:cccc", 4),
        ("commit:dddd", None),
        ("branch:", None),
    ],
)
def test_the_newest_record_of_a_kind_is_found(tmp_path: Path, name: str, number: int | None) -> None:
    passed = replace(make_marked_evaluation(), gates=())
    other = replace(passed, name="other")
    records = [make_record(1, passed), make_record(2, passed), make_record(3), make_record(4, branch="topic")]
    with opened(tmp_path, *records, make_record(5, other)):
        pass
    places = replace(places_in(tmp_path), name="support-bot")
    if number is not None:
        assert find_record(name, places).id == make_id(number)
        assert find_record(name, replace(places, name="other" if name != "commit:cccc" else None)).id == make_id(5)
        return
    with pytest.raises(DataError, match=r"the history has no record of the evaluation 'support-bot'|neither a label"):
        find_record(name, places)


def test_the_first_evaluation_has_no_previous_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no earlier record of the evaluation 'new'; record one with: .* 'gates=\[\]'"):
        find_record("previous", replace(places_in(tmp_path), name="new"))
    save_evaluation(make_marked_evaluation(), "previous", tmp_path / "labels")
    assert find_record("previous", places_in(tmp_path)).label == "previous"


def test_the_previous_record_of_a_recorded_evaluation_is_not_its_own(tmp_path: Path) -> None:
    now = replace(make_marked_evaluation(), notes=())
    places = replace(places_in(tmp_path), name="support-bot", later=now)
    with opened(tmp_path, make_record(1), make_record(2, now)):
        pass
    assert find_record("previous", places).id == make_id(1)
    assert find_record("previous", replace(places, later=make_marked_evaluation())).id == make_id(2)


def test_the_only_record_is_not_the_previous_one_of_its_evaluation(tmp_path: Path) -> None:
    now = make_marked_evaluation()
    with opened(tmp_path, make_record(1, now)):
        pass
    with pytest.raises(DataError, match="no earlier record"):
        find_record("previous", replace(places_in(tmp_path), later=now))


def test_a_database_that_cannot_be_read_does_not_hide_labels_and_folders(tmp_path: Path) -> None:
    save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
    (tmp_path / "history.db").write_text("this is text, and long enough to be looked at as the header of a database")
    places = places_in(tmp_path)
    assert find_record("main", places).label == "main"
    assert find_record("labels/main", places).evaluation.name == "support-bot"
    with pytest.raises(HistoryError, match="is not a database"):
        find_record("nightly", places)


@pytest.mark.parametrize("label", ["previous", "branch:main", "commit:abc", "", " ", "x" * 300])
def test_a_new_label_must_not_hide_another_name_or_be_impossible(label: str) -> None:
    with pytest.raises(UsageError, match="label"):
        check_label(label)
    check_label("main")
