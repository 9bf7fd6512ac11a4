from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.comparing import answer_metric, compare, value_of

# rouge-score 0.1.2: RougeScorer(["rougeL"], use_stemmer=False).score(reference, answer)["rougeL"].fmeasure
GOLDEN = [
    ("The cat was found under the bed.", "The cat was under the bed", 0.923076923076923),
    ("police kill the gunman", "police killed the gunman", 0.75),
    ("the gunman kill police", "police killed the gunman", 0.5),
    ("A naïve café opened in 1999, they say.", "They say: a naïve café was opened in 1999", 0.7368421052631577),
    ("one two\nthree four, five", "five four three two one", 0.20000000000000004),
    ("", "x", 0),
    ("It's state-of-the-art; isn't it?", "state of the art, it is", 0.6666666666666667),
]


@pytest.mark.parametrize(("answer", "reference", "expected"), GOLDEN)
def test_golden_rouge_score(answer: str, reference: str, expected: float) -> None:
    assert value_of("rouge_l", answer, reference) == pytest.approx(expected, abs=1e-15)


def test_hand_worked() -> None:
    # Lin (2004): the common subsequences are "police the gunman" (3 of 4 words) and "the gunman" (2 of 4)
    reference = "police killed the gunman"
    assert value_of("rouge_l", "police kill the gunman", reference) == 0.75
    assert value_of("rouge_l", "the gunman kill police", reference) == 0.5
    # 1 of 1 word, 1 of 4 words: 2 x 1 x 1/4 / (5/4)
    assert value_of("rouge_l", "police", reference) == pytest.approx(0.4)


def test_the_best_reference_counts() -> None:
    # rouge-score's score_multi also takes the best reference
    assert value_of("rouge_l", "police kill the gunman", "nobody", "police killed the gunman", "...") == 0.75


def test_other_scripts_have_no_value_instead_of_zero() -> None:
    measurement = compare("rouge_l", "東京", "東京")
    assert (measurement.value, measurement.status) == (None, "unscorable")
    assert "no Latin letters or digits" in (measurement.reason or "")
    assert compare("rouge_l", "Tokyo", "", "...").status == "unscorable"
    assert value_of("rouge_l", "東京", "Tokyo") == 0.0


def slow_f(answer: str, reference: str) -> float:
    said, wanted = (tuple(re.sub("[^a-z0-9]", " ", text.lower()).split()) for text in (answer, reference))

    @cache
    def common(i: int, j: int) -> int:
        if i == len(said) or j == len(wanted):
            return 0
        if said[i] == wanted[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    return 2 * common(0, 0) / (len(said) + len(wanted))


WORDS = st.text("abA ,", max_size=40)


@given(WORDS, WORDS.filter(lambda text: any(letter in text for letter in "abA")))
def test_the_longest_common_subsequence_is_found(answer: str, reference: str) -> None:
    assert value_of("rouge_l", answer, reference) == pytest.approx(slow_f(answer, reference))


def test_name() -> None:
    assert answer_metric("rouge_l").name == "rouge_l"
