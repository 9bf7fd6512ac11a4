"""Which coefficients fit the labels, which of them decides, and what people disagree on."""

from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.review.agreement import (
    MetricAgreement,
    compare_annotators,
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
    assert [one[0].query_id for one in found.disagreements] == ["q1", "q3", "q0"]


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
