"""The form as CSV."""

from __future__ import annotations

import csv
import io

from rageval_spec.review.forms.csv import write_csv
from tests.review.forms.sheets import make_hostile_sheet, make_sheet


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
