from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.audit.cleaned_copy import Cleaned, clean, describe
from rageval_spec.commands.audit.audited_questions import open_questions
from tests.plugins import build_dataset, write
from tests.question_sets import audit

ROWS = [("1", "Who won?", "Ann"), ("2", "How,\nand why?", "So"), ("3", "who won", "Ann"), ("4", "Where?", "Here")]


def clean_set(word: str, folder: Path, **keys: Any) -> Cleaned:
    dataset = build_dataset(word, folder, **keys)
    questions = open_questions(dataset)
    found = clean(dataset, questions, audit(dataset, questions))
    assert found is not None
    return found


def read(cleaned: Cleaned, name: str) -> str:
    return next(content for path, content in cleaned.files.items() if path.name == name).decode()


def test_lines_are_copied_as_they_are(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "question": q, "reference": r}, indent=None) for i, q, r in ROWS]
    lines[1] = lines[1].replace(": ", ":   ")
    write(tmp_path / "golden.jsonl", "\n\n".join(lines) + "\n", ".gz")
    found = clean_set("jsonl", tmp_path, path="golden.jsonl.gz")
    assert [line for line in read(found, "golden.clean.jsonl").splitlines() if line] == [lines[0], lines[1], lines[3]]
    (removed,) = map(json.loads, read(found, "golden.removed.jsonl").splitlines())
    assert removed["query_id"] == "3" and removed["place"].endswith("golden.jsonl.gz:5")
    assert removed["why"][0].startswith("the same question as") and removed["row"]["question"] == "who won"
    assert (found.removed, found.kept, found.use) == (1, 3, "path: golden.clean.jsonl")
    assert "3 questions, 1 removed; to use it, write path: golden.clean.jsonl" in describe(found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["golden.jsonl.gz"], "clean writes nothing itself"


def test_fields_of_several_lines_stay_whole(tmp_path: Path) -> None:
    text = "id,question,reference\n" + "".join(f'{i},"{q}",{r}\n' for i, q, r in ROWS)
    write(tmp_path / "golden.csv", text)
    found = clean_set("csv", tmp_path, path="golden.csv")
    assert read(found, "golden.clean.csv") == text.replace('3,"who won",Ann\n', "")


def test_lists_and_tables_become_json_lines(tmp_path: Path) -> None:
    rows = [{"id": i, "question": q, "reference": r} for i, q, r in ROWS]
    write(tmp_path / "golden.json", json.dumps({"test_cases": rows}))
    pl.DataFrame(rows).write_parquet(tmp_path / "table.parquet")
    for word, name, path in (("jsonl", "golden", "golden.json"), ("parquet", "table", "table.parquet")):
        found = clean_set(word, tmp_path, path=path)
        kept = [json.loads(line) for line in read(found, f"{name}.clean.jsonl").splitlines()]
        assert kept == [rows[0], rows[1], rows[3]]
        assert found.use == ("" if word == "jsonl" else "use: jsonl, ") + f"path: {name}.clean.jsonl"


def test_judgements_in_a_file_of_their_own_are_cleaned_too(tmp_path: Path) -> None:
    write(tmp_path / "golden.jsonl", "".join(json.dumps({"id": i, "question": q}) + "\n" for i, q, _ in ROWS))
    write(tmp_path / "qrels.txt", "1 0 d1 1\n3 0 d1 1\n33 0 d2 1\n2 0 d1 1\n4 0 d9 1\n")
    found = clean_set("jsonl", tmp_path, path="golden.jsonl", qrels="qrels.txt")
    assert read(found, "qrels.clean.txt") == "1 0 d1 1\n33 0 d2 1\n2 0 d1 1\n4 0 d9 1\n"
    assert found.use == "path: golden.clean.jsonl, qrels: qrels.clean.txt"


def test_a_beir_folder_gets_another_split(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", "".join(json.dumps({"_id": i, "text": q}) + "\n" for i, q, _ in ROWS))
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n3\td1\t1\n4\td2\t1\n")
    found = clean_set("beir", tmp_path, path=".")
    for path, content in found.files.items():
        path.write_bytes(content)
    assert found.use == "split: test.clean"
    again = open_questions(build_dataset("beir", tmp_path, path=".", split="test.clean"))
    assert [question.query_id for question in again.questions] == ["1", "4"]


def test_judgements_in_a_table_are_cleaned_by_their_column(tmp_path: Path) -> None:
    write(tmp_path / "qrels.csv", "doc_id,query_id,relevance\nd1,1,1\nd1,3,1\nd2,4,1\n")
    write(tmp_path / "queries.csv", "id,question\n1,Who won?\n3,who won\n4,Where?\n")
    found = clean_set("csv", tmp_path, path="qrels.csv", queries="queries.csv")
    assert read(found, "qrels.clean.csv") == "doc_id,query_id,relevance\nd1,1,1\nd2,4,1\n"
    assert read(found, "queries.clean.csv") == "id,question\n1,Who won?\n4,Where?\n"
    assert found.use == "queries: queries.clean.csv, path: qrels.clean.csv"


def test_nothing_to_remove_gives_no_copy(tmp_path: Path) -> None:
    write(tmp_path / "golden.jsonl", '{"id": "1", "question": "Who?"}\n')
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    questions = open_questions(dataset)
    assert clean(dataset, questions, audit(dataset, questions)) is None


@pytest.mark.parametrize("text", ['{"id": "1", "question": "  "}\n{"id": "2", "question": "Who?"}\n'])
def test_empty_questions_go(tmp_path: Path, text: str) -> None:
    write(tmp_path / "golden.jsonl", text)
    assert read(clean_set("jsonl", tmp_path, path="golden.jsonl"), "golden.clean.jsonl") == text.splitlines()[1] + "\n"


def test_a_workbook_becomes_json_lines(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(str(tmp_path / "golden.xlsx")) as book:
        sheet = book.add_worksheet("Questions")
        for number, row in enumerate([("id", "question", "reference"), *ROWS]):
            sheet.write_row(number, 0, row)
    found = clean_set("golden", tmp_path, path="golden.xlsx")
    assert [json.loads(line)["id"] for line in read(found, "golden.clean.jsonl").splitlines()] == ["1", "2", "4"]
    (removed,) = map(json.loads, read(found, "golden.removed.jsonl").splitlines())
    assert removed["place"].endswith("golden.xlsx: sheet 'Questions', row 4")
    assert found.use == "path: golden.clean.jsonl"
