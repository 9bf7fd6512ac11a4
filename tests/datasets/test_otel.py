from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.otel import OtelDataset, OtelDatasetNode
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.plugin import Context
from tests.exchange.otel.test_source import record_trace


def test_the_questions_are_those_of_therecord_traces(tmp_path: Path) -> None:
    (tmp_path / "a.otlp").write_bytes(encode_spans([*record_trace(2), *record_trace(1)]))
    collection = OtelDataset(OtelDatasetNode(use="otel", path="a.otlp"), Context("prod", tmp_path)).open()
    queries = collection.require("queries", "test")
    assert queries["query_id"].to_list() == [f"{1:032x}", f"{2:032x}"]
    assert queries["text"].to_list() == ["What is 1?", "What is 2?"]
