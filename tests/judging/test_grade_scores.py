from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import ChatReply, TokenChoice
from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.judging.grade_scores import GradeScale, list_scores, score_option, weigh, write_guide


def reply(*tokens: str | dict[str, float]) -> ChatReply:
    """A reply of tokens. A dict gives the probabilities of a token and its alternatives, the chosen one first."""
    choices = [
        tuple(TokenChoice(one, log(p)) for one, p in token.items())
        if isinstance(token, dict)
        else (TokenChoice(token, 0.0),)
        for token in tokens
    ]
    return ChatReply("".join(choice[0].token for choice in choices), choices=tuple(choices))


GRADES = GradeScale(1, 5).grades


def test_an_expected_grade_is_weighed_by_probability() -> None:
    """By hand: (0.6 * 4 + 0.3 * 3 + 0.1 * 5) = 3.8, which is 0.7 of the way from 1 to 5."""
    found = reply('{"reason": "in 2 of 3",', ' "grade": ', {"4": 0.6, "3": 0.3, "5": 0.1}, "}")
    score, confidence = score_option(found, "4", GRADES, "grade")
    assert score == pytest.approx(0.7)
    assert confidence == pytest.approx(0.6)
    assert GradeScale(1, 5).grade(score) == pytest.approx(3.8)


def test_tokens_that_are_not_options_do_not_count() -> None:
    found = reply('{"grade": ', {"4": 0.3, "6": 0.3, "2": 0.1, " high": 0.3})
    assert weigh(found, "4", [*GRADES], "grade") == pytest.approx({"1": 0, "2": 0.25, "3": 0, "4": 0.75, "5": 0})


def test_different_spellings_of_a_word_are_one_option() -> None:
    found = reply({"Yes": 0.5, " yes": 0.2, "No": 0.2, "NO": 0.1})
    assert weigh(found, "yes", ["yes", "no"]) == pytest.approx({"yes": 0.7, "no": 0.3})


def test_quotation_marks_can_be_part_of_the_token() -> None:
    found = reply("{", '"choice"', ":", {' "B': 0.8, ' "A': 0.2}, '"}')
    assert weigh(found, "B", ["A", "B"], "choice") == pytest.approx({"A": 0.2, "B": 0.8})
    found = reply("{'choice': '", {"B": 0.8, "A": 0.2}, "'}")
    assert weigh(found, "B", ["A", "B"], "choice") == pytest.approx({"A": 0.2, "B": 0.8})


def test_the_last_occurrence_counts() -> None:
    found = reply('{"reason": "not "grade": ', {"1": 1.0}, ' but", "grade": ', {"5": 0.9, "1": 0.1})
    assert weigh(found, "5", ["1", "5"], "grade") == pytest.approx({"1": 0.1, "5": 0.9})


def expect(scale: GradeScale, said: str, *tokens: str | dict[str, float]) -> float | None:
    """The expected grade; None if only the word counts."""
    score, confidence = score_option(reply('{"grade": ', *tokens, "}"), said, scale.grades, "grade")
    if confidence is None:
        assert score == scale.grades[said]
        return None
    return scale.grade(score)


def test_a_ten_that_is_one_token_is_a_ten() -> None:
    """By hand: 0.5 * 10 + 0.3 * 9 + 0.2 * 1 = 7.9. As 10 is one token, the token 1 is not its beginning."""
    assert expect(GradeScale(1, 10), "10", {"10": 0.5, "9": 0.3, "1": 0.2}) == pytest.approx(7.9)
    assert expect(GradeScale(1, 10), "9", {"9": 0.75, "8": 0.25}) == pytest.approx(8.75)
    assert expect(GradeScale(1, 10), "1", {"1": 0.75, "10": 0.25}) == pytest.approx(3.25)


def test_if_digits_are_tokens_a_one_can_begin_a_ten() -> None:
    assert expect(GradeScale(1, 10), "10", {"1": 0.8, "9": 0.2}, "0") is None
    assert expect(GradeScale(1, 10), "1", {"1": 0.8, "9": 0.2}) is None
    assert expect(GradeScale(1, 10), "9", {"9": 0.8, "1": 0.2}) is None
    assert expect(GradeScale(1, 10), "9", {"9": 0.75, "8": 0.25, "1": 0.0001}) == pytest.approx(8.75, abs=0.01)


def test_a_grade_up_to_a_hundred_has_no_probability_if_digits_are_tokens() -> None:
    assert expect(GradeScale(0, 100), "85", {"8": 0.6, "7": 0.4}, "5") is None
    assert expect(GradeScale(0, 100), "8", {"8": 0.6, "7": 0.4}) is None
    assert expect(GradeScale(0, 100), "100", {"10": 0.6, "8": 0.4}, "0") is None


