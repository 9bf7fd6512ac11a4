from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.bands import SCALES, BandScale, find_scale, make_scale


def published(metric: str = "faithfulness") -> BandScale:
    scale = find_scale("published", [metric])
    assert scale is not None
    return scale


@pytest.mark.parametrize(
    ("value", "word"),
    [(1.0, "excellent"), (0.95, "excellent"), (0.9499, "good"), (0.70, "moderate"), (0.5, "poor"), (0.49, "critical")],
)
def test_a_bound_belongs_to_the_better_word(value: float, word: str) -> None:
    assert published().find(value).word == word


def test_words_of_ones_own_can_come_in_any_order() -> None:
    scale = make_scale({"fine": 0.5, "great": 0.9})
    assert [scale.find(value).word for value in (0.95, 0.6, 0.1)] == ["great", "fine", "below"]


def test_low_values_are_best_where_they_are_good() -> None:
    scale = make_scale({"slow": 5.0, "fast": 1.0}, lower_is_better=True, worst="too high")
    assert [scale.find(value).word for value in (0.5, 1.0, 3.0, 9.0)] == ["fast", "fast", "slow", "too high"]


def test_a_scale_knows_a_metric_by_any_of_its_names() -> None:
    assert find_scale("industry", ["ndcg@10", "ndcg"]) is not None
    assert find_scale("industry", ["precision@5"]) is not None
    assert find_scale("medical", ["ndcg@10"]) is None


INDUSTRY = {
    "ndcg@10": (0.70, 0.80, 0.90),
    "precision@5": (0.60, 0.75, 0.85),
    "faithfulness": (0.80, 0.90, 0.95),
    "answer_relevancy": (0.75, 0.85, 0.92),
    "context_recall": (0.70, 0.85, 0.95),
}


@pytest.mark.parametrize("metric", INDUSTRY)
def test_the_bounds_of_industry_are_those_of_the_article(metric: str) -> None:
    scale = find_scale("industry", [metric])
    assert scale is not None
    assert tuple(scale.bound_of(word) for word in ("minimum", "good", "excellent")) == INDUSTRY[metric]


@given(
    st.sampled_from([(name, metric) for name, of in SCALES.items() for metric in of]), st.floats(0, 1), st.floats(0, 1)
)
def test_a_better_value_never_gets_a_worse_word(key: tuple[str, str], one: float, other: float) -> None:
    scale = find_scale(key[0], [key[1]])
    assert scale is not None
    words = [level.word for level in scale.levels]
    assert words.index(scale.find(max(one, other)).word) <= words.index(scale.find(min(one, other)).word)


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_rounding_does_not_take_a_value_from_the_level_that_it_is_at(lower_is_better: bool) -> None:
    scale = make_scale({"good": 0.7}, lower_is_better=lower_is_better)
    for value in (math.nextafter(0.7, 0), 0.7, math.nextafter(0.7, 1), sum([0.7] * 40) / 40):
        assert scale.find(value, 40).word == "good"
