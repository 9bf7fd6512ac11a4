"""The mean of what people would say, from joined labels and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.data.interval import Interval
from rageval_spec.errors import DataError
from rageval_spec.statistics.corrected import CorrectedMean, correct_mean
from rageval_spec.statistics.edges import respect_bounds

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Floats


def correct_judge(joined: Joined) -> CorrectedMean:
    """The corrected mean of all labels, with intervals that respect the bounds 0 and 1 (see `respect_bounds`)."""
    import numpy as np

    if not joined.counts(range(len(joined.items))):
        raise DataError(
            f"by the spec's weights, none of the questions with labels of {joined.metric} counts; label others"
        )
    mean = correct_with(joined, range(len(joined.items)))
    counting = [place for place in range(len(joined.items)) if joined.counts([place])]
    mean = respect_bounds(mean, np.array(joined.labelled)[counting], (0.0, 1.0), 0.95)
    return replace(
        mean,
        value=min(max(mean.value, 0.0), 1.0),
        interval=_clip(mean.interval),
        labelled_interval=_clip(mean.labelled_interval),
    )


def correct_with(joined: Joined, kept: Sequence[int]) -> CorrectedMean:
    """The corrected mean if only some of the items, by their places, had labels. It may lie outside 0 and 1.

    Questions count as the spec's weights say. Items that do not count at all are left out; one of those with labels
    must count.
    """
    import numpy as np

    counting = {item for item, share in joined.shares.items() if share > 0} or {*joined.items, *joined.others}
    with_labels = {*kept}
    kept = [place for place in kept if joined.items[place] in counting]
    dropped = [place for place, item in enumerate(joined.items) if place not in with_labels and item in counting]
    items = [joined.items[place] for place in kept]
    others = [item for item in joined.others if item in counting]
    rest = [*others, *(joined.items[place] for place in dropped)]
    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    return correct_mean(
        judged[kept],
        labelled[kept],
        np.array([*(joined.others[item] for item in others), *judged[dropped]], dtype=float),
        weights=None if joined.weights is None else np.array(joined.weights)[kept],
        clusters=[joined.cluster_of(item) for item in items],
        other_clusters=[joined.cluster_of(item) for item in rest],
        shares=_share(joined, [*items, *rest]),
    )


def _share(joined: Joined, items: Sequence[Item]) -> Floats | None:
    """How much each item counts, adding up to 1; None if all count the same."""
    import numpy as np

    if not joined.shares:
        return None
    shares = np.array([joined.shares[item] for item in items])
    found: Floats = shares / shares.sum()
    return found


def _clip(interval: Interval | None) -> Interval | None:
    """The part within 0 and 1, which loses nothing: no mean lies outside them."""
    if interval is None:
        return None
    low, high = (min(max(end, 0.0), 1.0) for end in (interval.low, interval.high))
    return replace(interval, low=low, high=high)
