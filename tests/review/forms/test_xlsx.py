"""The form as a workbook, read back by another library."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

from rageval_spec.review.forms import xlsx
from rageval_spec.review.forms.xlsx import write_xlsx
from tests.review.forms.sheets import CLAIMS, FLUENCY, make_hostile_sheet, make_sheet, make_task


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
    monkeypatch.setattr(xlsx, "MOST_ROWS", 2)
    with pytest.raises(Exception, match="more than a workbook can hold; choose fewer answers"):
        write_xlsx(make_sheet())