def test_a_grade_up_to_a_hundred_that_is_one_token_is_weighed() -> None:
    """By hand: 0.5 * 85 + 0.3 * 80 + 0.2 * 5 = 67.5. 10 could begin 100, so its probability is unknown."""
    assert expect(GradeScale(0, 100), "85", {"85": 0.5, "80": 0.3, "5": 0.2}) == pytest.approx(67.5)
    assert expect(GradeScale(0, 100), "85", {"85": 0.5, "10": 0.5}) is None
    assert expect(GradeScale(0, 100), "100", {"100": 0.5, "10": 0.5}) == pytest.approx(55)


@pytest.mark.parametrize("space", ["", " "])
def test_a_minus_sign_distinguishes_grades(space: str) -> None:
    """By hand: 0.5 * -2 + 0.3 * 2 + 0.2 * -1 = -0.6."""
    scale = GradeScale(-2, 2)
    found = {f"{space}-2": 0.5, f"{space}2": 0.3, f"{space}-1": 0.2}
    assert expect(scale, "-2", found) == pytest.approx(-0.6)
    assert expect(scale, "-2", {f"{space}-": 0.6, f"{space}2": 0.4}, "2") is None
    assert expect(scale, "2", {f"{space}2": 0.6, f"{space}-": 0.4}) is None
    assert expect(scale, "2", {f"{space}2": 0.5, f"{space}1": 0.5}) == pytest.approx(1.5)


def test_values_that_are_not_log_probabilities_do_not_count() -> None:
    def say(*logprobs: float) -> ChatReply:
        choices = tuple(TokenChoice(token, logprob) for token, logprob in zip("4532", logprobs, strict=True))
        return ChatReply("4", choices=(choices,))

    weights = weigh(say(log(0.5), 1000.0, float("nan"), log(0.5)), "4", [*GRADES])
    assert weights == pytest.approx({"1": 0, "2": 0.5, "3": 0, "4": 0.5, "5": 0})
    assert weigh(say(1e-7, float("inf"), float("-inf"), -9999.0), "4", [*GRADES]) == pytest.approx(
        {"1": 0, "2": 0, "3": 0, "4": 1, "5": 0}
    )
    assert weigh(say(5.0, log(0.5), log(0.5), 0.0), "4", [*GRADES]) is None


@given(st.lists(st.just(0.0) | st.floats(1e-3, 1e3), min_size=5, max_size=5), st.floats(0, 1))
def test_an_expected_score_stays_between_the_options_scores(weights: list[float], top: float) -> None:
    total = sum(weights) + 1
    found = reply({"5": 1 / total, **{str(grade): w / total for grade, w in enumerate(weights[:4], 1) if w}})
    score, confidence = score_option(found, "5", {**GRADES, "5": top, "4": top})
    assert 0 <= score <= max(top, *[GRADES[str(grade)] for grade in (1, 2, 3)])
    assert confidence is not None
    assert 0 < confidence <= 1


def test_rounding_does_not_move_the_score_outside_the_options() -> None:
    """Divided by their sum, these weights add up to slightly more than 1."""
    found = reply(dict(zip("ABCDEF", (0.7, 0.9, 0.4, 0.9, 0.8, 0.4), strict=True)))
    weights = weigh(found, "A", "ABCDEF")
    assert weights is not None
    assert sum(weights.values()) == pytest.approx(1)
    assert score_option(found, "A", dict.fromkeys("ABCDEF", 1.0))[0] == 1


@pytest.mark.parametrize(
    "found",
    [
        ChatReply('{"grade": 4}'),
        reply("four of five"),
        reply('{"grade": ', "3", "}"),
        ChatReply('{"grade": 4}', choices=((),)),
    ],
)
def test_without_probabilities_only_the_word_counts(found: ChatReply) -> None:
    assert score_option(found, "4", GRADES, "grade") == (0.75, None)


def test_a_scale_lists_its_grades_and_converts_them_to_scores() -> None:
    assert GradeScale(1, 5).schema == {"type": "integer", "minimum": 1, "maximum": 5}
    assert GradeScale(0, 1).schema == {"type": "number", "minimum": 0, "maximum": 1}
    assert GradeScale(-1.5, 2).schema == {"type": "number", "minimum": -1.5, "maximum": 2}
    assert GradeScale(0, 1).grades == {}
    assert GradeScale(1, 5).score(4) == 0.75
    assert GradeScale(2, 10).grade(0.25) == 4


def test_a_criterion_can_have_its_own_scale_and_guide() -> None:
    plain = Criterion("polite", "grade", "Is it polite?")
    scaled = Criterion("polite", "grade", "Is it polite?", scale=(0, 3), guide={"0": "rude", "3": "kind"})
    assert GradeScale.of(plain, GradeScale(1, 5)) == GradeScale(1, 5)
    assert GradeScale.of(scaled, GradeScale(1, 5)) == GradeScale(0, 3)
    assert (write_guide(plain.guide), write_guide(scaled.guide)) == ("", "0: rude\n3: kind")


def test_scores_of_findings_lie_from_0_to_1_and_failures_have_none() -> None:
    graded = Criterion("tone", "grade", "Is it polite?", scale=(1, 5))
    assert list_scores([Finding(4.0), Finding(None, reason="?"), Failed("no reply")], graded) == [0.75, None, None]
