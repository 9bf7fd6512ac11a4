from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.labels.jsonl import JsonlLabels, JsonlLabelsNode
from rageval_spec.plugin import Context


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.jsonl", '{"id": 1, "value": true}\n{"id": 2, "value": "contradicted"}\n'),
        ("l.json", '[{"id": 1, "value": 1}, {"id": 2, "value": "contradicted"}]'),
    ],
)
def test_lines_and_lists_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    plugin = JsonlLabels(JsonlLabelsNode(use="jsonl", path=name), Context("people", tmp_path))
    assert [(label.query_id, label.value) for label in plugin.read()] == [("1", 1.0), ("2", "contradicted")]
