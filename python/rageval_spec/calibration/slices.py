"""How close a judge comes to people on each system and each slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.calibration.measures import BETWEEN, Measure, Measuring
from rageval_spec.statistics.association import associate
from rageval_spec.statistics.discrimination import discriminate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.evaluation import Evaluation

Kind = Literal["dataset", "system", "slice"]
FEWEST = 10
"""The fewest labelled items of a slice that is measured."""


@dataclass(frozen=True, slots=True)
class SliceCalibration:
    """What a judge's values are worth on a part of the labelled items.

    Attributes:
        kind: whether it is a dataset, a system or a slice.
        name: its name: `topic=billing`.
        items: its labelled items.
        judged, labelled: the mean of the judge's values, and of the labels.
        bias: how much more generous the judge is than people; None with fewer than ten items.
        auroc: how well the values tell yes from no; None with fewer than ten items, or if only one of them is there.
    """

    kind: Kind
    name: str
    items: int
    judged: float
    labelled: float
    bias: Measure | None
    auroc: Measure | None


def measure_slices(
    evaluation: Evaluation, joined: Joined, *, resamples: int = 2000, seed: int = 42
) -> tuple[SliceCalibration, ...]:
    """Measure each dataset and system, if labels are of several, and each slice."""
    import numpy as np

    judged, labelled = np.array(joined.judged), np.array(joined.labelled)
    samples = read_samples(evaluation, joined)
    found = []
    for kind, name, inside in _list_parts(joined.items, samples):
        rows = np.flatnonzero(inside)
        how = Measuring([joined.clusters[row] for row in rows], resamples, seed)
        bias, auroc = _measure(judged[rows], labelled[rows], how) if len(rows) >= FEWEST else (None, None)
        means = float(judged[rows].mean()), float(labelled[rows].mean())
        found.append(SliceCalibration(kind, name, len(rows), *means, bias, auroc))
    return tuple(found)


def _measure(
    judged: NDArray[np.float64], labelled: NDArray[np.float64], how: Measuring
) -> tuple[Measure, Measure | None]:
    bias = how.measure("bias", associate(judged, labelled)["bias"])
    sides = labelled != BETWEEN
    is_yes = labelled[sides] > BETWEEN
    if not 0 < is_yes.sum() < len(is_yes):
        return bias, None
    decided = Measuring(
        [question for question, counts in zip(how.questions, sides, strict=True) if counts], how.resamples, how.seed
    )
    return bias, decided.measure("auroc", discriminate(judged[sides], is_yes)["auroc"])


def _list_parts(
    items: Sequence[Item], samples: Mapping[Item, Mapping[str, Any]]
) -> Iterator[tuple[Kind, str, list[bool]]]:
    """Each part with the items that belong to it."""
    places: tuple[tuple[Kind, int], ...] = (("dataset", 0), ("system", 1))
    for kind, place in places:
        names = [*dict.fromkeys(str(item[place]) for item in items)]
        if len(names) > 1:
            yield from ((kind, name, [item[place] == name for item in items]) for name in names)
    slices = [samples[item].get("slices") or () for item in items]
    for name in dict.fromkeys(name for names in slices for name in names):
        yield "slice", name, [name in names for names in slices]
