"""A golden set in any format is the same set."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from tests.datasets.question_rows import FORMATS, write_rows
from tests.plugins import build_dataset


def contents(word: str, path: Path, **keys: Any) -> dict[str, Any]:
    collection = build_dataset(word, path.parent, path=path.name, **keys).open()
    assert collection.queries is not None and collection.references is not None
    assert collection.qrels is not None and collection.columns is not None
    columns = [json.loads(text) for text in collection.columns["columns"]]
    return {
        "queries": collection.queries.rows(),
        "references": collection.references["references"].to_list(),
        "qrels": collection.qrels.rows(),
        "categories": [row.get("category") or None for row in columns],
        "others": sorted(columns[0]),
    }


WANTED = {
    "queries": [("t1", "why?"), ("t2", "how?")],
    "references": [["because"], ["so"]],
    "qrels": [("t1", "d1", 1), ("t1", "d2", 1), ("t2", "d3", 1)],
    "categories": ["cause", None],
    "others": ["category"],
}


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_questions(tmp_path: Path, form: str) -> None:
    assert contents("golden", write_rows(tmp_path, form)) == WANTED


@pytest.mark.parametrize("form", ["xlsx", "yaml", "jsonl", "csv", "parquet"])
def test_a_format_is_recognised_without_its_suffix(tmp_path: Path, form: str) -> None:
    assert contents("golden", Path(shutil.move(write_rows(tmp_path, form), tmp_path / "golden"))) == WANTED


def test_a_json_document_needs_its_suffix(tmp_path: Path) -> None:
    path = Path(shutil.move(write_rows(tmp_path, "json"), tmp_path / "golden"))
    with pytest.raises(DataError, match="golden:1: this is one JSON document, not JSON Lines; give the file a name"):
        contents("golden", path)


@pytest.mark.parametrize(("word", "form"), [("xlsx", "xlsx"), ("yaml", "yaml"), ("json", "json"), ("jsonl", "jsonl")])
def test_a_format_can_be_named(tmp_path: Path, word: str, form: str) -> None:
    path = shutil.move(write_rows(tmp_path, form), tmp_path / ("golden.json" if word == "json" else "golden"))
    assert contents(word, Path(path)) == WANTED


def test_the_version_of_a_golden_set_is_kept(tmp_path: Path) -> None:
    assert build_dataset("golden", tmp_path, path=write_rows(tmp_path, "json").name).open().about == {"version": "1.2"}


def test_rows_without_ids_are_numbered_in_every_format(tmp_path: Path) -> None:
    bare = [{"Question": "why?", "Ground Truth": "because"}, {"Question": "how?", "Ground Truth": "so"}]
    for form in FORMATS:
        collection = build_dataset("golden", tmp_path, path=write_rows(tmp_path, form, bare).name).open()
        assert collection.queries is not None and collection.references is not None
        assert collection.queries.rows() == [("1", "why?"), ("2", "how?")], form
        assert collection.references["references"].to_list() == [["because"], ["so"]], form


def test_csv_under_the_name_of_a_workbook_is_csv(tmp_path: Path) -> None:
    (tmp_path / "golden.xlsx").write_text("question;ground_truth\nwhy?;so\n")
    collection = build_dataset("golden", tmp_path, path="golden.xlsx").open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("1", "why?")]
