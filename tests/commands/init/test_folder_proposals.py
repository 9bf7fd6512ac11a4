"""What `init` and `status` propose for the files of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rageval_spec.commands.init.folder_proposals import propose
from tests.command_line import invoke

SPANS = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": []}]}]})


def list_arguments(folder: Path) -> list[list[str]]:
    """The arguments of each proposal, with paths from the folder."""
    return [[part.removeprefix(f"{folder}/") for part in one.arguments] for one in propose(folder)]


def test_nothing_in_an_empty_folder_or_none(tmp_path: Path) -> None:
    assert propose(tmp_path) == []
    assert propose(tmp_path / "none") == []


def test_each_kind_by_its_name(tmp_path: Path) -> None:
    for name in ("golden.xlsx", "promptfooconfig.yaml", "bm25.run", "qrels.tsv", "notes.md", "prices.csv", ".qrels"):
        (tmp_path / name).write_text("PK: 1\n", encoding="utf-8")
    (tmp_path / "traces.jsonl").write_text(SPANS, encoding="utf-8")
    (tmp_path / "scifact" / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl.gz", "queries.jsonl"):
        (tmp_path / "scifact" / name).write_bytes(b"")
    assert list_arguments(tmp_path) == [
        ["golden.xlsx"],
        ["--from", "beir", "scifact"],
        ["--from", "trec", "qrels.tsv"],
        ["--from", "promptfoo", "promptfooconfig.yaml"],
        ["--from", "otel", "traces.jsonl"],
    ]


def test_answers_are_proposed_with_the_questions_beside_them(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("id,answer\n", encoding="utf-8")
    assert list_arguments(tmp_path) == [["--answers", "answers.csv"]]
    (tmp_path / "questions.jsonl").write_text("{}", encoding="utf-8")
    both = ["--answers", "answers.csv", "--golden", "questions.jsonl"]
    assert list_arguments(tmp_path) == [both, ["questions.jsonl"]]


def test_traces_that_import_wrote_are_answers(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text('{"question": "a?", "answer": "b"}\n', encoding="utf-8")
    assert list_arguments(tmp_path) == [["--answers", "traces.jsonl"]]


def test_judgements_without_runs_are_no_proposal(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    assert propose(tmp_path) == []
    result = invoke("init", "--from", "trec", tmp_path / "qrels.txt", tmp_path / "out")
    assert result.exit_code == 2
    assert "there are no rankings beside" in result.stderr
    assert "must end in .run" in result.stderr
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_is_no_proposal(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_bytes(b" \n")
    (tmp_path / "golden.xlsx").write_bytes(b"not a workbook")
    (tmp_path / "questions.parquet").write_bytes(b"not a table")
    (tmp_path / "faq.csv").symlink_to(tmp_path / "none")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "golden.csv")  # reading it would wait for a writer
    assert propose(tmp_path) == []
