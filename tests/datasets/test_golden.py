"""A golden set in any format is the same set."""

from __future__ import annotations

import csv
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


def write_promptfoo(folder: Path) -> None:
    """A configuration of promptfoo whose tests and contexts are in other files."""
    (folder / "more").mkdir()
    (folder / "config.yaml").write_text(
        "prompts: [p]\ndefaultTest: {vars: {lang: en}}\ntests: ['file://more/*.yaml', tests.csv]\n"
    )
    (folder / "more" / "a.yaml").write_text(
        "- vars: {question: 'Who?', context: 'file://c.txt'}\n"
        "  assert: [{type: contains, value: king}, {type: context-recall, value: A king rules.}]\n"
        "- vars: {question: 'Where?', context: here}\n  assert: [{type: icontains, value: London}]\n"
    )
    (folder / "more" / "c.txt").write_text("A king.\n")
    (folder / "tests.csv").write_text("question,context,__expected\nWhy?,x,contains: Paris\n")


def test_tests_and_contexts_of_promptfoo_are_read_from_their_files(tmp_path: Path) -> None:
    write_promptfoo(tmp_path)
    dataset = build_dataset("golden", tmp_path, path="config.yaml")
    collection = dataset.open()
    assert collection.queries is not None and collection.references is not None
    assert collection.queries["text"].to_list() == ["Who?", "Where?", "Why?"]
    assert collection.references["references"].to_list() == [["A king rules."], ["London"], ["Paris"]]
    assert collection.references["reference_contexts"].to_list() == [["A king."], ["here"], ["x"]]
    names = [file.path.relative_to(tmp_path).as_posix() for file in dataset.inputs()]
    assert names == ["config.yaml", "more/a.yaml", "more/c.txt", "tests.csv"]  # a change of any is another table


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tests: [{vars: {question: q, context: 'file://x.py'}}]", "only text (.html, .json, .markdown, .md, .txt)"),
        ("tests: [{vars: {question: q, context: 'file://../x.txt'}}]", "is not in"),
        ("tests: [{vars: {question: q, context: 'file:///etc/hosts.txt'}}]", "is not in"),
        ("tests: [{vars: {question: q, context: 'file://x.txt'}}]", "file://x.txt: no such file"),
        ("tests: file://load.py", "the tests in file://load.py cannot be read; write them as CSV, JSON or YAML"),
        ("tests: file://no.csv", "no.csv: no such file"),
        ("tests: 'no/*.csv'", "no file is called no/*.csv"),
        (
            "tests: [{vars: {question: q}, assert: [{type: equals, value: 'file://x.py'}]}]",
            "the value of a check is in another file, file://x.py; write its text here",
        ),
    ],
)
def test_what_is_not_understood_of_promptfoo_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(DataError) as raised:
        collection = build_dataset("golden", tmp_path, path="config.yaml").open()
        assert collection.queries is not None
    assert message in str(raised.value)


def test_a_conversation_that_ragas_prints_into_a_cell_asks_its_last_turn(tmp_path: Path) -> None:
    turns = [
        {"content": "Rome?", "type": "human", "metadata": None},
        {"content": "Yes.", "type": "ai", "metadata": None, "tool_calls": None},
        {"content": "And Paris?", "type": "human", "metadata": None},
    ]
    with (tmp_path / "golden.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, ["user_input", "reference"])
        rows.writeheader()
        rows.writerows([{"user_input": "Plain?", "reference": "a"}, {"user_input": turns, "reference": "b"}])
    for word in ("golden", "csv"):
        collection = build_dataset(word, tmp_path, path="golden.csv").open()
        assert collection.queries is not None
        assert collection.queries["text"].to_list() == ["Plain?", "And Paris?"]
    (tmp_path / "golden.csv").write_text("user_input,reference\n\"[{'content': 'Rome?', 'type\",b\n")
    with pytest.raises(DataError, match=r"golden\.csv:2: 'user_input' begins like a list but is not one"):
        _ = build_dataset("golden", tmp_path, path="golden.csv").open().queries
