from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.errors import DataError
from tests.datasets.question_rows import write_rows
from tests.plugins import build_dataset


def test_ids_with_commas_in_json_are_not_split(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "why?", "relevant_doc_ids": "d1, d2"}]
    for form, wanted in (("jsonl", ["d1, d2"]), ("yaml", ["d1, d2"]), ("xlsx", ["d1", "d2"]), ("csv", ["d1", "d2"])):
        collection = build_dataset("golden", tmp_path, path=write_rows(tmp_path, form, rows).name).open()
        assert collection.qrels is not None
        assert collection.qrels["doc_id"].to_list() == wanted


def test_the_key_of_a_dataset_changes_only_if_the_layout_changes_its_meaning(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"user_input": "why?", "reference": "so"}\n')
    assert "layout" not in build_dataset("jsonl", tmp_path, path="a.jsonl").content()
    flat = {"id": "a", "input": "why?", "expectedOutput": "so", "datasetId": "d"}
    (tmp_path / "c.jsonl").write_text(json.dumps(flat) + "\n")
    assert "layout" not in build_dataset("jsonl", tmp_path, path="c.jsonl").content()
    (tmp_path / "d.jsonl").write_text('{"id": "a", "input": "why?", "expected": "so"}\n')
    named = {"text": "input", "reference": "expected"}
    assert "layout" not in build_dataset("jsonl", tmp_path, path="d.jsonl", columns=named).content()
    assert build_dataset("jsonl", tmp_path, path="d.jsonl").content()["layout"] == "braintrust"
    (tmp_path / "b.jsonl").write_text('{"inputs": {"question": "why?"}, "outputs": {"answer": "so"}}\n')
    content = build_dataset("jsonl", tmp_path, path="b.jsonl").content()
    assert content["layout"] == "langsmith"
    assert "layout" not in content["node"]


def test_two_rows_on_one_line_with_one_id_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"id": "a", "question": "why?"}, {"id": "a", "question": "how?"}]')
    collection = build_dataset("json", tmp_path, path="a.json").open()
    with pytest.raises(DataError, match="the query 'a' is listed twice"):
        assert collection.references is None


def test_a_long_export_is_described_by_its_first_rows_and_read_in_full(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"inputs": {"question": f"{n}? " + "x" * 600}, "outputs": {}} for n in range(2000)]
    rows[1500]["outputs"] = {"answer": "so"}
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = build_dataset("jsonl", tmp_path, path="long.jsonl")
    assert list(dataset.check_files()) == []
    (found,) = dataset.describe_files()
    assert found.columns == {"text": "$.inputs.question"}
    references = dataset.open().references
    assert references is not None
    assert references["references"].to_list()[1500] == ["so"]


def test_of_names_in_another_spelling_only_the_id_is_read_where_the_spec_names_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"Frage": "why?", "Context": "a note", "ID": "x"}\n')
    collection = build_dataset("jsonl", tmp_path, path="a.jsonl", columns={"text": "Frage"}).open()
    assert collection.queries is not None and collection.columns is not None
    assert collection.queries.rows() == [("x", "why?")]
    assert collection.references is None
    assert json.loads(collection.columns["columns"][0]) == {"Context": "a note"}


@pytest.mark.parametrize("word", ["golden", "csv"])
@pytest.mark.parametrize("header", ["ID,question,Reference", "Id,query,expectedAnswer", "questionId,Question,answer"])
def test_rows_have_their_ids_and_answers_however_the_names_are_spelled(tmp_path: Path, word: str, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n3,third?,drei\n1,first?,eins\n")
    dataset = build_dataset(word, tmp_path, path="a.csv")
    collection = dataset.open()
    assert collection.queries is not None and collection.references is not None
    assert collection.queries.rows() == [("3", "third?"), ("1", "first?")]
    assert collection.references["references"].to_list() == [["drei"], ["eins"]]
    (found,) = dataset.describe_files()
    names = header.split(",")
    assert found.columns == {"query_id": names[0], "text": names[1], "reference": names[2]}
    assert (found.details, found.others) == ((), ())


def test_the_key_of_a_dataset_says_which_names_columns_stand_for(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ID,question\n3,third?\n")
    (tmp_path / "b.csv").write_text("id,question\n3,third?\n")
    for word in ("golden", "csv"):
        assert build_dataset(word, tmp_path, path="a.csv").content()["spellings"] == ["id"]
        assert "spellings" not in build_dataset(word, tmp_path, path="b.csv").content()


def test_names_in_another_spelling_are_known_in_long_files(tmp_path: Path) -> None:
    rows = "".join(f"{number},why?,{'x' * 500}\n" for number in range(2500))
    for header in ("ID,question,reference", "ID,Question,Ground Truth"):
        (tmp_path / "long.csv").write_text(f"{header}\n{rows}")
        dataset = build_dataset("golden", tmp_path, path="long.csv")
        assert list(dataset.check_files()) == []
        queries = dataset.open().queries
        assert queries is not None and queries["query_id"][0] == "0"


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


def test_a_name_of_a_column_of_a_table_is_part_of_a_key_too(tmp_path: Path) -> None:
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


def test_the_turns_of_a_conversation_in_a_cell_are_a_column(tmp_path: Path) -> None:
    turns = json.dumps([{"role": "user", "content": "why?"}])
    pl.DataFrame({"id": ["a"], "question": [turns]}).write_csv(tmp_path / "a.csv")
    columns = build_dataset("golden", tmp_path, path="a.csv").open().columns
    assert columns is not None
    assert json.loads(columns["columns"][0]) == {"messages": [{"role": "user", "content": "why?"}]}


@pytest.mark.parametrize("word", ["json", "jsonl", "yaml", "xlsx"])
def test_a_missing_file_is_left_to_the_check_of_paths(word: str, tmp_path: Path) -> None:
    assert list(build_dataset(word, tmp_path, path=f"absent.{word}").check_files()) == []


def test_a_parquet_file_of_questions_without_rows_is_a_fault(tmp_path: Path) -> None:
    pl.DataFrame({"id": [], "question": []}, schema={"id": pl.String, "question": pl.String}).write_parquet(
        tmp_path / "a.parquet"
    )
    (fault,) = build_dataset("golden", tmp_path, path="a.parquet").check_files()
    assert fault.message.endswith("a.parquet: no rows")


def test_a_column_called_vars_is_a_column_of_a_table(tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a"], "question": ["why?"], "vars": [{"k": 1}]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("id,question,vars\na,why?,x\n")
    for word in ("csv", "parquet"):
        dataset = build_dataset(word, tmp_path, path=f"a.{word}")
        (found,) = dataset.describe_files()
        assert found.others == ("vars",)
        columns = dataset.open().columns
        assert columns is not None
        assert [*json.loads(columns["columns"][0])] == ["vars"]


def test_a_table_whose_rows_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,question,lang\n1,"why\n')
    (fault,) = build_dataset("csv", tmp_path, path="a.csv").check_files()
    assert (fault.key, fault.code) == (("path",), "unreadable-data")
    assert fault.message.endswith("a.csv:2: not CSV: a quote is never closed")
