"""The form as CSV.

The form as a workbook, read back by another library.

The form as a project of Label Studio, validated by its own package where that is installed.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from python_calamine import CalamineWorkbook

from rageval_spec.data.labels import digest_answer
from rageval_spec.errors import DataError, UsageError
from rageval_spec.review import forms
from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.forms import (
    MOST_CHARACTERS,
    FormToken,
    decode_token,
    digest_shown,
    list_columns,
    list_rows,
    name_column,
    read_column,
    show,
    write_config,
    write_csv,
    write_tasks,
    write_xlsx,
)
from rageval_spec.review.label_import import FilledForm, FormEntry, read_form
from rageval_spec.review.tasks import ReviewSheet
from tests.review.filling import fill_csv, fill_xlsx
from tests.review.form_sheets import CLAIMS, FAITHFULNESS, FLUENCY, make_hostile_sheet, make_sheet, make_task
from tests.sample_evaluation import HOSTILE


def rows(content: bytes) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))]


def test_excel_reads_it_as_utf_8() -> None:
    assert write_csv(make_sheet()).startswith(b"\xef\xbb\xbfno,question,answer,faithfulness [yes/no],")


def test_line_breaks_stay_in_their_cell() -> None:
    found = rows(write_csv(make_sheet()))
    assert [row["answer"] for row in found] == ["It is 120 m long.\nIt was built in 1911."] * 2
    assert found[1]["query_id"] == "007"
    assert {row["faithfulness [yes/no]"] for row in found} == {""}


def test_no_text_is_a_formula_and_none_is_lost() -> None:
    found = rows(write_csv(make_hostile_sheet()))
    assert len(found) == 9
    assert not [cell for row in found for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert found[0]["question"] == '\'=HYPERLINK("http://x")'
    assert found[0]["annotator"] == "'=ann"


def read(content: bytes, sheet: str = "review") -> list[list[Any]]:
    return CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_name(sheet).to_python()


def sheet_xml(content: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml").decode()


def test_the_rows_are_those_of_the_form() -> None:
    header, first, second = read(write_xlsx(make_sheet(annotator="ann")))
    assert header[:5] == ["no", "question", "answer", "faithfulness [yes/no]", "fluency [1..5]"]
    assert first[header.index("answer")] == "It is 120 m long.\nIt was built in 1911."
    assert second[header.index("query_id")] == "007"
    assert second[header.index("annotator")] == "ann"


def test_cells_to_be_filled_in_have_lists_and_only_they_can_be_changed() -> None:
    xml = sheet_xml(write_xlsx(make_sheet()))
    assert '"yes,no"' in xml.replace("&quot;", '"')
    assert '"1,2,3,4,5"' in xml.replace("&quot;", '"')
    assert re.findall(r'<dataValidation [^>]*sqref="([^"]+)"', xml) == ["D2:D3", "E2:E3"]
    assert "<sheetProtection" in xml
    assert 'ySplit="1"' in xml


def test_lists_stand_only_where_a_criterion_is_asked() -> None:
    xml = sheet_xml(write_xlsx(make_sheet(CLAIMS, FLUENCY)))
    assert re.findall(r'<dataValidation [^>]*sqref="([^"]+)"', xml) == ["E3:E4", "E6:E7", "F2", "F5"]


def test_rows_are_as_tall_as_their_texts_and_no_taller_than_a_screen() -> None:
    tasks = tuple(make_task(name, answer=text) for name, text in (("a", "x"), ("b", "line\n" * 8), ("c", "x" * 20_000)))
    heights = re.findall(r'<row r="(?:2|3|4)" [^>]* ht="([0-9.]+)"', sheet_xml(write_xlsx(make_sheet(tasks=tasks))))
    assert [float(height) for height in heights] == [75.0, 135.0, 399.75]


def test_columns_that_people_need_not_see_are_hidden() -> None:
    content = write_xlsx(make_sheet())
    (header, *_) = read(content)
    hidden = re.findall(r'<col min="(\d+)" max="(\d+)" [^>]*hidden="1"', sheet_xml(content))
    places = {at for first, last in hidden for at in range(int(first), int(last) + 1)}
    assert {header[at - 1] for at in places} == {"dataset", "system", "slices", "reason", "probability", "row"}


def test_the_guidelines_are_on_the_second_sheet() -> None:
    told = " ".join(str(cell) for row in read(write_xlsx(make_sheet()), "guidelines") for cell in row)
    assert "not by what you know or could look up" in told
    assert "Does everything that the answer says follow from the contexts?" in told
    assert "Values: 1, 2, 3, 4, 5" in told


def test_texts_stay_texts_and_equal_sheets_give_equal_bytes() -> None:
    content = write_xlsx(make_hostile_sheet())
    assert content == write_xlsx(make_hostile_sheet())
    header, *rows = read(content)
    assert [row[header.index("question")] for row in rows[:4]] == ['=HYPERLINK("http://x")', "+49 123", "-1", "@cmd"]
    assert "<f>" not in sheet_xml(content)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MOST_ROWS", 2)
    with pytest.raises(Exception, match="more than a workbook can hold; choose fewer answers"):
        write_xlsx(make_sheet())


def tasks(sheet: ReviewSheet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(write_tasks(sheet))
    return found


def test_an_answer_is_a_task_and_a_criterion_a_choice() -> None:
    first, second = tasks(make_sheet())
    assert (first["data"]["query_id"], second["data"]["query_id"]) == ("q1", "007")
    assert first["data"]["controls"] == {"faithfulness": "faithfulness [yes/no]", "fluency": "fluency [1..5]"}
    assert first["data"]["probability"] == 0.25
    tree = ElementTree.fromstring(write_config(make_sheet()))
    choices = {one.get("name"): [choice.get("value") for choice in one] for one in tree.iter("Choices")}
    assert choices == {"faithfulness": ["yes", "no"], "fluency": ["1", "2", "3", "4", "5"]}


def test_a_claim_is_a_task_of_its_own() -> None:
    found = tasks(make_sheet(CLAIMS))
    assert [(one["data"]["metric"], one["data"]["claim"], one["data"]["claim_text"]) for one in found[:2]] == [
        ("faithfulness", 0, "It is 120 m long."),
        ("faithfulness", 1, "It was built in 1911."),
    ]
    tree = ElementTree.fromstring(write_config(make_sheet(CLAIMS)))
    assert [one.get("name") for one in tree.iter("Choices")] == ["verdict"]


def test_what_the_judge_says_is_a_prediction_and_only_if_it_is_asked_for() -> None:
    assert "predictions" not in tasks(make_sheet(CLAIMS))[0]
    shown = tasks(make_sheet(CLAIMS, shows_judge=True))[1]
    assert shown["predictions"][0]["result"][0]["value"] == {"choices": ["contradicted"]}
    assert tasks(make_sheet(shows_judge=True))[0]["data"]["judge"] == "faithfulness: 0.5, fluency: no value"


def test_answers_and_claims_need_two_projects() -> None:
    with pytest.raises(UsageError, match="a project of Label Studio has one form"):
        write_tasks(make_sheet(CLAIMS, FLUENCY))


def test_names_that_xml_cannot_have_get_others() -> None:
    sheet = make_sheet(FAITHFULNESS, make_criterion('my "metric"@1'), make_criterion("comment"))
    assert [*tasks(sheet)[0]["data"]["controls"].items()][1:] == [
        ("criterion_2", 'my "metric"@1 [yes/no]'), ("criterion_3", "comment [yes/no]"),
    ]  # fmt: skip
    ElementTree.fromstring(write_config(sheet))


def test_hostile_texts_stay_texts() -> None:
    sheet = make_hostile_sheet()
    assert len(tasks(sheet)) == len(sheet.tasks)
    tree = ElementTree.fromstring(write_config(make_sheet(guidelines='$answer <b> & "x"\n\x00')))
    header = next(one for one in tree.iter("Text") if "<b>" in str(one.get("value")))
    assert header.get("value") == ' $answer <b> & "x"\n\\x00'


@pytest.mark.parametrize("criteria", [(FAITHFULNESS, FLUENCY), (CLAIMS,)])
@pytest.mark.parametrize("shows_judge", [False, True])
def test_label_studio_takes_the_tasks_and_the_annotations(criteria: Any, shows_judge: bool) -> None:
    package = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    sheet = make_sheet(*criteria, tasks=(make_task(), *make_hostile_sheet().tasks), shows_judge=shows_judge)
    interface = package.LabelInterface(write_config(sheet).decode())
    interface.validate()
    found = tasks(sheet)
    for number, task in enumerate(found):
        assert interface.validate_task({"id": number, "data": task["data"]})
        for prediction in task.get("predictions", ()):
            assert interface.validate_prediction(prediction)
    control, choice, target = ("verdict", "contradicted", "claim_text") if criteria == (CLAIMS,) else (
        "faithfulness", "yes", "answer",
    )  # fmt: skip
    result = {"from_name": control, "to_name": target, "type": "choices", "value": {"choices": [choice]}}
    assert interface.validate_annotation({"result": [result]})
    assert not interface.validate_annotation({"result": [{**result, "value": {"choices": ["perhaps"]}}]})


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
    assert form.entries[2].place == f"{tmp_path / 'a.xlsx'}: sheet 'review', row 3"


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
        ("a.xlsx", b"row,x", "this is text, not an Excel workbook"),
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


def test_an_answer_has_a_row_with_a_column_for_each_criterion() -> None:
    sheet = make_sheet()
    assert [column.name for column in list_columns(sheet) if column.use == "fill"] == [
        "faithfulness [yes/no]", "fluency [1..5]", "comment", "annotator",
    ]  # fmt: skip
    first, second = list_rows(sheet)
    assert (first.cells["no"], second.cells["no"], second.cells["query_id"]) == (1, 2, "007")
    assert first.cells["contexts"] == "[1] length\nIt is 120 m long.\n\n[2]\nIt opened in 1909."
    assert (first.cells["reason"], first.cells["probability"]) == ("random + low", 0.25)
    token = decode_token(str(first.cells["row"]))
    assert token is not None
    assert (token.query_id, token.claim, token.probability) == ("q1", None, 0.25)
    assert token.answer_digest == digest_answer(make_task().answer)


def test_each_claim_has_a_row_of_its_own() -> None:
    rows = [*list_rows(make_sheet(CLAIMS, FLUENCY))]
    assert [(row.cells["no"], row.cells["claim"], row.asked) for row in rows[:3]] == [
        (1, "", ("fluency",)),
        (1, "It is 120 m long.", ("faithfulness",)),
        (1, "It was built in 1911.", ("faithfulness",)),
    ]
    assert [decode_token(str(row.cells["row"])).claim for row in rows[:3]] == [None, 0, 1]  # type: ignore[union-attr]


def test_the_judge_is_shown_only_if_it_is_asked_for() -> None:
    hidden = make_sheet(CLAIMS)
    assert not any("judge" in column.name for column in list_columns(hidden))
    assert not any("contradicted" in str(cell) for row in list_rows(hidden) for cell in row.cells.values())
    shown = [*list_rows(make_sheet(CLAIMS, FLUENCY, shows_judge=True))]
    assert [row.cells["judge: faithfulness"] for row in shown[:3]] == ["", "supported", "contradicted"]
    (row, _) = list_rows(make_sheet(shows_judge=True))
    assert (row.cells["judge: faithfulness"], row.cells["judge: fluency"]) == (0.5, "")


@pytest.mark.parametrize("criterion", [FAITHFULNESS, FLUENCY, CLAIMS])
def test_a_header_says_what_can_be_entered(criterion: object) -> None:
    found = read_column(f" {name_column(criterion)} ")  # type: ignore[arg-type]
    assert found is not None
    assert (found.name, found.choices) == (criterion.name, criterion.choices)  # type: ignore[attr-defined]


def test_other_headers_name_no_criterion() -> None:
    assert [read_column(name) for name in ("comment", "notes [mine]", "[1..5]", "x [9..1]", "")] == [None] * 5


def test_a_cell_shows_everything_and_never_too_much() -> None:
    assert show("a\r\nb\tc\x1b[31m\u202e") == "a\nb\tc\\x1b[31m\\u202e"
    long = show("x" * 50_000)
    assert len(long) == MOST_CHARACTERS
    assert long.endswith("… [cut: the text has 50,000 characters]")


TOKEN = FormToken("golden", "v1", "007", "faithfulness", 3, "0123456789abcdef", "low + random", 0.25, "89abcdef")


@pytest.mark.parametrize("query_id", ["007", "1/2", "ä ", HOSTILE, "\ud800"])
def test_a_token_comes_back(query_id: str) -> None:
    token = FormToken("golden", "v1", query_id, "", None, "0", "random", 1 / 3, "0")
    assert decode_token(f" {token.encode()}\n") == token


def test_a_spreadsheet_takes_it_for_text() -> None:
    assert re.fullmatch(r"rv1\.[A-Za-z0-9_-]+\.[0-9a-f]{8}", TOKEN.encode())


@pytest.mark.parametrize("text", ["", "7", "rv1.", "rv1..", "rv1.W10.4f53cda1", "rv1.[].x", "rv1.%%%.00000000"])
def test_what_is_no_token_is_none(text: str) -> None:
    assert decode_token(text) is None


def test_every_damage_is_noticed() -> None:
    text = TOKEN.encode()
    for at in range(len(text)):
        assert decode_token(text[:at] + text[at + 1 :]) is None
        assert decode_token(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]) is None


def test_the_digest_of_the_texts_ignores_what_spreadsheets_change() -> None:
    assert digest_shown(["a b\nc", "=1"]) == digest_shown([" a  b\r\nc ", "'=1"])
    assert digest_shown(["a", "b"]) != digest_shown(["a b", ""])
    assert digest_shown(["1909"]) != digest_shown(["1911"])
