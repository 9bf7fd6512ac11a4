from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.exchange.braintrust.server import KEY, BraintrustServer, rag_trace, set_keys

SPEC = """\
version: 1
name: weekly
datasets:
  prod: {{use: braintrust, url: "{url}", project: support}}
systems:
  bot: {{use: braintrust, url: "{url}", project: support}}
metrics: [is_json]
reports: [terminal, {{use: braintrust, url: "{url}"}}]
"""


def test_values_of_logged_answers_go_back_to_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)
    server = BraintrustServer()
    identity = server.add("project_logs", "support", *rag_trace(1), *rag_trace(2))
    (tmp_path / "spec.yaml").write_text(SPEC.format(url=server.url))
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"braintrust: sent 2 rows to {server.url}" in done.output
    assert server.rows[identity]["t2"]["scores"] == {"Factuality": 0.75, "is_json": 0.0}
    again = invoke("export", "braintrust", tmp_path / "results", "--url", server.url)
    assert again.output == f"sent nothing to {server.url}; 2 values had been sent before\n"
    assert KEY not in done.output + again.output
    server.close()
