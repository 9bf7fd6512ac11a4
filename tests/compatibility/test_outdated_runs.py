"""A run that an earlier version stored is used, unless this version gives another one under the same key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.runner import Options, run

SPEC = """
version: 1
name: tiny
datasets: {tiny: {use: beir, path: data}}
systems:
  bm25: {use: bm25}
  fused: {use: hybrid, systems: [bm25, again]}
  again: {use: bm25, k1: 1.2}
metrics: [num_ret]
reports: [json]
"""
CHINESE = ("上海图书馆每天早上九点开门", "图书馆几点开门")
LATIN = ("the library opens at nine", "when does the library open")


def evaluate(folder: Path) -> dict[str, float]:
    outcome = run(folder / "spec.yaml", Options(output=folder / "out"))
    assert outcome.exit_code == 0, outcome
    results = json.loads((folder / "out" / "results.json").read_text())
    return {one["system"]: one["mean"] for one in results["aggregates"]}


def write(folder: Path, document: str, query: str) -> None:
    (folder / "data" / "qrels").mkdir(parents=True)
    (folder / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (folder / "data" / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": query}))
    (folder / "data" / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "title": "", "text": document}))
    (folder / "spec.yaml").write_text(SPEC)


def find_manifests(folder: Path) -> list[Path]:
    found = list((folder / ".rageval" / "store" / "tables").glob("*/manifest.json"))
    assert len(found) == 3
    return found


def make_first_format(folder: Path) -> None:
    for path in find_manifests(folder):
        content = json.loads(path.read_text())
        del content["record"]["format"]
        path.write_text(json.dumps(content))


def count_made(folder: Path) -> int:
    """How many runs this version made."""
    return sum("format" in json.loads(path.read_text())["record"] for path in find_manifests(folder))


@pytest.mark.parametrize(
    ("texts", "made_again"),
    [pytest.param(CHINESE, True, id="the tokenizer of then found nothing"), pytest.param(LATIN, False, id="the same")],
)
def test_runs_of_the_first_format(tmp_path: Path, texts: tuple[str, str], made_again: bool) -> None:
    write(tmp_path, *texts)
    first = evaluate(tmp_path)
    assert first == {"bm25": 1.0, "again": 1.0, "fused": 1.0}
    make_first_format(tmp_path)
    assert evaluate(tmp_path) == first
    assert count_made(tmp_path) == (3 if made_again else 0)
