from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins import build_dataset

FORMER = json.loads((Path(__file__).parent / "former_contents.json").read_text())
"""Blocks as they are written now, and what 0.1.0 made of them: part of the keys of stored tables."""


@pytest.mark.parametrize("case", FORMER, ids=[f"{case['word']}-{list(case['now'])}" for case in FORMER])
def test_stored_answers_are_found_under_the_keys_of_earlier_releases(tmp_path: Path, case: dict[str, Any]) -> None:
    (tmp_path / "questions.csv").write_text("nr,ask\n1,why?\n")
    content = build_dataset(case["word"], tmp_path, **case["now"]).content()
    assert json.dumps(content, sort_keys=True) == json.dumps(case["content"], sort_keys=True)


def test_a_name_of_a_column_is_part_of_a_key_wherever_it_stands(tmp_path: Path) -> None:
    names: list[dict[str, Any]] = [
        {"queries": {"text": "a"}},
        {"corpus": {"text": "a"}},
        {"queries": {"query_id": "a"}},
    ]
    contents = [build_dataset("trec", tmp_path, qrels="q.txt", columns=block).content() for block in names]
    assert len({json.dumps(content, sort_keys=True) for content in contents}) == len(names)
