"""`calibrate`: joins labels with the values of results, and shows how close the judge comes to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.calibration.bias import find_biases
from rageval_spec.calibration.calibration_records import keep_calibration
from rageval_spec.calibration.judge_comparison import ComparedJudge, Spending, compare_judges, find_spending
from rageval_spec.calibration.judge_quality import measure_judge, measure_slices, promise
from rageval_spec.calibration.labelled_items import Joined, join_labels
from rageval_spec.calibration.measures import WIDTH
from rageval_spec.commands.calibrate import calibration_report, label_choice
from rageval_spec.commands.calibrate.judge_runs import CalibrationValues, Running, evaluate
from rageval_spec.commands.results_argument import is_spec, open_results
from rageval_spec.data.labels import find_ends
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import render_text
from rageval_spec.errors import UsageError
from rageval_spec.history.metric_definitions import read_ranges, read_recorded_spec
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.spec import load

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.evaluation import Evaluation


def calibrate_judges(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    judges: Sequence[str] = (),
    threshold: str = "youden",
    width: float = WIDTH,
    guarantee: str | None = None,
    confidence: float = 0.95,
    details: bool = False,
    output: Path | None = None,
    freeze: Path | None = None,
    running: Running | None = None,
) -> bytes:
    """Compare a judge with people's labels, for each labelled metric, as text or JSON.

    Args:
        results: a results folder, a label or a record of the history, or a spec; None for the last results.
        labels: the files of labels; for a spec, none for its own labels.
        columns: names of columns as `part=name`.
        metrics: only these metrics; none for all that have labels.
        scale: the worst and the best label: `1..5`.
        form: `text` or `json`.
        judges: only metrics that ask one of these judges; none for all.
        threshold: what the best threshold is: `youden`, `f1` or `precision>=0.95`.
        width: the width of the intervals for which labels are planned.
        guarantee: what to promise: `wrong answers sent <= 2%`; None for no promise.
        confidence: the probability with which the promise must be kept.
        details: show all tables.
        output: the calibration to write; None to write none.
        freeze: the file of anchors to write; None to write none.
        running: how a spec is run.

    Raises:
        DataError: a file cannot be read, or labels do not fit the results.
        UsageError: an option is wrong, or the results lack a labelled metric.
    """
    if output is not None:
        calibration_report.check_place(output)
    if freeze is not None:
        calibration_report.check_place(freeze, "anchors")
    settings = label_choice.CalibrationSettings(
        label_choice.read_scale(scale),
        label_choice.read_criterion(threshold),
        width,
        label_choice.read_guarantee(guarantee),
        confidence,
        details=details,
    )
    evaluated = (
        _run_spec(Path(results), labels, columns, metrics, judges, running or Running())
        if results is not None and is_spec(results)
        else _open(results, labels, columns, metrics, judges, running)
    )
    evaluation = evaluated.evaluation
    groups = [_calibrate(evaluated, chosen, settings) for chosen in evaluated.chosen]
    found = [*{one.joined.metric: one for group in groups[::-1] for one in group.found[::-1]}.values()][::-1]
    kept: list[str] = []
    if output is not None:
        entries = [keep_calibration(evaluation, one.joined, one.calibration, one.promise) for one in found]
        kept.append(calibration_report.write_calibrations(output, evaluation, entries))
    if freeze is not None:
        kept.append(
            calibration_report.write_anchors(freeze, evaluation, [(one.joined, one.calibration) for one in found])
        )
    if form == "json":
        return calibration_report.dump(groups, evaluated.others)
    notes = [label_choice.explain_other(name, count, evaluated.known) for name, count in evaluated.others.items()]
    return render_text(lambda _: _draw_all(groups, settings, [*notes, *kept]))


def _open(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    judges: Sequence[str],
    running: Running | None,
) -> CalibrationValues:
    """Results, and which of their metrics are calibrated."""
    if running is not None and (running.overrides or running.everything):
        raise UsageError("--set and --all need a spec: rageval-spec calibrate spec.yaml")
    evaluation = open_results(results).evaluation
    if not labels:
        raise UsageError("name the labels: --labels labels.csv; or a spec with 'labels:' instead of results")
    told = read_labels(labels, read_columns(columns))
    recorded = read_recorded_spec(evaluation)
    known = label_choice.know(evaluation, recorded)
    chosen = label_choice.choose(known, told, metrics, judges)
    compared = [] if recorded is None else [name for one in chosen for name in one.compared]
    spending = {name: find_spending(evaluation, recorded, name) for name in compared if recorded is not None}
    return CalibrationValues(evaluation, chosen, known, spending, label_choice.count_others(known, told, metrics))


def _run_spec(
    path: Path,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    judges: Sequence[str],
    running: Running,
) -> CalibrationValues:
    """Run a spec, with labels of its own or from files."""
    spec = load(path, overrides=running.overrides)
    told = read_labels(labels, read_columns(columns)) if labels else label_choice.read_spec_labels(spec)
    return evaluate(spec, told, metrics, judges, running)


def _calibrate(
    evaluated: CalibrationValues, chosen: label_choice.CalibratedCriterion, settings: label_choice.CalibrationSettings
) -> calibration_report.CriterionReport:
    """Measure the judges of one criterion, and compare them."""
    evaluation = evaluated.evaluation
    bounds = _list_bounds(evaluation)
    joined = {
        metric: join_labels(evaluation, chosen.labels, metric, settings.scale, bounds.get(metric, (0.0, 1.0)))
        for metric in dict.fromkeys((*chosen.shown, *chosen.compared))
    }
    found = [_measure(evaluation, joined[metric], settings) for metric in chosen.shown]
    contenders = [
        ComparedJudge(joined[name], evaluated.known.judges.get(name), evaluated.spending.get(name, Spending()))
        for name in chosen.compared
    ]
    return calibration_report.CriterionReport(
        found, compare_judges(contenders, settings.criterion) if contenders else None
    )


def _list_bounds(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """The values of each metric that the worst and the best label stand for."""
    return {name: find_ends(*ends) for name, ends in read_ranges(evaluation).items()}


def _measure(
    evaluation: Evaluation, joined: Joined, settings: label_choice.CalibrationSettings
) -> calibration_report.JudgeReport:
    return calibration_report.JudgeReport(
        joined,
        measure_judge(joined, settings.criterion, width=settings.width),
        find_biases(evaluation, joined),
        None if settings.limit is None else promise(joined, settings.limit, settings.confidence),
        measure_slices(evaluation, joined),
    )


def _draw_all(
    groups: Sequence[calibration_report.CriterionReport],
    settings: label_choice.CalibrationSettings,
    notes: Sequence[str],
) -> Iterator[RenderableType]:
    for group in groups:
        yield from calibration_report.draw_group(group, settings)
    for note in notes:
        yield make_visible(note)
