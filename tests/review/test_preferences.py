"""Place and length in choices: found where they matter, and not made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from rageval_spec.data.preferences import Choice, Preference
from rageval_spec.review.preferences import PreferenceBias, Swaps, measure_preferences


def choose(place: float, length: float, questions: int = 300, each: int = 1, seed: int = 4) -> PreferenceBias:
    """Choices with these log-odds for the first place, and for 100 words more."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        first, second = (int(random.integers(1, 300)) for _ in range(2))
        odds = place + length * (first - second) / 100
        for person in range(each):
            choice: Choice = "first" if random.random() < 1 / (1 + np.exp(-odds)) else "second"
            made.append(Preference(f"q{number}", "a " * first, "b " * second, choice, f"p{person}"))
    (found,) = measure_preferences(made)
    return found


def test_a_preference_for_the_first_place_is_found() -> None:
    found = choose(0.6, 0.0)
    assert found.first is not None
    assert found.first_at_equal_length is not None
    assert found.longer is not None
    assert found.first.is_significant
    assert found.first.value == pytest.approx(0.65, abs=0.06)
    assert found.first.interval.method == "clopper-pearson"
    assert not found.longer.is_significant


def test_a_preference_for_length_is_found() -> None:
    found = choose(0.0, 0.8, each=3)
    assert found.first is not None
    assert found.longer is not None
    assert found.unit == 100
    assert found.longer.value == pytest.approx(0.69, abs=0.04)
    assert found.longer.is_significant
    assert found.first.interval.method == "cluster-robust"


def test_absent_preferences_are_found_in_at_most_1_of_20_files() -> None:
    found = [choose(0.0, 0.0, 100, each=2, seed=seed) for seed in range(120)]
    shares = [(one.first, one.first_at_equal_length, one.longer) for one in found]
    hits = sum(any(share is not None and share.is_significant for share in of) for of in shares)
    assert hits / len(found) <= 0.075


def pair(query: str, choice: Choice, other: Choice) -> list[Preference]:
    return [Preference(query, "x", "y y", choice, "j"), Preference(query, "y y", "x", other, "j")]


def test_pairs_in_both_orders_are_compared() -> None:
    rows = [
        *pair("q1", "first", "second"), *pair("q2", "tie", "tie"), *pair("q3", "first", "first"),
        *pair("q4", "first", "first"), *pair("q5", "second", "second"), *pair("q6", "tie", "first"),
        Preference("q7", "x", "y", "first", "j"), Preference("q8", "x", "x", "first", "j"),
    ]  # fmt: skip
    (found,) = measure_preferences(rows)
    assert found.swaps == Swaps(6, 2, 2, 1, 1.0)
    assert found.swaps.interval is not None
    assert found.ties == 3


def test_people_are_not_mixed_up() -> None:
    rows = [Preference("q1", "x", "y", "first", "ann"), Preference("q1", "y", "x", "first", "bob")]
    (found,) = measure_preferences(rows)
    assert found.swaps is None
    assert found.longer is None
    assert found.reason == "the verdicts, or the lengths, do not vary enough"


def test_p_values_are_adjusted_for_all_metrics() -> None:
    random = np.random.default_rng(7)
    rows = [
        Preference(f"q{n}", "a " * int(random.integers(9)), "b", "first" if random.random() < 0.6 else "second",
                   metric=f"m{n % 4}")
        for n in range(400)
    ]  # fmt: skip
    found = measure_preferences(rows)
    assert len(found) == 4
    assert all(one.first is not None and one.first.p_adjusted >= one.first.p_value for one in found)
    assert any(one.first is not None and one.first.p_adjusted > one.first.p_value for one in found)


def test_people_prefer_longer_answers_as_more_complete_but_not_as_more_correct(shared_data: Path) -> None:
    rows = []
    with gzip.open(shared_data / "human" / "ragchecker_meta.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for metric in ("correctness", "completeness"):
                for person, vote in row["votes"][metric].items():
                    choice: Choice = "first" if vote < 0 else "second" if vote > 0 else "tie"
                    rows.append(
                        Preference(row["query_id"], row["response_a"], row["response_b"], choice, person, metric)
                    )
    correctness, completeness = measure_preferences(rows)
    assert correctness.longer is not None
    assert completeness.longer is not None
    assert not correctness.longer.is_significant
    assert completeness.longer.is_significant
    assert completeness.longer.value > 0.6
