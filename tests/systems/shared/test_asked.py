from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.tables import ANSWERS, Collection
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.plugin import Answers, Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.store.replies import FileAnswers, MemoryAnswers
from rageval_spec.systems.shared.asked import AnsweringNode, AnsweringSystem, AskError, fill_in, list_variables
from tests.systems.asking import answers_of, collection

Say = Callable[[Mapping[str, Any]], AnswerRow]


class Scripted(AnsweringSystem[AnsweringNode]):
    """Says what a script makes of a question."""

    node_type = AnsweringNode

    def __init__(self, say: Say, context: Context, variables: frozenset[str], **keys: Any) -> None:
        super().__init__(AnsweringNode(use="scripted", **keys), context)
        self.say = say
        self.told: list[Mapping[str, Any]] = []
        self.closed = 0
        self._variables = variables

    @property
    def variables(self) -> frozenset[str]:
        return self._variables

    def ask(self, told: Mapping[str, Any]) -> AnswerRow:
        self.told.append(told)
        return self.say(told)

    def close(self) -> None:
        self.closed += 1


def echo(told: Mapping[str, Any]) -> AnswerRow:
    return AnswerRow(told["question"].upper(), contexts=("a", "b"), context_ids=("1", "2"), cost=0.25)


def scripted(
    say: Say = echo,
    *,
    answers: Answers | None = None,
    budget: Budget | None = None,
    variables: frozenset[str] = frozenset({"question"}),
    **keys: Any,
) -> Scripted:
    context = Context("tested", answers=answers or MemoryAnswers(), budget=budget or Budget(), concurrency=4)
    return Scripted(say, context, variables, **keys)


QUESTIONS = {f"q{number}": f"question {number}" for number in range(40)}


def test_the_table_has_a_row_a_query_in_their_order_with_all_columns() -> None:
    answering = scripted().answer(collection(QUESTIONS))
    assert tuple(answering.answers.columns) == ANSWERS
    assert answering.answers["query_id"].to_list() == list(QUESTIONS)
    assert answering.answers["answer"].to_list() == [text.upper() for text in QUESTIONS.values()]
    assert answering.answers["seconds"].min() is not None
    assert answering.notes == ()


def test_no_query_is_asked_of_a_collection_without_any() -> None:
    assert scripted().answer(collection({})).answers.height == 0
    with pytest.raises(DataError, match=r"systems\.tested: scripted needs queries, and the dataset 'bare' has none"):
        scripted().answer(Collection("bare"))


def test_equal_questions_are_asked_once_unless_the_id_is_told() -> None:
    questions = {"q1": "same", "q2": "same", "q3": "other"}
    system = scripted()
    rows = answers_of(system, questions)
    assert len(system.told) == 2 and rows["q1"] == rows["q2"]
    system = scripted(variables=frozenset({"question", "query_id"}))
    answers_of(system, questions)
    assert len(system.told) == 3


def test_what_is_kept_is_not_asked_again_and_comes_with_its_seconds(tmp_path: Path) -> None:
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


def test_what_is_known_is_found_without_asking() -> None:
    kept = MemoryAnswers()
    assert scripted(answers=kept).find_answers(collection(QUESTIONS)).height == 0
    first = scripted(answers=kept).answer(collection({"q1": "a", "q2": "b"})).answers
    other = scripted(answers=kept)
    found = other.find_answers(collection({"q0": "c", "q1": "a", "q2": "b"}))
    assert found.equals(first) and other.told == []


def test_a_damaged_answer_in_the_store_is_asked_again() -> None:
    class Damaged(MemoryAnswers):
        def find(self, model: str, questions: Any) -> Mapping[bytes, bytes]:
            return dict.fromkeys(questions, b'{"answer": 1')

    system = scripted(answers=Damaged())
    assert answers_of(system, {"q1": "a"})["q1"]["answer"] == "A" and len(system.told) == 1


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
def test_so_many_questions_are_under_way_at_once(keys: dict[str, Any], most: int) -> None:
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
    context = Context("tested", progress=lambda done, total: seen.append((done, total)), answers=MemoryAnswers())
    Scripted(echo, context, frozenset({"question"})).answer(collection({"q1": "a", "q2": "a", "q3": "b"}))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_calls_are_spread_over_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("rageval_spec.endpoints.pacing.Clock.sleep", lambda clock, seconds: waits.append(seconds))
    answers_of(scripted(requests_per_minute=6, concurrency=1), {f"q{number}": str(number) for number in range(4)})
    assert [round(wait, -1) for wait in waits] == [10, 20, 30]


def test_templates_keep_types_and_fill_in_texts_once() -> None:
    told = {"question": "{{ query_id }}", "query_id": "q1", "contexts": ["a", "b"]}
    template = {"k {{query_id}}": ["{{ question }}", "<{{  question  }}>", "{{contexts}}", "{{ contexts }}!"], "n": 3}
    filled = {"k q1": ["{{ query_id }}", "<{{ query_id }}>", ["a", "b"], "a\n\nb!"], "n": 3}
    assert fill_in(template, told) == filled
    assert list_variables(template) == {"question", "query_id", "contexts"}
    with pytest.raises(ValueError, match=r"'{{ 7\*7 }}' stands for nothing"):
        list_variables({"x": "{{ 7*7 }}"})
