"""How many labels an interval of a wanted width needs, with a judge and without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.statistics.raters.corrected_means import CorrectedMean

MOST_LABELS = 10_000_000
_MOST_EXPLAINED = 0.9999
_SMALLEST = 1e-6
_FEWEST_CORRELATED = 10
"""The fewest questions whose labels say anything of a correlation."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What decides how wide the interval of a mean is.

    With `n` labels of `rows` answers, the variance of the corrected mean is
    `variance * ((1 - explained) / n + explained / rows)` (PPI++ at its best weight), and that of the labels alone is
    `variance / n`.

    Attributes:
        variance: how much one label says less than all: the variance of the labels, more if those of a question are
            alike.
        explained: the part of it that the judge knows, from 0 to 1: its squared correlation with the labels.
        rows: the number of answers that the judge has judged, labelled or not.
        per_question: the number of labels of a question.
    """

    variance: float
    explained: float
    rows: int
    per_question: float = 1.0

    def expect_width(self, labels: int, confidence: float = 0.95, *, judged: bool = True) -> float:
        """The width of the interval with this many labels; infinite if they are of fewer than two questions."""
        questions = int(labels / self.per_question)
        if questions < 2:
            return math.inf
        variance = self.variance / labels
        if judged:
            variance = self.variance * ((1 - self.explained) / labels + self.explained / max(self.rows, labels))
        return 2 * kernels.student_quantile((1 + confidence) / 2, questions - 1) * math.sqrt(variance)

    def count_labels(self, width: float, confidence: float = 0.95, *, judged: bool = True) -> int | None:
        """The fewest labels with an interval that is no wider. None if not even labels of all answers suffice.

        Without the judge, the answers can be others than those that it judged, so there is no such bound.
        """
        most = self.rows if judged else MOST_LABELS
        return find_first(lambda labels: self.expect_width(labels, confidence, judged=judged) <= width, most)

    def bound_labels(self, width: float, questions: int, *, judged: bool = True) -> Interval:
        """The 95 % interval of `count_labels`, if the spread was seen in the labels of this many questions.

        Its ends are the counts with the least and the most variance and correlation that go with what was seen
        (`bound_variance`, `bound_explained`). An end that not even labels of all answers reach is the number of them.
        """
        most = self.rows if judged else MOST_LABELS
        lowest, highest = bound_variance(self.variance, questions - 1)
        weak, strong = bound_explained(self.explained, questions)
        ends = replace(self, variance=lowest, explained=strong), replace(self, variance=highest, explained=weak)
        low, high = (one.count_labels(width, judged=judged) or most for one in ends)
        return Interval(low, high, 0.95, SPREAD)


SPREAD = "spread"
"""The value of `Interval.method` for numbers of labels."""


def bound_variance(variance: float, degrees: int) -> tuple[float, float]:
    """The 95 % interval of a variance: the chi-square interval of the variance of normal values.

    Quantiles are those of Wilson and Hilferty (1931). That of values with shorter tails, such as yes and no, is
    narrower.
    """
    z = NormalDist().inv_cdf(0.975)
    part = 2 / (9 * degrees)
    low, high = (max(1 - part + side * z * math.sqrt(part), _SMALLEST) ** 3 for side in (-1, 1))
    return variance / high, variance / low


def bound_explained(explained: float, questions: int) -> tuple[float, float]:
    """The 95 % interval of a squared correlation seen in the labels of this many questions (Fisher's z, 1921).

    From 0 to nearly 1 for fewer than ten questions, which say too little of it.
    """
    if questions < _FEWEST_CORRELATED:
        return 0.0, _MOST_EXPLAINED
    reach = NormalDist().inv_cdf(0.975) / math.sqrt(questions - 3)
    z = math.atanh(math.sqrt(min(explained, _MOST_EXPLAINED)))
    low, high = math.tanh(max(z - reach, 0.0)) ** 2, math.tanh(z + reach) ** 2
    return min(low, explained), max(explained, min(high, _MOST_EXPLAINED))


def bound_worth(labels: int, worth: float, rows: int, questions: int) -> tuple[float, float] | None:
    """The 95 % interval of what labels are worth with a judge; None if there are too few for one to say anything.

    `worth` is how many labels without the judge would give an interval as narrow, `rows` the number of answers that the
    judge has judged, and the labels are of `questions` questions.
    """
    if questions < _FEWEST_CORRELATED or rows <= labels or worth <= 0:
        return None
    free = 1 - labels / rows
    explained = min(max((1 - labels / worth) / free, 0.0), _MOST_EXPLAINED)
    low, high = (labels / (1 - end * free) for end in bound_explained(explained, questions))
    return min(low, worth), max(high, worth)


def estimate_spread(mean: CorrectedMean, questions: int) -> Spread | None:
    """The spread of which a corrected mean's interval tells, with labels of so many questions; None without one."""
    interval = mean.labelled_interval
    if interval is None or questions < 2:
        return None
    reach = 2 * kernels.student_quantile((1 + interval.confidence) / 2, questions - 1)
    alone = ((interval.high - interval.low) / reach) ** 2
    explained = 0.0
    if mean.worth is not None and mean.rows > mean.labels:
        explained = (1 - mean.labels / mean.worth) / (1 - mean.labels / mean.rows)
    explained = min(max(explained, 0.0), _MOST_EXPLAINED)
    return Spread(alone * mean.labels, explained, mean.rows, mean.labels / questions)


def find_first(is_enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 to `most` that is enough, if all larger ones are too; None if `most` is not."""
    if most < 1 or not is_enough(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
