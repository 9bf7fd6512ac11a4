from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rageval_spec.labels.label_studio import LabelStudio, LabelStudioNode
from rageval_spec.plugin import Context


def test_the_parts_of_a_label_come_from_the_tasks_data_and_can_be_mapped(tmp_path: Path) -> None:
    data = {"Nr": 7, "system": "bot", "answer_digest": "0123456789abcdef", "value": "of the task"}
    result = {"from_name": "faithful", "type": "choices", "value": {"choices": ["yes"]}}
    task: dict[str, Any] = {"id": 1, "data": data, "annotations": [{"completed_by": 1, "result": [result]}]}
    (tmp_path / "l.json").write_text(json.dumps([task]))
    node = LabelStudioNode.model_validate({"use": "label_studio", "path": "l.json", "columns": {"query_id": "Nr"}})
    (label,) = LabelStudio(node, Context("people", tmp_path)).read()
    assert (label.query_id, label.system, label.answer) == ("7", "bot", "0123456789abcdef")
    assert (label.metric, label.value, label.annotator) == ("faithful", 1.0, "1")
