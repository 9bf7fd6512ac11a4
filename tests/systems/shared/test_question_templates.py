""""""

from __future__ import annotations

import re

import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.recorded.answers_and_steps import AnswerRow
from rageval_spec.systems.shared.question_templates import (
    AskError,
    SystemQuestion,
    complete,
    fill_in,
    find_unknown,
    list_questions,
    list_variables,
)
from tests.systems.asking import collection
from tests.systems.shared.scripted import scripted

READER = "systems.tested: scripted"
ALL = frozenset({"question", "query_id", "contexts"})


def test_a_question_has_only_what_the_system_is_told() -> None:
    asked = dict(list_questions(READER, collection({"q1": "a", "q2": "a"}), frozenset({"question"})))
    assert asked["q1"] == asked["q2"]
    assert isinstance(asked["q1"], SystemQuestion)
    assert asked["q1"].told == {"question": "a"}


@pytest.mark.parametrize("dispensable", [frozenset[str](), frozenset({"contexts"})])
def test_unknown_contexts_are_left_out_or_are_an_error(dispensable: frozenset[str]) -> None:
    known = collection({"q1": "a", "q2": "b"}, {"q1": ["x"], "q2": None})
    asked = dict(list_questions(READER, known, ALL, dispensable))
    assert isinstance(asked["q1"], SystemQuestion)
    assert asked["q1"].told == {"question": "a", "query_id": "q1", "contexts": ["x"]}
    if dispensable:
        assert isinstance(asked["q2"], SystemQuestion)
        assert asked["q2"].told == {"question": "b", "query_id": "q2"}
    else:
        assert isinstance(asked["q2"], AnswerRow)
        assert asked["q2"].error == "was not asked: the dataset has no reference contexts for this query"


def test_a_dataset_without_queries_is_an_error_that_names_the_system() -> None:
    message = "systems.tested: scripted needs queries, but the dataset 'bare' has none"
    with pytest.raises(DataError, match=re.escape(message)):
        next(list_questions(READER, Collection("bare"), frozenset({"question"})))
    with pytest.raises(DataError, match=re.escape(message)):
        scripted().answer(Collection("bare"))
    with pytest.raises(DataError, match=re.escape(message)):
        scripted().find_answers(Collection("bare"))


def test_an_answer_without_contexts_was_made_from_those_that_were_told() -> None:
    assert complete(AnswerRow("x"), {"contexts": ["a"]}).contexts == ("a",)
    assert complete(AnswerRow("x", contexts=("b",)), {"contexts": ["a"]}).contexts == ("b",)
    assert complete(AnswerRow("x"), {"question": "?"}).contexts is None


def test_an_error_is_shortened_to_one_line() -> None:
    assert str(AskError("two\nlines\x1b[0m ")) == "two\\nlines\\x1b[0m"
    assert len(str(AskError("x" * 1000))) == 503


def test_templates_keep_types_and_fill_in_texts_once() -> None:
    told = {"question": "{{ query_id }}", "query_id": "q1", "contexts": ["a", "b"]}
    template = {"k {{query_id}}": ["{{ question }}", "<{{  question  }}>", "{{contexts}}", "{{ contexts }}!"], "n": 3}
    filled = {"k q1": ["{{ query_id }}", "<{{ query_id }}>", ["a", "b"], "a\n\nb!"], "n": 3}
    assert fill_in(template, told) == filled
    assert list_variables(template) == {"question", "query_id", "contexts"}
    with pytest.raises(
        ValueError,
        match="holds no name; write one of question, query_id, contexts, messages, history, or a column's name",
    ):
        list_variables({"x": "{{ }}"})


def test_columns_keep_their_types_and_become_text_inside_a_text() -> None:
    told = {"tags": ["a", "b"], "level": 3, "is open": True, "note": None, "filter": {"lang": "de", "ü": "ß"}}
    template = {"all": ["{{ tags }}", "{{level}}", "{{ is open }}", "{{note}}", "{{ filter }}"], 1: "n"}
    assert fill_in(template, told) == {"all": [["a", "b"], 3, True, None, {"lang": "de", "ü": "ß"}], 1: "n"}
    text = "{{tags}}|{{level}}|{{is open}}|{{note}}|{{filter}}"
    assert fill_in(text, told) == 'a\n\nb|3|true||{"lang": "de", "ü": "ß"}'


def test_an_unknown_variable_has_the_path_of_its_text_and_the_names_to_write() -> None:
    template = {"q": "{{ question }}", "filter": {"any": ["{{ category }}", "x {{ categry }}"]}}
    (fault,) = find_unknown(template, "body", ["category", "tags"])
    assert fault.key == ("body", "filter", "any", 1)
    assert fault.message == "unknown variable 'categry'"
    known = "question, query_id, contexts, messages, history, category, tags"
    assert fault.hint == f"did you mean 'category'? The variables are {known}"
    (other,) = find_unknown("{{ 7*7 }}", "input", ["category", "tags"])
    assert other.hint == f"the variables are {known}"
