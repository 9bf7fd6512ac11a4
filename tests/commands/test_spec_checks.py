""""""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.command_line import invoke
from tests.reading.workbook_files import write_workbook
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
    *("runner", "history", "pipeline.planning.plan", "pipeline.execution.execution", "pipeline.results.provenance"),
    *("data.evaluation", "data.datasets", "data.results", "data.judge_calibration", "data.labels", "store.replies"),
    *("commands.show", "commands.history", "commands.review.command", "judging.calibrated_judge", "judging.mentions"),
    *("judging.refusal_wording", "reading.production_mix", "reading.answer_files", "recorded.http_replies"),
    *("statistics.aggregation", "statistics.raters.reliability_curves"),
    *("endpoints", "inference.verifiers", "drawing.verdict", "sqlite3", "data.traces"),
}
"""Modules that take long to import and that none of the example specs needs to be valid."""


def imports_of_validate(spec: Path) -> set[str]:
    code = "import sys; from rageval_spec.cli import cli; cli.main(['validate', sys.argv[1]])"
    check = f"import atexit, sys; atexit.register(lambda: print(*sorted(set(sys.modules)), file=sys.stderr)); {code}"
    done = subprocess.run([sys.executable, "-c", check, str(spec)], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_validate_imports_nothing_heavy(spec: Path) -> None:
    assert not HEAVY & imports_of_validate(spec)


def test_no_module_that_only_a_run_needs_is_gone() -> None:
    gone = [one for one in ONLY_FOR_RUNS if one != "sqlite3" and find_spec(f"rageval_spec.{one}") is None]
    assert gone == []


@pytest.mark.parametrize("name", ["quickstart", "embeddings", "judges"])
def test_validate_imports_nothing_that_only_a_run_needs(name: str) -> None:
    found = imports_of_validate(SPECS / f"{name}.yaml")
    assert "rageval_spec.pipeline.planning.preflight" in found
    assert sorted(module for module in ONLY_FOR_RUNS if module in found or f"rageval_spec.{module}" in found) == []


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


def shown(
    folder: Path, dataset: dict[str, Any], answers: str = "answers.jsonl", metric: str = "exact_match"
) -> list[str]:
    """What `validate` shows below its first line."""
    (folder / "answers.jsonl").write_text('{"id": "a", "answer": "so", "latency_ms": 20}\n')
    spec = {"version": 1, "datasets": {"golden": dataset}, "systems": {"bot": {"use": "file", "path": answers}}}
    (folder / "spec.yaml").write_text(json.dumps({**spec, "metrics": [metric]}))
    result = invoke("validate", folder / "spec.yaml")
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()[1:]


def test_validate_shows_which_column_became_what(tmp_path: Path) -> None:
    row = {"id": "a", "Question": "why?", "Ground Truth": "so", "relevant_doc_ids": "d1", "Region": "EU"}
    rows = [["Our golden set"], list(row), list(row.values())]
    write_workbook(tmp_path / "golden.xlsx", Golden=rows)
    assert shown(tmp_path, {"use": "golden", "path": "golden.xlsx"}) == [
        "datasets.golden: golden.xlsx, sheet 'Golden', header in row 2",
        "  columns: {query_id: id, text: Question, reference: Ground Truth, relevant: relevant_doc_ids}",
        "  kept with the questions: Region",
        "systems.bot: answers.jsonl, milliseconds in 'latency_ms'",
        "  columns: {query_id: id, answer: answer}",
    ]


def test_validate_shows_whose_layout_a_file_has_and_the_spec_can_say_otherwise(tmp_path: Path) -> None:
    row = {"id": "a", "inputs": {"question": "why?", "hint": "think"}, "outputs": {"answer": "so"}}
    (tmp_path / "export.jsonl").write_text(json.dumps(row) + "\n")
    dataset: dict[str, Any] = {"use": "jsonl", "path": "export.jsonl"}
    assert shown(tmp_path, dataset)[:2] == [
        "datasets.golden: export.jsonl, as LangSmith writes it",
        "  columns: {query_id: id, text: $.inputs.question, reference: $.outputs.answer}",
    ]
    dataset["columns"] = {"text": "$.inputs.hint"}
    assert "text: $.inputs.hint, reference: $.outputs.answer" in shown(tmp_path, dataset)[1]
    dataset["layout"] = "none"
    assert "text: $.inputs.hint}" in shown(tmp_path, dataset, metric="error_rate")[1]


def test_the_columns_that_validate_shows_can_be_written_in_the_spec(tmp_path: Path) -> None:
    row = {"inputs": {"question": "why?"}, "outputs": {"answer": "so"}}
    (tmp_path / "export.jsonl").write_text(json.dumps(row) + "\n")
    before = shown(tmp_path, {"use": "jsonl", "path": "export.jsonl"})
    columns = yaml.safe_load(before[1])["columns"]
    after = shown(tmp_path, {"use": "jsonl", "path": "export.jsonl", "columns": columns, "layout": "none"})
    assert after[1] == before[1]


def test_validate_says_what_it_assumed_of_text(tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_bytes("question;reference\nwhy?;so\n".encode("utf-16"))
    first = shown(tmp_path, {"use": "csv", "path": "golden.csv"})[0]
    assert first == "datasets.golden: golden.csv, separated by a semicolon, UTF-16 text, ids are row numbers"


def test_validate_shows_the_version_of_a_golden_set(tmp_path: Path) -> None:
    golden = {"version": "1.2", "created": "2026-03-01", "test_cases": [{"id": "a", "query": "why?"}]}
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    first = shown(tmp_path, {"use": "json", "path": "golden.json"}, metric="error_rate")[0]
    assert first == "datasets.golden: golden.json, version 1.2, created 2026-03-01"


def test_validate_says_that_contexts_of_deepeval_are_joined(tmp_path: Path) -> None:
    names = "input,actual_output,expected_output,retrieval_context,context\n"
    (tmp_path / "goldens.csv").write_text(f"{names}why?,so,because,r1|r2,c1|c2\n")
    first = shown(tmp_path, {"use": "csv", "path": "goldens.csv"}, "goldens.csv")
    joined = "as DeepEval writes it, which joins the texts of 'context' and 'retrieval_context' by '|'"
    assert first[0] == f"datasets.golden: goldens.csv, {joined}, ids are row numbers"
    assert f"systems.bot: goldens.csv, {joined}" in first


def test_a_wrong_path_is_a_diagnostic_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"inputs": {"question": "why?"}}\n')
    sections: dict[str, Any] = {"systems": {"b": {"use": "file", "path": "golden.jsonl"}}, "metrics": ["exact_match"]}
    for name, message in (
        ("$.a[", "is not a valid path from '[' on"),
        ("$.a.b", "golden.jsonl has nothing at '$.a.b'"),
    ):
        dataset = {"use": "jsonl", "path": "golden.jsonl", "columns": {"text": name}}
        result = invoke("validate", write_spec(tmp_path, datasets={"golden": dataset}, **sections))
        assert result.exit_code == 2
        assert message in result.stderr


def test_several_specs_are_checked_and_all_faults_are_told(tmp_path: Path) -> None:
    good = write_spec(tmp_path)
    first = write_spec(tmp_path, "first.yaml", metrics=["ncdg@10"])
    second = write_spec(tmp_path, "second.yaml", metrics=["recal@10"])
    result = invoke("validate", first, good, second)
    assert result.exit_code == 2
    assert result.stdout.startswith(f"{good}: valid, ")
    assert "did you mean 'ndcg@10'?" in result.stderr
    assert "did you mean 'recall@10'?" in result.stderr
    assert invoke("validate", good, good).stdout.count(": valid, ") == 2
    assert invoke("validate").exit_code == 2


def test_schema_is_draft_7_and_accepts_the_sample_spec(spec: Path) -> None:

    schema = json.loads(invoke("schema").stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(spec.read_text()), schema)
