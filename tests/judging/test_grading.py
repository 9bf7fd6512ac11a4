from __future__ import annotations

from math import log

import pytest

from rageval_spec.assessment import Criterion
from rageval_spec.chat import ChatReply, TokenChoice
from rageval_spec.judging.grading import Scale, score_option, weigh, write_guide


def reply(*tokens: str | dict[str, float]) -> ChatReply:
    """A reply of tokens; of one that had rivals their probabilities, the chosen one first."""
    choices = [
        tuple(TokenChoice(one, log(p)) for one, p in token.items())
        if isinstance(token, dict)
        else (TokenChoice(token, 0.0),)
        for token in tokens
    ]
    return ChatReply("".join(choice[0].token for choice in choices), choices=tuple(choices))


GRADES = Scale(1, 5).grades


def test_an_expected_grade_is_weighed_by_probability() -> None:
    """By hand: (0.6 * 4 + 0.3 * 3 + 0.1 * 5) = 3.8, which is 0.7 of the way from 1 to 5."""
    found = reply('{"reason": "in 2 of 3",', ' "grade": ', {"4": 0.6, "3": 0.3, "5": 0.1}, "}")
    score, confidence = score_option(found, "4", GRADES, "grade")
    assert score == pytest.approx(0.7)
    assert confidence == pytest.approx(0.6)
    assert Scale(1, 5).grade(score) == pytest.approx(3.8)


def test_what_is_no_option_does_not_count() -> None:
    found = reply('{"grade": ', {"4": 0.3, "6": 0.3, "2": 0.1, " high": 0.3})
    assert weigh(found, "4", [*GRADES], "grade") == pytest.approx({"1": 0, "2": 0.25, "3": 0, "4": 0.75, "5": 0})


def test_spellings_of_one_word_are_one_option() -> None:
    found = reply({"Yes": 0.5, " yes": 0.2, "No": 0.2, "NO": 0.1})
    assert weigh(found, "yes", ["yes", "no"]) == pytest.approx({"yes": 0.7, "no": 0.3})


def test_quotes_may_be_part_of_the_token() -> None:
    found = reply("{", '"choice"', ":", {' "B': 0.8, ' "A': 0.2}, '"}')
    assert weigh(found, "B", ["A", "B"], "choice") == pytest.approx({"A": 0.2, "B": 0.8})
    found = reply("{'choice': '", {"B": 0.8, "A": 0.2}, "'}")
    assert weigh(found, "B", ["A", "B"], "choice") == pytest.approx({"A": 0.2, "B": 0.8})


def test_the_last_place_counts() -> None:
    found = reply('{"reason": "not "grade": ', {"1": 1.0}, ' but", "grade": ', {"5": 0.9, "1": 0.1})
    assert weigh(found, "5", ["1", "5"], "grade") == pytest.approx({"1": 0.1, "5": 0.9})


def test_a_ten_may_be_two_tokens() -> None:
    found = reply('{"grade": ', {"1": 0.8, "9": 0.2}, "0", "}")
    weights = weigh(found, "10", [*Scale(1, 10).grades], "grade")
    assert weights is not None
    assert (weights["10"], weights["9"], weights["1"]) == pytest.approx((0.8, 0.2, 0))


@pytest.mark.parametrize(
    "found",
    [
        ChatReply('{"grade": 4}'),
        reply("four of five"),
        reply('{"grade": ', "3", "}"),
        ChatReply('{"grade": 4}', choices=((),)),
    ],
)
def test_without_probabilities_the_word_alone_counts(found: ChatReply) -> None:
    assert score_option(found, "4", GRADES, "grade") == (0.75, None)


def test_scales() -> None:
    assert Scale(1, 5).schema == {"type": "integer", "minimum": 1, "maximum": 5}
    assert Scale(0, 1).schema == {"type": "number", "minimum": 0, "maximum": 1}
    assert Scale(-1.5, 2).schema == {"type": "number", "minimum": -1.5, "maximum": 2}
    assert Scale(0, 1).grades == {}
    assert Scale(1, 5).score(4) == 0.75
    assert Scale(2, 10).grade(0.25) == 4


def test_a_criterion_may_have_its_own_scale_and_guide() -> None:
    plain = Criterion("polite", "grade", "Is it polite?")
    scaled = Criterion("polite", "grade", "Is it polite?", scale=(0, 3), guide={"0": "rude", "3": "kind"})
    assert Scale.of(plain, Scale(1, 5)) == Scale(1, 5)
    assert Scale.of(scaled, Scale(1, 5)) == Scale(0, 3)
    assert (write_guide(plain), write_guide(scaled)) == ("", "0: rude\n3: kind")
