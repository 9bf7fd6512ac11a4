from __future__ import annotations

import re

import pytest

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.systems.shared.questions import AskError, Question, complete, list_questions
from tests.systems.asking import collection
from tests.systems.shared.scripted import scripted

READER = "systems.tested: scripted"
ALL = frozenset({"question", "query_id", "contexts"})


def test_a_question_has_only_what_the_system_is_told() -> None:
    asked = dict(list_questions(READER, collection({"q1": "a", "q2": "a"}), frozenset({"question"})))
    assert asked["q1"] == asked["q2"]
    assert isinstance(asked["q1"], Question)
    assert asked["q1"].told == {"question": "a"}


@pytest.mark.parametrize("dispensable", [frozenset[str](), frozenset({"contexts"})])
def test_unknown_contexts_are_left_out_or_are_an_error(dispensable: frozenset[str]) -> None:
    known = collection({"q1": "a", "q2": "b"}, {"q1": ["x"], "q2": None})
    asked = dict(list_questions(READER, known, ALL, dispensable))
    assert isinstance(asked["q1"], Question)
    assert asked["q1"].told == {"question": "a", "query_id": "q1", "contexts": ["x"]}
    if dispensable:
        assert isinstance(asked["q2"], Question)
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
