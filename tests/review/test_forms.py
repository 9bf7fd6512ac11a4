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
from typing import Any
from xml.etree import ElementTree

import pytest
from python_calamine import CalamineWorkbook

from rageval_spec.errors import UsageError
from rageval_spec.review import forms
from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.forms import write_config, write_csv, write_tasks, write_xlsx
from rageval_spec.review.tasks import ReviewSheet
from tests.review.form_sheets import CLAIMS, FAITHFULNESS, FLUENCY, make_hostile_sheet, make_sheet, make_task


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
