from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.first_spec.inspection import inspect_files
from rageval_spec.errors import UsageError
from tests.commands.first_spec.files import ANSWERS, ROWS, write_rows


def test_the_parts_that_any_row_has_are_found(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [dict(row) for row in ANSWERS]
    rows[0] = {**rows[0], "relevant_doc_ids": ["d1"], "seconds": 0.5}
    path = write_rows(tmp_path / "answers.jsonl", rows)
    found = inspect_files(path, path, tmp_path, {})
    assert found.has == {"answer", "contexts", "reference", "relevant", "seconds"}
    assert found.questions == 4
    assert found.dataset == {"use": "jsonl", "path": "answers.jsonl"}


def test_a_file_of_questions_alone_has_no_system(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "golden.jsonl", ROWS)
    found = inspect_files(path, path, tmp_path / "deeper" / "still", {})
    assert found.system is None
    assert found.dataset["path"] == "../../golden.jsonl"


def test_a_table_whose_answers_are_all_empty_has_no_system(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("input,actual_output,expected_output\nwhy?,,so\nhow?,,thus\n")
    assert inspect_files(path, path, tmp_path, {}).system is None


def test_columns_with_few_values_make_slices(tmp_path: Path) -> None:
    same = {"same": "x", "blank": "", "list": ["a"]}
    extra = [{"few": "ab"[at % 2], "many": str(at), "yes": at > 1, **same} for at in range(4)]
    path = write_rows(tmp_path / "golden.jsonl", [{**row, **more} for row, more in zip(ROWS, extra, strict=True)])
    assert inspect_files(path, None, tmp_path, {}).slices == ("few", "level", "yes")


@pytest.mark.parametrize(("name", "word"), [("a.csv", "csv"), ("a.tsv", "csv"), ("a.json", "json"), ("a.yml", "yaml")])
def test_the_name_of_a_file_tells_its_format(tmp_path: Path, name: str, word: str) -> None:
    texts = {"a.csv": "question,answer\na?,b\n", "a.tsv": "question\tanswer\na?\tb\n"}
    texts |= {"a.json": '[{"question": "a?", "reference": "b"}]', "a.yml": "- {question: a?, reference: b}\n"}
    (tmp_path / name).write_text(texts[name])
    assert inspect_files(tmp_path / name, None, tmp_path, {}).dataset["use"] == word


def test_a_file_that_cannot_be_read_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"question": "a?"}\n{"question"\n')
    with pytest.raises(UsageError, match=r"broken\.jsonl:2"):
        inspect_files(tmp_path / "broken.jsonl", None, tmp_path, {})
