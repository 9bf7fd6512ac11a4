"""Whether a judge says something else when it sees the same in the reverse order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from rageval_spec import kernels
from rageval_spec.data.labels import Anchor
from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, np
from rageval_spec.statistics.intervals import Resampling, compute_exact_interval, compute_p_of_signs, number_clusters
from rageval_spec.statistics.mean_intervals import MeanValues, compute_difference_range, compute_mean_interval
from rageval_spec.statistics.weighted_clusters import lay_out_clusters


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """What the reverse order of one part does to a judge.

    Attributes:
        part: what is reversed: `contexts`, `options`, `choices`, `examples`.
        answers: how many answers the judge assessed in both orders.
        failed: how many it could not assess in one of them.
        changed: how many got another value.
        to_yes, to_no: how many decisions flipped at the threshold, by what they became.
        flips: the exact interval of the share of decisions that flipped.
        p_flips: McNemar's exact test, whether flips go one way; Holm-adjusted for all tests of the judge.
        difference: by how much values change on average; positive is more generous in the reverse order.
        interval: its interval, which holds for several answers to a question; None with fewer than two questions.
        p_difference: of no difference; Holm-adjusted for all tests of the judge.
        errors: the mean absolute error against people in the usual and in the reverse order; None without answers.
    """

    part: str
    answers: int
    failed: int
    changed: int
    to_yes: int
    to_no: int
    flips: Interval | None
    p_flips: float
    difference: float
    interval: Interval | None
    p_difference: float
    errors: tuple[float, float] | None

    @property
    def p_value(self) -> float:
        """Of no effect in one direction, by one of the two tests."""
        return min(self.p_flips, self.p_difference)


def measure_order(
    part: str,
    usual: Sequence[float | None],
    reverse: Sequence[float | None],
    anchors: Sequence[Anchor],
    threshold: float,
) -> OrderEffect:
    """Compare a judge's values of the same answers in two orders; values are from 0 to 1, None where the judge failed.

    From `threshold` on, a value is a yes.
    """
    rows = [row for row, pair in enumerate(zip(usual, reverse, strict=True)) if None not in pair]
    one, two = (np.array([of[row] for row in rows], dtype=float) for of in (usual, reverse))
    is_yes, becomes_yes = one >= threshold, two >= threshold
    to_yes, to_no = int((~is_yes & becomes_yes).sum()), int((is_yes & ~becomes_yes).sum())
    difference, interval, p_value = _average(two - one, [(anchors[row].dataset, anchors[row].query_id) for row in rows])
    errors = None
    if rows:
        said = np.array([anchors[row].label for row in rows])
        errors = float(np.abs(one - said).mean()), float(np.abs(two - said).mean())
    return OrderEffect(
        part=part,
        answers=len(rows),
        failed=len(usual) - len(rows),
        changed=int((one != two).sum()),
        to_yes=to_yes,
        to_no=to_no,
        flips=compute_exact_interval(to_yes + to_no, len(rows)),
        p_flips=compute_p_of_signs(to_yes, to_yes + to_no),
        difference=difference,
        interval=interval,
        p_difference=p_value,
        errors=errors,
    )


def adjust(effects: Sequence[OrderEffect]) -> tuple[OrderEffect, ...]:
    """The same with p-values that are Holm-adjusted for all of them."""
    raw = [p_value for one in effects for p_value in (one.p_flips, one.p_difference)]
    adjusted = kernels.holm(raw) if raw else []
    return tuple(
        replace(one, p_flips=adjusted[2 * place], p_difference=adjusted[2 * place + 1])
        for place, one in enumerate(effects)
    )


def _average(differences: Floats, clusters: Sequence[Hashable]) -> tuple[float, Interval | None, float]:
    """The mean with its interval and p-value, by the sums of the clusters."""
    if not len(differences):
        return 0.0, None, 1.0
    mean = float(differences.mean())
    members = number_clusters(clusters, len(differences))
    groups = int(members.max()) + 1
    if groups < 2:
        return mean, None, 1.0
    sums = np.bincount(members, differences - mean)
    error = math.sqrt(groups / (groups - 1) * float((sums**2).sum())) / len(differences)
    values = MeanValues(differences, compute_difference_range((0.0, 1.0)), lay_out_clusters(clusters))
    interval = compute_mean_interval(values, Resampling())
    if error == 0:
        return mean, interval, 1.0 if mean == 0 else 0.0
    return mean, interval, kernels.student_p_value(abs(mean) / error, groups - 1)
