"""Whether choices between two answers follow the order in which they were shown, or their lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rageval_spec import kernels
from rageval_spec.data.interval import Interval
from rageval_spec.data.preferences import Preference
from rageval_spec.statistics.preferences import Odds, find_share, measure_choices
from rageval_spec.statistics.proportions import find_exact_interval, find_p_of_signs

SIGNIFICANT = 0.05
ENOUGH = 50
"""Questions. With fewer, only a strong preference for a place or for length can show."""
_SHARES = ("first", "first_at_equal_length", "longer")
_UNITS = (100, 10, 1)
"""By how many words lengths are compared: the most by which two answers of a pair differ."""


@dataclass(frozen=True, slots=True)
class Share:
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
    first: Share | None
    first_at_equal_length: Share | None
    unit: int
    longer: Share | None
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
    fitted = measure_choices(is_first, words / unit, questions)
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


def _count_first(is_first: Sequence[float], questions: Sequence[str]) -> Share | None:
    """Exact with one verdict a question; else with errors that hold for verdicts about the same question."""
    import numpy as np

    count, total = int(sum(is_first)), len(is_first)
    exact = find_exact_interval(count, total)
    if exact is not None and len(set(questions)) == total:
        p_value = find_p_of_signs(count, total)
        return Share(count / total, exact, p_value, p_value)
    fitted = measure_choices(np.array(is_first), np.zeros(total), questions)
    return None if fitted is None else _share(fitted.place)


def _share(odds: Odds) -> Share:
    low, high = (find_share(end) for end in (odds.interval.low, odds.interval.high))
    interval = Interval(low, high, odds.interval.confidence, odds.interval.method)
    return Share(find_share(odds.value), interval, odds.p_value, odds.p_value)


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
