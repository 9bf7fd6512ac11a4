from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.answer_columns import AnswerColumns
from rageval_spec.reading.answer_files import read_answers
from rageval_spec.reading.row_sources import RowSource
from tests.plugins import write

Rows = list[dict[str, Any]]


def read(folder: Path, *rows: dict[str, Any], **columns: str) -> list[dict[str, Any]]:
    """The rows read from a JSON Lines file, without nulls."""
    path = write(folder / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    answers = read_answers(RowSource(path, "json"), AnswerColumns(**columns))
    assert [answer.place for answer in answers] == [f"{path}:{line}" for line in range(1, len(rows) + 1)]
    return [
        {
            key: value
            for key, value in {
                "query_id": answer.query_id, "question": answer.question, **vars_of(answer.row)
            }.items()
            if value is not None
        }
        for answer in answers
    ]  # fmt: skip


def vars_of(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def test_null_is_an_error_and_an_empty_answer_is_one(tmp_path: Path) -> None:
    found = read(tmp_path, {"id": "q1", "answer": None, "contexts": ["a"]}, {"id": "q2", "answer": ""})
    assert found == [
        {"query_id": "q1", "contexts": ("a",), "error": "the file has no answer to this query"},
        {"query_id": "q2", "answer": ""},
    ]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("504 Gateway Timeout", "504 Gateway Timeout"),
        (" \x1b[31mred\n", "\\x1b[31mred"),
        (504, "504"),
        (True, "True"),
        ({"code": 1}, "{'code': 1}"),
        ("", None),
        (" ", None),
        (None, None),
        (False, None),
        (0, None),
        ([], None),
    ],
)
def test_an_error_of_any_type_replaces_the_answer(tmp_path: Path, error: Any, told: str | None) -> None:
    found = read(tmp_path, {"id": "q1", "answer": "half of", "error": error})
    assert found == [{"query_id": "q1", **({"answer": "half of"} if told is None else {"error": told})}]


HALF = "half a surrogate pair, \\ud83d, so it is not valid text"


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"id": "q2", "error": "bad \ud83d\nline"}, {"error": "bad \\ud83d\\nline"}),
        ({"id": "q2", "answer": "\ud83d"}, {"error": f"'answer' has {HALF}"}),
        ({"id": "q2", "answer": "x", "contexts": ["a", "\ud83d"]}, {"error": f"'contexts'[1] has {HALF}"}),
        ({"id": "q2", "answer": "x", "contexts": "\ud83d"}, {"error": f"'contexts'[0] has {HALF}"}),
        ({"id": "q2", "answer": "x", "context_ids": ["\ud83d"]}, {"error": f"'context_ids'[0] has {HALF}"}),
        ({"id": "q2", "error": "504", "contexts": ["\ud83d"]}, {"error": "504"}),
        ({"id": "q2", "answer": "x", "extra": "\ud83d"}, {"answer": "x"}),
        ({"id": "\ud83d", "answer": "x"}, {"query_id": "\\ud83d", "answer": "x"}),
    ],
)
def test_a_broken_text_affects_only_its_row(tmp_path: Path, row: dict[str, Any], found: dict[str, Any]) -> None:
    good = {"query_id": "q1", "answer": "good"}
    assert read(tmp_path, {"id": "q1", "answer": "good"}, row) == [good, {"query_id": "q2", **found}]


def test_names_that_only_later_rows_have_count_for_all_rows(tmp_path: Path) -> None:
    """`answer` is a gold answer if any row has a column of a system's answers."""
    rows: Rows = [
        {"id": "q1", "answer": "gold", "contexts": ["a"]},
        {"id": "q2", "answer": {"not": "read"}, "response": "said"},
    ]
    assert read(tmp_path, *rows) == [
        {"query_id": "q1", "contexts": ("a",), "error": "the file has no answer to this query"},
        {"query_id": "q2", "answer": "said"},
    ]


def test_seconds_go_before_milliseconds(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": "q1", "answer": "x", "latency_ms": 1500},
        {"id": "q2", "answer": "x", "latency_ms": 1500, "latency": 2},
        {"id": "q3", "answer": "x", "latencyMs": "250"},
    ]
    assert [row["seconds"] for row in read(tmp_path, *rows)] == [1.5, 2, 0.25]


