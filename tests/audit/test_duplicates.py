""""""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from rageval_spec.audit import duplicates
from rageval_spec.audit.duplicates import (
    QuestionPair,
    check_leaks,
    check_overlap,
    check_repeats,
    compare_shingles,
    contradicts,
    find_pairs,
    find_similar,
    is_same_word,
)
from rageval_spec.audit.question_set import AuditedQuestion
from rageval_spec.judging.segments import list_shingles
from tests.question_sets import ask


def test_a_repeated_question_names_the_first_one_and_can_be_removed() -> None:
    duplicates, conflicts = check_repeats(ask("Who won?", "How?", "who won", references=["Ann", "So", "ann"]), None)
    (found,) = duplicates.findings
    assert (found.code, found.severity, found.removes) == ("duplicate", "warning", True)
    assert found.message == "the same question as set.jsonl:1"
    assert [row.query_id for row in found.rows] == ["q3", "q1"]
    assert conflicts.state == "clean"


def test_questions_with_other_quantities_are_no_duplicates_however_alike_their_words_are() -> None:
    asked = ask("What happens at -5 degrees?", "What happens at 5 degrees?", references=["Frost", "Rain"])
    assert [check.state for check in check_repeats(asked, None)] == ["clean", "clean"]


def test_a_contracted_question_is_the_same_question() -> None:
    asked = ask("What is the price of the basic plan today?", "What's the price of the basic plan today?",
                references=["The price is 20 EUR.", "The price is 25 EUR."])  # fmt: skip
    _, conflicts = check_repeats(asked, None)
    (found,) = conflicts.findings
    assert found.message.startswith("the same question as set.jsonl:1, but the references differ")


def test_different_gold_answers_are_a_contradiction_and_no_duplicate() -> None:
    questions = ask("When is it due?", "when is it due", references=["14 days", "30 days"])
    duplicates, conflicts = check_repeats(questions, None)
    assert duplicates.state == "clean"
    (found,) = conflicts.findings
    assert (found.code, found.severity, found.removes) == ("contradiction", "error", False)
    assert "'30 days' here, '14 days' there" in found.message


def test_split_judgements_are_not_removed() -> None:
    questions = ask("Who won?", "Who won?", relevant=[{"d1": 1}, {"d2": 1}])
    duplicates, conflicts = check_repeats(questions, None)
    assert not duplicates.findings[0].removes
    assert "all relevant documents" in duplicates.findings[0].advice
    assert conflicts.skipped == "the dataset has no references"


def test_variants_of_one_question_in_a_group_may_be_equal() -> None:
    assert check_repeats(ask("Who won?", "Who won?", group="g"), None)[0].state == "clean"


def test_judgements_without_texts_are_not_compared() -> None:
    duplicates, conflicts = check_repeats(ask("", "", relevant=[{"d1": 1}]), None)
    assert duplicates.state == conflicts.state == "skipped"


def test_questions_of_the_training_data_are_errors() -> None:
    train = ask("Who won?", "How do I cancel my subscription?", relevant=[{"d1": 1}, {"d2": 1}])
    test = ask("who WON", "How do I cancel my subscriptions?", "Who lost?", relevant=[{"d1": 1}, {"d5": 1}, {"d6": 1}])
    check = check_overlap(test, train, "train.jsonl")
    assert [(one.code, one.severity, one.rows[0].query_id, one.removes) for one in check.findings] == [
        ("train_overlap", "error", "q1", True),
        ("train_near_overlap", "warning", "q2", False),
    ]
    assert check.findings[1].details["train"]["place"] == "set.jsonl:2"
    assert check.remark == (
        "Compared with 2 questions of train.jsonl. "
        "1 question (33.3%) has a relevant document that is also relevant there."
    )


def test_questions_that_are_only_alike_do_not_overlap() -> None:
    train, test = ask("Who won in 2019?"), ask("Who won in 2020?")
    assert check_overlap(test, train, "train.jsonl").state == "clean"
    skipped = check_overlap(test, None, "").skipped
    assert skipped is not None and "--train FILE" in skipped


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


def compared(text: str, references: Sequence[str] = ()) -> AuditedQuestion:
    return AuditedQuestion("q", text, "", tuple(references))


def find(*texts: str, references: str | None = None) -> list[str]:
    answers = () if references is None else (references,)
    return [pair.sameness for pair in find_pairs([compared(text, answers) for text in texts])]


def test_equal_words_are_equal_questions() -> None:
    texts = ("Who won?", "Who lost?", "who  won", "WHO WON!")
    assert find_pairs([compared(text) for text in texts]) == [
        QuestionPair(2, 0, "equal"), QuestionPair(3, 0, "equal")
    ]  # fmt: skip
    assert find("", "", "?") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What flows between Bingen and Bonn?", "What flows between the Bingen and Bonn?"),
        ("How do I cancel my subscription?", "How do I cancel my subscriptions?"),
        ("How do I cancel my subscription?", "How do I cancel my subscripton?"),
        ("Please, how long does delivery take to Norway?", "How long does delivery take to Norway"),
    ],
)
def test_articles_endings_and_typing_errors_do_not_matter(one: str, other: str) -> None:
    assert find(one, other) == ["wording"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How many points did they score in Super Bowl 50?", "How many points did they score in Super Bowl 49?"),
        ("X increases resistance to tyrosine inhibitors", "X decreases resistance to tyrosine inhibitors"),
        ("Headaches are correlated with impairment", "Headaches are not correlated with impairment"),
        ("Which trains go from Paris to London on Sundays?", "Which trains go from London to Paris on Sundays?"),
        ("When was the treaty of Westphalia signed?", "Where was the treaty of Westphalia signed?"),
        ("Is patient hypertension treated with this drug?", "Is patient hypotension treated with this drug?"),
        ("Who is the president of the company?", "Who was the president of the company?"),
    ],
)  # fmt: skip
def test_questions_that_ask_something_else_are_no_pair(one: str, other: str) -> None:
    assert find(one, other) == []
    assert find(one, other, references="yes") == []


