"""Whether a judge's values mean what they say, and the map that would make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.calibration.measures import Measure, Measuring
from rageval_spec.statistics.reliability import (
    Bin,
    BrierParts,
    CalibrationError,
    list_bins,
    measure_error,
    rate_values,
    split_brier,
)

if TYPE_CHECKING:
    from rageval_spec.statistics.resampling import Floats


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

    bins: tuple[Bin, ...]
    error: CalibrationError
    error_by_mass: CalibrationError
    losses: tuple[Measure, ...]
    brier_parts: BrierParts

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
        bins=list_bins(values, labels),
        error=measure_error(values, labels, binning="width", **clustered),  # type: ignore[arg-type]
        error_by_mass=measure_error(values, labels, binning="mass", **clustered),  # type: ignore[arg-type]
        losses=tuple(how.measure(name, loss) for name, loss in rate_values(values, labels).items()),
        brier_parts=split_brier(values, labels),
    )
