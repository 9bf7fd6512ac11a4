"""Golden sets in Excel: four lines of YAML run them, and a wrong cell is a diagnostic of the spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command_line import invoke
from tests.datasets.question_rows import write_rows
from tests.plugins import build_dataset
from tests.reading.workbook_files import write_workbook

SPEC = """\
version: 1
datasets: {golden: {use: xlsx, path: golden.xlsx}}
systems: {bot: {use: file, path: golden.xlsx, columns: {answer: ground_truth}}}
metrics: [exact_match]
"""


def test_four_lines_run_a_golden_set(tmp_path: Path) -> None:
    write_rows(tmp_path, "xlsx")
    (tmp_path / "spec.yaml").write_text(SPEC)
    result = invoke("run", tmp_path / "spec.yaml", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "exact_match  1.000 [0.158, 1.000]     2/2" in result.stdout


def test_a_sheet_can_be_named(tmp_path: Path) -> None:
    golden = [["question"], ["why?"]]
    write_workbook(tmp_path / "golden.xlsx", First=golden, Second=[["question"], ["how?"]])
    collection = build_dataset("xlsx", tmp_path, path="golden.xlsx", sheet="Second").open()
    assert collection.queries is not None
    assert collection.queries.rows() == [("1", "how?")]


def test_a_wrong_cell_is_a_diagnostic_with_its_place(tmp_path: Path) -> None:
    write_workbook(tmp_path / "golden.xlsx", Golden=[["question", "ground_truth"], ["why?", "=1+1"]])
    (tmp_path / "spec.yaml").write_text(SPEC)
    result = invoke("validate", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert "spec.yaml:2:38: " in result.stderr
    assert "golden.xlsx: sheet 'Golden', cell B2: the formula has no value yet; open the workbook" in result.stderr


def test_an_id_twice_is_a_diagnostic_with_both_rows(tmp_path: Path) -> None:
    write_workbook(
        tmp_path / "golden.xlsx", Golden=[["id", "question", "ground_truth"], ["a", "b?", 1], ["a", "c?", 2]]
    )
    (tmp_path / "spec.yaml").write_text(SPEC)
    result = invoke("validate", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    assert "row 3: the query 'a' is listed twice, first at" in result.stderr


def test_columns_that_do_not_fit_are_listed_with_the_mapping_to_write(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Nr", "Frage", "Erwartete Antwort"], [1, "Warum?", "darum"], [2, "Wie?", "so"]]
    write_workbook(tmp_path / "golden.xlsx", Golden=rows)
    write_workbook(tmp_path / "answers.xlsx", A=[["Nr", "Antwort"], [1, "darum"], [2, "so"]])
    spec = SPEC.replace("golden.xlsx, columns: {answer: ground_truth}", "answers.xlsx")
    (tmp_path / "spec.yaml").write_text(spec)
    result = invoke("validate", tmp_path / "spec.yaml")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    columns = (
        "golden.xlsx has no questions under a known name; its columns are 'Nr', 'Frage', 'Erwartete Antwort'; "
        "for questions with gold answers write columns: {text: Frage, reference: Erwartete Antwort}"
    )
    assert columns in told
    own = (
        "answers.xlsx: neither a ranking nor answers: the columns are 'Nr', 'Antwort'; write columns: {answer: Antwort"
    )
    assert own in told
    mapped = "golden.xlsx, columns: {query_id: Nr, text: Frage, reference: Erwartete Antwort}}}"
    spec = spec.replace("golden.xlsx}}", mapped).replace(
        "answers.xlsx", "answers.xlsx, columns: {answer: Antwort, query_id: Nr}"
    )
    (tmp_path / "spec.yaml").write_text(spec)
    result = invoke("run", tmp_path / "spec.yaml", "--output", tmp_path / "out")
    assert "exact_match  1.000 [0.158, 1.000]     2/2" in result.stdout
