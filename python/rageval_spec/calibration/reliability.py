"""Whether a judge's values mean what they say, and the map that would make them.

The map goes from the judge's values to what people would say. It is chosen only if it is really better than none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

from rageval_spec.calibration.labelled_items import Joined
from rageval_spec.calibration.measures import CalibrationMeasure, Measuring
from rageval_spec.calibration.thresholds import deal_folds
from rageval_spec.data.judge_calibration import ScoreMap
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.libraries import Floats, np
from rageval_spec.statistics.intervals import bootstrap_interval
from rageval_spec.statistics.raters import reliability_curves


@dataclass(frozen=True, slots=True)
class Reliability:
    """Whether values between 0 and 1 mean what they say.

    Attributes:
        bins: the values in ten bins of equal width, with what people say of them: a reliability diagram.
        error: the expected calibration error in these bins.
        error_by_mass: the same in up to ten bins with about equally many items.
        losses: the Brier score and the log loss.
        brier_parts: what the Brier score consists of.
    """

    bins: tuple[reliability_curves.Bin, ...]
    error: reliability_curves.CalibrationError
    error_by_mass: reliability_curves.CalibrationError
    losses: tuple[CalibrationMeasure, ...]
    brier_parts: reliability_curves.BrierParts

    @property
    def is_off(self) -> bool:
        """Whether values certainly do not mean what they say: the interval of the error lies above 0."""
        return self.error.interval is not None and self.error.interval.low > 0


def rate_reliability(values: Floats, labels: Floats, how: Measuring) -> Reliability | None:
    """How reliable values are; None if they are not all between 0 and 1."""
    if values.min() < 0 or values.max() > 1:
        return None
    clustered = {"clusters": how.questions, "seed": how.seed}
    return Reliability(
        bins=reliability_curves.list_bins(values, labels),
        error=reliability_curves.measure_error(values, labels, binning="width", **clustered),  # type: ignore[arg-type]
        error_by_mass=reliability_curves.measure_error(values, labels, binning="mass", **clustered),  # type: ignore[arg-type]
        losses=tuple(how.measure(name, loss) for name, loss in reliability_curves.rate_values(values, labels).items()),
        brier_parts=reliability_curves.split_brier(values, labels),
    )


Kind = Literal["none", "platt", "isotonic"]
_FITS: Mapping[Kind, Callable[[Floats, Floats], ScoreMap | None]] = {
    "platt": reliability_curves.fit_platt,
    "isotonic": reliability_curves.fit_isotonic,
}
_CONFIDENCE = 1 - 0.05 / len(_FITS)
"""The level of the intervals of the gains: each of the maps that are tried takes its part of the error."""


@dataclass(frozen=True, slots=True)
class MapTrial:
    """What a map does to values of questions that had no part in fitting it.

    Attributes:
        kind: the map; `none` for the values as they are.
        error: the expected calibration error.
        brier: the mean squared difference of the mapped value and the label; `log_loss` the mean cross-entropy.
        gain: by how much the map lowers the Brier score; None for `none`.
        gain_interval: the interval of the gain, at 97.5%, because two maps are tried.
    """

    kind: Kind
    error: reliability_curves.CalibrationError
    brier: float
    log_loss: float
    gain: float | None = None
    gain_interval: Interval | None = None

    @property
    def is_better(self) -> bool:
        """Whether the map is really better than none: the interval of its gain lies above 0."""
        return self.gain_interval is not None and self.gain_interval.low > 0


@dataclass(frozen=True, slots=True)
class MapChoice:
    """The map to use, fitted to all labels; or why the values are best left as they are.

    The trials are the values as they are, and each map, on questions held out; empty if that cannot be tried.
    """

    chosen: ScoreMap | None
    trials: tuple[MapTrial, ...]
    reason: str | None = None


def choose_map(joined: Joined, *, resamples: int = 2000, seed: int = 42) -> MapChoice:
    """Choose between Platt's map, the isotonic one, and none, by cross-validation with folds of questions.

    Each fold's values are mapped by the map that is fitted to the other folds. A map is used only if the interval of
    what it takes off the Brier score lies above 0; of two such maps, the one with the lower Brier score.
    """
    values, labels = np.array(joined.judged), np.array(joined.labelled)
    if values.min() < 0 or values.max() > 1:
        return MapChoice(None, (), "the judge's values are not all between 0 and 1")
    folds = deal_folds(joined.clusters, seed)
    if folds is None:
        return MapChoice(None, (), "there are too few questions to hold some out")
    trials = [_try("none", values, labels, joined.clusters, seed)]
    for kind, fit in _FITS.items():
        mapped = _map_outside(values, labels, folds, fit)
        if mapped is not None:
            gains = (values - labels) ** 2 - (mapped - labels) ** 2

            def average(weights: Floats, gains: Floats = gains) -> Floats:
                found: Floats = weights @ gains / weights.sum(axis=1)
                return found

            drawn: dict[str, Any] = {"confidence": _CONFIDENCE, "resamples": resamples, "seed": seed}
            interval = bootstrap_interval(average, len(gains), clusters=joined.clusters, **drawn)
            trial = _try(kind, mapped, labels, joined.clusters, seed)
            trials.append(replace(trial, gain=float(gains.mean()), gain_interval=interval))
    better = [trial for trial in trials if trial.is_better]
    if not better:
        why = "no map is certain to bring the values closer to the labels"
        if len(trials) == 1:
            why = "the judge's values do not rise with the labels"
        return MapChoice(None, tuple(trials), why)
    best = min(better, key=lambda trial: trial.brier)
    return MapChoice(_FITS[best.kind](values, labels), tuple(trials))


def _map_outside(
    values: Floats, labels: Floats, folds: object, fit: Callable[[Floats, Floats], ScoreMap | None]
) -> Floats | None:
    """Each fold's values, mapped by the map of the other folds; None if there is a fold without one."""
    mapped = np.empty_like(values)
    for fold in np.unique(folds):  # type: ignore[call-overload]
        inside = folds == fold
        found = fit(values[~inside], labels[~inside])
        if found is None:
            return None
        mapped[inside] = [*map(found.apply, values[inside].tolist())]
    return mapped


def _try(kind: Kind, values: Floats, labels: Floats, questions: Sequence[Hashable], seed: int) -> MapTrial:
    losses = reliability_curves.list_losses(values, labels)
    error = reliability_curves.measure_error(values, labels, clusters=questions, seed=seed)
    return MapTrial(kind, error, float(losses["brier"].mean()), float(losses["log_loss"].mean()))