def test_a_named_column_of_seconds_silences_milliseconds(tmp_path: Path) -> None:
    found = read(tmp_path, {"id": "q1", "answer": "x", "took": None, "latency_ms": 1500}, seconds="took")
    assert "seconds" not in found[0]


def test_an_empty_field_of_csv_gives_way_to_the_answer_under_another_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,response,output\nq1,,x\nq2,y,z\nq3,,\n")
    assert [answer.row.answer for answer in read_answers(RowSource(path, "csv"), AnswerColumns())] == ["x", "y", ""]


def test_a_table_whose_answers_are_all_empty_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,input,actual_output\n1,why?,\n2,how?,\n")
    with pytest.raises(DataError, match=r"a\.csv: every answer in 'actual_output' is empty"):
        read_answers(RowSource(path), AnswerColumns())
    write(tmp_path / "a.csv", "id,input,actual_output\n1,why?,\n2,how?,so\n")
    assert [answer.row.answer for answer in read_answers(RowSource(path), AnswerColumns())] == ["", "so"]


@pytest.mark.parametrize("cell", ["d1;d2", "['d1' 'd2']", '["d1", "d2"]'])
def test_ids_of_contexts_in_one_cell_are_several(tmp_path: Path, cell: str) -> None:
    quoted = cell.replace('"', '""')
    path = write(tmp_path / "a.csv", f'id,answer,context_ids\n1,so,"{quoted}"\n')
    assert read_answers(RowSource(path), AnswerColumns())[0].row.context_ids == ("d1", "d2")


def test_an_empty_answer_in_json_is_an_answer(tmp_path: Path) -> None:
    assert read(tmp_path, {"id": "q1", "response": "", "output": "x"})[0]["answer"] == ""


def test_a_frame_s_nan_is_a_missing_number(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["q1", "q2"], "answer": ["x", "y"], "cost": [float("nan"), 0.5]})
    frame.write_parquet(tmp_path / "a.parquet")
    rows = read_answers(RowSource(tmp_path / "a.parquet"), AnswerColumns())
    assert [answer.row.cost for answer in rows] == [None, 0.5]


def test_there_must_be_as_many_context_ids_as_contexts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:1: the row has 1 contexts and 2 ids of contexts$"):
        read(tmp_path, {"id": "q1", "answer": "x", "contexts": ["a"], "context_ids": ["d1", "d2"]})
    assert read(tmp_path, {"id": "q1", "answer": "x", "context_ids": ["d1", 2]})[0]["context_ids"] == ("d1", "2")


def test_a_file_without_answers_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, {"id": "q1", "Antwort": "x", "Frage": "why?"})
    assert str(caught.value) == (
        f"{tmp_path / 'a.jsonl'}: no column of answers or contexts; the columns are 'id', 'Antwort', 'Frage'; "
        "write columns: {answer: Antwort}"
    )


def test_columns_of_a_run_are_ignored_for_answers(tmp_path: Path) -> None:
    assert read(tmp_path, {"id": "q1", "answer": "x"}, doc_id="page", score="weight") == [
        {"query_id": "q1", "answer": "x"}
    ]
    with pytest.raises(DataError, match=r"no row has 'usd' or 'why'; .* correct 'columns\.cost', 'columns\.error'"):
        read(tmp_path, {"id": "q1", "answer": "x"}, cost="usd", error="why")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "id", "output"]), inner),
    max_leaves=5,
)
KEYS = st.sampled_from(["id", "question", "answer", "response", "contexts", "context_ids", "cost", "error", "seconds"])


@given(rows=st.lists(st.dictionaries(KEYS, VALUES, min_size=1), min_size=1, max_size=4))
def test_any_rows_are_answers_or_are_refused_with_a_place(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        found = read(folder, *rows)
    except DataError as error:
        assert str(error).startswith(f"{folder / 'a.jsonl'}:")
    else:
        assert len(found) == len(rows)
        assert all(not ("answer" in row and "error" in row) for row in found)
