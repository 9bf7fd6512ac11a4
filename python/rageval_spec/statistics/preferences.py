"""Whether the choice between two answers follows their places or their lengths, and not only what they say."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.corrected import find_t
from rageval_spec.statistics.regression import find_p_value
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Floats

METHOD = "cluster-robust"
_STEPS = 50
_TOLERANCE = 1e-12
_SURE = 30.0
"""Log-odds beyond which a probability is 0 or 1: the choices are separated, and no slope fits them best."""


@dataclass(frozen=True, slots=True)
class Odds:
    """A coefficient of a logistic regression.

    Attributes:
        value: in log-odds.
        error: its standard error.
        interval: its interval, in log-odds.
        p_value: two-sided, of a coefficient of 0.
    """

    value: float
    error: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, slots=True)
class Choices:
    """How choices between a first and a second answer depend on place and length.

    Attributes:
        place: the log-odds with which the first of two answers of equal length is chosen.
        length: by how much the log-odds of an answer grow with one unit more of length.
    """

    place: Odds
    length: Odds | None


def measure_choices(
    is_first: Floats, longer: Floats, clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Choices | None:
    """Logistic regression of choosing the first answer on by how much it is longer.

    Standard errors hold for choices that belong together, with the usual correction for few clusters.

    Args:
        is_first: 1 where the first answer was chosen, 0 where the second was; ties are left out before.
        longer: by how much the first answer is longer than the second.
        clusters: what each choice belongs to, such as its question; by default each is its own.
        confidence: the level of the intervals.

    Returns:
        None if the choices are all alike, if length separates them without an error, or if there are fewer than five
        clusters. `length` is None if all differences are the same.
    """
    import numpy as np

    members = number_clusters(clusters, len(is_first))
    groups = int(members.max()) + 1 if len(is_first) else 0
    varies = bool(np.ptp(longer) > 0) if len(longer) else False
    scale = float(np.abs(longer).max()) if varies else 1.0
    columns = [np.ones(len(is_first)), *([longer / scale] if varies else [])]
    if groups < 5 or not 0 < is_first.sum() < len(is_first):
        return None
    design = np.stack(columns, axis=1)
    found = _fit(design, is_first)
    if found is None:
        return None
    values, bread = found
    scores = np.zeros((groups, design.shape[1]))
    np.add.at(scores, members, design * (is_first - _chance(design @ values))[:, None])
    rows, width = design.shape
    few = groups / (groups - 1) * (rows - 1) / (rows - width)
    errors = np.sqrt(np.diag(few * bread @ scores.T @ scores @ bread))
    place, *rest = (
        _describe(float(value) / unit, float(error) / unit, groups - 1, confidence)
        for value, error, unit in zip(values, errors, (1.0, scale), strict=False)
    )
    return Choices(place, rest[0] if rest else None)


def _fit(design: Floats, outcome: Floats) -> tuple[Floats, Floats] | None:
    """The coefficients and the inverse information by Newton's method; None if the outcomes are separated."""
    import numpy as np

    values: Floats = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = _chance(design @ values)
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        if np.linalg.cond(information) > 1 / _TOLERANCE:
            return None
        step = np.linalg.solve(information, design.T @ (outcome - chance))
        values = values + step
        if np.abs(values).max() > _SURE:
            return None
        if np.abs(step).max() < _TOLERANCE:
            bread: Floats = np.linalg.inv(information).astype(np.float64)
            return values, bread
    return None


def _chance(odds: Floats) -> Floats:
    import numpy as np

    chance: Floats = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return chance


def _describe(value: float, error: float, degrees: int, confidence: float) -> Odds:
    half = find_t((1 + confidence) / 2, degrees) * error
    p_value = find_p_value(abs(value) / error if error > 0 else math.inf, degrees)
    return Odds(value, error, Interval(value - half, value + half, confidence, METHOD), p_value)


def find_share(log_odds: float) -> float:
    """The probability of log-odds."""
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, log_odds))))
