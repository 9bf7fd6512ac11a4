"""An evaluation is the same, byte for byte, however many answers are held and measured at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.data import tables
from rageval_spec.engines import local
from rageval_spec.history import results_folder
from rageval_spec.reading import answer_files
from rageval_spec.runner import Options, run
from rageval_spec.store import stored_tables
from tests.plugins import write

ROWS = 41


def write_files(folder: Path) -> Path:
    golden, answers = [], []
    for number in range(ROWS):
        contexts = [f"The bridge {number} was built in {1900 + number}. It is long.", "All bridges are old."]
        golden.append(
            {"id": f"q{number}", "question": f"When was bridge {number} built?", "reference": f"In {1900 + number}."}
        )
        answer = {} if number % 11 == 3 else {"answer": f"It was built in {1900 + number + number % 3}."}
        answers.append({"id": f"q{(number * 7) % ROWS}", "contexts": contexts, **answer})
    for name, rows in (("golden", golden), ("answers", answers)):
        write(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "answers.jsonl"}},
        "metrics": ["exact_match", "token_f1", "rouge_l", {"use": "faithfulness", "judge": "overlap"}, "error_rate"],
        "reports": ["json", "html"],
    }
    return write(folder / "spec.yaml", json.dumps(spec))


def evaluate(spec: Path, name: str) -> dict[str, bytes]:
    folder = spec.parent / name
    outcome = run(spec, Options(output=folder, no_store=True, no_history=True))
    assert not outcome.failures
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("questions", [1, 7, 40])
def test_equal_bytes_in_parts_and_from_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, questions: int
) -> None:
    spec = write_files(tmp_path)
    expected = evaluate(spec, "whole")
    monkeypatch.setattr(local, "QUESTIONS_AT_ONCE", questions)
    monkeypatch.setattr(answer_files, "MOST_HELD", 5)
    monkeypatch.setattr(answer_files, "ROWS", 3)
    monkeypatch.setattr(stored_tables, "ROWS", 3)
    monkeypatch.setattr(tables, "_ROWS_AT_ONCE", 4)
    monkeypatch.setattr(tables, "_MOST_RECENT", 2)
    monkeypatch.setattr(results_folder, "_FEW_VALUES", 0)
    assert evaluate(spec, "parts") == expected
