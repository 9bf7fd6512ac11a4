from __future__ import annotations

from pathlib import Path

import xlsxwriter

from rageval_spec.labels.xlsx import XlsxLabels, XlsxLabelsNode
from rageval_spec.plugin import Context


def test_a_sheet_can_be_named_and_ids_that_are_numbers_stay_whole(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "l.xlsx")) as workbook:
        workbook.add_worksheet("guidelines").write_row(0, 0, ["Be fair."])
        sheet = workbook.add_worksheet("labels")
        for row, cells in enumerate((["id", "value", "claim"], [12, 0.5, 3], [13, True, None])):
            sheet.write_row(row, 0, cells)
    node = XlsxLabelsNode(use="xlsx", path="l.xlsx", sheet="labels")
    labels = XlsxLabels(node, Context("people", tmp_path)).read()
    assert [(label.query_id, label.value, label.claim) for label in labels] == [("12", 0.5, 3), ("13", 1.0, None)]
    assert labels[1].place == f"{tmp_path / 'l.xlsx'}: sheet 'labels', row 3"
