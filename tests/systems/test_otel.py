from __future__ import annotations

import json
from pathlib import Path

from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from tests.command_line import invoke
from tests.exchange.otel.test_source import record_trace

SPEC = """\
version: 1
datasets: {prod: {use: otel, path: spans}}
systems: {bot: {use: otel, path: spans}}
metrics: [latency@p50, is_json]
reports: [json]
"""


def test_spans_are_questions_and_answers_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "spans").mkdir()
    for number in (1, 2):
        (tmp_path / "spans" / f"{number}.otlp").write_bytes(encode_spans(record_trace(number)))
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    latency = next(one for one in results["aggregates"] if one["metric"] == "latency@p50")
    assert (latency["mean"], latency["scored"]) == (1.0, 2)


def test_a_folder_without_spans_is_said_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("validate", tmp_path / "spec.yaml")
    assert done.exit_code == 2 and "spec.yaml:2:36: there is no file 'spans'" in done.output
    (tmp_path / "spans").mkdir()
    done = invoke("validate", tmp_path / "spec.yaml")
    assert done.exit_code == 2 and "the folder has no file that ends in .json" in done.output
