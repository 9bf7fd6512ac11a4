"""`export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate, evaluate_file


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    done = invoke("export", "toy", results, "--dry-run")
    assert done.stdout.splitlines()[0] == "is_json -> t0"
    assert done.stdout.splitlines()[-1] == "would send 10 scores to the toy"
    assert toy.ToyTarget.stored == {}
    assert invoke("export", "toy", results).stdout == "sent 10 scores to the toy\n"


def test_results_without_a_trace_say_how_to_get_one(toy: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "1", "question": "Why?", "reference": "So."}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "response": "So."}\n')
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [exact_match]\n"
    )
    invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    done = invoke("export", "toy", tmp_path / "results")
    assert done.exit_code == 2
    assert (
        "no answer has a trace of toy; evaluate answers that were read from it: systems: {prod: {use: toy}}"
        in done.stderr
    )


def test_a_file_is_named_as_its_format_is(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "question": "Why?", "answer": "So.", "reference": "So."}\n')
    results = evaluate_file(tmp_path, "rows.jsonl", "[exact_match]")
    for output, told in (("cases.csv", "name a file that ends in .json"), (".", "name a file that ends in .json")):
        done = invoke("export", "deepeval", results, "-o", tmp_path / output if output != "." else output)
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr
    (tmp_path / "there.json").mkdir()
    done = invoke("export", "deepeval", results, "-o", tmp_path / "there.json")
    assert (done.exit_code, "there.json is a folder; name a file with -o" in done.stderr) == (2, True), done.stderr
    done = invoke("export", "otlp", results, "-o", tmp_path / "values", "--signals", "traces", "--signals", "metrics")
    assert (done.exit_code, "name a file that ends in .otlp" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "values").exists()


def test_one_of_several_systems_can_be_written_and_read_again(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "1", "question": "Why?", "reference": "So."}\n')
    for name, answer in (("v1", "No."), ("v2", "So.")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "response": answer}))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {v1: {use: file, path: v1.jsonl}, v2: {use: file, path: v2.jsonl}}\nmetrics: [exact_match]\n"
    )
    invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    done = invoke("export", "ragas", tmp_path / "results", "--system", "v2", "-o", tmp_path / "ragas.jsonl")
    assert done.exit_code == 0, done.output
    (row,) = map(json.loads, (tmp_path / "ragas.jsonl").read_text().splitlines())
    assert (row["response"], row["system"], row["exact_match"]) == ("So.", "v2", 1.0)
    done = invoke("import", "ragas", tmp_path / "ragas.jsonl", "-o", tmp_path / "again.jsonl")
    assert "wrote 1 question with 1 answer" in done.stdout and "left out" not in done.stdout
    done = invoke("export", "ragas", tmp_path / "results", "--system", "v3")
    assert (done.exit_code, "there is no system 'v3' in these results" in done.stderr) == (2, True)
