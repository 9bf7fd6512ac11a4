"""How many labels an interval of a wanted width needs, with a judge and without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from rageval_spec.statistics.intervals import find_t
from rageval_spec.statistics.raters.corrected_means import CorrectedMean

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import Floats, Statistic

MOST_LABELS = 10_000_000
_MOST_EXPLAINED = 0.9999
_NOTHING = 1e-20
"""What rounding can leave of a variance that is 0."""


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
        return 2 * find_t((1 + confidence) / 2, questions - 1) * math.sqrt(variance)

    def count_labels(self, width: float, confidence: float = 0.95, *, judged: bool = True) -> int | None:
        """The fewest labels with an interval that is no wider. None if not even labels of all answers suffice.

        Without the judge, the answers can be others than those that it judged, so there is no such bound.
        """
        most = self.rows if judged else MOST_LABELS
        return find_first(lambda labels: self.expect_width(labels, confidence, judged=judged) <= width, most)

    def rate_need(
        self, judged: Floats, labelled: Floats, width: float, confidence: float = 0.95, *, with_judge: bool = True
    ) -> Statistic:
        """The number of labels needed, as a function of weights of shape (resamples, rows), for its interval.

        It is not a number where not even labels of all answers suffice.

        Args:
            judged: the judge's values of the labelled rows.
            labelled: what people said of them.
            width: the wanted width.
            confidence: the level of the interval with this width.
            with_judge: whether the judge's values are used.
        """
        import numpy as np

        centred, values = labelled - labelled.mean(), judged - judged.mean()
        alike = self.variance / max(float(centred @ centred) / max(len(labelled) - 1, 1), _NOTHING)
        quantile = NormalDist().inv_cdf((1 + confidence) / 2)
        wanted = (width / 2 / quantile) ** 2

        def find_need(weights: Floats) -> Floats:
            total = weights.sum(axis=1)
            means, value_means = weights @ centred / total, weights @ values / total
            variance = weights @ centred**2 / total - means**2
            spread = weights @ values**2 / total - value_means**2
            shared = weights @ (centred * values) / total - means * value_means
            with np.errstate(divide="ignore", invalid="ignore"):
                explained = np.where(spread > _NOTHING, shared**2 / (spread * variance), 0.0) if with_judge else 0.0
                rest = wanted - alike * variance * explained / self.rows
                need = alike * variance * (1 - explained) / rest
            return np.where(rest > 0, need + quantile**2 / 2, np.nan)  # what Student's t asks for more

        return find_need


def find_spread(mean: CorrectedMean, questions: int) -> Spread | None:
    """The spread of which a corrected mean's interval tells; None if there is no interval.

    Args:
        mean: the corrected mean.
        questions: the number of questions that have labels.
    """
    interval = mean.labelled_interval
    if interval is None or questions < 2:
        return None
    alone = ((interval.high - interval.low) / (2 * find_t((1 + interval.confidence) / 2, questions - 1))) ** 2
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
