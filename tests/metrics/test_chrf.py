from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.comparing import answer_metric, compare, value_of


def test_hand_worked() -> None:
    # "abcd" and "abce": 3 of 4 letters, 2 of 3 pairs, 1 of 2 triples, 0 of 1 quadruple; P = R = F
    assert value_of("chrf", "ab cd", "abce") == pytest.approx((3 / 4 + 2 / 3 + 1 / 2 + 0) / 4)
    # "ab" and "abcd": letters P 2/2, R 2/4; pairs P 1/1, R 1/3; the answer has no longer n-grams. beta = 2
    precision, recall = 1.0, (2 / 4 + 1 / 3) / 2
    assert value_of("chrf", "ab", "abcd") == pytest.approx(5 * precision * recall / (4 * precision + recall))


def test_any_script() -> None:
    assert value_of("chrf", "東京タワー", "東京タワー") == 1.0
    assert 0.1 < value_of("chrf", "東京タワー", "東京都") < 0.9


def test_the_best_reference_counts() -> None:
    assert value_of("chrf", "Paris", "Berlin", "Paris") == 1.0


def test_edges() -> None:
    assert value_of("chrf", "", "Paris") == 0.0
    assert value_of("chrf", "Paris", "", "Paris") == 1.0
    measurement = compare("chrf", "Paris", "\n")
    assert (measurement.status, measurement.reason) == ("unscorable", "the reference is empty")
    assert compare("chrf", "Paris").status == "unscorable"


def test_keys() -> None:
    assert value_of("chrf", "PARIS", "paris") == 0.0
    assert value_of("chrf", "PARIS", "paris", lowercase=True) == 1.0
    assert value_of("chrf", "ab", "ba", char_order=1) == 1.0
    assert answer_metric("chrf").name == "chrf"
    assert answer_metric("chrf", word_order=2).name == "chrf(word_order=2)"


def test_the_signature_is_the_documented_one() -> None:
    from sacrebleu.metrics.chrf import CHRF

    scorer = CHRF()
    scorer.sentence_score("a", ["a"])
    documented = answer_metric("chrf").info.edge_cases[0]
    for setting in ("case", "eff", "nc", "nw", "space"):
        assert f"{setting}:{scorer.get_signature().info[setting]}" in documented


TEXTS = st.text("abc d.", max_size=30)


@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3), st.sampled_from([0, 2]))
def test_values_equal_sacrebleus(answer: str, references: list[str], word_order: int) -> None:
    expected = sacrebleu.sentence_chrf(answer, references, word_order=word_order).score / 100
    value = value_of("chrf", answer, *references, word_order=word_order)
    assert value == pytest.approx(expected)
    assert 0 <= value <= 1
