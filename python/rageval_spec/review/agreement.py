"""How well the people who labelled the same answers agree, for each metric.

For choices between two answers: whether they follow the order in which the answers were shown, or their lengths.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rageval_spec import kernels
from rageval_spec.data.labels import Label, Preference
from rageval_spec.data.outcomes import Interval
from rageval_spec.errors import DataError
from rageval_spec.statistics.intervals import find_exact_interval, find_p_of_signs
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
class Disagreement:
    """An item that people labelled differently, with each label by its annotator."""

    labels: tuple[Label, ...]


@dataclass(frozen=True)
class MetricAgreement:
    """How well people agree on one metric.

    Attributes:
        metric: the metric; "" if the labels do not name one.
        items: the number of labelled items; `shared` is how many of them have at least two labels.
        questions: the number of questions that at least two annotators labelled, be it for different answers.
        annotators: each annotator, in the order of the labels.
        scale: the values, in ascending order, with how often each was given.
        coefficients: the coefficients that fit the labels; `deciding` is the one that says whether they are reliable.
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
    disagreements: tuple[Disagreement, ...]

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

    Raises:
        DataError: some labels of a metric are yes or no, and some are grades such as 4.
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
        disagreements=tuple(Disagreement(tuple(of)) for of in sorted(apart, key=_measure_spread, reverse=True)),
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


SIGNIFICANT = 0.05
ENOUGH_CHOICES = 50
"""Questions. With fewer, only a strong preference for a place or for length can show."""
_SHARES = ("first", "first_at_equal_length", "longer")
_UNITS = (100, 10, 1)
"""By how many words lengths are compared: the most by which two answers of a pair differ."""


@dataclass(frozen=True, slots=True)
class VerdictShare:
    """A share of verdicts.

    Attributes:
        value: the share.
        interval: its interval.
        p_value: that of a share of one half.
        p_adjusted: the same, Holm-adjusted for all shares of all metrics.
    """

    value: float
    interval: Interval
    p_value: float
    p_adjusted: float

    @property
    def is_significant(self) -> bool:
        """Whether it differs from one half, with an adjusted p-value below 0.05."""
        return self.p_adjusted < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Swaps:
    """Pairs that the same person, or judge, judged in both orders.

    Attributes:
        pairs: how many there are.
        same: in how many the same answer won, or both verdicts were ties.
        first, second: in how many the answer that was shown first, or second, won both times.
        p_value: the exact sign test of `first` against `second`.
    """

    pairs: int
    same: int
    first: int
    second: int
    p_value: float

    @property
    def interval(self) -> Interval | None:
        """The exact interval of the share of pairs with the same verdict."""
        return find_exact_interval(self.same, self.pairs)


@dataclass(frozen=True, slots=True)
class PreferenceBias:
    """What choices on one metric depend on besides the answers' content.

    Attributes:
        metric: what the better answer is better at; "" if it is not said.
        verdicts, ties: how many there are.
        questions: how many questions they are about.
        first: the share of the verdicts but ties that chose the answer shown first.
        first_at_equal_length: the same for answers of equal length; None if it cannot be estimated.
        unit: a number of words.
        longer: how often an answer wins that is `unit` words longer, wherever it is shown; None if that cannot be
            estimated.
        swaps: pairs in both orders; None if there are none.
        reason: why shares could not be estimated.
    """

    metric: str
    verdicts: int
    ties: int
    questions: int
    first: VerdictShare | None
    first_at_equal_length: VerdictShare | None
    unit: int
    longer: VerdictShare | None
    swaps: Swaps | None
    reason: str | None = None


def measure_preferences(preferences: Sequence[Preference]) -> list[PreferenceBias]:
    """Measure the choices on each metric. Verdicts about one question are not taken for independent ones."""
    by_metric: dict[str, list[Preference]] = defaultdict(list)
    for one in preferences:
        by_metric[one.metric].append(one)
    return _adjust([_measure(metric, of) for metric, of in by_metric.items()])


def _adjust(found: Sequence[PreferenceBias]) -> list[PreferenceBias]:
    """The same with adjusted p-values."""
    shares = [(place, name) for place, one in enumerate(found) for name in _SHARES if getattr(one, name) is not None]
    raw = [getattr(found[place], name).p_value for place, name in shares]
    adjusted = dict(zip(shares, kernels.holm(raw) if raw else [], strict=True))
    return [
        replace(
            one,
            **{
                name: replace(getattr(one, name), p_adjusted=adjusted[place, name])
                for name in _SHARES
                if (place, name) in adjusted
            },
        )
        for place, one in enumerate(found)
    ]


def _measure(metric: str, preferences: Sequence[Preference]) -> PreferenceBias:
    import numpy as np

    decided = [one for one in preferences if one.choice != "tie"]
    is_first = np.array([one.choice == "first" for one in decided], dtype=float)
    words = np.array([len(one.first.split()) - len(one.second.split()) for one in decided], dtype=float)
    questions = [one.query_id for one in decided]
    most = float(np.abs(words).max(initial=0))
    unit = next((unit for unit in _UNITS if most >= unit), _UNITS[-1])
    fitted = rater_agreement.measure_choices(is_first, words / unit, questions)
    longer = None if fitted is None or fitted.length is None else _share(fitted.length)
    return PreferenceBias(
        metric=metric,
        verdicts=len(preferences),
        ties=len(preferences) - len(decided),
        questions=len({one.query_id for one in preferences}),
        first=_count_first(is_first.tolist(), questions),
        first_at_equal_length=None if longer is None or fitted is None else _share(fitted.place),
        unit=unit,
        longer=longer,
        swaps=_compare_orders(preferences),
        reason=None if longer is not None else "the verdicts, or the lengths, do not vary enough",
    )


def _count_first(is_first: Sequence[float], questions: Sequence[str]) -> VerdictShare | None:
    """Exact with one verdict a question; else with errors that hold for verdicts about the same question."""
    import numpy as np

    count, total = int(sum(is_first)), len(is_first)
    exact = find_exact_interval(count, total)
    if exact is not None and len(set(questions)) == total:
        p_value = find_p_of_signs(count, total)
        return VerdictShare(count / total, exact, p_value, p_value)
    fitted = rater_agreement.measure_choices(np.array(is_first), np.zeros(total), questions)
    return None if fitted is None else _share(fitted.place)


def _share(odds: rater_agreement.Odds) -> VerdictShare:
    low, high = (rater_agreement.find_share(end) for end in (odds.interval.low, odds.interval.high))
    interval = Interval(low, high, odds.interval.confidence, odds.interval.method)
    return VerdictShare(rater_agreement.find_share(odds.value), interval, odds.p_value, odds.p_value)


def _compare_orders(preferences: Sequence[Preference]) -> Swaps | None:
    """Pairs in both orders. Of several verdicts in one order, the first counts."""
    by_pair: dict[object, dict[str, Preference]] = defaultdict(dict)
    for one in preferences:
        if one.first != one.second:
            by_pair[one.pair].setdefault(one.first, one)
    both = [tuple(orders.values()) for orders in by_pair.values() if len(orders) == 2]
    if not both:
        return None
    chosen = [(one.choice, other.choice) for one, other in both]
    first, second = chosen.count(("first", "first")), chosen.count(("second", "second"))
    same = sum(one.winner == other.winner for one, other in both)
    return Swaps(len(both), same, first, second, find_p_of_signs(first, first + second))
