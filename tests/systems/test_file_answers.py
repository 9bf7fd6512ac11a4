"""Files with answers made elsewhere."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import ANSWERS, LATER_ANSWERS, Collection
from rageval_spec.errors import DataError
from tests.plugins import COMPRESSIONS, build_dataset, build_system, write
from tests.systems.asking import answers_of, collection

Rows = list[dict[str, Any]]
FORMATS = ["jsonl", "json", "csv", "parquet"]
ASKED = {"q1": "why?", "q2": "who?"}


def write_rows(folder: Path, form: str, rows: Rows) -> str:
    """Write a file of rows and return its name; in CSV, lists are written as JSON."""
    path = folder / f"answers.{form}"
    names = list(dict.fromkeys(name for row in rows for name in row))
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "json":
        path.write_text(json.dumps(rows, indent=1))
    elif form == "parquet":
        pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False).write_parquet(path)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            for row in rows:
                texts = {k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in row.items()}
                writer.writerow(texts)
    return path.name


def read(folder: Path, form: str, rows: Rows, asked: dict[str, str] | Collection = ASKED, **keys: Any) -> Any:
    system = build_system("file", folder, path=write_rows(folder, form, rows), **keys)
    assert system.answers_on("golden")
    return answers_of(system, asked)


FULL = {"answer": "because", "contexts": ["a", "b"]}
LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ragas": (
        {"user_input": "why?", "response": "because", "retrieved_contexts": ["a", "b"], "reference": "gold"},
        FULL,
    ),
    "old ragas": ({"question": "why?", "answer": "because", "contexts": ["a", "b"], "ground_truth": "gold"}, FULL),
    "DeepEval": (
        {"input": "why?", "actual_output": "because", "retrieval_context": ["a", "b"], "context": ["gold"]},
        FULL,
    ),
    "DeepEval's other spelling": (
        {"input": "why?", "actualOutput": "because", "retrievalContext": ["a", "b"], "context": ["gold"]},
        FULL,
    ),
    "DeepEval without retrieval": (
        {"input": "why?", "actual_output": "because", "context": ["gold"]},
        {"answer": "because"},
    ),
    "one context": ({"query": "why?", "output": "because", "context": "a"}, {"answer": "because", "contexts": ["a"]}),
    "with ids and costs": (
        {
            "id": "q1",
            "answer": "because",
            "context_ids": ["d1", 2],
            "latency": 1.5,
            "input_tokens": 7,
            "completion_tokens": 3,
            "cost": 0.5,
        },
        {
            "answer": "because",
            "context_ids": ["d1", "2"],
            "seconds": 1.5,
            "input_tokens": 7,
            "output_tokens": 3,
            "cost": 0.5,
        },
    ),
    "milliseconds": ({"qid": "q1", "prediction": "because", "latency_ms": 250}, {"answer": "because", "seconds": 0.25}),
    "retrieval alone": ({"id": "q1", "contexts": ["a", "b"]}, {"contexts": ["a", "b"]}),
    "no contexts found": ({"id": "q1", "answer": "because", "contexts": []}, {"answer": "because", "contexts": []}),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_known_layouts_need_no_mapping(tmp_path: Path, form: str, layout: str) -> None:
    row, expected = LAYOUTS[layout]
    assert read(tmp_path, form, [row]) == {"q1": expected}


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_contexts_can_be_objects_with_ids_and_scores(tmp_path: Path, form: str) -> None:
    contexts = [{"id": "d1", "text": "a", "score": 2.5}, {"id": "d2", "text": "b", "score": -1.0}]
    row = read(tmp_path, form, [{"id": "q1", "answer": "x", "contexts": contexts}])["q1"]
    assert row == {"answer": "x", "contexts": ["a", "b"], "context_ids": ["d1", "d2"], "scores": [2.5, -1.0]}


def test_a_column_says_that_an_answer_was_cut_off(tmp_path: Path) -> None:
    for name in ("finish_reason", "stop_reason", "finishReason"):
        row = read(tmp_path, "jsonl", [{"id": "q1", "answer": "x", name: "max_tokens"}])["q1"]
        assert row == {"answer": "x", "truncated": True}
        assert read(tmp_path, "jsonl", [{"id": "q1", "answer": "x", name: "stop"}])["q1"] == {"answer": "x"}


def test_promptfoo_results_are_answers(tmp_path: Path) -> None:
    result = {
        "vars": {"question": "why?"},
        "response": {"output": "because", "tokenUsage": {"prompt": 7, "completion": 3}},
        "latencyMs": 1200,
        "cost": 0.01,
        "error": None,
    }
    write(tmp_path / "out.json", json.dumps({"version": 3, "results": {"timestamp": "x", "results": [result]}}))
    system = build_system("file", tmp_path, path="out.json")
    assert system.answers_on("golden")
    assert answers_of(system, ASKED) == {
        "q1": {"answer": "because", "seconds": 1.2, "input_tokens": 7, "output_tokens": 3, "cost": 0.01}
    }


@pytest.mark.parametrize("form", FORMATS)
def test_other_names_are_mapped(tmp_path: Path, form: str) -> None:
    row = {
        "nr": "q1",
        "id": "q2",
        "said": "because",
        "answer": "no",
        "docs": ["a"],
        "keys": ["d1"],
        "took": 2,
        "usd": 1,
    }
    columns = {
        "query_id": "nr", "answer": "said", "contexts": "docs", "context_ids": "keys", "seconds": "took", "cost": "usd",
    }  # fmt: skip
    assert read(tmp_path, form, [row], columns=columns) == {
        "q1": {"answer": "because", "contexts": ["a"], "context_ids": ["d1"], "seconds": 2.0, "cost": 1.0}
    }


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_file_can_be_compressed(tmp_path: Path, compression: str) -> None:
    write(tmp_path / "a.jsonl", '{"id": "q1", "answer": "x"}\n', compression)
    system = build_system("file", tmp_path, path=f"a.jsonl{compression}")
    assert system.answers_on("golden") and answers_of(system, ASKED) == {"q1": {"answer": "x"}}


def test_the_table_has_all_columns_in_the_order_of_the_queries(tmp_path: Path) -> None:
    name = write_rows(tmp_path, "jsonl", [{"id": "q2", "answer": "two"}, {"id": "q1", "answer": "one"}])
    answering = build_system("file", tmp_path, path=name).answer(collection(ASKED))
    assert tuple(answering.answers.columns) == (*ANSWERS, *LATER_ANSWERS)
    assert answering.answers["answer"].to_list() == ["one", "two"] and answering.notes == ()


FIVE = {str(number): f"What is {number}?" for number in range(1, 6)}


def answer_all(folder: Path, rows: Rows, asked: dict[str, str] = FIVE, **keys: Any) -> tuple[list[Any], list[Any]]:
    """The answers in the order of the queries, and the notes."""
    system = build_system("file", folder, path=write_rows(folder, "jsonl", rows), **keys)
    answering = system.answer(collection(asked))
    notes = [(note.code, note.message.replace(str(folder), "."), note.count) for note in answering.written_notes]
    return list(answering.answers.select("query_id", "answer").iter_rows()), notes


def shifted(question: str = "What is {}?") -> Rows:
    """Rows numbered from 0 for queries numbered from 1."""
    return [{"id": n - 1, "question": question.format(n), "answer": str(n)} for n in range(1, 6)]


def test_questions_win_over_ids_that_they_contradict(tmp_path: Path) -> None:
    found, notes = answer_all(tmp_path, shifted())
    assert found == [(number, number) for number in "12345"]
    message = (
        "4 of 4 answers have a question that differs from the query with the same id, first at ./answers.jsonl:2: "
        "query '1' asks 'What is 1?', but the answer is to 'What is 2?'; the questions are used instead of the ids"
    )
    assert notes == [("differing_questions", message, 4)]


def test_unknown_questions_that_contradict_the_ids_are_refused(tmp_path: Path) -> None:
    for rows in (shifted("Where was {}?"), [*shifted()[:3], *shifted()[2:]]):
        with pytest.raises(DataError) as caught:
            answer_all(tmp_path, rows)
        assert str(caught.value).startswith(f"{tmp_path / 'answers.jsonl'}:2: ")
        assert "query '1' asks 'What is 1?'" in str(caught.value)
        assert "confirm the ids with 'columns.query_id'" in str(caught.value)
    found, notes = answer_all(tmp_path, shifted("Where was {}?"), columns={"query_id": "id"})
    assert found == [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5")]
    assert notes[0][0] == "differing_questions" and notes[0][1].endswith("'Where was 2?'; the ids are used")


def test_answers_to_other_queries_are_counted(tmp_path: Path) -> None:
    name = write_rows(tmp_path, "jsonl", [{"id": "q1", "answer": "x"}, {"id": "q7", "answer": "y"}])
    answering = build_system("file", tmp_path, path=name).answer(collection(ASKED))
    assert answering.answers["query_id"].to_list() == ["q1"]
    assert [(note.code, note.message, note.count) for note in answering.written_notes] == [
        ("unknown_queries", "1 of 2 answers belongs to no query that is evaluated", 1)
    ]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
def test_null_is_an_error_and_empty_text_is_an_answer(tmp_path: Path, form: str) -> None:
    rows: Rows = [{"id": "q1", "answer": None, "contexts": ["a"]}, {"id": "q2", "answer": "", "contexts": None}]
    assert read(tmp_path, form, rows) == {
        "q1": {"contexts": ["a"], "error": "the file has no answer to this query"},
        "q2": {"answer": ""},
    }


def test_an_error_in_the_file_is_the_error_of_the_query(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": "q1", "answer": "half of", "error": "504 Gateway Timeout"},
        {"id": "q2", "answer": "x", "error": ""},
    ]
    assert read(tmp_path, "jsonl", rows) == {"q1": {"error": "504 Gateway Timeout"}, "q2": {"answer": "x"}}


def test_one_file_is_dataset_and_system(tmp_path: Path) -> None:
    rows: Rows = [
        {"question": "why?", "answer": "because", "contexts": ["a"], "ground_truth": "gold"},
        {"question": "who?", "answer": "me", "contexts": ["b"], "ground_truth": "you"},
    ]
    name = write_rows(tmp_path, "jsonl", rows)
    golden = build_dataset("jsonl", tmp_path, path=name).open()
    assert golden.references is not None and golden.references["references"].to_list() == [["gold"], ["you"]]
    system = build_system("file", tmp_path, path=name)
    assert {key: row["answer"] for key, row in answers_of(system, golden).items()} == {"1": "because", "2": "me"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x"}\n{"id": "q1", "answer": "y"}\n',
            ":2: the query 'q1' is answered twice, first at ",
        ),
        (
            "a.jsonl",
            '{"question": "why?", "answer": "x"}\n{"question": "why?", "answer": "y"}',
            ":2: the query 'q1' is answered",
        ),
        ("a.jsonl", '{"id": "q1", "answer": "x"}\n{"answer": "y"}\n', ":2: no query_id, although other rows have one"),
        ("a.jsonl", '{"id": "q1", "answer": {"x": 1}}\n', ":1: 'answer' must be text, not an object"),
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x", "input_tokens": 1.5}\n',
            ":1: 'input_tokens' must be a whole number, not 1.5",
        ),
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x", "seconds": NaN}\n',
            ":1: not JSON: NaN is not a JSON number; write null",
        ),
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x", "seconds": -1}\n',
            ":1: 'seconds' must be a number of at least 0, not -1",
        ),
        ("a.jsonl", '{"id": ["q1"], "answer": "x"}\n', ":1: 'id' must be text or a whole number"),
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x", "contexts": [["a"]]}\n',
            ":1: 'contexts'[0] must be text or an object",
        ),
        (
            "a.jsonl",
            '{"id": "q1", "answer": "x", "contexts": ["a"], "context_ids": []}\n',
            ":1: the row has 1 contexts and 0 ids",
        ),
        (
            "a.jsonl",
            '{"id": "q7", "answer": "x"}\n',
            ": no row belongs to a query of the dataset: the file has 'q7', ..., but the dataset has 'q1'",
        ),
        (
            "a.jsonl",
            '{"id": "q1", "text": "x"}\n',
            ": no column of answers or contexts; the columns are 'id', 'text'; write columns: {answer: ",
        ),
        ("a.jsonl", b'{"id": "q1", "answer": "\xe4"}\n', ":1:25: byte 0xe4 is not UTF-8"),
        ("a.jsonl", "", ": the file is empty"),
        ("a.json", "[]", ": the file has no object"),
        ("a.csv", "id,answer,contexts\nq1,x,\"['a', 'b\"\n", ":2: 'contexts' begins like a list but is not one"),
        ("a.csv", "id,answer,cost\nq1,x,nan\n", ":2: 'cost' must be a number of at least 0, not \"nan\""),
        ("a.csv", "id,answer\nq1,x,y\n", ":2: 3 fields, but the header has 2"),
        ("a.csv", "id,answer\n", ": a header and no rows"),
        ("a.csv", "id,answer,answer\nq1,x,y\n", ":1: 'answer' is listed twice"),
        ("a.parquet", "no parquet", ": not a Parquet file"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        build_system("file", tmp_path, path=name, holds="answers").answer(collection(ASKED))
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_mapped_name_that_no_row_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no row has 'said'; the columns are 'id', 'answer'; correct 'columns.answer'"):
        read(tmp_path, "jsonl", [{"id": "q1", "answer": "x"}], columns={"answer": "said"})
    with pytest.raises(DataError, match=r"no row has 'usd' or 'why'; .* correct 'columns\.cost', 'columns\.error'"):
        read(tmp_path, "jsonl", [{"id": "q1", "answer": "x"}], columns={"cost": "usd", "error": "why"})


RUN_OF = {
    "run.csv": "query_id,doc_id,score\nq1,d1,1\n",
    "run.jsonl": '{"query_id": "q1", "docid": "d1", "score": 1, "answer": "no"}\n',
    "run.json": '{"q1": {"d1": 1}}',
    "run_spread.json": '{\n "answer": {\n  "d\\"1": -1.5}, "response": {}}',
    "run_empty_first.json": '{"answer": {}, "q2": {"d1": 1}}',
    "run.txt": "q1 Q0 d1 1 2.0 tag\n",
    "broken_run.csv": "query_id,score\nq1,1\n",
    "gone.jsonl": None,
}


@pytest.mark.parametrize("name", RUN_OF)
def test_a_run_has_no_answers(tmp_path: Path, name: str) -> None:
    content = RUN_OF[name]
    if content is not None:
        write(tmp_path / name, content)
    assert not build_system("file", tmp_path, path=name).answers_on("golden")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", ": the file is empty"),
        ("a.jsonl", '{"id": "q1", "answer": NaN}\n', ":1: not JSON: NaN is not a JSON number; write null"),
        ("a.jsonl", b'{"id": "q1", "answer": "caf\xe9"}\n', ":1:"),
        (
            "a.jsonl",
            '{"id": "q1", "output_text": "x"}\n',
            ": neither a ranking nor answers: the columns are 'id', 'output_text'; write columns: {answer: output_text",
        ),
        (
            "a.csv",
            "id,question,expected_output\nq,x,y\n",
            ": neither a ranking nor answers: the columns are 'id', 'question', 'expected_output'; name a file with "
            "answers",
        ),
        ("a.csv", "id,said\nq1,x\n", ": neither a ranking nor answers: the columns are 'id', 'said'; "),
    ],
)
def test_an_ambiguous_file_is_refused(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        build_system("file", tmp_path, path=name).answers_on("golden")
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_named_column_decides_what_a_file_contains(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "id,said\nq1,x\n")
    assert build_system("file", tmp_path, path="a.csv", columns={"answer": "said"}).answers_on("golden")
    assert not build_system("file", tmp_path, path="a.csv", columns={"doc_id": "said"}).answers_on("golden")


def test_holds_overrides_detection(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "query_id,doc_id,score,answer\nq1,d1,1,x\n")
    assert build_system("file", tmp_path, path="a.csv", holds="answers").answers_on("golden")
    write(tmp_path / "b.jsonl", '{"id": "q1", "answer": "x"}\n')
    assert not build_system("file", tmp_path, path="b.jsonl", holds="run").answers_on("golden")


def test_each_dataset_can_have_its_own_kind_of_file(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"id": "q1", "answer": "x"}\n')
    write(tmp_path / "run.json", '{"q1": {"d1": 1}}')
    system = build_system("file", tmp_path, path={"golden": "a.jsonl", "other": "run.json"})
    assert system.answers_on("golden") and not system.answers_on("other")
