from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

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


def test_paths_lead_into_cells_and_structs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('key;payload\na;{"q": "why?", "a": "so"}\n')
    pl.DataFrame({"key": ["a"], "payload": [{"q": "why?", "a": "so"}]}).write_parquet(tmp_path / "a.parquet")
    columns = {"query_id": "key", "text": "$.payload.q", "reference": "$.payload.a"}
    for word in ("csv", "parquet"):
        dataset = build_dataset(word, tmp_path, path=f"a.{word}", columns=columns)
        assert list(dataset.check_files()) == []
        collection = dataset.open()
        assert collection.queries is not None and collection.references is not None
        assert collection.queries.rows() == [("a", "why?")]
        assert collection.references["references"].to_list() == [["so"]]


def test_columns_of_the_queries_can_be_paths_too(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\na,d,1\n")
    (tmp_path / "q.csv").write_text('id,inputs\na,"{""question"": ""why?""}"\n')
    columns = {"queries": {"text": "$.inputs.question"}}
    collection = build_dataset("csv", tmp_path, path="qrels.csv", queries="q.csv", columns=columns).open()
    assert collection.queries is not None and collection.qrels is not None
    assert (collection.queries.rows(), collection.qrels.rows()) == ([("a", "why?")], [("a", "d", 1)])


def test_ids_of_documents_in_a_row_are_read_by_golden(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,relevant_doc_ids\nwhy?,d1\n")
    why = build_dataset("csv", tmp_path, path="a.csv").open().why_no_qrels
    assert why is not None and "write use: golden to read the relevant documents in 'relevant_doc_ids'" in why
