from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.json_path import parse_path
from rageval_spec.reading.tool_layouts import find_layout, name_layout
from rageval_spec.reading.unfolding import Unfolding, fold_names, has_foldable, list_aliases, open_text

DEEPEVAL = find_layout(("input", "actual_output", "expected_output", "retrieval_context", "context"), keeps_lists=False)


def test_a_path_is_a_column_with_what_it_finds() -> None:
    paths = tuple(map(parse_path, ("$.inputs.question", "$.docs[*].id", "$.none")))
    row = {"inputs": {"question": "why?"}, "docs": [{"id": "a"}, {"id": "b"}]}
    assert Unfolding(paths=paths).apply("f:1", row) == {
        **row,
        "$.inputs.question": "why?",
        "$.docs[*].id": ["a", "b"],
    }


@pytest.mark.parametrize("text", ['{"question": "why?"}', "{'question': 'why?'}"])
def test_a_path_leads_into_objects_that_csv_holds_as_text(text: str) -> None:
    found = Unfolding(paths=(parse_path("$.inputs.question"),)).apply("f:1", {"inputs": text})
    assert found["$.inputs.question"] == "why?"


def test_items_of_which_some_lack_the_value_are_an_error_with_their_place() -> None:
    unfolding = Unfolding(paths=(parse_path("$.docs[*].id"),))
    assert unfolding.apply("f:1", {"docs": []}) == {"docs": [], "$.docs[*].id": []}
    assert "$.docs[*].id" not in unfolding.apply("f:1", {"docs": [{"name": "a"}]})
    with pytest.raises(DataError, match=r"f:7: \$\.docs\[\*\]\.id finds nothing: the row\['docs'\]|f:7: .*has no 'id'"):
        unfolding.apply("f:7", {"docs": [{"id": "a"}, {"name": "b"}]})


def test_contexts_of_deepeval_are_split_and_lists_stay() -> None:
    row: dict[str, Any] = {"input": "a|b", "context": "c1|c2", "retrieval_context": ["r1|still r1"]}
    assert Unfolding(DEEPEVAL).apply("f:1", row) == {**row, "context": ["c1", "c2"]}
    listed = '["a|b", "c"]'  # a list of another writer, as JSON
    assert Unfolding(DEEPEVAL).apply("f:1", {"context": listed})["context"] == listed
    assert Unfolding(DEEPEVAL).apply("f:1", {"context": "", "retrieval_context": None})["context"] == ""


def test_metadata_becomes_columns_but_gives_no_question_and_no_answer() -> None:
    layout = name_layout("langfuse", (), keeps_lists=False)
    row = {
        "input": "why?",
        "metadata": {"category": "a", "input": "other", "answer": "x", "difficulty": 2},
        "difficulty": 1,
    }
    assert Unfolding(layout).apply("f:1", row) == {**row, "category": "a"}


@pytest.mark.parametrize(
    ("row", "given"),
    [
        ({"assert": [{"type": "equals", "value": "x"}, {"type": "contains", "value": "y"}]}, ["x"]),
        ({"assert": [{"type": "not-equals", "value": "x"}]}, None),
        ({"__expected": "x"}, ["x"]),
        ({"__expected1": "similar(0.8): x", "__expected2": "contains: y"}, ["x"]),
        ({"__expected": "llm-rubric: is polite"}, None),
        ({"__expected": "At 12: the gate"}, ["At 12: the gate"]),
        ({"assert": "none"}, None),
    ],
)
def test_gold_answers_of_promptfoo_are_what_must_be_equal_or_similar(
    row: dict[str, Any], given: list[str] | None
) -> None:
    layout = name_layout("promptfoo", (), keeps_lists=True)
    assert Unfolding(layout).apply("f:1", row).get("assert.value") == given


def test_names_that_differ_in_case_and_spaces_are_known() -> None:
    row = {"Question": "why?", "Ground Truth": "so", "Region": "EU", "ID": 7}
    assert fold_names(row) == {"question": "why?", "ground_truth": "so", "Region": "EU", "id": 7}
    assert fold_names({"Answer": 1, "answer": 2}) == {"Answer": 1, "answer": 2}
    assert fold_names(row, frozenset({"Question"}))["Question"] == "why?"
    assert has_foldable(["Question", "Region"])
    assert not has_foldable(["question", "Ground Truth"])
    assert not has_foldable(["ID", "answer", "Contexts"])
    assert not has_foldable(["Frage", "Antwort"])


@pytest.mark.parametrize("value", ["text", "[see below]", "{not json", 7, None, ["a"], "[" * 10_000])
def test_what_is_no_object_stays_as_it_is(value: object) -> None:
    assert open_text(value) == value


def test_an_alias_stands_beside_its_column_and_never_for_a_part_that_has_an_exact_name() -> None:
    assert list_aliases(("ID", "question", "groundTruth", "Group")) == {"id", "ground_truth"}
    assert list_aliases(("query_id", "ID", "question", "reference", "Ground Truth")) == frozenset()
    assert list_aliases(("ID", "question"), named=("query_id",)) == frozenset()
    row = {"ID": 7, "question": "why?"}
    assert Unfolding(aliases=frozenset({"id"})).apply("f:1", row) == {**row, "id": 7}


def test_of_two_columns_in_other_spellings_the_first_has_the_name() -> None:
    assert fold_names({"ID": 1, "Id": 2}) == {"id": 1, "Id": 2}


def test_a_list_that_numpy_printed_stays_several_texts() -> None:
    assert open_text("['c1'\n 'c2']") == ["c1", "c2"]
