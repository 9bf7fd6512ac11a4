from __future__ import annotations

import math

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.comparing import answer_metric, compare, value_of


def test_hand_worked() -> None:
    # 5 words of 6; n-grams found: 5 of 5, 3 of 4, 1 of 3, 0 of 2, which smoothing makes 1/2 of 1 of 2
    answer, reference = "the cat is on mats", "on mats the cat is sitting"
    # bigrams: the cat, cat is, on mats; trigrams: the cat is; brevity penalty exp(1 - 6/5)
    expected = math.exp(1 - 6 / 5) * (5 / 5 * 3 / 4 * 1 / 3 * 1 / 4) ** 0.25
    assert value_of("bleu", answer, reference) == pytest.approx(expected)


def test_short_answers_use_only_the_orders_that_they_have() -> None:
    assert value_of("bleu", "Paris", "Paris") == 1.0
    assert value_of("bleu", "in Paris", "in Paris, France") == pytest.approx(math.exp(1 - 4 / 2))


def test_all_references_count_together() -> None:
    # every bigram is in one of the references, but no reference has all of them
    both = value_of("bleu", "the cat sat", "the cat ran", "a cat sat")
    assert both > max(value_of("bleu", "the cat sat", "the cat ran"), value_of("bleu", "the cat sat", "a cat sat"))


def test_edges() -> None:
    assert value_of("bleu", "", "Paris") == 0.0
    assert value_of("bleu", "Paris", "", "Paris") == 1.0
    measurement = compare("bleu", "Paris", " ")
    assert (measurement.status, measurement.reason) == ("unscorable", "the reference is empty")
    assert compare("bleu", "Paris").status == "unscorable"


def test_keys() -> None:
    assert value_of("bleu", "PARIS", "paris") == 0.0
    assert value_of("bleu", "PARIS", "paris", lowercase=True) == 1.0
    assert value_of("bleu", "東京都", "東京都庁") == 0.0
    assert value_of("bleu", "東京都", "東京都庁", tokenize="zh") == pytest.approx(math.exp(1 - 4 / 3))
    assert value_of("bleu", "東京都", "東京都庁", tokenize="char") == pytest.approx(math.exp(1 - 4 / 3))
    assert value_of("bleu", "a,b", "a, b", tokenize="none") == 0.0
    assert value_of("bleu", "a,b", "a, b", tokenize="intl") > 0.0
    assert answer_metric("bleu", tokenize="char", lowercase=True).name == "bleu(lowercase=true,tokenize=char)"
    assert answer_metric("bleu").name == "bleu"


def test_the_signature_is_the_documented_one() -> None:
    from sacrebleu.metrics.bleu import BLEU

    scorer = BLEU(effective_order=True)
    scorer.sentence_score("a", ["a"])
    documented = answer_metric("bleu").info.edge_cases[0]
    for setting in ("case", "eff", "tok", "smooth"):
        assert f"{setting}:{scorer.get_signature().info[setting]}" in documented


TEXTS = st.text("ab c.,'", max_size=30)


@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_values_equal_sacrebleus(answer: str, references: list[str]) -> None:
    expected = sacrebleu.sentence_bleu(answer, references).score / 100
    assert value_of("bleu", answer, *references) == pytest.approx(expected)
    assert 0 <= value_of("bleu", answer, *references) <= 1
