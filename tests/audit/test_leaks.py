from __future__ import annotations

import pytest

from rageval_spec.audit.leaks import check_leaks
from tests.question_sets import ask


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("who wrote the song photograph by ringo starr", "Ringo Starr"),
        ("Who is the main character in the video game 'Who Framed Roger Rabbit'?", "Roger Rabbit"),
        ("what is the main mineral in lithium batteries", "Lithium"),
        ("who won the battle of britain in ww2", "Britain"),
    ],
)
def test_a_gold_answer_in_its_question_is_found(question: str, reference: str) -> None:
    (found,) = check_leaks(ask(question, references=[reference])).findings
    assert (found.code, found.severity, found.details) == ("leak", "warning", {"reference": reference})


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("Which was first, Arthur's Magazine or First for Women?", "Arthur's Magazine"),
        ("Between Kim Clijsters and Mary Pierce, who is older?", "Mary Pierce"),
        ("Was Mozart oder Beethoven?", "Mozart"),
        ("Wie is er ouder, Kim Clijsters of Mary Pierce?", "Mary Pierce"),
        ("Is it true that yes means no?", "yes"),
        ("How many of the 1000 pages are blank?", "1000"),
        ("Who won in Ulm?", "Ulm"),
        ("Who won?", "Won Bin"),
    ],
)
def test_offered_answers_and_chance_are_no_leak(question: str, reference: str) -> None:
    assert check_leaks(ask(question, references=[reference])).state == "clean"


def test_without_references_nothing_can_leak() -> None:
    assert check_leaks(ask("Who?")).skipped == "the dataset has no references"
