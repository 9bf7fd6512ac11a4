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