def test_more_words_are_the_same_question_if_the_gold_answer_is_the_same() -> None:
    one, other = (
        "who has most followers on instagram in world",
        "who has the most followers in the world on instagram now",
    )
    assert find(one, other) == []
    assert find(one, other, references="Selena Gomez") == ["reference"]
    assert find(one, other, references="14") == find(one, other, references="yes") == []


def test_close_vectors_need_the_same_gold_answer_and_the_same_names() -> None:
    def embed(texts: object) -> np.ndarray:
        return np.ones((len(texts), 3), dtype=np.float32)  # type: ignore[arg-type]

    texts = ["What city did the final take place in?", "Where was the final played?"]
    asked = [compared(text, ("Santa Clara",)) for text in texts]
    assert [(pair.sameness, round(pair.share, 3)) for pair in find_pairs(asked, (embed, float))] == [("meaning", 1.0)]
    assert find_pairs([compared(text) for text in texts], (embed, float)) == []
    named = [
        compared("When did Anna meet Bert?", ("May 1999",)),
        compared("On which day was Carl born?", ("May 1999",)),
    ]
    assert find_pairs(named, (embed, float)) == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("order", "orders", True),
        ("subscription", "subscripton", True),
        ("cancel", "cancle", True),
        ("protons", "photons", False),
        ("2019", "2018", False),
        ("form", "from", False),
        ("class", "glass", False),
    ],
)
def test_words_with_an_ending_or_a_slip_are_the_same(one: str, other: str, expected: bool) -> None:
    assert is_same_word(one, other) is is_same_word(other, one) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["30 days"], ["14 days"], True),
        (["Yes, within a year."], ["No, within a year."], True),
        (["Denver Broncos"], ["New England Patriots"], True),
        (["Denver Broncos"], ["the Broncos"], False),
        (["three"], ["3"], False),
        (["Paris", "Lyon"], ["Lyon"], False),
        (["a refund takes 14 days"], ["Refunds take 14 days"], False),
        ([], ["14 days"], False),
        (["14 days from the start of the term in 2025"], ["30 days in 2025"], True),
        (["The notice period of 2025 is 14 days."], ["In 2025, it is 30 days."], True),
        (["It took 14 days in 2024"], ["It took 14 days in 2025"], True),
        (["On 14 March 2025"], ["On 15 March 2025"], True),
        (["March 14, 2025"], ["March 15, 2025"], True),
        (["5% of 1,200 euros"], ["7% of 1,200 euros"], False),
        (["14 days"], ["14 days in 2025"], False),
        (["14 days, or 30 days for companies"], ["30 days"], False),
        (["5 km (3.1 miles)"], ["5 kilometres"], False),
        (["two weeks in 2025"], ["three weeks in 2025"], True),
        (["14 days"], ["two weeks"], False),
        (["14 days"], ["14 hours"], True),
        (["-5 degrees"], ["5 degrees"], True),
        (["12,5 %"], ["12.5%"], False),
        (["20 EUR"], ["20 USD"], True),
        (["forty days"], ["14 days"], True),
        (["It opens at 9:00."], ["9 am"], False),
        (["half of them"], ["50%"], False),
        (["Super Bowl 50 in 2016"], ["Super Bowl 49 in 2016"], True),
    ],
)
def test_gold_answers_contradict_if_none_is_like_another(one: list[str], other: list[str], expected: bool) -> None:
    assert contradicts(one, other) is contradicts(other, one) is expected


def make_texts(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join("".join(drawn.choices("abcdefgh", k=5)) for _ in range(6)) for _ in range(count)]


def test_all_pairs_above_the_least_share_are_found() -> None:
    texts = make_texts(300, 1)
    texts += [text.replace("a", "e", 1) for text in texts[:100]]
    least = 0.75
    own = [list_shingles(text) for text in texts]
    wanted = {
        (one, other)
        for one in range(len(texts))
        for other in range(one)
        if compare_shingles(own[one], own[other]) >= least
    }
    found = [*find_similar(texts, least)]
    assert len(wanted) > 50
    assert {(later, earlier) for later, earlier, _ in found} == wanted
    assert all(share == compare_shingles(own[later], own[earlier]) for later, earlier, share in found)


def test_short_equal_and_odd_texts_are_compared() -> None:
    assert [*find_similar(["a", "b", "a"], 0.9)] == [(2, 0, 1.0)]
    assert [pair[:2] for pair in find_similar(["", "", "x"], 0.9)] == [(1, 0)]
    assert [*find_similar(["東京はどこですか", "東京はどこですか?"], 0.6)] != []
    assert [*find_similar([], 0.5)] == [] and [*find_similar(["a \ud800"], 0.5)] == []


def test_a_template_of_many_questions_is_not_compared_with_itself_pair_by_pair() -> None:
    texts = [f"what is the balance of account number {number:05}" for number in range(3000)]
    candidates = duplicates._find_candidates(texts)
    assert len(candidates) < 3000 * duplicates._CROWD * 16 < 3000 * 2999 / 2


def test_only_texts_of_a_group_are_compared() -> None:
    texts = ["what is the balance of account", "what is the balance of accounts", "what is the balance of an account"]
    assert [pair[:2] for pair in find_similar(texts, 0.5, ["a", "b", "a"])] == [(2, 0)]
