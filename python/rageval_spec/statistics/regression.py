"""Linear regression with standard errors that hold for unequal spread and for rows that belong together.

Without clusters, standard errors are HC3 (MacKinnon and White, 1985); with clusters, they are those of Liang and Zeger
(1986) with the usual correction for few clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.interval import Interval
from rageval_spec.statistics.corrected import find_t
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.statistics.resampling import Floats

METHOD = "hc3"
CLUSTERED = "cluster-robust"
_ALIKE = 1e-9
"""A predictor whose part that the others do not explain is this small tells nothing of its own."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How the outcome changes with one predictor while the others stay as they are.

    Attributes:
        name: the predictor.
        slope: the change of the outcome for one unit more.
        error: its standard error.
        interval: its interval.
        p_value: two-sided, of a slope of 0; not adjusted for the other predictors.
    """

    name: str
    slope: float
    error: float
    interval: Interval
    p_value: float


def regress(
    outcome: Floats,
    predictors: Mapping[str, Floats],
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> tuple[Effect, ...]:
    """The effects of predictors on an outcome, by ordinary least squares with a constant.

    Args:
        outcome: a number for each row.
        predictors: numbers for each row, by name. A predictor that does not vary, or that the ones before it determine,
            is left out.
        clusters: what each row belongs to; by default each row is its own.
        confidence: the level of the intervals.

    Returns:
        An effect for each predictor that is left, in their order; none if there are not at least two rows, or two
        clusters, more than coefficients.
    """
    import numpy as np

    chosen = _choose(predictors, len(outcome))
    columns = [np.ones(len(outcome)), *(predictors[name] for name in chosen)]
    members = number_clusters(clusters, len(outcome))
    groups = int(members.max()) + 1 if len(outcome) else 0
    is_clustered = groups < len(outcome)
    if not chosen or min(groups, len(outcome)) < len(columns) + 2:
        return ()
    design = np.stack(columns, axis=1)
    bread = np.linalg.inv(design.T @ design)
    slopes = bread @ design.T @ outcome
    residuals = outcome - design @ slopes
    if is_clustered:
        covariance = _cluster(design, bread, residuals, members, groups)
        degrees = groups - 1
    else:
        covariance = _spread(design, bread, residuals)
        degrees = len(outcome) - len(columns)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    half = find_t((1 + confidence) / 2, degrees)
    method = CLUSTERED if is_clustered else METHOD
    return tuple(
        Effect(
            name,
            float(slope),
            float(error),
            Interval(float(slope - half * error), float(slope + half * error), confidence, method),
            find_p_value(abs(float(slope)) / float(error) if error > 0 else math.inf, degrees),
        )
        for name, slope, error in zip(chosen, slopes[1:], errors[1:], strict=True)
    )


def _choose(predictors: Mapping[str, Floats], rows: int) -> list[str]:
    """The predictors that tell something that those before them do not."""
    import numpy as np

    kept, chosen = [np.ones(rows) / math.sqrt(max(rows, 1))], []
    for name, numbers in predictors.items():
        scale = float(np.abs(numbers).max()) if rows else 0.0
        rest = numbers / scale if scale > 0 else numbers
        for _ in range(2):
            for direction in kept:
                rest = rest - direction * (direction @ rest)
        length = float(np.linalg.norm(rest))
        if length > _ALIKE * math.sqrt(max(rows, 1)):
            kept.append(rest / length)
            chosen.append(name)
    return chosen


def _spread(design: Floats, bread: Floats, residuals: Floats) -> Floats:
    """HC3: each squared residual is enlarged by how much its own row draws the line towards itself."""
    import numpy as np

    leverage = np.einsum("ij,jk,ik->i", design, bread, design)
    weights = (residuals / np.maximum(1 - leverage, _ALIKE)) ** 2
    covariance: Floats = bread @ (design.T * weights) @ design @ bread
    return covariance


def _cluster(design: Floats, bread: Floats, residuals: Floats, members: NDArray[np.int64], groups: int) -> Floats:
    import numpy as np

    scores = np.zeros((groups, design.shape[1]))
    np.add.at(scores, members, design * residuals[:, None])
    rows, columns = design.shape
    few = groups / (groups - 1) * (rows - 1) / (rows - columns)
    covariance: Floats = few * bread @ scores.T @ scores @ bread
    return covariance


def find_p_value(t: float, degrees: int) -> float:
    """The probability that Student's t lies at least this far from 0, to a relative 1e-4; below 1e-12 it is 0."""
    if t <= 0:
        return 1.0
    low, high = 1e-12, 1.0
    if find_t(1 - low / 2, degrees) <= t:
        return 0.0
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if find_t(1 - middle / 2, degrees) <= t else (middle, high)
    return high
