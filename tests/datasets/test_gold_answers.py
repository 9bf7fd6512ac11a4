"""What datasets of every format know about questions besides their text."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import REFERENCES, Collection
from rageval_spec.errors import DataError
from tests.plugins import build_dataset

Rows = list[dict[str, Any]]


def open_rows(folder: Path, word: str, rows: Rows, **keys: Any) -> Collection:
    """A dataset of one file of questions; lists are JSON in CSV."""
    path = folder / f"golden.{word}"
    names = list(dict.fromkeys(name for row in rows for name in row))
    if word == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif word == "parquet":
        pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False).write_parquet(path)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {
                        name: json.dumps(value) if isinstance(value, (list, dict)) else value
                        for name, value in row.items()
                    }
                )
    return build_dataset(word, folder, path=path.name, **keys).open()


def known(collection: Collection) -> dict[str, dict[str, Any]]:
    """What is known of each query, less what is null or empty."""
    assert collection.references is not None
    assert tuple(collection.references.columns) == REFERENCES
    rows = collection.references.iter_rows(named=True)
    return {row.pop("query_id"): {k: v for k, v in row.items() if v is not None and v != []} for row in rows}


FORMATS = ["jsonl", "csv", "parquet"]
LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ragas": (
        {
            "user_input": "why?",
            "retrieved_contexts": ["no"],
            "response": "no",
            "reference": "gold",
            "reference_contexts": ["a", "b"],
        },
        {"references": ["gold"], "reference_contexts": ["a", "b"]},
    ),
    "old ragas": (
        {"question": "why?", "answer": "no", "contexts": ["no"], "ground_truth": "gold"},
        {"references": ["gold"]},
    ),
    "oldest ragas": (
        {"question": "why?", "answer": "no", "contexts": ["no"], "ground_truths": ["gold", "or this"]},
        {"references": ["gold", "or this"]},
    ),
    "DeepEval": (
        {
            "input": "why?",
            "actual_output": "no",
            "expected_output": "gold",
            "context": ["a"],
            "retrieval_context": ["no"],
        },
        {"references": ["gold"], "reference_contexts": ["a"]},
    ),
    "DeepEval's other spelling": (
        {"input": "why?", "actualOutput": "no", "expectedOutput": "gold", "context": ["a"], "retrievalContext": ["no"]},
        {"references": ["gold"], "reference_contexts": ["a"]},
    ),
    "question answering": (
        {"question": "why?", "answer": "gold", "context": "a"},
        {"references": ["gold"], "reference_contexts": ["a"]},
    ),
    "several answers": ({"question": "why?", "answers": ["gold", "or", "gold", ""]}, {"references": ["gold", "or"]}),
    "a system's answers with their context": (
        {"query": "why?", "response": "no", "context": "no", "answer": "gold"},
        {"references": ["gold"]},
    ),
    "conditions": (
        {"prompt": "why?", "reference_answer": "gold", "group": "7", "condition": "noisy", "answerable": True},
        {"references": ["gold"], "group": "7", "condition": "noisy", "answerable": True},
    ),
    "without answer": ({"question": "why?", "ground_truth": "", "is_impossible": True}, {"answerable": False}),
}


@pytest.mark.parametrize("word", FORMATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_known_layouts_need_no_mapping(tmp_path: Path, word: str, layout: str) -> None:
    row, expected = LAYOUTS[layout]
    collection = open_rows(tmp_path, word, [row, {**row, **{key: "who?" for key, v in row.items() if v == "why?"}}])
    assert collection.queries is not None and collection.qrels is None
    assert collection.queries.rows() == [("1", "why?"), ("2", "who?")]
    assert known(collection) == {"1": expected, "2": expected}


@pytest.mark.parametrize("word", FORMATS)
def test_other_names_are_mapped(tmp_path: Path, word: str) -> None:
    row = {
        "nr": "q1", "id": "no", "ask": "why?", "question": "no", "gold": "right", "reference": "no",
        "passages": ["a"], "can": "no", "unanswerable": "no", "family": "f", "kind": "clean",
    }  # fmt: skip
    mapping = {
        "query_id": "nr", "text": "ask", "reference": "gold", "reference_contexts": "passages", "answerable": "can",
        "group": "family", "condition": "kind",
    }  # fmt: skip
    collection = open_rows(tmp_path, word, [row], columns=mapping)
    assert collection.queries is not None and collection.queries.rows() == [("q1", "why?")]
    assert known(collection) == {
        "q1": {
            "references": ["right"],
            "reference_contexts": ["a"],
            "answerable": False,
            "group": "f",
            "condition": "clean",
        }
    }


@pytest.mark.parametrize("word", FORMATS)
def test_a_file_without_gold_answers_has_no_references(tmp_path: Path, word: str) -> None:
    collection = open_rows(tmp_path, word, [{"id": "q1", "question": "why?", "response": "x", "contexts": ["a"]}])
    assert collection.references is None
    assert collection.queries is not None and collection.queries.rows() == [("q1", "why?")]
    assert collection.qrels is None and collection.why_no_qrels


@pytest.mark.parametrize("word", FORMATS)
def test_rows_can_have_different_fields(tmp_path: Path, word: str) -> None:
    rows: Rows = [
        {"id": "q1", "question": "a", "ground_truth": "x", "answerable": True},
        {"id": "q2", "question": "b"},
        {"id": "q3", "question": "c", "ground_truth": None, "answerable": False},
    ]
    assert known(open_rows(tmp_path, word, rows)) == {
        "q1": {"references": ["x"], "answerable": True},
        "q2": {},
        "q3": {"answerable": False},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("yes", True),
        (" TRUE ", True),
        (1, True),
        (1.0, True),
        (0, False),
        ("No", False),
        (None, None),
        ("", None),
    ],
)
def test_answerable_can_be_written_in_many_ways(tmp_path: Path, value: Any, expected: bool | None) -> None:
    found = known(open_rows(tmp_path, "jsonl", [{"question": "a", "answerable": value, "group": "g"}]))
    assert found["1"].get("answerable") is expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answerable": "maybe"}, ":2: 'answerable' must be true or false, not 'maybe'"),
        ({"answerable": 2}, ":2: 'answerable' must be true or false, not '2'"),
        ({"reference": {"a": 1}}, ":2: 'reference' must be text, not an object"),
        ({"reference": ["a", None]}, ":2: 'reference'[1] is null"),
        ({"reference_contexts": [1]}, ":2: 'reference_contexts'[0] must be text or an object, not a number"),
        ({"reference_contexts": '["a", "b'}, ":2: 'reference_contexts' begins like a list but is not one"),
        ({"reference": "\ud83d"}, ":2: 'reference' has half a surrogate pair"),
        ({"group": ["g"]}, ":2: 'group' must be text, not a list of 1"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    collection = open_rows(tmp_path, "jsonl", [{"question": "a"}, {"question": "b", **row}])
    with pytest.raises(DataError) as caught:
        _ = collection.references
    assert str(caught.value).startswith(f"{tmp_path / 'golden.jsonl'}{message}")


@pytest.mark.parametrize("word", FORMATS)
def test_a_mapped_name_that_no_row_has_is_refused(tmp_path: Path, word: str) -> None:
    collection = open_rows(tmp_path, word, [{"question": "a", "reference": "x"}], columns={"reference": "gold"})
    with pytest.raises(DataError, match=r"no row has 'gold'; correct 'columns\.reference'"):
        _ = collection.references
    named = {"reference": "gold", "group": "hue"}
    collection = open_rows(tmp_path, word, [{"question": "a", "reference": "x"}], columns=named)
    with pytest.raises(DataError, match=r"no row has 'gold' or 'hue'; correct 'columns\.reference', 'columns\.group'"):
        _ = collection.references


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),
        ('[{"text": "a", "id": 1}]', ["a"]),
        ("[{'page_content': 'a', 'metadata': {}}]", ["a"]),
        ("[]", None),
        ("[1] says so", ["[1] says so"]),
        ("one text", ["one text"]),
    ],
)
def test_a_csv_field_can_contain_a_list(tmp_path: Path, field: str, expected: list[str] | None) -> None:
    collection = open_rows(tmp_path, "csv", [{"question": "a", "reference_contexts": field, "reference": "x"}])
    assert known(collection)["1"].get("reference_contexts") == expected


def test_sets_for_question_answering_are_read_as_they_are(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": "s", "question": "a", "context": "p", "answers": {"text": ["x", "x"], "answer_start": [1, 2]}},
        {"id": "h", "question": "b", "answer": "no", "context": [["Title", ["One. ", "Two."]], ["Other", ["Three."]]]},
        {"id": "b", "question": "c", "answer": True},
        {"id": "f", "question": "d", "context": {"title": ["T"], "sentences": [["One. ", "Two."]]}},
        {"id": "p", "question": "e", "context": {"contexts": ["a", "b"], "labels": ["x", "y"]}},
    ]
    found = [known(open_rows(tmp_path, "jsonl", [row])) for row in rows]
    assert found == [
        {"s": {"references": ["x"], "reference_contexts": ["p"]}},
        {"h": {"references": ["no"], "reference_contexts": ["One. Two.", "Three."]}},
        {"b": {"references": ["true"]}},
        {"f": {"reference_contexts": ["One. Two."]}},
        {"p": {"reference_contexts": ["a", "b"]}},
    ]


@pytest.mark.parametrize("word", ["csv", "parquet"])
def test_a_table_of_judgements_takes_gold_answers_from_the_queries(tmp_path: Path, word: str) -> None:
    qrels = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [1]})
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["a", "b"], "reference": ["x", None]})
    for name, frame in {"qrels": qrels, "queries": queries}.items():
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    dataset = build_dataset(word, tmp_path, path=f"qrels.{word}", queries=f"queries.{word}")
    collection = dataset.open()
    assert collection.qrels is not None and collection.qrels.rows() == [("q1", "d1", 1)]
    assert known(collection) == {"q1": {"references": ["x"]}, "q2": {}}
    assert dataset.parts == {"queries"}
    assert build_dataset(word, tmp_path, path=f"qrels.{word}").open().references is None
    assert build_dataset(word, tmp_path, path=f"qrels.{word}").parts == frozenset()


@pytest.mark.parametrize("word", ["csv", "parquet"])
def test_a_table_of_questions_has_queries_and_no_judgements(tmp_path: Path, word: str) -> None:
    open_rows(tmp_path, word, [{"question": "a", "ground_truth": "x"}])
    dataset = build_dataset(word, tmp_path, path=f"golden.{word}")
    assert dataset.parts == {"queries"}
    collection = dataset.open()
    assert collection.qrels is None and collection.why_no_qrels is not None
    assert "the file has questions but no column of relevant documents" in collection.why_no_qrels


@pytest.mark.parametrize(("name", "count", "answerable"), [("clapnq_dev", 600, 300), ("nomiracl_en", 500, None)])
def test_real_sets_are_read(shared_data: Path, name: str, count: int, answerable: int | None) -> None:
    path = shared_data / "rag_qa" / f"{name}.jsonl.gz"
    collection = build_dataset("jsonl", shared_data, path=str(path), ids="row").open()
    assert collection.references is not None and collection.references.height == count
    if answerable is not None:
        assert collection.references["answerable"].sum() == answerable
        assert collection.references.filter("answerable")["references"].list.len().min() == 1
