"""`calibrate`: joins labels with the values of results, and shows how close the judge comes to people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rageval_spec.calibration import calibration_report, judge_reports
from rageval_spec.calibration.calibration_report import keep_calibration
from rageval_spec.calibration.judge_reports import choose_values, list_judges, measure_judges
from rageval_spec.calibration.measures import WIDTH
from rageval_spec.commands.calibrate.judge_runs import Running, evaluate
from rageval_spec.commands.results_argument import is_spec, open_results
from rageval_spec.errors import UsageError
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.spec import load


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

    `results` are a results folder, a label or a record of the history, or a spec; None for the last results. The other
    arguments are the options of the command.
    """
    if output is not None:
        calibration_report.check_place(output)
    if freeze is not None:
        calibration_report.check_place(freeze, "anchors")
    settings = judge_reports.CalibrationSettings(
        judge_reports.read_scale(scale),
        judge_reports.read_criterion(threshold),
        width,
        judge_reports.read_guarantee(guarantee),
        confidence,
        details=details,
    )
    told = read_labels(labels, read_columns(columns)) if labels else None
    if results is not None and is_spec(results):
        running = running or Running()
        spec = load(Path(results), overrides=running.overrides)
        evaluated = evaluate(spec, told or judge_reports.read_spec_labels(spec), metrics, judges, running)
    elif running is not None and (running.overrides or running.everything):
        raise UsageError("--set and --all need a spec: rageval-spec calibrate spec.yaml")
    else:
        opened = open_results(results)
        if told is None:
            raise UsageError("name the labels: --labels labels.csv; or a spec with 'labels:' instead of results")
        evaluated = choose_values(opened.evaluation, told, metrics, judges)
    groups = measure_judges(evaluated, settings)
    evaluation, found = evaluated.evaluation, list_judges(groups)
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
    return calibration_report.render(evaluated, groups, settings, kept)
