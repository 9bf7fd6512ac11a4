"""Measures the judges of an evaluation beside people's labels: one criterion after the other, each judge in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rageval_spec.calibration.bias import Biases, find_biases
from rageval_spec.calibration.judge_quality import (
    Calibration,
    ComparedJudge,
    JudgeComparison,
    Promise,
    SliceCalibration,
    Spending,
    compare_judges,
    find_spending,
    measure_judge,
    measure_slices,
    promise,
)
from rageval_spec.calibration.label_choice import (
    CalibratedCriterion,
    CalibrationSettings,
    Known,
    choose,
    count_others,
    know,
)
from rageval_spec.calibration.labelled_items import Joined, join_labels
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import Label, find_ends
from rageval_spec.history.metric_definitions import read_ranges, read_recorded_spec


@dataclass(frozen=True, slots=True)
class CalibrationValues:
    """Results, what of them is calibrated with which labels, and the metrics that are known.

    `spending` is what the judges that are compared took, by metric; `others` the number of labels of each criterion
    that no metric is about.
    """

    evaluation: Evaluation
    chosen: Sequence[CalibratedCriterion]
    known: Known
    spending: Mapping[str, Spending] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What is known of a judge on one metric."""

    joined: Joined
    calibration: Calibration
    biases: Biases
    promise: Promise | None
    slices: tuple[SliceCalibration, ...] = ()


@dataclass(frozen=True, slots=True)
class CriterionReport:
    """What labels of one criterion show: metrics in full, and judges side by side."""

    found: Sequence[JudgeReport]
    comparison: JudgeComparison | None = None


def choose_values(
    evaluation: Evaluation, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str]
) -> CalibrationValues:
    """What of finished results is calibrated; metrics, judges and errors are those of `label_choice.choose`."""
    recorded = read_recorded_spec(evaluation)
    known = know(evaluation, recorded)
    chosen = choose(known, labels, metrics, judges)
    compared = [] if recorded is None else [name for one in chosen for name in one.compared]
    spending = {name: find_spending(evaluation, recorded, name) for name in compared if recorded is not None}
    return CalibrationValues(evaluation, chosen, known, spending, count_others(known, labels, metrics))


def measure_judges(values: CalibrationValues, settings: CalibrationSettings) -> list[CriterionReport]:
    """Measure the judges of each criterion, and compare them; a DataError if labels do not fit the results."""
    bounds = {name: find_ends(*ends) for name, ends in read_ranges(values.evaluation).items()}
    return [_measure_criterion(values, chosen, settings, bounds) for chosen in values.chosen]


def list_judges(groups: Iterable[CriterionReport]) -> list[JudgeReport]:
    """The judges of all criteria, the first of each metric."""
    found = [one for group in groups for one in group.found]
    return [*{one.joined.metric: one for one in found[::-1]}.values()][::-1]


def _measure_criterion(
    values: CalibrationValues,
    chosen: CalibratedCriterion,
    settings: CalibrationSettings,
    bounds: Mapping[str, tuple[float, float]],
) -> CriterionReport:
    joined = {
        metric: join_labels(values.evaluation, chosen.labels, metric, settings.scale, bounds.get(metric, (0.0, 1.0)))
        for metric in dict.fromkeys((*chosen.shown, *chosen.compared))
    }
    found = [_measure(values.evaluation, joined[metric], settings) for metric in chosen.shown]
    contenders = [
        ComparedJudge(joined[name], values.known.judges.get(name), values.spending.get(name, Spending()))
        for name in chosen.compared
    ]
    return CriterionReport(found, compare_judges(contenders, settings.criterion) if contenders else None)


def _measure(evaluation: Evaluation, joined: Joined, settings: CalibrationSettings) -> JudgeReport:
    return JudgeReport(
        joined,
        measure_judge(joined, settings.criterion, width=settings.width),
        find_biases(evaluation, joined),
        None if settings.limit is None else promise(joined, settings.limit, settings.confidence),
        measure_slices(evaluation, joined),
    )
