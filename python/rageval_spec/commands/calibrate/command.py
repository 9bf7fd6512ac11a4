"""`calibrate`: joins labels with the values of results, and shows how close the judge comes to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.calibration.bias import find_biases
from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.keeping import keep_calibration
from rageval_spec.calibration.learning import WIDTH
from rageval_spec.calibration.measuring import measure_judge, promise
from rageval_spec.calibration.slices import measure_slices
from rageval_spec.commands.calibrate.drawing import draw
from rageval_spec.commands.calibrate.keeping import check_place, write_calibrations
from rageval_spec.commands.calibrate.settings import read_criterion, read_guarantee, read_scale
from rageval_spec.commands.calibrate.structure import Found, dump
from rageval_spec.commands.results import open_results
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.reading.labels import read_columns, read_labels
from rageval_spec.reports.shared.console import render_text
from rageval_spec.wording import list_choices, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label


def calibrate(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    threshold: str = "youden",
    width: float = WIDTH,
    guarantee: str | None = None,
    confidence: float = 0.95,
    details: bool = False,
    output: Path | None = None,
) -> bytes:
    """Compare a judge with people's labels, for each labelled metric, as text or JSON.

    Args:
        results: a results folder, a label or a record of the history; None for the last results.
        labels: the files of labels.
        columns: names of columns as `part=name`.
        metrics: only these metrics; none for all that have labels.
        scale: the worst and the best label: `1..5`.
        form: `text` or `json`.
        threshold: what the best threshold is: `youden`, `f1` or `precision>=0.95`.
        width: the width of the intervals for which labels are planned.
        guarantee: what to promise: `wrong answers sent <= 2%`; None for no promise.
        confidence: the probability with which the promise must be kept.
        details: show all tables.
        output: the calibration to write; None to write none.

    Raises:
        DataError: a file cannot be read, or labels do not fit the results.
        UsageError: an option is wrong, or the results lack a labelled metric.
    """
    if output is not None:
        check_place(output)
    told = read_labels(labels, read_columns(columns))
    evaluation = open_results(results).evaluation
    by_metric = _choose(evaluation, told, metrics)
    wanted, criterion, limit = read_scale(scale), read_criterion(threshold), read_guarantee(guarantee)
    joined = [join_labels(evaluation, of, metric, wanted) for metric, of in by_metric.items()]
    found = [
        Found(
            measure_judge(one, criterion, width=width),
            find_biases(evaluation, one),
            None if limit is None else promise(one, limit, confidence),
            measure_slices(evaluation, one),
        )
        for one in joined
    ]
    kept = None
    if output is not None:
        pairs = zip(joined, found, strict=True)
        entries = [keep_calibration(evaluation, one, its.calibration, its.promise) for one, its in pairs]
        kept = write_calibrations(output, evaluation, entries)
    if form == "json":
        return dump(found)
    return render_text(lambda _: _draw_all(found, limit, confidence, kept, details=details))


def _draw_all(
    found: Sequence[Found], limit: float | None, confidence: float, kept: str | None, *, details: bool
) -> Iterator[RenderableType]:
    for one in found:
        yield from draw(one, limit, confidence, details=details)
    if kept is not None:
        yield make_visible(kept)


def _choose(evaluation: Evaluation, labels: Sequence[Label], metrics: Sequence[str]) -> dict[str, list[Label]]:
    """The labels of each metric. Labels without a metric belong to the one that the command line names."""
    named = [*dict.fromkeys(label.metric for label in labels if label.metric)]
    if len(named) < len({label.metric for label in labels}) and len(metrics) != 1:
        raise UsageError(
            "some labels do not name their metric; add a column 'metric', or name it: --metric "
            + (named or evaluation.metrics)[0]
        )
    chosen = [*metrics] or named
    for metric in chosen:
        if metric not in evaluation.metrics:
            hint = suggest(metric, evaluation.metrics) or f"they have {list_choices(evaluation.metrics)}"
            raise UsageError(f"the results have no metric '{metric}'; {hint}")
    by_metric = {metric: [label for label in labels if label.metric in ("", metric)] for metric in chosen}
    for metric, of in by_metric.items():
        if not of:
            raise UsageError(f"no label has the metric '{metric}'; the labels have {list_choices(named)}")
    return by_metric
