"""A spec that reads its questions and answers from Langfuse and sends its values back, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.exchange.langfuse.server import SECRET, LangfuseServer, rag_trace, set_keys

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: langfuse, url: "{url}", since: "2026-01-01"}}
systems:
  bot: {{use: langfuse, url: "{url}", since: "2026-01-01", secret_key: "${{secret:KEY}}"}}
metrics: [latency@p50, is_json]
reports: [terminal, {{use: langfuse, url: "{url}"}}]
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfuseServer]:
    set_keys(monkeypatch)
    monkeypatch.setenv("KEY", SECRET)
    running = LangfuseServer()
    running.observations = [*rag_trace(1), *rag_trace(2)]
    yield running
    running.close()


def test_values_of_production_answers_go_back_to_their_traces(server: LangfuseServer, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(url=server.url))
    done = invoke("run", spec, "-o", tmp_path / "results")
    assert f"langfuse: sent 4 scores to {server.url}" in done.output
    told = {(one["subject"]["id"], one["name"]): one["value"] for one in server.scores.values()}
    assert told == {
        ("t1", "latency@p50"): 0.5, ("t2", "latency@p50"): 0.5, ("t1", "is_json"): 0.0, ("t2", "is_json"): 0.0,
    }  # fmt: skip
    again = invoke("export", "langfuse", tmp_path / "results", "--url", server.url)
    assert again.output == f"sent nothing to {server.url}; 4 values had been sent before\n"
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()
    assert SECRET not in done.output + again.output


def test_what_is_imported_can_be_evaluated_and_exported(server: LangfuseServer, tmp_path: Path) -> None:
    traces = tmp_path / "traces.jsonl"
    done = invoke("import", "langfuse", "--url", server.url, "-o", traces)
    assert "wrote 2 questions with 2 answers" in done.output
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\nname: weekly\ndatasets: {prod: {use: jsonl, path: traces.jsonl}}\n"
        "systems: {bot: {use: file, path: traces.jsonl}}\nmetrics: [is_json]\n"
    )
    assert invoke("run", spec, "-o", tmp_path / "results").exit_code in (0, 1)
    dry = invoke("export", "langfuse", tmp_path / "results", "--url", server.url, "--dry-run")
    assert "is_json 0.00 -> trace t2" in dry.output
    assert not server.scores
    invoke("export", "langfuse", tmp_path / "results", "--url", server.url)
    assert len(server.scores) == 2
