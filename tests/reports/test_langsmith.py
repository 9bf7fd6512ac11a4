from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.exchange.langsmith.server import KEY, LangSmithServer, make_id, rag_trace, set_keys

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: langsmith, url: "{url}", project: support}}
systems:
  bot: {{use: langsmith, url: "{url}", project: support}}
metrics: [latency@p50]
reports: [terminal, {{use: langsmith, url: "{url}"}}]
"""


def test_values_of_production_answers_go_back_to_their_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = LangSmithServer()
    server.add(*rag_trace(1), *rag_trace(2))
    (tmp_path / "spec.yaml").write_text(SPEC.format(url=server.url))
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"langsmith: sent 2 feedback rows to {server.url}" in done.output
    assert {one["run_id"] for one in server.feedback.values()} == {make_id("t1"), make_id("t2")}
    again = invoke("export", "langsmith", tmp_path / "results", "--url", server.url)
    assert again.output == f"sent nothing to {server.url}; 2 values had been sent before\n"
    assert KEY not in done.output + again.output
    server.close()
