"""Diagnoses of whole evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS, explain_cause
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.runner import Options, run

QUESTIONS = [
    {"query_id": "q1", "question": "capital of France?", "reference": "Paris"},
    {"query_id": "q2", "question": "capital of Peru?", "reference": "Lima"},
    {"query_id": "q3", "question": "capital of Chad?", "reference": "N'Djamena"},
    {"query_id": "q4", "question": "capital of Mali?", "reference": "Bamako"},
]
ANSWERS = [
    {"query_id": "q1", "answer": "Paris", "context_ids": ["d1"]},
    {"query_id": "q2", "answer": "Quito", "context_ids": ["d2", "d9"]},
    {"query_id": "q3", "answer": "Abuja", "context_ids": ["d9"]},
    {"query_id": "q4", "answer": "Bamako", "context_ids": ["d9"]},
]
SPEC = """\
version: 1
datasets: {golden: {use: jsonl, path: golden.jsonl%s}}
systems: {bot: {use: file, path: answers.jsonl}}
metrics: [%s]
%s
"""


def evaluate(folder: Path, metrics: str = "token_f1", *, judged: bool = True, rest: str = "") -> Evaluation:
    _write(folder / "golden.jsonl", QUESTIONS)
    _write(folder / "answers.jsonl", ANSWERS)
    (folder / "qrels.tsv").write_text("".join(f"q{n}\t0\td{n}\t1\n" for n in range(1, 5)))
    (folder / "spec.yaml").write_text(SPEC % (", qrels: qrels.tsv" if judged else "", metrics, rest))
    return run(folder / "spec.yaml", Options(output=folder / "out", no_store=True)).evaluation


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_every_question_is_counted_under_one_cause(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path).diagnosis
    assert diagnosis is not None
    assert (diagnosis.retrieval, diagnosis.correctness) == (JUDGED_DOCUMENTS, "token_f1")
    assert {count.cause: count.count for count in diagnosis.counts} == {
        "fine": 1, "generation": 1, "retrieval": 1, "lucky": 1,
    }  # fmt: skip
    assert [advice.sentence for advice in diagnosis.advice] == [
        "1 of 2 wrong answers did not get what they needed: improve retrieval first, with more documents, a hybrid of "
        "retrievers or a reranker"
    ]


def test_samples_have_the_cause_of_each_question(tmp_path: Path) -> None:
    samples = evaluate(tmp_path).samples
    assert dict(samples.select("query_id", "cause").iter_rows()) == {
        "q1": "fine", "q2": "generation", "q3": "retrieval", "q4": "lucky",
    }  # fmt: skip


def test_thresholds_can_be_set(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path, rest="diagnosis: {wrong_below: 0, right_from: 0}").diagnosis
    assert diagnosis is not None
    assert {count.cause: count.count for count in diagnosis.counts} == {"fine": 2, "lucky": 2}


def test_without_a_sign_of_retrieval_there_is_no_diagnosis(tmp_path: Path) -> None:
    assert evaluate(tmp_path, judged=False).diagnosis is None


def test_systems_that_only_retrieve_have_none(tmp_path: Path) -> None:
    assert evaluate(tmp_path, metrics="recall@5").diagnosis is None


def test_a_cause_is_explained_by_its_numbers(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path).diagnosis
    assert diagnosis is not None
    told = explain_cause(diagnosis, "retrieval", {"token_f1": 0.0})
    assert told == "no relevant document is among the contexts; token_f1 is 0.00"
