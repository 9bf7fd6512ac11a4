"""Results of the toy's traces, made with the command line."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke


def evaluate(folder: Path) -> Path:
    """The results folder of an evaluation of the toy's traces."""
    done = invoke("import", "toy", "-o", folder / "traces.jsonl")
    assert done.exit_code == 0, done.output
    (folder / "spec.yaml").write_text(
        "version: 1\ndatasets: {prod: {use: jsonl, path: traces.jsonl}}\n"
        "systems: {bot: {use: file, path: traces.jsonl}}\nmetrics: [is_json, latency@p50]\n"
    )
    done = invoke("run", folder / "spec.yaml", "-o", folder / "results")
    assert done.exit_code == 0, done.output
    return folder / "results"


def evaluate_file(folder: Path, name: str, metrics: str) -> Path:
    """The results folder of an evaluation of an imported file."""
    (folder / "spec.yaml").write_text(
        f"version: 1\ndatasets: {{golden: {{use: jsonl, path: {name}}}}}\n"
        f"systems: {{bot: {{use: file, path: {name}, holds: answers}}}}\nmetrics: {metrics}\n"
    )
    done = invoke("run", folder / "spec.yaml", "-o", folder / "results")
    assert done.exit_code == 0, done.output
    return folder / "results"
