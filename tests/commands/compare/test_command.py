"""`rageval-spec compare` from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.history.saved_evaluations import FOLDER, save_evaluation
from rageval_spec.runner import Options, run
from tests.answered_evaluation import save
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    save(evaluation(BEFORE), tmp_path / "before")
    save(evaluation(AFTER), tmp_path / "after")
    return tmp_path


def compare(*arguments: str, **env: str) -> str:
    result = invoke("compare", *arguments, env=env)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_folders_and_labels_can_be_compared() -> None:
    save_evaluation(evaluation(BEFORE), "main", FOLDER)
    assert compare("main", "after").splitlines()[1:] == compare("before", "after").splitlines()[1:]


def test_json_has_a_stable_shape() -> None:
    content = json.loads(compare("before", "after", "--format", "json"))
    assert list(content) == [
        "format_version", "before", "after", "differences", "metrics", "counts", "questions",
    ]  # fmt: skip
    assert content["counts"] == {"broken": 1, "fixed": 1, "worse": 1, "better": 0, "changed": 1, "shared": 5}
    assert content["metrics"][0]["comparison"]["wins"] == 1
    first = content["questions"][0]
    assert (first["query_id"], first["kind"], first["before"], first["after"]) == ("q1", "broken", 0.9, 0.1)
    assert first["diff"] == [["equal", "It is"], ["removed", " red"], ["added", " blue"], ["equal", "."]]


def test_a_filter_leaves_out_other_metrics() -> None:
    assert "token_f1" not in compare("before", "after", "--metric", "latency")
    told = compare("before", "after", "--metric", "token_f1", "--limit", "1")
    assert "latency" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["before"], "AFTER is missing"),
        (["before", "nowhere"], "'nowhere' is neither a results folder nor a label"),
        (["before", "after", "--metric", "token_f2"], "unknown metric 'token_f2'; did you mean 'token_f1'?"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    result = invoke("compare", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_results_without_anything_in_common_cannot_be_compared(here: Path) -> None:
    save(replace(evaluation(AFTER), systems=("a", "b")), here / "systems")
    result = invoke("compare", "before", "systems")
    assert result.exit_code == 2
    assert "the results have no system in common: before has v1, systems has a, b" in result.stderr
    save(replace(evaluation(AFTER), datasets=("silver",)), here / "datasets")
    assert (
        "no dataset in common: before has golden, datasets has silver" in invoke("compare", "before", "datasets").stderr
    )


def test_the_p_value_is_that_of_the_gate_on_the_same_comparison(tmp_path: Path) -> None:
    def write(number: float) -> Path:
        rows = [
            {"query_id": f"q{at}", "question": f"What is {at}?", "reference": f"it is {at} or so"} for at in range(9)
        ]
        kept = [row | {"answer": "it is so" if at < number else row["reference"]} for at, row in enumerate(rows)]
        for name, table in (("golden", rows), ("answers", kept)):
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
        gate = {"metric": "token_f1", "baseline": "start", "max_drop": 0}
        spec = {
            "version": 1,
            "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
            "systems": {"v1": {"use": "file", "path": "answers.jsonl"}},
            "metrics": ["token_f1", "exact_match", "rouge_l"],
            "gates": [gate] if number else [],
        }
        path = tmp_path / "spec.json"
        path.write_text(json.dumps(spec))
        return path

    run(write(0), Options(output=tmp_path / "start"))
    [gate] = run(write(6), Options(output=tmp_path / "end")).evaluation.gates
    assert "(Holm-adjusted p = 0.0312)" in gate.reason
    content = json.loads(compare("start", "end", "--format", "json"))
    found = {one["metric"]: one["comparison"]["p_adjusted"] for one in content["metrics"]}
    assert found == {"token_f1": 0.03125, "exact_match": 0.0625, "rouge_l": 0.0625}
    assert "Holm-adjusted p" in compare("start", "end")


def test_an_edited_file_of_nuggets_is_told(tmp_path: Path) -> None:
    rows: dict[str, dict[str, Any]] = {
        "golden": {"id": "q", "question": "?"},
        "answers": {"id": "q", "answer": "within 30 days"},
    }
    rows["nuggets"] = {"qid": "q", "query": "?", "nuggets": ["within 30 days"]}
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: n\ndatasets: {golden: {use: golden, path: golden.jsonl, nuggets: nuggets.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl}}\nmetrics: [{use: nuggets, judge: overlap}]\n"
    )
    for out in ("one", "two", "three"):
        if out == "three":  # the first two are of the same nuggets
            edited = {**rows["nuggets"], "nuggets": ["within 60 days"]}
            (tmp_path / "nuggets.jsonl").write_text(json.dumps(edited))
        run = ("run", str(tmp_path / "spec.yaml"), "--no-history", "--no-store", "--quiet")
        assert invoke(*run, "-o", str(tmp_path / out)).exit_code == 0
    told = [invoke("compare", str(tmp_path / "one"), str(tmp_path / out)).stdout for out in ("two", "three")]
    assert ["the nuggets are not the same" in one for one in told] == [False, True]
