"""Matching the rows of a file to questions: by id, by text, by row number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading import answer_files
from rageval_spec.reading.answer_files import STORED_BESIDE, FileAnswer, Matched, match_answers, read_answers
from rageval_spec.reading.column_names import AnswerColumns
from rageval_spec.reading.row_sources import RowFile
from rageval_spec.recorded.answers_and_steps import AnswerRow, table_of
from tests.plugins import write

Rows = list[dict[str, Any]]


def test_other_columns_are_kept_as_far_as_a_metric_can_read_them(tmp_path: Path) -> None:
    row = {"id": "q1", "answer": "good", "rating": 4, "thumbs": True, "said": "x" * 61, "scores": {"style": 0.5}}
    row |= {"stars": [5], "vector": [0.5] * 100, "contexts": ["c"], "context_scores": [0.5]}
    named = [{"name": "thumbs", "value": 1}, {"name": "kind", "label": "praise"}]
    path = write(tmp_path / "a.jsonl", json.dumps(row | {"feedback": named, "kept": ["a"], "none": None}) + "\n")
    (found,) = read_answers(RowFile(path, "json"), AnswerColumns())
    assert json.loads(found.row.answer_columns or "") == {
        "rating": 4, "thumbs": True, "scores.style": 0.5, "feedback.thumbs": 1, "feedback.kind": "praise",
        "stars": [5],
    }  # fmt: skip


def test_two_runs_in_a_file_are_refused(tmp_path: Path) -> None:
    def count_answers(*runs: str) -> int:
        rows = [
            {
                "metadata": {"run_id": run, "topic_id": f"t{at}"},
                "answer": [{"text": "Blue.", "citations": [0]}],
                "references": ["d1"],
            }
            for at, run in enumerate(runs)
        ]
        path = write(tmp_path / "run.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        return len(read_answers(RowFile(path, "json"), AnswerColumns()))

    assert count_answers("a", "a") == 2
    with pytest.raises(
        DataError, match=r"run\.jsonl:2: an answer of the run 'b' after those of 'a'; give each run a file"
    ):
        count_answers("a", "b")


def test_where_citations_count_from_is_checked_with_its_place(tmp_path: Path) -> None:
    row = {"id": "q1", "answer": "Blue [1].", "contexts": ["c"]}
    path = write(tmp_path / "a.jsonl", json.dumps(row) + "\n" + json.dumps(row | {"id": "q2", "citations_from": 2}))
    with pytest.raises(DataError, match=r"a\.jsonl:2: 'citations_from' must be 0 or 1, .*, not 2"):
        read_answers(RowFile(path, "json"), AnswerColumns())


def test_answers_that_are_stored_are_those_that_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"q{n}", "question": f"Q{n}?", "answer": f"a{n}", "contexts": [f"c{n}"], "n": n} for n in range(9)]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    queries = pl.DataFrame({"query_id": [f"q{n}" for n in (3, 1, 20, 8)], "text": ["Q3?", "Q1?", "Q20?", "Q8?"]})

    def match(asked: pl.DataFrame) -> tuple[pl.DataFrame, Matched]:
        matched = match_answers(path, read_answers(RowFile(path, "json"), AnswerColumns()), asked)
        if matched.stored is None:
            return table_of(matched.rows), matched
        return matched.stored.drop(STORED_BESIDE).load(), matched

    held, expected = match(queries)
    monkeypatch.setattr(answer_files, "MOST_HELD", 4)
    monkeypatch.setattr(answer_files, "ROWS", 2)
    stored, found = match(queries)
    assert stored.equals(held)
    assert (found.unknown, expected.stored) == (expected.unknown, None)
    assert found.stored is not None
    others = queries.with_columns(text=pl.lit("Another question?"), query_id=pl.Series(["q3", "q1", "q4", "q20"]))
    asked = pl.concat([others.head(1), queries.tail(1)])
    again, differing = match(asked)  # a question that differs has to be settled, for which all are read
    assert (differing.stored, differing.differing, again["answer"].to_list()) == (None, 1, ["a3", "a8"])


def test_an_answer_given_twice_is_an_error_wherever_answers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", "".join(json.dumps({"id": "q1", "answer": "a"}) + "\n" for _ in range(9)))
    monkeypatch.setattr(answer_files, "MOST_HELD", 4)
    answers = read_answers(RowFile(path, "json"), AnswerColumns())
    with pytest.raises(DataError, match=r"a.jsonl:2: the query 'q1' is answered twice, first at .*a.jsonl:1"):
        match_answers(path, answers, pl.DataFrame({"query_id": ["q1"], "text": ["Q?"]}))


def read(folder: Path, *rows: dict[str, Any], **columns: str) -> list[dict[str, Any]]:
    """The rows read from a JSON Lines file, without nulls and the columns that no part is read from."""
    path = write(folder / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    answers = read_answers(RowFile(path, "json"), AnswerColumns(**columns))
    assert [answer.place for answer in answers] == [f"{path}:{line}" for line in range(1, len(rows) + 1)]
    return [
        {
            key: value
            for key, value in {
                "query_id": answer.query_id, "question": answer.question, **vars_of(answer.row)
            }.items()
            if value is not None and key != "answer_columns"
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
    assert [answer.row.answer for answer in read_answers(RowFile(path, "csv"), AnswerColumns())] == ["x", "y", ""]


def test_a_table_whose_answers_are_all_empty_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,input,actual_output\n1,why?,\n2,how?,\n")
    with pytest.raises(DataError, match=r"a\.csv: every answer in 'actual_output' is empty"):
        read_answers(RowFile(path), AnswerColumns())
    write(tmp_path / "a.csv", "id,input,actual_output\n1,why?,\n2,how?,so\n")
    assert [answer.row.answer for answer in read_answers(RowFile(path), AnswerColumns())] == ["", "so"]


@pytest.mark.parametrize("cell", ["d1;d2", "['d1' 'd2']", '["d1", "d2"]'])
def test_ids_of_contexts_in_one_cell_are_several(tmp_path: Path, cell: str) -> None:
    quoted = cell.replace('"', '""')
    path = write(tmp_path / "a.csv", f'id,answer,context_ids\n1,so,"{quoted}"\n')
    assert next(iter(read_answers(RowFile(path), AnswerColumns()))).row.context_ids == ("d1", "d2")


def test_an_empty_answer_in_json_is_an_answer(tmp_path: Path) -> None:
    assert read(tmp_path, {"id": "q1", "response": "", "output": "x"})[0]["answer"] == ""


def test_a_frame_s_nan_is_a_missing_number(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["q1", "q2"], "answer": ["x", "y"], "cost": [float("nan"), 0.5]})
    frame.write_parquet(tmp_path / "a.parquet")
    rows = read_answers(RowFile(tmp_path / "a.parquet"), AnswerColumns())
    assert [answer.row.cost for answer in rows] == [None, 0.5]


def test_there_must_be_as_many_context_ids_as_contexts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:1: the row has 1 contexts and 2 ids of contexts$"):
        read(tmp_path, {"id": "q1", "answer": "x", "contexts": ["a"], "context_ids": ["d1", "d2"]})
    assert read(tmp_path, {"id": "q1", "answer": "x", "context_ids": ["d1", 2]})[0]["context_ids"] == ("d1", "2")


@pytest.mark.parametrize(
    ("row", "scores"),
    [
        ({"contexts": ["a", "b"], "scores": [0.9, 0.1]}, (0.9, 0.1)),
        ({"retrieved_contexts": ["a", "b"], "context_scores": [0.9, None]}, (0.9, None)),
        ({"contexts": '["a", "b"]', "retrieval_scores": "[0.9, null]"}, (0.9, None)),
        ({"context_ids": ["d1", "d2"], "scores": ["0.9", 2]}, (0.9, 2.0)),
        ({"contexts": ["a", "b"], "scores": [None, None]}, None),
        ({"contexts": [{"text": "a", "score": 0.5}, {"text": "b"}]}, (0.5, None)),
        ({"contexts": [{"text": "a", "score": 0.5}, {"text": "b", "score": None}], "scores": [1, 0]}, (1.0, 0.0)),
        ({"contexts": ["a", "b"], "scores": {"style": 0.5}}, None),
        ({"contexts": ["a", "b"], "scores": [{"name": "style", "value": 0.5}]}, None),
        ({"contexts": [], "scores": []}, None),
    ],
)
def test_the_retrievers_scores_stand_beside_the_contexts_or_in_them(
    tmp_path: Path, row: dict[str, Any], scores: tuple[float | None, ...] | None
) -> None:
    assert read(tmp_path, {"id": "q1", "answer": "x", **row})[0].get("scores") == scores


def test_sources_with_texts_are_contexts_in_files_too(tmp_path: Path) -> None:
    sources = [{"id": "d1", "text": "a", "score": 0.5}]
    for key in ("sources", "citations", "source_documents"):
        (found,) = read(tmp_path, {"id": "q1", "response": "x", key: sources})
        assert (found["contexts"], found["context_ids"], found["scores"]) == (("a",), ("d1",), (0.5,))
    assert "contexts" not in read(tmp_path, {"id": "q1", "response": "x", "sources": ["a.pdf"]})[0]


def test_each_context_has_a_score_or_null(tmp_path: Path) -> None:
    row = {"id": "q1", "answer": "x", "contexts": ["a", "b"], "scores": [0.9]}
    message = r"a\.jsonl:1: the row has 2 contexts and 1 score in 'scores'; write a score for each context, null where"
    with pytest.raises(DataError, match=message):
        read(tmp_path, row)
    with pytest.raises(DataError, match=r"a\.jsonl:1: 'context_scores'\[1\] must be a number, not \"high\"$"):
        read(tmp_path, {**row, "scores": None, "context_scores": [1, "high"]})
    assert read(tmp_path, {**row, "given": [3, 4]}, scores="given")[0]["scores"] == (3.0, 4.0)


def test_a_file_without_answers_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, {"id": "q1", "Antwort": "x", "Frage": "why?"})
    assert str(caught.value) == (
        f"{tmp_path / 'a.jsonl'}: no column of answers or contexts; the columns are 'id', 'Antwort', 'Frage'; "
        "write columns: {answer: Antwort}"
    )


def test_a_column_of_steps_that_the_spec_names_has_steps(tmp_path: Path) -> None:
    rows: Rows = [
        {"query_id": "1", "answer": "a", "steps": []},
        {"query_id": "2", "answer": "b", "steps": {"name": "f"}},
    ]
    assert [row.get("steps") for row in read(tmp_path, *rows)] == ["[]", None]  # another tool's count of steps, perhaps
    with pytest.raises(DataError, match="2: 'steps' must be a list of steps, not an object"):
        read(tmp_path, *rows, steps="steps")


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


FILE = Path("answers.jsonl")
ASKED = {"q1": "why?", "q2": "who?"}
FIVE = {str(number): f"What is {number}?" for number in range(1, 6)}
MatchedRows = Sequence[tuple[str | None, str | None, str]]
"""The id, the question and the answer of each row."""


def match(rows: MatchedRows, asked: Mapping[str, str] = ASKED, *, trusts_ids: bool = False) -> Matched:
    answers = [
        FileAnswer(f"{FILE}:{line}", query_id, question, AnswerRow(answer=text))
        for line, (query_id, question, text) in enumerate(rows, 1)
    ]
    queries = pl.DataFrame(
        {"query_id": list(asked), "text": list(asked.values())}, schema=dict.fromkeys(("query_id", "text"), pl.String)
    )
    return match_answers(FILE, answers, queries, trusts_ids=trusts_ids)


def pairs(matched: Matched) -> list[tuple[str, str | None]]:
    return [(query_id, row.answer) for query_id, row in matched.rows]


def test_ids_come_first_and_the_rows_follow_the_queries() -> None:
    matched = match([("q2", None, "two"), ("q1", None, "one")])
    assert pairs(matched) == [("q1", "one"), ("q2", "two")]
    assert (matched.unknown, matched.differing, matched.remark) == (0, 0, "")


def test_answers_without_ids_belong_to_the_queries_with_their_text() -> None:
    assert pairs(match([(None, " who? ", "2"), (None, "why?", "1")])) == [("q1", "1"), ("q2", "2")]


def test_unknown_ids_are_matched_by_text() -> None:
    assert pairs(match([("row-0", "who?", "2"), ("row-1", "why?", "1")])) == [("q1", "1"), ("q2", "2")]


def test_rows_with_neither_belong_by_their_number() -> None:
    rows: MatchedRows = [(None, None, "a"), (None, None, "b"), (None, None, "c")]
    assert pairs(match(rows[:2], {"2": "who?", "1": "why?"})) == [("2", "b"), ("1", "a")]
    matched = match(rows, {"1": "why?", "3": "who?"})
    assert (pairs(matched), matched.unknown) == ([("1", "a"), ("3", "c")], 1)


def test_row_numbers_must_exist() -> None:
    with pytest.raises(DataError, match=r"the file \(1 row\) has neither ids nor questions, .* \('1', '2', \.\.\.\)"):
        match([(None, None, "a")], {"1": "why?", "2": "who?"})


def test_equal_questions_get_answers_in_order_or_the_same_answer() -> None:
    asked = {"q1": "same", "q2": "other", "q3": "same"}
    both: MatchedRows = [(None, "same", "a"), (None, "other", "o"), (None, "same", "b")]
    assert pairs(match(both, asked)) == [("q1", "a"), ("q2", "o"), ("q3", "b")]
    assert pairs(match(both[:2], asked)) == [("q1", "a"), ("q2", "o"), ("q3", "a")]


def test_more_answers_than_equal_texts_are_an_answer_too_many() -> None:
    with pytest.raises(DataError, match=r"^answers\.jsonl:2: the query 'q1' is answered twice, first at answers"):
        match([(None, "same", text) for text in "abc"], {"q1": "same", "q2": "same"})


def test_answers_to_other_queries_are_counted() -> None:
    matched = match([("q1", None, "x"), ("q7", None, "y"), ("q8", None, "z")])
    assert (pairs(matched), matched.unknown) == ([("q1", "x")], 2)


def test_a_query_that_is_answered_twice_is_refused_with_both_places() -> None:
    with pytest.raises(DataError) as caught:
        match([("q1", None, "x"), ("q2", None, "y"), ("q1", None, "x")])
    assert str(caught.value) == (
        "answers.jsonl:3: the query 'q1' is answered twice, first at answers.jsonl:1; a file has one run; if "
        "questions were asked again, write 'repeat: 2'"
    )


def test_a_row_without_an_id_among_others_is_refused() -> None:
    with pytest.raises(DataError, match=r"^answers\.jsonl:2: no query_id, although other rows have one$"):
        match([("q1", None, "x"), (None, None, "y")])


def test_the_message_about_unmatched_answers_shows_ids_from_both_files() -> None:
    with pytest.raises(DataError) as caught:
        match([(f"x{number}", None, "a") for number in range(5)])
    shown = "'x0', 'x1', 'x2', ..., but the dataset has 'q1', 'q2', ..."
    assert str(caught.value) == f"answers.jsonl: no row belongs to a query of the dataset: the file has {shown}"


def test_a_long_id_is_cut_in_the_message() -> None:
    with pytest.raises(DataError) as caught:
        match([("x" * 10_000, None, "a")])
    assert len(str(caught.value)) < 300


SHIFTED: MatchedRows = [(str(number - 1), f"What is {number}?", str(number)) for number in range(1, 6)]
"""Rows numbered from 0, of queries numbered from 1."""


def test_questions_win_over_ids_that_they_contradict() -> None:
    matched = match(SHIFTED, FIVE)
    assert pairs(matched) == [(number, number) for number in FIVE]
    assert matched.differing == 4
    assert matched.remark == (
        "4 of 4 answers have a question that differs from the query with the same id, first at answers.jsonl:2: query "
        "'1' asks 'What is 1?', but the answer is to 'What is 2?'; the questions are used instead of the ids"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [(query_id, f"Where was {text}?", text) for query_id, _, text in SHIFTED],
        [*SHIFTED[:3], *SHIFTED[2:]],
        [*SHIFTED[:2], ("2", "What was 3?", "3"), ("3", "What was 4?", "4"), *SHIFTED[4:]],
    ],
    ids=["nobody's", "one of them twice", "fewer than the ids"],
)
def test_contradicting_questions_that_leave_doubt_are_refused(rows: MatchedRows) -> None:
    with pytest.raises(DataError) as caught:
        match(rows, FIVE)
    assert str(caught.value).startswith("answers.jsonl:2: 4 of 4" if len(rows) == 5 else "answers.jsonl:2: ")
    assert "confirm the ids with 'columns.query_id'" in str(caught.value)


def test_ids_that_the_spec_confirms_hold_whatever_the_questions_are() -> None:
    matched = match(SHIFTED, FIVE, trusts_ids=True)
    assert pairs(matched) == [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5")]
    assert (matched.unknown, matched.differing) == (1, 4)
    assert matched.remark.endswith("the answer is to 'What is 2?'; the ids are used")


def test_a_few_other_questions_are_a_remark() -> None:
    rows = [(number, text, number) for number, text in FIVE.items()]
    matched = match([*rows[:3], ("4", "What was 4?", "4"), rows[4]], FIVE)
    assert pairs(matched) == [(number, number) for number in FIVE]
    assert matched.differing == 1
    assert matched.remark == (
        "1 of 5 answers has a question that differs from the query with the same id, first at answers.jsonl:4: query "
        "'4' asks 'What is 4?', but the answer is to 'What was 4?'; the ids are used"
    )


@pytest.mark.parametrize("prompt", ["Answer shortly.\n{} Think first.", " {} ", "{}"])
def test_a_question_can_differ_in_spacing_or_be_inside_a_prompt(prompt: str) -> None:
    rows = [(n, prompt.format(text.upper().replace(" ", "  ")), n) for n, text in FIVE.items()]
    assert match(rows, FIVE).remark == ""


def test_rows_whose_question_is_blank_contradict_nothing() -> None:
    assert match([("q1", " ", "x"), ("q2", None, "y")]).differing == 0


def test_long_questions_are_cut_in_the_remark() -> None:
    asked = {"q1": "why " * 1000, "q2": "who?", "q3": "how?"}
    matched = match([("q1", "what " * 1000, "x"), ("q2", "who?", "y"), ("q3", "how?", "z")], asked)
    assert matched.differing == 1
    assert len(matched.remark) < 500


TEXTS = st.sampled_from(["a", "b", "c", " a ", ""])


@given(
    asked=st.dictionaries(st.sampled_from("1234"), TEXTS, min_size=1),
    rows=st.lists(st.tuples(st.none() | st.sampled_from("1234x"), st.none() | TEXTS, st.just("said")), min_size=1),
    trusts_ids=st.booleans(),
)
def test_a_query_has_one_answer_or_all_are_refused(asked: dict[str, str], rows: MatchedRows, trusts_ids: bool) -> None:
    try:
        matched = match(rows, asked, trusts_ids=trusts_ids)
    except DataError as error:
        assert str(error).startswith(str(FILE))
        return
    found = [query_id for query_id, _ in matched.rows]
    assert found == [query_id for query_id in asked if query_id in found]
    assert 0 <= matched.unknown < len(rows)
    assert bool(matched.remark) == bool(matched.differing)


def test_rows_are_taken_once_in_their_order() -> None:
    matched = match([("q1", None, "a"), ("q2", None, "b")])
    taken = matched.take_rows()
    assert next(taken)[0] == "q1"
    assert [query_id for query_id, _ in matched.rows] == ["q2"]
    assert [query_id for query_id, _ in taken] == ["q2"]
    assert matched.rows == []
