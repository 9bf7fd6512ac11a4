"""How well the people who labelled the same answers agree, for each metric."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from rageval_spec.data.labels import Label
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.statistics.raters import rater_agreement

Value: TypeAlias = float | str

ENOUGH_AGREEMENT = 0.7
"""The agreement from which on labels are usually taken as reliable; Krippendorff (2004) asks for 0.667 to 0.8."""
DOMINANT = 0.8
"""The share of ratings in one category from which on kappa and alpha collapse, so that AC1 decides."""
MOST_ORDERED = 12
"""The most different numbers that are an ordered scale; with more, they are measurements."""
MOST_PAIRED = 50
"""The most annotators that are compared one by one."""
MOST_IN_TABLE = 50
"""The most different values that have a confusion table; more are measurements or free texts."""
_FEW_ITEMS = 30


@dataclass(frozen=True)
class PairAgreement:
    """How well two annotators agree on what both labelled.

    `corrected` is Cohen's kappa, weighted on a scale, and Krippendorff's alpha for measurements.
    """

    first: str
    second: str
    percent: rater_agreement.AgreementCoefficient
    corrected: rater_agreement.AgreementCoefficient


@dataclass(frozen=True)
class AnnotatorAgreement:
    """How many labels an annotator gave, and how often the others gave the same."""

    annotator: str
    labels: int
    percent: rater_agreement.AgreementCoefficient


@dataclass(frozen=True)
class MetricAgreement:
    """How well people agree on one metric; "" if the labels do not name one.

    Attributes:
        shared: how many of the items have at least two labels.
        questions: the number of questions that at least two annotators labelled, be it for different answers.
        scale: the values, in ascending order, with how often each was given.
        coefficients: those that fit the labels; `deciding` is the one that says whether they are reliable.
        pairs: each two annotators with at least one shared item; none if there are more than `MOST_PAIRED` annotators.
        confusion: the values (rows of the pair's first annotator, columns of the second), summed over all pairs;
            none if there are more than `MOST_IN_TABLE` values.
        disagreements: the items that people labelled differently, those first that lie furthest apart.
    """

    metric: str
    items: int
    shared: int
    questions: int
    annotators: tuple[AnnotatorAgreement, ...]
    scale: tuple[tuple[Value, int], ...]
    coefficients: tuple[rater_agreement.AgreementCoefficient, ...]
    deciding: rater_agreement.AgreementCoefficient
    pairs: tuple[PairAgreement, ...]
    confusion: tuple[tuple[int, ...], ...]
    disagreements: tuple[tuple[Label, ...], ...]

    @property
    def is_enough(self) -> bool:
        """Whether the deciding coefficient reaches `ENOUGH_AGREEMENT`."""
        return self.deciding.value is not None and self.deciding.value >= ENOUGH_AGREEMENT

    @property
    def is_few(self) -> bool:
        """Whether fewer than 30 items have two labels, so that the interval is wide."""
        return self.shared < _FEW_ITEMS


def compare_annotators(
    labels: Sequence[Label], *, resamples: int = 2000, seed: int = 42
) -> tuple[MetricAgreement, ...]:
    """How well the annotators agree on each metric, in the order in which the labels name them.

    Items of one question are resampled together. Labels without an annotator count as those of one person. Adjudicated
    labels do not count: they were made with the annotators' labels in view.

    Raises DataError: some labels of a metric are yes or no, and some are grades such as 4.
    """
    by_metric: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        if not label.adjudicated:
            by_metric[label.metric].append(label)
    return tuple(_compare(metric, of, resamples, seed) for metric, of in by_metric.items())


def _compare(metric: str, labels: Sequence[Label], resamples: int, seed: int) -> MetricAgreement:
    _refuse_yes_among_grades(metric, labels)
    items = [*dict.fromkeys(label.item for label in labels)]
    annotators = [*dict.fromkeys(label.annotator for label in labels)]
    ratings = rater_agreement.Ratings.of(
        {(label.item, label.annotator): label.value for label in labels}, items, annotators
    )
    clusters = [(dataset, query_id) for dataset, query_id, *_ in items]
    names = choose_coefficients(ratings)
    drawn = {"resamples": resamples, "seed": seed}
    found = [rater_agreement.measure_agreement(ratings, name, clusters=clusters, **drawn) for name in names]
    given, told = Counter(label.value for label in labels), Counter(label.annotator for label in labels)
    by_item: dict[object, list[Label]] = defaultdict(list)
    for label in labels:
        by_item[label.item].append(label)
    apart = [of for of in by_item.values() if len({label.value for label in of}) > 1]
    return MetricAgreement(
        metric=metric,
        items=len(items),
        shared=found[0].items,
        questions=_count_questions(labels),
        annotators=tuple(
            AnnotatorAgreement(
                name, told[name], rater_agreement.measure_rater(ratings, place, clusters=clusters, **drawn)
            )
            for place, name in enumerate(annotators)
        ),
        scale=tuple((value, given[value]) for value in ratings.categories),
        coefficients=tuple(found),
        deciding=_choose_deciding(found, max(given.values()) / len(labels)),
        pairs=tuple(_compare_pairs(ratings, annotators, clusters, drawn)),
        confusion=_sum_confusion(ratings),
        disagreements=tuple(tuple(of) for of in sorted(apart, key=_measure_spread, reverse=True)),
    )


def _refuse_yes_among_grades(metric: str, labels: Sequence[Label]) -> None:
    """Yes and no would count as the grades 1 and 0, and on a scale of 1 to 5, yes would be the worst."""
    said = next((label for label in labels if label.is_yes_no), None)
    grades = (label for label in labels if not label.is_yes_no and not isinstance(label.value, str))
    grade = next((label for label in grades if not 0 <= float(label.value) <= 1), None)
    if said is not None and grade is not None:
        what = f"labels of {metric}" if metric else "labels"
        raise DataError(
            f"{said.place}: '{'yes' if said.value else 'no'}' is among {what} such as {grade.value:g} "
            f"({grade.place}), and it is not known which grade it means; write the grade instead"
        )


def _count_questions(labels: Sequence[Label]) -> int:
    """How many questions at least two annotators labelled."""
    people: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        people[label.query_id].add(label.annotator)
    return sum(len(of) > 1 for of in people.values())


def choose_coefficients(ratings: rater_agreement.Ratings) -> list[rater_agreement.Coefficient]:
    """The coefficients that fit: by the number of annotators, and by whether the values have an order.

    Measurements have only alpha: the others ask whether two values are equal, or count the places between them.
    """
    if _are_measurements(ratings):
        return ["percent", "alpha-interval"]
    is_ordered = ratings.is_scale
    chosen: list[rater_agreement.Coefficient] = ["percent"]
    if ratings.codes.shape[1] == 2:
        chosen.append("kappa")
        if is_ordered:
            chosen += ["kappa-linear", "kappa-quadratic"]
    else:
        chosen.append("fleiss")
    chosen.append("ac1")
    return [*chosen, "alpha-ordinal" if is_ordered else "alpha-nominal"]


def _are_measurements(ratings: rater_agreement.Ratings) -> bool:
    """Whether there are too many different numbers for a scale."""
    return ratings.is_scale and len(ratings.categories) > MOST_ORDERED


def _choose_deciding(
    found: Sequence[rater_agreement.AgreementCoefficient], largest: float
) -> rater_agreement.AgreementCoefficient:
    """Krippendorff's alpha, or AC1 where one class or grade dominates, because alpha then collapses."""
    by_name = {one.coefficient: one for one in found}
    return by_name["ac1"] if "ac1" in by_name and largest > DOMINANT else found[-1]


def _compare_pairs(
    ratings: rater_agreement.Ratings, annotators: Sequence[str], clusters: Sequence[object], drawn: Mapping[str, int]
) -> Iterator[PairAgreement]:
    if len(annotators) > MOST_PAIRED:
        return
    kappa: rater_agreement.Coefficient = "kappa-quadratic" if ratings.is_scale else "kappa"
    coefficient: rater_agreement.Coefficient = "alpha-interval" if _are_measurements(ratings) else kappa
    for first, second in itertools.combinations(range(len(annotators)), 2):
        pair = ratings.pair(first, second)
        percent = rater_agreement.measure_agreement(pair, "percent", clusters=clusters, **drawn)
        if percent.items:
            corrected = rater_agreement.measure_agreement(pair, coefficient, clusters=clusters, **drawn)
            yield PairAgreement(annotators[first], annotators[second], percent, corrected)


def _sum_confusion(ratings: rater_agreement.Ratings) -> tuple[tuple[int, ...], ...]:
    if len(ratings.categories) > MOST_IN_TABLE:
        return ()
    pairs = itertools.combinations(range(ratings.codes.shape[1]), 2)
    tables = [rater_agreement.count_confusion(ratings, first, second) for first, second in pairs]
    return tuple(tuple(map(int, row)) for row in sum(tables[1:], tables[0])) if tables else ()


def _measure_spread(labels: Sequence[Label]) -> tuple[float, float]:
    """How far the labels of an item lie apart: by their range if they are numbers, then by how evenly they divide."""
    values = [label.value for label in labels]
    numbers = [value for value in values if not isinstance(value, str)]
    span = max(numbers) - min(numbers) if len(numbers) == len(values) else 1.0
    return span, 1 - max(Counter(values).values()) / len(values)
