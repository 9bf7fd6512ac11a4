"""The manifest of a results folder tells what was changed, and the statement about it can be signed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.history.results_manifest import check_manifest
from rageval_spec.runner import Options, RunOutcome, run
from tests.command_line import invoke

SPEC = """
version: 1
name: tiny
datasets: {tiny: {use: trec, qrels: qrels.txt}}
systems: {first: {use: file, path: first.run}}
metrics: [rr, num_ret]
gates:
  - {metric: rr, min: 0.4}
  - {metric: rr, min: 0.4, target: 0.9}
  - {metric: num_ret, min: %s}
reports: [json, markdown, {use: samples, path: rows.jsonl}, {use: csv, path: ../outside.csv}]
"""


def evaluate(folder: Path, least: int = 1) -> RunOutcome:
    folder.mkdir(exist_ok=True)
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    (folder / "first.run").write_text("q1 Q0 d2 1 2.0 x\nq1 Q0 d1 2 1.0 x\n")
    (folder / "spec.yaml").write_text(SPEC % least)
    return run(folder / "spec.yaml", Options(output=folder / "out"))


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / "out" / name).read_text())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_file_of_the_run_is_listed_with_its_size_and_digest(tmp_path: Path) -> None:
    evaluate(tmp_path)
    files = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert (tmp_path / "outside.csv").is_file()
    assert {"results.json", "values.parquet", "report.md", "rows.jsonl"} <= files.keys()
    listed = {path.name: path for path in files.values() if path.name not in ("manifest.json", "statement.json")}
    assert read(tmp_path, "manifest.json") == {
        "format_version": 1,
        "files": {name: {"bytes": path.stat().st_size, "sha256": digest(path)} for name, path in listed.items()},
    }


def test_the_statement_is_what_in_toto_and_its_predicate_say(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path, least=3)
    statement = read(tmp_path, "statement.json")
    assert statement.keys() == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    names = [*read(tmp_path, "manifest.json")["files"], "manifest.json"]
    assert statement["subject"] == [
        {"name": name, "digest": {"sha256": digest(tmp_path / "out" / name)}} for name in sorted(names)
    ]
    predicate = statement["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["passedTests"] == ["rr ≥ 0.4 (tiny, first)"]
    assert [len(predicate[key]) for key in ("warnedTests", "failedTests")] == [1, 1]
    spec, *inputs = predicate["configuration"]
    assert (spec["name"], spec["digest"]) == ("tiny", {"sha256": outcome.evaluation.provenance.spec_digest})
    assert spec["annotations"]["outcome"] == "fail"
    assert {one["name"]: one["digest"]["sha256"] for one in inputs} == {
        f"tiny: {part}": one for part, one in outcome.evaluation.provenance.digests["tiny"].items()
    }


def test_equal_results_give_equal_bytes_in_any_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        evaluate(tmp_path / name)
    for file in ("manifest.json", "statement.json"):
        assert (tmp_path / "one" / "out" / file).read_bytes() == (tmp_path / "two" / "out" / file).read_bytes()


def test_validate_accepts_the_folder_and_names_what_is_not_of_the_run(tmp_path: Path) -> None:
    evaluate(tmp_path)
    (tmp_path / "out" / "notes.txt").write_text("read me")
    shown = invoke("validate", str(tmp_path / "out"))
    assert shown.exit_code == 0
    assert "files with the content that the run wrote" in shown.stdout
    assert shown.stdout.endswith("  not of this run: notes.txt\n")


def test_validate_names_every_file_that_differs(tmp_path: Path) -> None:
    evaluate(tmp_path)
    out = tmp_path / "out"
    (out / "rows.jsonl").unlink()
    (out / "values.parquet").write_bytes((out / "values.parquet").read_bytes() + b"x")
    content = (out / "results.json").read_bytes()
    (out / "results.json").write_bytes(content.replace(b"tiny", b"tidy"))
    shown = invoke("validate", str(out))
    assert shown.exit_code == 3
    assert "manifest.json has it: 3 faults\n" in shown.stderr
    for told in ("rows.jsonl: is missing", "values.parquet: has ", "results.json: has the sha256 "):
        assert told in shown.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no run ended there"),
        (b"{", "is not a manifest"),
        (b'{"format_version": 2, "files": {}}', "format_version is 2"),
        (b'{"format_version": 1, "files": {}}', "names no files"),
        (b'{"format_version": 1, "files": {"../qrels.txt": {"bytes": 10, "sha256": "a"}}}', "outside of the folder"),
    ],
)
def test_a_damaged_manifest_is_an_error(tmp_path: Path, content: bytes | None, told: str) -> None:
    evaluate(tmp_path)
    manifest = tmp_path / "out" / "manifest.json"
    manifest.unlink() if content is None else manifest.write_bytes(content)
    with pytest.raises(DataError, match=told):
        check_manifest(tmp_path / "out")


def change_statement(folder: Path, **changes: Any) -> None:
    path = folder / "statement.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def link(folder: Path, target: Path) -> None:
    (folder / "rows.jsonl").rename(target)
    (folder / "rows.jsonl").symlink_to(target)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda out: (out / "statement.json").unlink(), "statement.json: is missing"),
        (lambda out: (out / "statement.json").write_text("[]"), "statement.json: is no statement about files"),
        (
            lambda out: change_statement(out, subject=[]),
            "statement.json: has another sha256 of rows.jsonl than manifest.json",
        ),
        (
            lambda out: change_statement(out, subject=[{"name": "x\ny", "digest": {"sha256": "a"}}]),
            "statement.json: has another sha256 of x\\ny than manifest.json",
        ),
        (
            lambda out: change_statement(out, subject=[{"name": 1, "digest": {"sha256": "a"}}]),
            "statement.json: has another sha256 of 1 than manifest.json",
        ),
        (lambda out: link(out, out / "other.jsonl"), "rows.jsonl: is a link"),
        (lambda out: link(out, out.parent / "other.jsonl"), "rows.jsonl: is a link"),
    ],
)
def test_a_folder_that_is_not_as_the_run_left_it_is_told(
    tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    evaluate(tmp_path)
    change(tmp_path / "out")
    shown = invoke("validate", tmp_path / "out")
    assert shown.exit_code == 3
    assert f"\n  {told}" in shown.stderr


def test_a_part_of_an_evaluation_is_to_be_merged(tmp_path: Path) -> None:
    evaluate(tmp_path)
    assert invoke("run", tmp_path / "spec.yaml", "--shard", "1/2", "-o", tmp_path / "parts").exit_code == 0
    for folder in (tmp_path / "parts", tmp_path / "parts" / "shard-1-of-2"):
        shown = invoke("validate", folder)
        assert shown.exit_code == 3
        assert f"rageval-spec merge {tmp_path / 'spec.yaml'} {folder}" in shown.stderr


def test_no_report_may_take_the_names(tmp_path: Path) -> None:
    evaluate(tmp_path)
    shown = invoke("validate", str(tmp_path / "spec.yaml"), "--set", "reports=[{use: csv, path: statement.json}]")
    assert shown.exit_code == 2
    assert "statement.json" in shown.stderr
