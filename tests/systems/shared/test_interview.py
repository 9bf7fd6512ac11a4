from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.store.replies import MemoryAnswers
from rageval_spec.systems.shared.questions import AskError
from tests.systems.asking import answers_of, collection
from tests.systems.shared.scripted import QUESTIONS, Scripted, echo, scripted


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
    assert errors.str.starts_with("limits.max_calls: 5 of 5 calls made").all()
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
