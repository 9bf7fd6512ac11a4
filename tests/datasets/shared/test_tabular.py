from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.plugins import build_dataset


def test_a_name_of_a_column_is_part_of_a_key_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("nr,ask\n1,why?\n")
    blocks: list[dict[str, Any]] = [
        {},
        {"columns": {"query_id": "nr"}},
        {"columns": {"text": "nr"}},
        {"columns": {"doc_id": "nr"}},
        {"columns": {"queries": {"text": "nr"}}},
        {"columns": {"corpus": {"text": "nr"}}},
    ]
    contents = [
        build_dataset("csv", tmp_path, path="questions.csv", **block).content() for block in [*blocks[:4], blocks[5]]
    ]
    assert len({json.dumps(content, sort_keys=True) for content in contents}) == 5
    del blocks[2]
    contents = [build_dataset("csv", tmp_path, path="absent.csv", queries="q", **block).content() for block in blocks]
    assert len({json.dumps(content, sort_keys=True) for content in contents}) == len(blocks)
