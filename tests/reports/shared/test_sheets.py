from __future__ import annotations

import re
import zipfile
from io import BytesIO

import polars as pl
import pytest

from rageval_spec.reports.shared import sheets


def read(*blocks: pl.DataFrame) -> list[str]:
    pytest.importorskip("xlsxwriter")
    stream = BytesIO()
    sheets.write_workbook(blocks, stream)
    with zipfile.ZipFile(stream) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("xl/worksheets/sheet"))
        return [archive.read(name).decode() for name in names]


def test_blocks_become_the_rows_of_a_sheet_with_a_header() -> None:
    first, second = (pl.DataFrame({"name": [name], "value": [value]}) for name, value in (("a", 0.5), ("b", None)))
    (sheet,) = read(first, second)
    rows = re.findall(r"<row .*?</row>", sheet)
    assert len(rows) == 3
    assert "name" in rows[0] and "value" in rows[0]
    assert "<v>0.5</v>" in rows[1] and ">a<" in rows[1]
    assert ">b<" in rows[2] and "<v>" not in rows[2]


def test_formulas_and_links_stay_texts() -> None:
    (sheet,) = read(pl.DataFrame({"text": ["=1+1", "https://example.com"]}))
    assert "<f>" not in sheet and "hyperlink" not in sheet


def test_rows_beyond_a_sheet_go_on_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MOST_ROWS", 3)
    found = read(pl.DataFrame({"n": [1, 2, 3]}), pl.DataFrame({"n": [4, 5]}))
    assert [re.findall(r"<v>(\d)</v>", sheet) for sheet in found] == [["1", "2"], ["3", "4"], ["5"]]


def test_long_texts_are_cut_with_a_note_and_control_characters_replaced() -> None:
    assert sheets.fit_cell("a\x00b\nc") == "a�b\nc"
    whole = "x" * sheets.MOST_CHARACTERS
    assert sheets.fit_cell(whole) == whole
    cut = sheets.fit_cell("\N{GRINNING FACE}" * 20_000)
    assert cut.endswith("… [cut: the text has 20,000 characters]")
    assert len(cut.encode("utf-16-le")) <= 2 * sheets.MOST_CHARACTERS
    assert set(cut.partition("…")[0]) == {"\N{GRINNING FACE}"}
