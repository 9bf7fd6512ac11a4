from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.tiny import write_spec


def test_validate_counts_what_the_spec_declares(spec: Path) -> None:
    result = invoke("validate", spec)
    assert result.exit_code == 0
    assert result.stdout == f"{spec}: valid, 1 dataset, 2 systems, 2 metrics, 1 gate\n"
    assert result.stderr == ""


def test_validate_takes_overrides(spec: Path) -> None:
    assert invoke("validate", spec, "--set", "ranking.ties=sideways").exit_code == 2


SPECS = Path(__file__).parents[2] / "specs"
HEAVY = {"difflib", "polars", "numpy", "rich", "bm25s", "jsonschema", "pyarrow", "scipy", "pandas"}
ONLY_FOR_RUNS = {
    *("runner", "history", "store", "pipeline.plan", "pipeline.execute"),
    *("data.cell", "data.chat", "data.evaluation", "data.fingerprints", "data.results", "data.sample"),
    *("commands.questions", "commands.records", "commands.reviewing", "data.judge_calibration", "data.labels"),
    *("judging.calibrated", "pipeline.judging", "pipeline.label_checks", "reading.production_mix", "statistics.maps"),
    *("datasets.shared.tabular", "endpoints", "systems.shared.tokenizers"),
    *(
        "judging.refusal_phrases",
        "reading.answer_files",
        "reading.matching",
        "reading.reply_layout",
        "statistics.aggregate",
    ),
}
"""Modules of this package that take long to import and that none of the example specs needs to be valid."""


def imports_of_validate(spec: Path) -> set[str]:
    code = "import sys; from rageval_spec.cli import cli; cli.main(['validate', sys.argv[1]])"
    check = f"import atexit, sys; atexit.register(lambda: print(*sorted(set(sys.modules)), file=sys.stderr)); {code}"
    done = subprocess.run([sys.executable, "-c", check, str(spec)], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_validate_imports_nothing_heavy(spec: Path) -> None:
    assert not HEAVY & imports_of_validate(spec)


@pytest.mark.parametrize("name", ["quickstart", "embeddings", "judges"])
def test_validate_imports_nothing_that_only_a_run_needs(name: str) -> None:
    found = imports_of_validate(SPECS / f"{name}.yaml")
    assert "rageval_spec.pipeline.preflight" in found
    assert sorted(module for module in ONLY_FOR_RUNS if f"rageval_spec.{module}" in found) == []


def test_validate_finds_faults_that_a_run_would_hit(tmp_path: Path) -> None:
    dataset = {"use": "trec", "qrels": "data/qrels/test.tsv", "queries": "data/queries.jsonl"}
    reports = ["csv", {"use": "parquet", "path": "values.csv"}]
    sections: dict[str, Any] = {"datasets": {"bare": dataset}, "systems": {"b": {"use": "bm25"}}, "reports": reports}
    result = invoke("validate", write_spec(tmp_path, **sections, metrics=["11pt_avg"]))
    assert result.exit_code == 2
    assert (
        "bm25 needs a dataset's corpus, but the dataset 'bare' has none; add 'corpus:' to the dataset" in result.stderr
    )
    assert "both write 'values.csv'" in result.stderr
    assert "specs do not support it; use `rageval-spec score` or `rageval_spec.evaluate`" in result.stderr
    (tmp_path / "data" / "corpus.jsonl").unlink()
    folder = {"bare": {"use": "beir", "path": "data"}}
    result = invoke("validate", write_spec(tmp_path, datasets=folder, systems=sections["systems"]))
    assert "add corpus.jsonl to the dataset's folder" in result.stderr
