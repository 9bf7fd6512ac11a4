from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.audit.opening import open_questions, open_subject, open_train
from rageval_spec.errors import DataError, UsageError
from tests.plugins import build_dataset, write


def test_only_judged_questions_count_without_gold_answers(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nb\td1\t1\n")
    found = open_questions(build_dataset("beir", tmp_path, path="."))
    assert [(question.query_id, question.text) for question in found.questions] == [("b", "two")]


def test_a_file_of_any_format_can_hold_training_questions(tmp_path: Path) -> None:
    csv = write(tmp_path / "train.csv", "question\none\ntwo\n", ".gz")
    json_lines = write(tmp_path / "train.jsonl", '{"question": "one"}\n')
    assert [question.text for question in open_train(csv).questions] == ["one", "two"]
    assert [question.text for question in open_train(json_lines).questions] == ["one"]


def test_a_beir_folder_means_its_training_split(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nb\td1\t1\n")
    write(tmp_path / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\na\td1\t1\n")
    assert [question.query_id for question in open_train(tmp_path).questions] == ["a"]
    assert [question.query_id for question in open_train(tmp_path / "qrels" / "test.tsv").questions] == ["b"]


def test_a_missing_or_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.csv: no such file"):
        open_train(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"empty\.jsonl"):
        open_train(write(tmp_path / "empty.jsonl", ""))


def test_questions_that_no_model_wrote_yet_are_not_made_by_an_audit(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs" / "a.md", "# Fees\n\nThe fee is 5 euros a month, and it is due on the first day.\n")
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\n"
        "datasets: {golden: {use: generated, path: docs, model: writer, count: 2}}\n"
        "models: {writer: {use: chat, base_url: 'http://127.0.0.1:9/v1', model: m}}\n"
        "systems: {found: {use: bm25}}\n"
        "metrics: [ndcg@10]\n"
    )
    subject = open_subject(spec, [], tmp_path / "store")
    with pytest.raises(DataError, match="not made yet; `rageval-spec run` makes them"):
        open_questions(subject.datasets["golden"])
    assert not (tmp_path / "store").exists() and not (tmp_path / ".rageval").exists()
