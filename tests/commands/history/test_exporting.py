"""Records as tables for other programs."""

from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from pathlib import Path

import polars as pl

from rageval_spec.commands.history.exporting import export_records
from rageval_spec.history.database import Chosen
from tests.history.records import make_record, opened
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation


def test_every_format_has_the_same_numbers(tmp_path: Path) -> None:
    other = make_evaluation(metrics={"rr": (0.5, 0.6)})
    with opened(tmp_path, make_record(1, None, "main"), make_record(2, other)) as history:
        text, lines, table = (export_records(history, Chosen(), form) for form in ("csv", "jsonl", "parquet"))
    cells = list(csv.DictReader(StringIO(text.decode())))
    objects = [json.loads(line) for line in lines.splitlines()]
    frame = pl.read_parquet(BytesIO(table))
    assert frame.columns == list(cells[0]) and frame.height == len(cells) == len(objects) == 2
    assert frame["golden/bm25/map"].to_list() == [0.33333, None]
    assert (cells[0]["golden/bm25/map"], cells[1]["golden/bm25/map"]) == ("0.33333", "")
    assert objects[0]["golden/bm25/map low"] == frame["golden/bm25/map low"][0] == 0.33333 * 0.9
    assert "golden/bm25/map" not in objects[1] and objects[1]["golden/bm25/rr"] == 0.5
    assert objects[0]["labels"] == "main" and objects[0]["ci_run"] == "1" and not objects[0]["is_dirty"]


def test_formulas_of_names_are_harmless_in_spreadsheets(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1, make_hostile_evaluation())) as history:
        rows = list(csv.reader(StringIO(export_records(history, Chosen(), "csv").decode())))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@", "\t"))]
