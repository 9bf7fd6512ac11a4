from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.plugin.budget import Budget
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.store.replies import FileAnswers, MemoryAnswers
from rageval_spec.systems.shared.kept import KeptAnswers
from rageval_spec.systems.shared.questions import Question, digest_of
from tests.systems.asking import answers_of
from tests.systems.shared.scripted import QUESTIONS, scripted


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


def question(text: str) -> Question:
    told = {"question": text}
    return Question(digest_of(told), told)


YES = AnswerRow("yes").pack()
A, B = question("a"), question("b")


def keep(kept: KeptAnswers, *questions: Question) -> None:
    for asked in questions:
        kept.keep(asked.digest, YES)


def found(kept: KeptAnswers) -> list[str]:
    return [asked.told["question"] for asked in (A, B) if asked.digest in kept.find([A, B])]


def test_answers_are_found_until_their_evaluation_is_finished() -> None:
    kept = KeptAnswers(scripted())
    keep(kept, A, B)
    assert found(kept) == ["a", "b"]
    kept.finish([A.digest])
    assert found(kept) == ["b"]
    keep(kept, A)
    assert found(kept) == ["a", "b"]
    kept.forget([A.digest])
    assert found(kept) == ["b"]


def test_finished_answers_are_found_to_repair_the_last_evaluation() -> None:
    answers = MemoryAnswers()
    kept = KeptAnswers(scripted(answers=answers))
    keep(kept, A)
    kept.finish([A.digest, B.digest])
    repairing = KeptAnswers(scripted(answers=answers, budget=Budget(retry_errors=True)))
    assert found(repairing) == ["a"]
    assert repairing.describe(1) == "1 answer of the last evaluation (--retry-errors)"


def test_answers_of_an_earlier_version_are_those_of_finished_evaluations() -> None:
    answers = MemoryAnswers()
    system = scripted(answers=answers)
    answers.keep(system.key, {A.digest: YES})
    assert found(KeptAnswers(system)) == []
    assert found(KeptAnswers(scripted(answers=answers, budget=Budget(retry_errors=True)))) == ["a"]


def test_the_start_time_is_known_until_the_evaluation_is_finished() -> None:
    answers = MemoryAnswers()
    kept, later = KeptAnswers(scripted(answers=answers)), KeptAnswers(scripted(answers=answers))
    assert later.describe(1) == "1 answer of an unfinished evaluation"
    kept.begin()
    begun = later.describe(1)
    assert begun.startswith("1 answer of an unfinished evaluation, started 2") and begun.endswith(" UTC")
    later.begin()
    assert later.describe(1) == begun
    kept.finish([])
    assert later.describe(1) == "1 answer of an unfinished evaluation"


def test_two_systems_with_equal_blocks_share_answers_and_say_so() -> None:
    answers, budget, said = MemoryAnswers(), Budget(), list[str]()
    first = scripted(answers=answers, budget=budget)
    second = scripted(answers=answers, budget=budget, tell=said.append)
    assert answers_of(first, QUESTIONS) == answers_of(second, QUESTIONS)
    assert said == ["tested on golden: reusing 40 answers that this evaluation already has"]


def test_a_kill_in_the_middle_of_finishing_leaves_it_unfinished() -> None:
    class Killed(MemoryAnswers):
        def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
            if b"" in answers.values():
                raise KeyboardInterrupt
            super().keep(model, answers)

    kept = KeptAnswers(scripted(answers=Killed()))
    keep(kept, A)
    with pytest.raises(KeyboardInterrupt):
        kept.finish([A.digest])
    assert found(kept) == ["a"]
