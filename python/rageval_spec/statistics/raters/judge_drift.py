"""Whether a judge says something else than it said before, about the same answers.

Values are compared row by row. What a judge that gives another value each time changes by itself, its own noise, is
measured by asking twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Floats
from rageval_spec.statistics.intervals import (
    Resampling,
    compute_exact_interval,
    compute_p_of_excess,
    compute_p_of_signs,
)
from rageval_spec.statistics.mean_intervals import MeanValues, compute_difference_range, compute_mean_interval
from rageval_spec.statistics.weighted_clusters import lay_out_clusters

if TYPE_CHECKING:
    from rageval_spec.data.outcomes import Interval


SAME = 1e-9
"""Two values that differ by less are the same value."""


@dataclass(frozen=True, slots=True)
class Flips:
    """Decisions that changed.

    Attributes:
        up, down: the rows that changed from no to yes, and from yes to no, of all `rows`.
        moved: the rows whose value changed at all.
        interval: of the share of changed decisions.
        p_value: the probability of so many changes if the judge is as noisy as it is when it is asked twice; None
            without a second answer. `p_moved` is the same for values.
    """

    rows: int
    up: int
    down: int
    moved: int
    interval: Interval | None
    p_value: float | None = None
    p_moved: float | None = None

    @property
    def share(self) -> float:
        return (self.up + self.down) / self.rows


@dataclass(frozen=True, slots=True)
class Shift:
    """How much closer to people, or further from them, a judge has come.

    Attributes:
        before, now: the share of decisions that agree with people.
        gained, lost: the rows that agree only now, and only before.
        p_value: McNemar's exact test of `gained` against `lost`.
        difference: the mean of the values now less that before; `interval` is that of `mean_intervals`.
    """

    before: float
    now: float
    gained: int
    lost: int
    p_value: float
    difference: float
    interval: Interval | None


def count_flips(before: Floats, now: Floats, again: Floats | None, threshold: float) -> Flips:
    """Compare the values of the same rows. A value from the threshold on is a yes.

    `again` has the values of a second time now; None if the judge always says the same.
    """
    yes_before, yes_now = before >= threshold, now >= threshold
    up, down = int((yes_now & ~yes_before).sum()), int((yes_before & ~yes_now).sum())
    moved = int((abs(now - before) > SAME).sum())
    rows = len(before)
    interval = compute_exact_interval(up + down, rows)
    if again is None:
        return Flips(rows, up, down, moved, interval)
    noisy = int((yes_now != (again >= threshold)).sum())
    noise = int((abs(now - again) > SAME).sum())
    return Flips(rows, up, down, moved, interval, _exceed(up + down, noisy, rows), _exceed(moved, noise, rows))


def _exceed(changed: int, noisy: int, rows: int) -> float:
    """The probability of so many changes if they are no more frequent than the noise (Fisher's exact test)."""
    return compute_p_of_excess(changed, rows, changed + noisy, 2 * rows)


def compare_agreement(
    before: Floats, now: Floats, labelled: Floats, threshold: float, questions: Sequence[Hashable]
) -> Shift:
    """Compare how well two sets of values of the same rows agree with people; the rows of a question are a cluster.

    A value from the threshold on is a yes, and a label, from 0 to 1, above 0.5.
    """
    is_yes = labelled > 0.5
    right_before, right_now = (before >= threshold) == is_yes, (now >= threshold) == is_yes
    gained, lost = int((right_now & ~right_before).sum()), int((right_before & ~right_now).sum())
    differences = now - before
    interval = None
    if len(differences) > 1:
        values = MeanValues(differences, compute_difference_range((0.0, 1.0)), lay_out_clusters(questions))
        interval = compute_mean_interval(values, Resampling())
    return Shift(
        float(right_before.mean()),
        float(right_now.mean()),
        gained,
        lost,
        compute_p_of_signs(gained, gained + lost),
        float(differences.mean()),
        interval,
    )
