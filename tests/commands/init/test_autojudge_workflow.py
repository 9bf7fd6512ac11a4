"""Specs for workflows of TREC AutoJudge, in a folder like its starter kit's. The data are made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.reading.leaderboards import read_leaderboard
from tests.checked_specs import validate
from tests.command_line import invoke

WORKFLOW = """\
# Lifecycle flags, settings and variants, as in the starter kit's judges.
judge_class: "judges.tinyjudge.tiny_judge:TinyJudge"
create_nuggets: false
judge: true
settings:
  filebase: "{_name}-tiny"
  segments: 1
variants:
  context: {segments: 3}
"""
DATASETS = """\
datasets:
  - name: rag25-gen
    from_release: {track: rag25, task: generation}
  - name: gone
    responses: ./data/gone/
    topics: ./data/gone.jsonl
  - name: kiddie
    responses: ./data/runs/
    topics: ./data/topics.jsonl
    truth: ./data/truth.txt
"""
TRUTH = "run topic measure value\n" + "".join(
    f"{run} {topic} SCORE {value}\n" for run, value in (("one", 3), ("two", 2), ("three", 1)) for topic in ("1", "all")
)
SENTENCES = ("The gate is closed in storms.", "The gate is blue.", "Nobody knows.")


def write_kit(folder: Path, *, with_documents: bool = True) -> Path:
    """A kit with three runs; returns the path of the workflow."""
    (folder / "judges" / "tinyjudge").mkdir(parents=True)
    (folder / "data" / "runs" / "repgen").mkdir(parents=True)
    (folder / "datasets.yml").write_text(DATASETS)
    (folder / "data" / "truth.txt").write_text(TRUTH)
    (folder / "data" / "topics.jsonl").write_text(json.dumps({"request_id": "1", "title": "When is the gate closed?"}))
    for run, sentence in zip(("one", "two", "three"), SENTENCES, strict=True):
        report: dict[str, Any] = {
            "metadata": {"team_id": "kids", "run_id": run, "topic_id": "1"},
            "responses": [{"text": sentence, "citations": ["gate"]}],
        }
        if with_documents:
            report["documents"] = {"gate": {"id": "gate", "text": "The gate is closed in storms."}}
        (folder / "data" / "runs" / "repgen" / f"{run}-file.jsonl").write_text(json.dumps(report))
    workflow = folder / "judges" / "tinyjudge" / "workflow.yml"
    workflow.write_text(WORKFLOW)
    return workflow


def test_a_workflow_becomes_a_spec_that_runs_and_is_compared_with_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("init", "--from", "autojudge", write_kit(tmp_path / "kit"), "ours")
    assert done.exit_code == 0, done.output
    spec = validate(tmp_path / "ours" / "spec.yaml")
    assert [*spec.systems] == ["one", "three", "two"]  # the ids of the runs, as the truth names them
    ran = invoke("run", "ours/spec.yaml", "--quiet", "--no-history", "-o", "results")
    assert ran.exit_code == 0, ran.output
    board = tmp_path / "results" / "default-tiny.eval.txt"
    assert read_leaderboard(board).rank("citation_support") == {"one": 1.0, "three": 0.0, "two": 0.5}
    text = (tmp_path / "ours" / "spec.yaml").read_text()
    assert "judges.tinyjudge.tiny_judge:TinyJudge judges these runs." in text
    assert "calibrate --leaderboards ../kit/data/truth.txt rageval-results/default-tiny.eval.txt" in text
    compared = invoke("calibrate", "--leaderboards", "kit/data/truth.txt", board, "--format", "json")
    assert compared.exit_code == 0, compared.output


def test_what_is_behind_number_signs_is_valid_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert invoke("init", "--from", "autojudge", write_kit(tmp_path), tmp_path / "ours").exit_code == 0
    path = tmp_path / "ours" / "spec.yaml"
    said = ("models:", "judges:", "  ", "- {")
    lines = [
        line[2:] if line.startswith("# ") and line[2:].startswith(said) else line
        for line in path.read_text().splitlines()
    ]
    bank = {"qid": "1", "query": "?", "nuggets": [{"text": "closed in storms", "importance": "vital"}]}
    (tmp_path / "ours" / "nuggets.jsonl").write_text(json.dumps(bank))
    text = "\n".join(lines).replace("    use: trec\n", "    use: trec\n    nuggets: nuggets.jsonl\n")
    path.write_text(f"{text}\n")
    assert {*validate(path).judges} >= {"assign", "support"}


def test_nuggets_and_texts_decide_about_metrics(tmp_path: Path) -> None:
    workflow = write_kit(tmp_path, with_documents=False)
    bank = {"qid": "1", "query": "?", "nuggets": [{"text": "closed in storms", "importance": "vital"}]}
    (workflow.parent / "nuggets.jsonl").write_text(json.dumps(bank))
    workflow.write_text(WORKFLOW + "nugget_input: nuggets.jsonl\n")
    assert invoke("init", "--from", "autojudge", workflow, tmp_path / "ours").exit_code == 0
    written = yaml.safe_load((tmp_path / "ours" / "spec.yaml").read_text())
    assert written["metrics"] == ["citation_validity", {"use": "nuggets", "judge": "overlap"}, "error_rate"]
    assert written["datasets"]["kiddie"]["nuggets"] == "../judges/tinyjudge/nuggets.jsonl"
    validate(tmp_path / "ours" / "spec.yaml")


@pytest.mark.parametrize(
    ("content", "datasets", "message"),
    [
        ("", DATASETS, "is no workflow of AutoJudge: it has none of the keys judge_class"),
        ("jobs: {build: {}}", DATASETS, "is no workflow of AutoJudge"),
        ("a: [", DATASETS, "workflow.yml cannot be read: "),
        ("- judge_class", DATASETS, "is no workflow of AutoJudge"),
        (WORKFLOW, "datasets: [3, {name: x}]", "no file such as datasets.yml beside "),
        (WORKFLOW, "3", "names topics and responses that are there; write one: datasets: [{name, topics, responses}]"),
        (WORKFLOW, "a: [", "datasets.yml cannot be read: "),
    ],
)
def test_what_cannot_be_read_is_told(content: str, datasets: str, message: str, tmp_path: Path) -> None:
    workflow = write_kit(tmp_path)
    workflow.write_text(content)
    (tmp_path / "datasets.yml").write_text(datasets)
    refused = invoke("init", "--from", "autojudge", workflow, tmp_path / "ours")
    assert refused.exit_code == 2 and message in refused.stderr, refused.output
    assert not (tmp_path / "ours").exists()


def test_two_files_of_one_run_are_refused(tmp_path: Path) -> None:
    workflow = write_kit(tmp_path)
    runs = tmp_path / "data" / "runs" / "repgen"
    (runs / "copy.jsonl").write_text((runs / "two-file.jsonl").read_text())
    done = invoke("init", "--from", "autojudge", workflow, tmp_path / "ours")
    assert done.exit_code == 2
    assert "have the run_id 'two'; keep one of them" in " ".join(done.output.split())
