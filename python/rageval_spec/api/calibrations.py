"""`rageval_spec.calibrate`: what a judge's values are worth beside people's labels.

It does for a finished evaluation what `rageval-spec calibrate` does for a results folder, with the same numbers.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.api.evaluations import iterate_rows, simplify
from rageval_spec.api.finished_evaluation import FinishedEvaluation, load_results
from rageval_spec.calibration import calibration_report, judge_reports
from rageval_spec.calibration.calibration_report import keep_calibration
from rageval_spec.calibration.judge_reports import (
    CalibrationValues,
    CriterionReport,
    JudgeReport,
    choose_values,
    list_judges,
    measure_judges,
)
from rageval_spec.calibration.labelled_items import explain_sampling
from rageval_spec.calibration.measures import WIDTH, CalibrationMeasure
from rageval_spec.calibration.verdict_sentences import conclude_judge, say_needs
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.html_shell import draw_table, show_text
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.label_files import make_labels, read_columns, read_label_file, refuse_duplicates
from rageval_spec.statistics.raters.label_counts import bound_worth
from rageval_spec.wording import format_interval, format_number, format_signed

if TYPE_CHECKING:
    from rageval_spec.calibration.judge_quality import JudgeComparison
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label, LabelScale
    from rageval_spec.statistics.raters.corrected_means import CorrectedMean
    from rageval_spec.statistics.raters.rater_agreement import AgreementCoefficient


_SPECS = (".yaml", ".yml")
_SETTING = "columns={{'{part}': '{name}'}}"
_OPTION = compile_later(r"--(metric|judge|scale|threshold|guarantee) (?:'([^']*)'|(.*?))(?=: |$)|--column [^:]*: ")


def calibrate(
    evaluation: FinishedEvaluation | str | os.PathLike[str],
    labels: Any,
    *,
    metric: str | Sequence[str] = (),
    judge: str | Sequence[str] = (),
    scale: str | tuple[float, float] | None = None,
    threshold: str = "youden",
    width: float = WIDTH,
    guarantee: str | None = None,
    confidence: float = 0.95,
    columns: Mapping[str, str] | None = None,
) -> Calibrations:
    """Compare a judge's values with people's labels of the same answers, for each labelled metric.

    Args:
        evaluation: what `run`, `judge` or `load_results` returned, or a results folder. Run a spec first.
        labels: the path of a file, several paths, or rows: dicts or a frame (polars, pandas, pyarrow) with `query_id`
            and `value`, and where it matters `metric`, `system`, `dataset`, `annotator`, `claim` or `probability`.
        metric: only these metrics; by default all that have labels. Labels that name no metric are about this one.
        judge: only metrics that ask one of these judges.
        scale: the worst and the best label, `(1, 5)` or "1..5"; 0 and 1 by default.
        threshold: the threshold to find: "youden", "f1" or "precision>=0.95".
        width: the width of intervals for which to say how many labels are needed; 0.1 is ±0.05.
        guarantee: find the threshold that keeps a promise, "wrong answers sent <= 2%".
        confidence: the probability with which the promise is kept.
        columns: the labels' column for a part of a label, `{"value": "rating"}`.

    Raises:
        DataError: labels cannot be read (with `file:line`, or the row) or do not fit the results.
        UsageError: an argument is wrong, or the results lack a labelled metric.
    """
    if not 0 < width <= 1:
        raise UsageError(f"width: write a number above 0 and at most 1, not {width!r}")
    if not 0.5 < confidence < 1:
        raise UsageError(f"confidence: write a number between 0.5 and 1, not {confidence!r}")
    data = _open(evaluation)
    try:
        settings = judge_reports.CalibrationSettings(
            _read_scale(scale),
            judge_reports.read_criterion(threshold),
            width,
            judge_reports.read_guarantee(guarantee),
            confidence,
            details=False,
        )
        told = _read_labels(labels, read_columns([f"{part}={name}" for part, name in (columns or {}).items()]))
        values = choose_values(data, told, *((one,) if isinstance(one, str) else one for one in (metric, judge)))
        return Calibrations(values, measure_judges(values, settings), settings)
    except (DataError, UsageError) as error:
        raise type(error)(_OPTION.sub(_name_argument, str(error))) from error


def _name_argument(found: re.Match[str]) -> str:
    """An option as the argument of the same name."""
    return f"{found[1]}={(found[2] or found[3] or '')!r}" if found[1] else "columns: "


def _read_scale(scale: Any) -> LabelScale | None:
    text = "..".join(map(str, scale)) if isinstance(scale, tuple | list) else scale
    return judge_reports.read_scale(None if text is None else str(text))


def _open(evaluation: Any) -> Evaluation:
    if isinstance(evaluation, FinishedEvaluation):
        return evaluation.data
    is_path = isinstance(evaluation, str | os.PathLike)
    if isinstance(evaluation, Mapping) or (is_path and Path(evaluation).suffix in _SPECS):
        raise UsageError("evaluation: this is a spec; run it first: calibrate(rageval_spec.run(spec), labels)")
    if not is_path:
        kind = type(evaluation).__name__
        raise UsageError(f"evaluation: give what `run` or `load_results` returned, or a results folder, not {kind}")
    return load_results(Path(evaluation)).data


def _read_labels(labels: Any, columns: Mapping[str, str]) -> list[Label]:
    paths = labels if isinstance(labels, list | tuple) else [labels]
    if paths and all(isinstance(path, str | os.PathLike) for path in paths):
        found = [label for path in paths for label in read_label_file(Path(path), columns, setting=_SETTING)]
    else:
        rows = [json.loads(json.dumps(row, default=simplify)) for row in iterate_rows(labels, "labels")]
        if not rows:
            raise UsageError("labels: there are none; a label has at least query_id and value")
        places = [(f"labels[{index}]", row) for index, row in enumerate(rows)]
        found = make_labels(places, Path("labels"), columns, _SETTING)
    refuse_duplicates(found)
    return found


@dataclass(frozen=True, slots=True, repr=False)
class MetricCalibration:
    """What a judge's values of one metric are worth. Numbers are on a scale from 0 (worst) to 1 (best).

    A measure has `value` and `interval` (with `low` and `high`), either of which can be None, and a `reason` if it is.

    Attributes:
        metric: the metric.
        judge: the judge that it asks; None if it asks none, or several.
        width: the width of intervals that `labels_to_buy` is for.
    """

    metric: str
    judge: str | None
    width: float
    _report: JudgeReport

    @property
    def items(self) -> int:
        """The number of labelled answers, or of labelled claims."""
        return self._report.calibration.items

    @property
    def auroc(self) -> CalibrationMeasure | None:
        """How often a good answer has a higher value than a bad one; None if there are no good ones or no bad ones."""
        return _find(self._report.calibration.discrimination, "auroc")

    @property
    def bias(self) -> CalibrationMeasure | None:
        """The judge's mean less the labels'; a positive bias is a generous judge."""
        return _find(self._report.calibration.association, "bias")

    @property
    def mean(self) -> CorrectedMean:
        """The corrected mean: `value` and `interval` of what people would say; `judged` and `labelled` alone."""
        return self._report.calibration.mean

    @property
    def worth(self) -> float | None:
        """How many labels without the judge would give as narrow an interval; None if there are too few to tell."""
        return None if self.worth_interval is None else self.mean.worth

    @property
    def worth_interval(self) -> tuple[float, float] | None:
        """The 95% interval of `worth`."""
        mean = self.mean
        return None if mean.worth is None else bound_worth(mean.labels, mean.worth, mean.rows, mean.degrees + 1)

    @property
    def threshold(self) -> float | None:
        """From which value on the judge says yes; None if the labels show no such value."""
        found = self._report.calibration.threshold
        return None if found is None else found.threshold

    @property
    def kappa(self) -> CalibrationMeasure | None:
        """Cohen's kappa of decisions by such thresholds and people's, on questions held out; None if there are few."""
        return _find(self._report.calibration.decisions, "kappa")

    @property
    def agreement(self) -> AgreementCoefficient:
        """How well people agree with one another: Krippendorff's alpha of the labels."""
        return self._report.calibration.people

    @property
    def labels_to_buy(self) -> int | None:
        """How many more labels make the interval of the corrected mean as narrow as `width`.

        None if there are too few to tell, or if labels of all answers would not do.
        """
        learning = self._report.calibration.learning
        need = None if learning is None else learning.find("corrected_mean")
        if need is None or need.is_met(self.width):
            return None if need is None else 0
        return None if need.labels is None else max(need.labels - self.items, 1)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the numbers mean, how many labels to buy, and what to know of how the labelled answers were chosen."""
        found = self._report.calibration
        told = [*conclude_judge(found)]
        told += say_needs(found.learning, found.items) if found.learning else ()
        return tuple(map(make_visible, [*told, *(explain_sampling(found.sampling) if found.sampling else ())]))

    def to_dict(self) -> dict[str, Any]:
        """Every number, as under `calibrations` in the JSON of `rageval-spec calibrate --format json`."""
        content: dict[str, list[dict[str, Any]]]
        content = json.loads(calibration_report.dump([CriterionReport([self._report])], {}))
        return content["calibrations"][0]

    def __repr__(self) -> str:
        """The metric with its main numbers in a line, and what they mean."""
        numbers = ", ".join(f"{name} {text}" for name, text in self._describe().items() if text)
        return "\n  ".join([f"{make_visible(self.metric)}: {numbers}", *self.conclusions])

    def _describe(self) -> dict[str, str]:
        ends = self.worth_interval
        mean = f"{format_number(self.mean.value)} {format_interval(self.mean.interval)}".strip()
        return {
            "labelled items": str(self.items),
            "AUROC": _write(self.auroc),
            "bias": _write(self.bias, signed=True),
            "corrected mean": mean,
            "labels' worth": "" if ends is None else f"{self.worth:,.0f} [{ends[0]:,.0f}, {ends[1]:,.0f}]",
            "labels to buy": "" if self.labels_to_buy is None else f"{self.labels_to_buy:,}",
        }


def _find(measures: Sequence[CalibrationMeasure], name: str) -> CalibrationMeasure | None:
    return next((one for one in measures if one.name == name), None)


def _write(measure: CalibrationMeasure | None, *, signed: bool = False) -> str:
    if measure is None or measure.value is None:
        return ""
    return f"{(format_signed if signed else format_number)(measure.value)} {format_interval(measure.interval)}".strip()


class Calibrations(Mapping[str, MetricCalibration]):
    """The calibration of each metric, by name. In a notebook it shows itself as a table.

    Attributes:
        comparisons: judges that ask the same, side by side.
        criteria_without_metric: the criteria of labels that no metric is about, with the number of their labels.
    """

    def __init__(
        self,
        values: CalibrationValues,
        groups: Sequence[CriterionReport],
        settings: judge_reports.CalibrationSettings,
    ) -> None:
        """`calibrate` creates calibrations."""
        self._values, self._groups, self._settings = values, groups, settings
        self._found = {
            one.joined.metric: MetricCalibration(
                one.joined.metric, values.known.judges.get(one.joined.metric), settings.width, one
            )
            for one in list_judges(groups)
        }
        self.comparisons: tuple[JudgeComparison, ...] = tuple(one.comparison for one in groups if one.comparison)
        self.criteria_without_metric: Mapping[str, int] = values.others

    def __getitem__(self, metric: str) -> MetricCalibration:
        """The calibration of a metric."""
        return self._found[metric]

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self._found)

    def __len__(self) -> int:
        """The number of metrics."""
        return len(self._found)

    def to_dict(self) -> dict[str, Any]:
        """Everything that `rageval-spec calibrate --format json` writes."""
        content: dict[str, Any] = json.loads(calibration_report.dump(self._groups, self._values.others))
        return content

    def text(self, *, details: bool = False) -> str:
        """What `rageval-spec calibrate` prints, with `details` as with `--details`."""
        return calibration_report.render(self._values, self._groups, replace(self._settings, details=details)).decode()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a calibration that judges of a spec can take, as `rageval-spec calibrate -o` does; return its path.

        Raises:
            UsageError: the values are not the scores of one judge; the file exists and is no calibration.
            DataError: the file cannot be written.
        """
        target, evaluation = Path(path), self._values.evaluation
        calibration_report.check_place(target)
        found = list_judges(self._groups)
        entries = [keep_calibration(evaluation, one.joined, one.calibration, one.promise) for one in found]
        calibration_report.write_calibrations(target, evaluation, entries)
        return target

    def __repr__(self) -> str:
        """What is known of each metric."""
        return "\n".join(map(repr, self.values()))

    def _repr_html_(self) -> str:
        rows = [{"metric": one.metric, **one._describe()} for one in self.values()]
        table = draw_table(rows[0], (row.values() for row in rows))
        told = (f"<li>{show_text(f'{one.metric}: {text}')}</li>" for one in self.values() for text in one.conclusions)
        return f"{table}<ul>{''.join(told)}</ul>"
