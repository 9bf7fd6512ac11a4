""""""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

import polars as pl
import pytest

from rageval_spec.drawing import question_tables
from rageval_spec.drawing.question_tables import flatten, gather, list_blocks, list_systems, protect_lines
from tests.answered_evaluation import BRIDGE, answered, sample, value


def test_systems_are_those_with_values() -> None:
    assert list_systems(answered([value("q1", "token_f1", 1.0, "v2")], [BRIDGE])) == ["v2"]


def test_questions_follow_the_samples_and_those_without_one_come_last() -> None:
    values = [value(query, "token_f1", 1.0) for query in ("q0", "q1", "q2")]
    rows = gather(list_blocks(answered(values, [sample("q2"), BRIDGE])))
    assert rows["query_id"].to_list() == ["q2", "q1", "q0"]
    assert rows["question"].to_list() == ["Question q2?", "Question q1?", None]


def test_a_system_without_rows_gives_the_columns() -> None:
    rows = gather(list_blocks(answered([value("q1", "token_f1", 1.0)], [BRIDGE]), "v9"))
    assert rows.height == 0 and "answer" in rows.columns


def test_cells_keep_their_lines_and_nothing_else_that_a_spreadsheet_acts_on() -> None:
    assert protect_lines("a\n=b\r\x07") == r"a" + "\n" + r"=b\r\x07"
    assert protect_lines("@x") == "'@x"
    assert protect_lines("'x") == "'x"
    assert protect_lines("") == ""
    hostile = answered([value("q1", "-x", 1.0)], [BRIDGE])
    assert "'-x" in flatten(gather(list_blocks(hostile))).columns


def test_only_the_texts_that_need_it_are_changed_and_items_of_lists_are_looked_at_too() -> None:
    rows = pl.DataFrame(
        {"answer": ["=1", "fine", None, "a\x07"], "contexts": [["x", "- y"], ["-1", "z"], None, ["\x07"]]}
    )
    assert flatten(rows).to_dict(as_series=False) == {
        "answer": ["'=1", "fine", None, r"a\x07"],
        "contexts": ["x\n\n- y", "'-1\n\nz", None, r"\x07"],
    }


def read(*blocks: pl.DataFrame) -> list[str]:
    pytest.importorskip("xlsxwriter")
    stream = BytesIO()
    question_tables.write_workbook(blocks, stream)
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
    monkeypatch.setattr(question_tables, "MOST_ROWS", 3)
    found = read(pl.DataFrame({"n": [1, 2, 3]}), pl.DataFrame({"n": [4, 5]}))
    assert [re.findall(r"<v>(\d)</v>", sheet) for sheet in found] == [["1", "2"], ["3", "4"], ["5"]]


def test_long_texts_are_cut_with_a_note_and_control_characters_replaced() -> None:
    assert question_tables.fit_cell("a\x00b\nc") == "a�b\nc"
    whole = "x" * question_tables.MOST_CHARACTERS
    assert question_tables.fit_cell(whole) == whole
    cut = question_tables.fit_cell("\N{GRINNING FACE}" * 20_000)
    assert cut.endswith("… [cut: the text has 20,000 characters]")
    assert len(cut.encode("utf-16-le")) <= 2 * question_tables.MOST_CHARACTERS
    assert set(cut.partition("…")[0]) == {"\N{GRINNING FACE}"}
