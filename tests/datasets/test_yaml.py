"""Golden sets in YAML, and the tests of promptfoo: four lines of YAML run each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from tests.command_line import invoke
from tests.datasets.question_rows import write_rows
from tests.plugins import build_dataset

SPEC = """\
version: 1
datasets: {golden: {use: yaml, path: golden.yaml}}
systems: {bot: {use: file, path: golden.yaml, columns: {answer: ground_truth}}}
metrics: [exact_match]
"""
PROMPTFOO = """\
description: Support questions
prompts: ['{{question}}']
providers: [openai:gpt-4.1]
tests:
  - description: refunds
    vars: {question: How long do refunds take?, plan: free}
    assert:
      - {type: equals, value: five days}
      - {type: icontains, value: days}
  - vars: {question: Who answers?, plan: paid}
    assert:
      - {type: llm-rubric, value: names the team}
      - type: assert-set
        assert: [{type: similar, value: the support team}]
    metadata: {category: people}
"""


def run(folder: Path, spec: str) -> str:
    (folder / "spec.yaml").write_text(spec)
    result = invoke("run", folder / "spec.yaml", "--output", folder / "out")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_four_lines_run_a_yaml_list(tmp_path: Path) -> None:
    write_rows(tmp_path, "yaml")
    assert "exact_match  1.000 [0.158, 1.000]     2/2" in run(tmp_path, SPEC)


def test_four_lines_run_the_tests_of_promptfoo(tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text(PROMPTFOO)
    (tmp_path / "answers.yaml").write_text("- {question: How long do refunds take?, answer: five days}\n")
    spec = SPEC.replace("golden.yaml, columns: {answer: ground_truth}", "answers.yaml")
    assert "exact_match  1.000     1/2" in run(tmp_path, spec.replace("golden.yaml, columns", "golden.yaml}"))


def test_the_tests_of_promptfoo_are_questions_with_what_they_assert(tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text(PROMPTFOO)
    collection = build_dataset("yaml", tmp_path, path="golden.yaml").open()
    assert collection.queries is not None and collection.references is not None and collection.columns is not None
    assert collection.queries["text"].to_list() == ["How long do refunds take?", "Who answers?"]
    assert collection.references["references"].to_list() == [["five days"], ["the support team"]]
    assert '"category":"people"' in collection.columns["columns"][1]
    assert '"plan":"free"' in collection.columns["columns"][0]
    assert collection.about == {"description": "Support questions"}


def test_what_promptfoo_says_of_all_tests_counts_for_each(tmp_path: Path) -> None:
    default = "defaultTest:\n  vars: {plan: free, tone: kind}\n  assert: [{type: equals, value: five days}]\n"
    first = "- vars: {question: When?, plan: paid}\n  assert: [{type: equals, value: on Friday}]\n"
    tests = f"tests:\n{first}- vars: {{question: How?}}\n"
    (tmp_path / "golden.yaml").write_text(default + tests)
    collection = build_dataset("yaml", tmp_path, path="golden.yaml").open()
    assert collection.references is not None and collection.columns is not None
    assert collection.references["references"].to_list() == [["on Friday", "five days"], ["five days"]]
    columns = [json.loads(text) for text in collection.columns["columns"]]
    assert [(row["plan"], row["tone"]) for row in columns] == [("paid", "kind"), ("free", "kind")]
    (tmp_path / "golden.yaml").write_text("defaultTest: file://default.yaml\n" + tests)
    with pytest.raises(DataError, match=r"'defaultTest' is in another file, file://default\.yaml; write its content"):
        assert build_dataset("yaml", tmp_path, path="golden.yaml").open().queries is not None


def test_a_variable_in_another_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text("tests:\n- vars: {question: file://q.txt}\n")
    with pytest.raises(DataError, match=r"golden\.yaml:2: file://q\.txt: no such file"):
        assert build_dataset("yaml", tmp_path, path="golden.yaml").open().queries is not None


def test_values_stay_as_their_author_wrote_them(tmp_path: Path) -> None:
    (tmp_path / "golden.yaml").write_text("- {id: 007, question: Is it?, ground_truth: no}\n")
    collection = build_dataset("yaml", tmp_path, path="golden.yaml").open()
    assert collection.queries is not None and collection.references is not None
    assert collection.queries.rows() == [("007", "Is it?")]
    assert collection.references["references"].to_list() == [["no"]]
