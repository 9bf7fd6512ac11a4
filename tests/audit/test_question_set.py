from __future__ import annotations

import json
from pathlib import Path

from rageval_spec.audit.question_set import read_questions
from tests.plugins import build_dataset


def test_a_question_has_its_place_references_judgements_and_columns(tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "question": "Who?",
            "reference": ["Ann", "Anna"],
            "relevant": {"d1": 2, "d2": 0},
            "type": "factual",
        },
        {"id": "b", "question": "How?", "answerable": False},
    ]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    found = read_questions(dataset, dataset.open(), ["a", "b"])
    first, second = found.questions
    assert (first.place, first.references, first.relevant) == (
        f"{tmp_path}/golden.jsonl:1", ("Ann", "Anna"), {"d1": 2, "d2": 0}
    )  # fmt: skip
    assert first.relevant_ids == {"d1"} and first.read_columns()["type"] == "factual"
    assert (second.references, second.relevant, second.answerable) == ((), None, False)
    assert found.has_references and found.has_judgements and found.by_id["b"] is second


def test_judgements_alone_are_questions_without_text(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("b 0 d1 1\n")
    dataset = build_dataset("trec", tmp_path, qrels="qrels.txt")
    found = read_questions(dataset, dataset.open(), ["b"])
    assert (found.questions[0].text, found.questions[0].row.place, found.lost) == ("", "", ())


def test_a_long_question_is_quoted_in_part(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(json.dumps({"id": "a", "question": "x" * 5000}) + "\n")
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    assert len(read_questions(dataset, dataset.open(), ["a"]).questions[0].row.question) == 300


def test_questions_that_share_a_line_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    content = {"question": ["Who?", "How?"], "ground_truth": ["Ann", "So"]}
    (tmp_path / "golden.json").write_text(json.dumps(content))
    dataset = build_dataset("jsonl", tmp_path, path="golden.json")
    found = read_questions(dataset, dataset.open(), ["1", "2"])
    assert [str(question.row).removeprefix(f"{tmp_path}/") for question in found.questions] == [
        "golden.json:1 (query 1)", "golden.json:1 (query 2)"
    ]  # fmt: skip
