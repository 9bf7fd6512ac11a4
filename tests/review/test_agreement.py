"""Which coefficients fit the labels, which of them decides, and what people disagree on.

Place and length in choices: found where they matter, and not made up.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from rageval_spec.data.labels import Choice, Label, Preference
from rageval_spec.errors import DataError
from rageval_spec.review.agreement import (
    MetricAgreement,
    PreferenceBias,
    Swaps,
    compare_annotators,
    measure_preferences,
)


def make(*rows: str, metric: str = "faithfulness") -> list[Label]:
    """Labels: a row is an item, a character is the label of an annotator, and a dot is none."""
    return [
        Label(f"q{number}", metric, float(one) if one.isdigit() else one, f"person{place}")
        for number, row in enumerate(rows)
        for place, one in enumerate(row)
        if one != "."
    ]


def compare(*rows: str) -> MetricAgreement:
    (found,) = compare_annotators(make(*rows), resamples=50)
    return found


def names(found: MetricAgreement) -> list[str]:
    return [one.coefficient for one in found.coefficients]


def test_two_people_and_classes_have_kappa() -> None:
    assert names(compare("ab", "aa", "bb")) == ["percent", "kappa", "ac1", "alpha-nominal"]


def test_a_scale_has_weights_and_ordinal_alpha() -> None:
    found = compare("12", "33", "55", "11")
    assert names(found) == ["percent", "kappa", "kappa-linear", "kappa-quadratic", "ac1", "alpha-ordinal"]
    assert found.deciding.coefficient == "alpha-ordinal"
    assert found.pairs[0].corrected.coefficient == "kappa-quadratic"


def test_measurements_have_only_interval_alpha() -> None:
    rows = [Label(f"q{item}", "m", item + person / 10, str(person)) for item in range(10) for person in range(3)]
    (found,) = compare_annotators(rows, resamples=0)
    assert names(found) == ["percent", "alpha-interval"]
    assert {pair.corrected.coefficient for pair in found.pairs} == {"alpha-interval"}


def test_a_confusion_table_is_made_of_few_values() -> None:
    def count(values: int) -> int:
        rows = [Label(f"q{item}", "m", float(item), str(person)) for item in range(values) for person in range(2)]
        return len(compare_annotators(rows, resamples=0)[0].confusion)

    assert [count(values) for values in (3, 50, 51)] == [3, 50, 0]


def test_three_people_have_fleiss() -> None:
    assert names(compare("aab", "aaa", "bbb")) == ["percent", "fleiss", "ac1", "alpha-nominal"]


def test_ac1_decides_where_one_value_dominates() -> None:
    assert compare(*["11"] * 18, "10", "01").deciding.coefficient == "ac1"
    graded = compare(*["55"] * 27, "54", "45", "53")
    assert (graded.deciding.coefficient, graded.is_enough) == ("ac1", True)
    assert (graded.coefficients[-1].value or 0) < 0
    assert compare(*["11"] * 5, *["00"] * 5).deciding.coefficient == "alpha-nominal"


def test_each_metric_is_compared_by_itself() -> None:
    labels = [*make("11", "00"), *make("10", "01", metric="recall")]
    found = {one.metric: one for one in compare_annotators(labels, resamples=0)}
    assert found["faithfulness"].deciding.value == 1.0
    assert (found["recall"].deciding.value or 0) < 0


def test_items_that_lie_furthest_apart_come_first() -> None:
    found = compare("34", "15", "22", "24")
    assert [one.labels[0].query_id for one in found.disagreements] == ["q1", "q3", "q0"]


def test_labels_of_one_person_alone_have_no_agreement() -> None:
    found = compare("1", "0")
    assert found.shared == 0
    assert found.deciding.reason == "no item has two ratings"
    assert not found.is_enough


def test_who_differs_from_the_others_has_the_lowest_agreement() -> None:
    found = compare(*["110", "001"] * 5)
    assert [one.percent.value for one in found.annotators] == [0.5, 0.5, 0.0]
    assert {(pair.first, pair.second): pair.percent.value for pair in found.pairs} == {
        ("person0", "person1"): 1.0,
        ("person0", "person2"): 0.0,
        ("person1", "person2"): 0.0,
    }
    assert found.confusion == ((5, 10), (10, 5))


def test_answers_to_one_question_are_drawn_together() -> None:
    random = np.random.default_rng(1)
    labels = [
        Label(f"q{question}", "m", float(value), person, system=system)
        for question, value in enumerate(random.integers(0, 2, 40))
        for system in ("a", "b", "c", "d")
        for person, value in (("ann", value), ("bob", value if question % 4 else 1 - value))
    ]
    (by_question,) = compare_annotators(labels)
    (apart,) = compare_annotators(
        [Label(f"{one.query_id}{one.system}", "m", one.value, one.annotator) for one in labels]
    )
    wide, narrow = by_question.coefficients[0].interval, apart.coefficients[0].interval
    assert wide is not None and narrow is not None
    assert wide.high - wide.low == pytest.approx(2 * (narrow.high - narrow.low), rel=0.25)


def test_yes_among_grades_is_refused() -> None:
    yes = Label("q9", "fluency", 1.0, "person0", is_yes_no=True, place="l.csv:9")
    grades = [Label("q1", "fluency", 4.0, person, place="l.csv:2") for person in ("person0", "person1")]
    with pytest.raises(DataError, match=r"l\.csv:9: 'yes' is among labels of fluency such as 4 \(l\.csv:2\)"):
        compare_annotators([*grades, yes], resamples=10)
    numbers = [Label("q1", "fluency", value, f"person{value}") for value in (0.0, 1.0)]
    assert compare_annotators([*numbers, yes], resamples=10)[0].items == 2


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
