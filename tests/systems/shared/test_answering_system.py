"""Systems that are asked questions, and what becomes of their answers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.tables import ANSWERS, LATER_ANSWERS, Collection
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.recorded.answers_and_steps import AnswerRow
from rageval_spec.store.replies import FileAnswers
from rageval_spec.store.store import MemoryAnswers
from rageval_spec.systems.shared.question_templates import AskError
from tests.systems.asking import answers_of, collection
from tests.systems.shared.scripted import QUESTIONS, Say, Scripted, echo, scripted


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


@pytest.mark.parametrize("kind", ["temporary", "lasting"])
def test_after_an_outcome_everything_is_asked_again_whatever_failed(kind: str) -> None:
    kept = MemoryAnswers()
    system = scripted(fail_once(kind), answers=kept)
    answers_of(system, QUESTIONS)
    system.finish("golden")
    repeated = scripted(answers=kept)
    answers_of(repeated, QUESTIONS)
    assert len(repeated.told) == 40


def test_without_an_outcome_only_what_is_missing_is_asked() -> None:
    kept = MemoryAnswers()
    answers_of(scripted(fail_once("temporary"), answers=kept, budget=Budget(max_calls=30)), QUESTIONS)
    repeated = scripted(answers=kept)
    answers_of(repeated, QUESTIONS)
    assert len(repeated.told) == 11


def test_an_evaluation_that_is_killed_between_two_datasets_is_continued() -> None:
    kept = MemoryAnswers()
    system = scripted(answers=kept)
    system.answer(collection({"q1": "a", "q2": "both"}))
    other = replace(collection({"q1": "b", "q2": "both"}), name="other")
    system.answer(other)
    system.finish("golden")
    assert scripted(answers=kept).find_answers(other)["query_id"].to_list() == ["q1", "q2"]
    system.finish("other")
    assert scripted(answers=kept).find_answers(other).is_empty()


def test_reuse_of_answers_is_announced_once() -> None:
    kept = MemoryAnswers()
    answers_of(scripted(answers=kept), {"q1": "a", "q2": "b"})
    said: list[str] = []
    going_on = scripted(answers=kept, tell=said.append)
    answers_of(going_on, {"q1": "a", "q2": "b", "q3": "c"})
    assert len(said) == 1
    assert said[0].startswith("tested on golden: taking over 2 answers of an unfinished evaluation, asked 2")
    assert said[0].endswith(" UTC; asking 1 question")
    planned = scripted(answers=kept)
    assert planned.describe_reuse(0) is None
    planned.find_answers(collection({"q1": "a", "q2": "b"}))
    assert (planned.describe_reuse(2) or "").startswith("2 answers of an unfinished evaluation, asked ")


def test_with_retry_failed_finished_answers_are_used_too() -> None:
    kept = MemoryAnswers()
    system = scripted(fail_once("lasting"), answers=kept)
    answers_of(system, QUESTIONS)
    system.finish("golden")
    said: list[str] = []
    repairing = scripted(answers=kept, budget=Budget(retry_failed=True), tell=said.append)
    answers_of(repairing, QUESTIONS)
    assert [told["question"] for told in repairing.told] == ["question 7"]
    [told] = said
    assert told.startswith("tested on golden: taking over 39 answers of the last evaluation (--retry-failed), asked 2")
    assert told.endswith("; asking 1 question")


def test_an_answer_is_kept_before_the_next_question_is_asked() -> None:
    kept = MemoryAnswers()

    def die(told: Mapping[str, Any]) -> AnswerRow:
        if told["question"] == "question 7":
            raise RagevalError("the machine is gone")
        return echo(told)

    with pytest.raises(RagevalError, match="the machine is gone"):
        scripted(die, answers=kept, concurrency=1).answer(collection(QUESTIONS))
    again = scripted(answers=kept, concurrency=1)
    answers_of(again, QUESTIONS)
    assert [told["question"] for told in again.told] == list(QUESTIONS.values())[7:]


def test_errors_are_not_kept() -> None:
    kept = MemoryAnswers()

    def refuse(told: Mapping[str, Any]) -> AnswerRow:
        raise AskError("no\x1b[0m luck")

    assert answers_of(scripted(refuse, answers=kept), {"q1": "a"}) == {"q1": {"error": "no\\x1b[0m luck"}}
    assert answers_of(scripted(answers=kept), {"q1": "a"})["q1"]["answer"] == "A"


@pytest.mark.parametrize(("keys", "most"), [({}, 4), ({"concurrency": 2}, 2), ({"concurrency": 7}, 7)])
def test_at_most_the_allowed_number_of_questions_is_in_flight(keys: dict[str, Any], most: int) -> None:
    barrier, lock, now, seen = threading.Barrier(most), threading.Lock(), [0], [0]

    def wait_for_the_others(told: Mapping[str, Any]) -> AnswerRow:
        with lock:
            now[0] += 1
            seen[0] = max(seen[0], now[0])
        barrier.wait(30)
        with lock:
            now[0] -= 1
        return echo(told)

    answers_of(scripted(wait_for_the_others, **keys), {f"q{number}": str(number) for number in range(most * 3)})
    assert seen[0] == most


def test_calls_and_their_cost_are_counted_against_the_limits() -> None:
    budget = Budget()
    kept = MemoryAnswers()
    answers_of(scripted(budget=budget, answers=kept), {"q1": "a", "q2": "a", "q3": "b"})
    assert (budget.calls, budget.cost, budget.errors) == (2, 0.5, 0)
    answers_of(scripted(budget=budget, answers=kept), {"q1": "a"})
    assert budget.calls == 2


def test_a_limit_stops_the_questions_and_keeps_the_answers() -> None:
    kept = MemoryAnswers()
    system = scripted(budget=Budget(max_calls=5), answers=kept)
    errors = system.answer(collection(QUESTIONS)).answers["error"].drop_nulls()
    assert len(errors) == len(QUESTIONS) - 5
    assert errors.str.starts_with("limits.max_calls: 5 of 5 calls to systems made").all()
    assert len(system.told) == 5 and system.closed == 1
    again = scripted(answers=kept)
    answers_of(again, QUESTIONS)
    assert len(again.told) == len(QUESTIONS) - 5


def test_too_many_errors_stop_the_questions() -> None:
    def refuse(told: Mapping[str, Any]) -> AnswerRow:
        raise AskError("no")

    answers = scripted(refuse, budget=Budget(max_errors=3)).answer(collection(QUESTIONS)).answers
    assert answers["error"].str.starts_with("limits.max_errors").any()


def test_progress_counts_distinct_questions() -> None:
    seen: list[tuple[int, int]] = []
    context = Context(
        "tested", progress=lambda done, total, unit=None: seen.append((done, total)), answers=MemoryAnswers()
    )
    Scripted(echo, context, frozenset({"question"})).answer(collection({"q1": "a", "q2": "a", "q3": "b"}))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_calls_are_spread_over_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("rageval_spec.endpoints.pacing.Clock.sleep", lambda clock, seconds: waits.append(seconds))
    answers_of(scripted(requests_per_minute=6, concurrency=1), {f"q{number}": str(number) for number in range(4)})
    assert [round(wait, -1) for wait in waits] == [10, 20, 30]


def test_only_answers_that_were_taken_over_have_a_time(tmp_path: Path) -> None:
    kept = FileAnswers(tmp_path, lambda: None)
    assert scripted(answers=kept).answer(collection({"q1": "one"})).answers["asked"].to_list() == [None]
    again = scripted(answers=kept).answer(collection({"q1": "one", "q2": "two"}))
    first, second = again.answers["asked"].to_list()
    assert again.taken_over is not None and (first, second) == (again.taken_over.first, None)
    kept.close()


def test_stored_answers_are_not_asked_again_and_keep_their_seconds(tmp_path: Path) -> None:
    kept = FileAnswers(tmp_path, lambda: None)
    first = answers_of(scripted(answers=kept), QUESTIONS)
    again = scripted(answers=kept)
    assert answers_of(again, QUESTIONS) == first and again.told == []
    renamed = scripted(answers=kept)
    assert answers_of(renamed, {"other": "question 3"})["other"] == first["q3"] and renamed.told == []
    raised = scripted(answers=kept, version="2")
    answers_of(raised, QUESTIONS)
    assert len(raised.told) == len(QUESTIONS)
    kept.close()


def test_a_damaged_answer_in_the_store_is_asked_again() -> None:
    class Damaged(MemoryAnswers):
        def find(self, model: str, questions: Any) -> Mapping[bytes, bytes]:
            return dict.fromkeys(questions, b'{"answer": 1')

    system = scripted(answers=Damaged())
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "A" and len(system.told) == 1


def test_two_systems_with_equal_blocks_share_answers_and_say_so() -> None:
    answers, budget, said = MemoryAnswers(), Budget(), list[str]()
    first = scripted(answers=answers, budget=budget)
    second = scripted(answers=answers, budget=budget, tell=said.append)
    assert answers_of(first, QUESTIONS) == answers_of(second, QUESTIONS)
    assert said == ["tested on golden: has the same answers as a system with an equal block"]
    assert second.answer(collection(QUESTIONS)).taken_over is None
