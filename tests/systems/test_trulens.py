from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke
from tests.exchange.trulens.database import make_database, query

SPEC = """
version: 1
datasets: {prod: {use: trulens, path: t.sqlite}}
systems: {bot: {use: trulens, path: t.sqlite, app: support}}
metrics: [is_json, latency@p50]
reports: [{use: trulens, database: t.sqlite}]
"""


def test_records_are_evaluated_and_their_values_written_back(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"trulens: sent 6 feedback rows to {path}" in done.output, done.output
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10 + 12,)]


def test_a_dataset_has_no_answers(tmp_path: Path) -> None:
    make_database(tmp_path / "t.sqlite")
    (tmp_path / "spec.yaml").write_text(SPEC.replace("app: support", "dataset: golden"))
    assert "a dataset of TruLens has no answers" in invoke("validate", tmp_path / "spec.yaml").output
