"""What people wrote into forms comes back, whatever program saved them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.review.forms import write_tasks
from rageval_spec.review.label_import import FilledForm, FormEntry, read_form
from rageval_spec.review.tasks import ReviewSheet
from tests.review.filling import fill_csv, fill_xlsx
from tests.review.form_sheets import CLAIMS, FLUENCY, make_hostile_sheet, make_sheet

GIVEN = {"faithfulness [yes/no]": "Yes ", "fluency [1..5]": 4, "annotator": "ann", "comment": "ä, ok"}


def told(form: FilledForm) -> list[tuple[Any, ...]]:
    return [
        (one.token and one.token.query_id, one.metric, one.value, one.annotator, one.comment, one.is_edited)
        for one in form.entries
    ]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_csv_form_comes_back(tmp_path: Path, delimiter: str) -> None:
    form = read_form(fill_csv(make_sheet(), tmp_path / "a.csv", lambda number, row: GIVEN, delimiter=delimiter))
    assert told(form) == [
        ("q1", "faithfulness", "Yes ", "ann", "ä, ok", False),
        ("q1", "fluency", "4", "ann", "ä, ok", False),
        ("007", "faithfulness", "Yes ", "ann", "ä, ok", False),
        ("007", "fluency", "4", "ann", "ä, ok", False),
    ]
    assert form.entries[2].place == f"{tmp_path / 'a.csv'}:8"


def test_a_workbook_comes_back_also_if_its_sheets_were_moved(tmp_path: Path) -> None:
    form = read_form(fill_xlsx(make_sheet(), tmp_path / "a.xlsx", lambda number, row: GIVEN))
    assert [line[:3] for line in told(form)] == [
        ("q1", "faithfulness", "Yes "), ("q1", "fluency", 4.0),
        ("007", "faithfulness", "Yes "), ("007", "fluency", 4.0),
    ]  # fmt: skip
    assert form.entries[2].place == f"{tmp_path / 'a.xlsx'}: row 3"


def test_a_spreadsheet_may_change_what_it_takes_for_a_number(tmp_path: Path) -> None:
    form = read_form(
        fill_csv(make_sheet(), tmp_path / "a.csv", lambda number, row: {**GIVEN, "query_id": "7", "no": ""})
    )
    assert {(entry.token.query_id, entry.is_edited) for entry in form.entries if entry.token} == {
        ("q1", False), ("007", False),
    }  # fmt: skip


@pytest.mark.parametrize("column", ["question", "answer"])
def test_an_edited_text_is_noticed(tmp_path: Path, column: str) -> None:
    form = read_form(
        fill_csv(make_sheet(), tmp_path / "a.csv", lambda number, row: {**GIVEN, column: row[column] + " not"})
    )
    assert all(entry.is_edited for entry in form.entries)


def test_hostile_texts_come_back_unchanged(tmp_path: Path) -> None:
    sheet = make_hostile_sheet()
    for path in (
        fill_csv(sheet, tmp_path / "a.csv", lambda number, row: GIVEN),
        fill_xlsx(sheet, tmp_path / "a.xlsx", lambda number, row: GIVEN),
    ):
        form = read_form(path)
        assert not any(entry.is_edited for entry in form.entries)
        found = [entry.token.query_id for entry in form.entries if entry.token]
        assert found == [task.query_id for task in sheet.tasks for _ in range(2)]


def test_only_fields_that_the_row_asks_for_are_entries(tmp_path: Path) -> None:
    sheet = make_sheet(CLAIMS, FLUENCY)
    form = read_form(fill_csv(sheet, tmp_path / "a.csv", lambda number, row: {"comment": "?" if number == 1 else ""}))
    assert [(entry.metric, entry.token and entry.token.claim) for entry in form.entries[:3]] == [
        ("fluency", None), ("faithfulness", 0), ("faithfulness", 1),
    ]  # fmt: skip
    assert {entry.value for entry in form.entries} == {None}
    assert [comment for _, comment in form.remarks] == ["?"]


def export(sheet: ReviewSheet, results: dict[str, str], **annotation: Any) -> list[dict[str, Any]]:
    """What Label Studio exports if somebody chose these values in each task."""
    tasks = json.loads(write_tasks(sheet))
    made = [
        {"from_name": name, "to_name": "answer", "type": "choices", "value": {"choices": [choice]}}
        for name, choice in results.items()
    ]
    made.append({"from_name": "comment", "to_name": "answer", "type": "textarea", "value": {"text": ["well"]}})
    done = {"result": made, "completed_by": {"email": "ann@example.org"}, "created_at": "2026-03-01", **annotation}
    return [{"id": number, **task, "annotations": [done]} for number, task in enumerate(tasks)]


def test_an_export_of_label_studio_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(export(make_sheet(), {"faithfulness": "yes", "fluency": "4"})))
    form = read_form(path)
    assert told(form)[:2] == [
        ("q1", "faithfulness", "yes", "ann@example.org", "well", False),
        ("q1", "fluency", "4", "ann@example.org", "well", False),
    ]
    assert [entry.criterion and entry.criterion.scale for entry in form.entries[:2]] == ["yes_no", "1..5"]
    path.write_text(json.dumps(export(make_sheet(CLAIMS), {"verdict": "contradicted"}, ground_truth=True)))
    first = read_form(path).entries[0]
    assert (first.metric, first.value, first.is_adjudicated) == ("faithfulness", "contradicted", True)
    assert first.token is not None and first.token.claim == 0


def test_labels_from_a_form_that_shows_the_judge_say_so(tmp_path: Path) -> None:
    for shows_judge in (False, True):
        sheet = make_sheet(shows_judge=shows_judge)
        form = read_form(fill_csv(sheet, tmp_path / "a.csv", lambda number, row: GIVEN))
        assert {entry.saw_judge for entry in form.entries} == {shows_judge}
        path = tmp_path / "export.json"
        path.write_text(json.dumps(export(sheet, {"faithfulness": "yes"})))
        assert {entry.saw_judge for entry in read_form(path).entries} == {shows_judge}


def saved(**changes: Any) -> dict[str, Any]:
    label = {
        "dataset": "golden", "system": "v1", "query_id": "q1", "answer_digest": "0123456789abcdef", "metric": "fluency",
        "claim": None, "value": 4, "comment": "well", "time": "2026-03-01", "reason": "low", "probability": 0.5,
    }  # fmt: skip
    page = {"format": "rageval-labels", "version": 1, "sheet": "0", "annotator": "ann", "labels": [label | changes]}
    return page | {"criteria": [{"name": "fluency", "scale": "1..5"}, {"name": "odd", "scale": "stars"}, 3]}


def write(folder: Path, content: object) -> Path:
    path = folder / "saved.json"
    path.write_text(json.dumps(content))
    return path


def read_saved(folder: Path, **changes: Any) -> FormEntry:
    (entry,) = read_form(write(folder, saved(**changes))).entries
    return entry


def test_what_the_page_saved_comes_back(tmp_path: Path) -> None:
    entry = read_saved(tmp_path)
    assert (entry.metric, entry.value, entry.annotator, entry.comment, entry.time) == (
        "fluency", 4, "ann", "well", "2026-03-01",
    )  # fmt: skip
    assert entry.token is not None and entry.criterion is not None
    assert (entry.token.reason, entry.token.probability, entry.criterion.scale) == ("low", 0.5, "1..5")
    form = read_form(write(tmp_path, {**saved(), "skipped": [{"comment": "unclear"}, {"comment": ""}]}))
    assert [comment for _, comment in form.remarks] == ["unclear"]
    assert (entry.saw_judge, read_saved(tmp_path, saw_judge=True).saw_judge) == (False, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"query_id": None},
        {"query_id": 7},
        {"metric": ""},
        {"claim": "0"},
        {"claim": -1},
        {"claim": True},
        {"probability": 2},
    ],
)
def test_a_label_that_does_not_say_where_it_belongs_has_no_token(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert read_saved(tmp_path, **changes).token is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"query_id,value\nq1,1\n", "there is no column 'row', so this is not a form of 'review select'"),
        ("a.csv", b"row,comment\nx,y\n", "no column is to be filled in"),
        ("a.csv", b"row,faithfulness [yes/no]\n", "a header and no rows"),
        ("a.csv", "row,faithfulness [yes/no]\nx,\u00e4\n".encode("latin-1"), "save the form as 'CSV UTF-8'"),
        ("a.csv", "row,x\n".encode("utf-16")[:-1], "not UTF-16 text"),
        ("a.csv", b"PK\x03\x04", "a.csv"),
        ("a.xlsx", b"row,x", "not a workbook"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b"[]", "no objects"),
        ("a.json", b'[{"query_id": "q1"}]', "neither what a review page saved nor an export of Label Studio"),
        ("a.pdf", b"x", "a filled-in form is a .csv, .xlsx or .json file"),
        ("missing.csv", None, "no such file"),
    ],
)
def test_files_that_are_no_forms_are_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as raised:
        read_form(tmp_path / name)
    assert message in str(raised.value)
