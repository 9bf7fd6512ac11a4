from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.tables import ANSWERS, LATER_ANSWERS, Collection
from rageval_spec.errors import DataError
from rageval_spec.plugin.budget import Budget
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.store.replies import MemoryAnswers
from rageval_spec.systems.shared.questions import AskError
from tests.systems.asking import answers_of, collection
from tests.systems.shared.scripted import QUESTIONS, Say, echo, scripted


def test_the_table_has_all_columns_and_one_row_per_query_in_order() -> None:
    answering = scripted().answer(collection(QUESTIONS))
    assert tuple(answering.answers.columns) == (*ANSWERS, *LATER_ANSWERS)
    assert answering.answers["query_id"].to_list() == list(QUESTIONS)
    assert answering.answers["answer"].to_list() == [text.upper() for text in QUESTIONS.values()]
    assert answering.answers["seconds"].min() is not None
    assert answering.notes == ()


def test_no_query_is_asked_of_a_collection_without_any() -> None:
    assert scripted().answer(collection({})).answers.height == 0
    with pytest.raises(DataError, match=r"systems\.tested: scripted needs queries, but the dataset 'bare' has none"):
        scripted().answer(Collection("bare"))


def test_equal_questions_are_asked_once_unless_the_system_gets_the_id() -> None:
    questions = {"q1": "same", "q2": "same", "q3": "other"}
    system = scripted()
    rows = answers_of(system, questions)
    assert len(system.told) == 2 and rows["q1"] == rows["q2"]
    system = scripted(variables=frozenset({"question", "query_id"}))
    answers_of(system, questions)
    assert len(system.told) == 3


def test_stored_answers_are_found_without_asking() -> None:
    kept = MemoryAnswers()
    assert scripted(answers=kept).find_answers(collection(QUESTIONS)).height == 0
    first = scripted(answers=kept).answer(collection({"q1": "a", "q2": "b"})).answers
    other = scripted(answers=kept)
    found = other.find_answers(collection({"q0": "c", "q1": "a", "q2": "b"}))
    assert found.equals(first) and other.told == []


def test_a_finished_evaluation_asks_again_next_time() -> None:
    kept = MemoryAnswers()
    system = scripted(answers=kept)
    first = answers_of(system, QUESTIONS)
    system.finish("golden")
    changed = scripted(lambda told: AnswerRow("changed"), answers=kept)
    assert changed.find_answers(collection(QUESTIONS)).height == 0
    assert {row["answer"] for row in answers_of(changed, QUESTIONS).values()} == {"changed"}
    assert len(changed.told) == len(first)


def fail_once(kind: str) -> Say:
    def say(told: Mapping[str, Any]) -> AnswerRow:
        if told["question"] == "question 7":
            raise AskError("no luck", is_temporary=kind == "temporary")
        return echo(told)

    return say


@pytest.mark.parametrize(
    ("kind", "budget", "again"),
    [
        ("temporary", Budget(), 1),
        ("lasting", Budget(), 40),
        ("none", Budget(max_calls=30), 10),
    ],
)
def test_it_is_finished_if_nothing_is_left_to_ask(kind: str, budget: Budget, again: int) -> None:
    kept = MemoryAnswers()
    system = scripted(fail_once(kind) if kind != "none" else echo, answers=kept, budget=budget)
    answers_of(system, QUESTIONS)
    system.finish("golden")
    repeated = scripted(answers=kept)
    answers_of(repeated, QUESTIONS)
    assert len(repeated.told) == again


def test_other_datasets_keep_their_answers_when_one_is_finished() -> None:
    kept = MemoryAnswers()
    system = scripted(answers=kept)
    system.answer(collection({"q1": "a", "q2": "both"}))
    other = replace(collection({"q1": "b", "q2": "both"}), name="other")
    system.answer(other)
    system.finish("golden")
    assert scripted(answers=kept).find_answers(other)["query_id"].to_list() == ["q1"]


def test_reuse_of_answers_is_announced_once() -> None:
    kept = MemoryAnswers()
    answers_of(scripted(answers=kept), {"q1": "a", "q2": "b"})
    said: list[str] = []
    going_on = scripted(answers=kept, tell=said.append)
    answers_of(going_on, {"q1": "a", "q2": "b", "q3": "c"})
    assert len(said) == 1
    assert said[0].startswith("tested on golden: reusing 2 answers of an unfinished evaluation, started 2")
    assert said[0].endswith(" UTC; asking 1 question")
    assert (going_on.describe_reuse(2) or "").startswith("2 answers of an unfinished evaluation, started ")
    assert going_on.describe_reuse(0) is None


def test_with_retry_errors_finished_answers_are_used_too() -> None:
    kept = MemoryAnswers()
    system = scripted(fail_once("lasting"), answers=kept)
    answers_of(system, QUESTIONS)
    system.finish("golden")
    said: list[str] = []
    repairing = scripted(answers=kept, budget=Budget(retry_errors=True), tell=said.append)
    answers_of(repairing, QUESTIONS)
    assert [told["question"] for told in repairing.told] == ["question 7"]
    assert said == ["tested on golden: reusing 39 answers of the last evaluation (--retry-errors); asking 1 question"]
