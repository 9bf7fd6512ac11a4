"""Files of questions become tables: values of any kind become JSON that parses back, and ids appear once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rageval_spec.data.tables import REFERENCES as TABLE
from rageval_spec.errors import DataError
from rageval_spec.reading import question_files
from rageval_spec.reading.column_meanings import answers_in, contexts_in, find_rivals, find_spellings
from rageval_spec.reading.column_names import (
    ANSWERS,
    CONTEXTS,
    REFERENCE_CONTEXTS,
    REFERENCES,
    QuestionColumns,
    may_be_gold,
    normalise,
)
from rageval_spec.reading.question_files import (
    QuestionRow,
    dump_columns,
    find_twice,
    other_columns_table,
    references_table,
)

FILE = Path("golden.jsonl")


def read(*rows: dict[str, Any], **columns: str) -> list[dict[str, Any]] | None:
    """The fields of each row without null or empty ones; None if no row has any."""
    given_rows = [QuestionRow(f"{FILE}:{line}", f"q{line}", row) for line, row in enumerate(rows, 1)]
    table = references_table(FILE, lambda: given_rows, QuestionColumns(**columns), "columns")
    if table is None:
        return None
    assert tuple(table.columns) == TABLE
    assert table["query_id"].to_list() == [row.query_id for row in given_rows]
    return [
        {key: value for key, value in row.items() if key != "query_id" and value is not None and value != []}
        for row in table.iter_rows(named=True)
    ]


@pytest.mark.parametrize(
    ("present", "answers", "contexts"),
    [
        (["question", "answer"], (), ()),
        (["question", "answer", "ground_truth"], ("answer",), ()),
        (["question", "answer", "contexts"], ("answer",), ("contexts",)),
        (["question", "answer", "response"], ("response",), ()),
        (["completion", "response", "output"], ("response", "output", "completion"), ()),
        (["question", "context"], (), ("context",)),
        (["input", "context", "expected_output"], (), ()),
        (["input", "context", "retrieval_context"], (), ("retrieval_context",)),
        ([], (), ()),
    ],
)
def test_answer_and_context_belong_to_a_system_if_other_columns_say_so(
    present: list[str], answers: tuple[str, ...], contexts: tuple[str, ...]
) -> None:
    assert (answers_in(present), contexts_in(present)) == (answers, contexts)


NAMES = st.sets(
    st.sampled_from([*ANSWERS, *CONTEXTS, *REFERENCES, *REFERENCE_CONTEXTS, "answer", "context", "question"])
)


@given(present=NAMES)
def test_no_column_is_both_an_answer_and_a_reference(present: set[str]) -> None:
    assume(not find_rivals(present))
    [found] = read({name: name for name in present}) or [{}]
    right = {*found.get("references", ()), *found.get("reference_contexts", ())}
    said = {*answers_in(present), *(contexts_in(present) if answers_in(present) else ())}
    assert right.isdisjoint(said)


def test_files_without_known_columns_have_no_references() -> None:
    assert read({"question": "why?"}) is None
    assert read({"question": "why?", "response": "x", "contexts": ["y"]}) is None
    assert read() is None
    assert read({"question": "why?", "reference": None}) == [{}]


def test_the_first_name_with_a_text_is_taken() -> None:
    rows: list[dict[str, Any]] = [
        {"reference": "", "ground_truth": "b"},
        {"reference": "a", "ground_truth": "b"},
        {"reference": []},
    ]
    assert read(*rows) == [{"references": ["b"]}, {"references": ["a"]}, {}]


def test_a_named_column_is_taken_before_the_usual_ones() -> None:
    assert read({"reference": "no", "gold": "yes"}, reference="gold") == [{"references": ["yes"]}]


def test_names_that_no_row_has_are_refused_all_at_once() -> None:
    with pytest.raises(DataError) as caught:
        read({"question": "why?"}, reference="gold", condition="noise")
    assert str(caught.value) == (
        "golden.jsonl: no row has 'gold' or 'noise'; correct 'columns.reference', 'columns.condition'"
    )


@pytest.mark.parametrize(
    ("value", "references"),
    [
        (["a", "b", "a", " "], ["a", "b"]),
        ({"text": ["x", "x", "y"], "answer_start": [1, 2, 3]}, ["x", "y"]),
        ('["a", "b"]', ["a", "b"]),
        (12, ["12"]),
        (False, ["false"]),
    ],
)
def test_a_question_can_have_several_gold_answers(value: Any, references: list[str]) -> None:
    assert read({"reference": value}) == [{"references": references}]


@pytest.mark.parametrize(
    ("row", "answerable"),
    [
        ({"answerable": "yes"}, True),
        ({"is_answerable": 0.0}, False),
        ({"unanswerable": " TRUE "}, False),
        ({"is_impossible": 0}, True),
        ({"answerable": True, "unanswerable": True}, True),
        ({"answerable": "", "unanswerable": "no"}, True),
        ({"answerable": None}, None),
    ],
)
def test_answerable_is_read_directly_or_from_its_opposite(row: dict[str, Any], answerable: bool | None) -> None:
    assert read(row) == [{} if answerable is None else {"answerable": answerable}]


def test_a_named_column_of_answerable_silences_the_contrary() -> None:
    row = {"ok": None, "is_impossible": True}
    assert read(row, answerable="ok") == [{}]
    assert read({"ok": True}, unanswerable="ok") == [{"answerable": False}]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answerable": "perhaps"}, "'answerable' must be true or false, not 'perhaps'"),
        ({"is_impossible": 2}, "'is_impossible' must be true or false, not '2'"),
        ({"answerable": "x" * 1000}, f"'answerable' must be true or false, not '{'x' * 60}'"),
        ({"answers": ["a", {}]}, "'answers'[1] must be text, not an object"),
        ({"reference_contexts": [["a", 1]]}, "'reference_contexts'[0] must be text or an object"),
        ({"reference_contexts": '["a", "b'}, "'reference_contexts' begins like a list but is not one"),
        ({"condition": {}, "group": 1}, "'condition' must be text, not an object"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read({"reference": "fine"}, row)
    assert str(caught.value).startswith(f"golden.jsonl:2: {message}")


def test_contexts_of_question_answering_sets_are_texts() -> None:
    pairs = [["Title", ["One. ", "Two."]], ["Other", ["Three."]]]
    assert read({"answer": "x", "context": pairs}) == [
        {"references": ["x"], "reference_contexts": ["One. Two.", "Three."]}
    ]
    columns = {"title": ["T"], "sentences": [["One. ", "Two."], ["Three."]]}
    assert read({"reference_contexts": columns}) == [{"reference_contexts": ["One. Two.", "Three."]}]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "sentences", "x"]), inner),
    max_leaves=6,
)


@given(row=st.dictionaries(st.sampled_from(["reference", "context", "answer", "answerable", "group", "response"]), ANY))
def test_any_row_is_read_or_refused_with_its_place(row: dict[str, Any]) -> None:
    try:
        found = read(row)
    except DataError as error:
        assert str(error).startswith("golden.jsonl:1: '")
        return
    for known in found or ():
        assert all(text.strip() for text in known.get("references", ()))


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES))
def test_what_json_has_comes_back(values: dict[str, Any]) -> None:
    assert json.loads(dump_columns(values)) == values


def test_keys_are_sorted_and_numbers_that_json_lacks_are_null() -> None:
    assert dump_columns({"b": float("nan"), "a": [float("inf"), 1]}) == '{"a":[null,1],"b":null}'


def test_rows_in_many_blocks_stay_in_order() -> None:
    rows = ((f"q{number}", {"n": number, "other": "x"}) for number in range(10_000))
    table = other_columns_table(rows, ["n"])
    assert table is not None
    assert table.height == 10_000
    assert table.row(9_999) == ("q9999", '{"n":9999}')


def test_no_names_give_no_table() -> None:
    assert other_columns_table([("q1", {"n": 1})], []) is None


HERE = Path(__file__)


def rows(*ids: Any, key: str = "id") -> list[tuple[str, Mapping[str, Any]]]:
    return [(f"f:{line}", {key: query_id}) for line, query_id in enumerate(ids, 1)]


def test_the_first_that_comes_again_is_named_with_both_places() -> None:
    assert find_twice(HERE, rows("a", "b", "c", "b", "a"), ["id"]) == "f:4: the query 'b' is listed twice, first at f:2"
    assert find_twice(HERE, rows(7, "7"), ["id"]) == "f:2: the query '7' is listed twice, first at f:1"


@given(st.lists(st.text("ab", max_size=3)))
def test_only_ids_that_come_again_are_found(ids: list[str]) -> None:
    assert (find_twice(HERE, rows(*ids), ["id"]) is not None) == (len(set(ids)) < len(ids))


def test_rows_without_an_id_and_other_keys_do_not_count() -> None:
    assert find_twice(HERE, rows("a", "a", key="text"), ["id"]) is None
    assert find_twice(HERE, rows(None, None), ["id"]) is None


def test_a_large_or_absent_file_is_left_to_whoever_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_twice(HERE / "none", rows("a", "a"), ["id"]) is None
    monkeypatch.setattr(question_files, "_MOST_BYTES", 10)
    assert find_twice(HERE, rows("a", "a"), ["id"]) is None


def test_a_damaged_file_is_left_to_whoever_reads_it() -> None:
    def damaged() -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield "f:1", {"id": "a"}
        raise DataError("f:2: not JSON")

    assert find_twice(HERE, damaged(), ["id"]) is None


@pytest.mark.parametrize(
    "name",
    [
        *(
            "ground_truth_answer",
            "groundTruth",
            "goldAnswer",
            "gold_standard",
            "golden",
            "gold_label",
            "answer2",
            "answer_de",
            "answer_1",
            "best_answers",
            "correct_answer",
            "model_answer",
            "bot_reply",
            "target",
            "solution",
            "expected",
            "reference_text",
            "ideal",
            "Antwort",
            "Musterantwort",
            "respuesta",
            "human-answer",
            "expert_response",
            "answer_text",
            "summary_by_expert",
            "answer_human",
            "human_written",
        ),
    ],
)
def test_a_column_that_may_be_gold_beside_answer_is_a_question_to_the_user(name: str) -> None:
    assert may_be_gold(name)
    if name not in REFERENCES:
        assert find_rivals(["question", "answer", name]) == [name]
        with pytest.raises(DataError, match="nothing shows which"):
            read({"question": "?", "answer": "x", name: "y"})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "answer_start",
            "answer_type",
            "has_answer",
            "is_correct",
            "answer_id",
            "answerable",
            "num_answers",
            "expected_tools",
            "reference_url",
            "label",
            "category",
            "difficulty",
            "explanation",
            "source",
            "title",
            "chunk_id",
            "gold_doc_ids",
            "reference_contexts",
            "language",
            "answered_at",
            "checked_by_expert",
            "human_rating",
            "expert_id",
        ),
    ],
)
def test_a_column_about_answers_is_no_rival(name: str) -> None:
    assert not may_be_gold(name)
    assert find_rivals(["question", "answer", name]) == []


def test_rivals_are_refused_with_what_to_write_and_a_named_column_settles_it() -> None:
    row = {"question": "?", "answer": "x", "solution": "y"}
    with pytest.raises(DataError) as raised:
        read(row)
    assert str(raised.value) == (
        "golden.jsonl: the gold answers may be in 'answer' or 'solution', and nothing shows which; write columns: "
        "{reference: solution} if 'answer' is a system's, or else columns: {reference: answer}"
    )
    assert read(row, reference="solution") == [{"references": ["y"]}]
    assert read(row, reference="answer") == [{"references": ["x"]}]


def test_a_label_beside_predictions_may_be_gold_too() -> None:
    assert find_rivals(["question", "label", "answer", "prediction"]) == ["label"]


def test_of_two_known_gold_answers_none_is_guessed() -> None:
    row = {"question": "?", "reference": "See page 3.", "reference_answer": "y", "answer": "x"}
    with pytest.raises(DataError) as raised:
        read(row)
    assert str(raised.value) == (
        "golden.jsonl: the gold answers may be in 'reference' or 'reference_answer', and nothing says which; write "
        "columns: {reference: reference} or columns: {reference: reference_answer}"
    )
    assert read(row, reference="reference_answer") == [{"references": ["y"]}]
    assert find_rivals(list(row), "answer") == [], "the answer is a system's whichever of them is gold"
    assert find_rivals(["question", "ground_truth", "ground_truths", "answer"]) == []


@pytest.mark.parametrize("name", ["ground_truth_answer", "expected_response"])
def test_a_known_gold_answer_makes_answer_a_systems(name: str) -> None:
    assert read({"question": "?", "answer": "x", name: "y"}) == [{"references": ["y"]}]


@given(st.sampled_from(sorted({*REFERENCES, *CONTEXTS, *ANSWERS, *REFERENCE_CONTEXTS} - {"expectedOutput"})))
def test_names_are_the_same_in_snake_case_and_camel_case(name: str) -> None:
    words = normalise(name).split("_")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    for spelled in (camel, " ".join(words), "-".join(words), " ".join(words).title(), normalise(name)):
        assert normalise(spelled) == normalise(name)
        assert spelled == name or set(find_spellings(["question", spelled], ()).values()) <= {normalise(name)}


def test_a_data_frame_in_a_cell_is_read_as_its_texts() -> None:
    cell = "{'text': array(['Paris', \"l'Ile\"], dtype=object), 'answer_start': array([3, 9], dtype=int32)}"
    assert read({"answers": cell}) == [{"references": ["Paris", "l'Ile"]}]
    assert read({"answers": '{"text": ["Paris"]}'}) == [{"references": ["Paris"]}]
    assert read({"answers": "array(['a', 'b'], dtype=object)"}) == [{"references": ["a", "b"]}]
    assert read({"answers": "{'text': array([], dtype=object), 'answer_start': array([], dtype=int32)}"}) == [{}]
    assert read({"answers": '{"a": 1}'}) == [{"references": ['{"a": 1}']}]
    with pytest.raises(DataError, match=r"golden\.jsonl:1: 'answers' is printed by a program and cannot be read"):
        read({"answers": "{'text': array(['a', ..., 'z'], dtype=object)}"})
