"""`calibrate`: joins labels with the values of results, and shows how close the judge comes to people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.calibration.bias import Bias, find_biases
from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.measuring import ENOUGH_LABELS, Calibration, Measure, Promise, measure_judge, promise
from rageval_spec.calibration.sampling import explain_sampling
from rageval_spec.commands.results import open_results
from rageval_spec.data.labels import Scale
from rageval_spec.diagnostics import dump_visible, suggest
from rageval_spec.errors import UsageError
from rageval_spec.reading.labels import read_columns, read_labels
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.statistics.guarantees import count_needed
from rageval_spec.wording import (
    count_noun,
    format_interval,
    format_number,
    format_percent,
    format_probability,
    format_signed,
    list_choices,
    make_visible,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label

_NAMES: Mapping[str, str] = {
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's rank correlation",
    "kendall": "Kendall's tau-b",
    "mae": "mean absolute error",
    "bias": "bias (judge less people)",
    "auroc": "AUROC",
    "average_precision": "average precision",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "kappa": "Cohen's kappa with people",
}
_GUARANTEE = re.compile(r"(?:wrong(?: answers)?(?: sent)? *(?:<=|≤) *)?([0-9]+(?:\.[0-9]+)?) *%")
_POOR = 0.7
"""An AUROC below this is little better than guessing (0.5)."""


def calibrate(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    guarantee: str | None = None,
    confidence: float = 0.95,
) -> bytes:
    """Compare a judge with people's labels, for each labelled metric, as text or JSON.

    Args:
        results: a results folder, a label or a record of the history; None for the last results.
        labels: the files of labels.
        columns: names of columns as `part=name`.
        metrics: only these metrics; none for all that have labels.
        scale: the worst and the best label: `1..5`.
        form: `text` or `json`.
        guarantee: what to promise: `wrong answers sent <= 2%`; None for no promise.
        confidence: the probability with which the promise must be kept.

    Raises:
        DataError: a file cannot be read, or labels do not fit the results.
        UsageError: an option is wrong, or the results lack a labelled metric.
    """
    told = read_labels(labels, read_columns(columns))
    evaluation = open_results(results).evaluation
    by_metric = _choose(evaluation, told, metrics)
    wanted = _read_scale(scale)
    limit = _read_guarantee(guarantee)
    joined = [join_labels(evaluation, of, metric, wanted) for metric, of in by_metric.items()]
    found = [
        _Found(
            measure_judge(one),
            find_biases(evaluation, one),
            None if limit is None else promise(one, limit, confidence),
        )
        for one in joined
    ]
    if form == "json":
        content = [asdict(one.calibration) | {"biases": one.biases, "promise": one.promise} for one in found]
        return dump_visible(content, default=asdict).encode()
    return render_text(lambda _: (block for one in found for block in _draw_all(one, limit, confidence)))


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of a judge on one metric."""

    calibration: Calibration
    biases: tuple[Bias, ...]
    promise: Promise | None


def _draw_all(found: _Found, limit: float | None, confidence: float) -> Iterator[RenderableType]:
    yield from _draw(found.calibration)
    yield from _draw_biases(found.biases)
    yield from _draw_promise(found.promise, limit, confidence)


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


def _read_scale(scale: str | None) -> Scale | None:
    if scale is None:
        return None
    low, dots, high = scale.partition("..")
    try:
        found = Scale(float(low), float(high))
    except ValueError:
        found = None
    if found is None or not dots or found.low == found.high:
        raise UsageError(f"--scale {scale}: write the worst and the best label, such as 1..5")
    return found


def _read_guarantee(guarantee: str | None) -> float | None:
    if guarantee is None:
        return None
    found = _GUARANTEE.fullmatch(guarantee.strip())
    limit = float(found[1]) / 100 if found else 0.0
    if not 0 < limit < 1:
        raise UsageError(
            f"--guarantee '{guarantee}': write the largest share of wrong answers, such as 2% or 'wrong <= 2%'"
        )
    return limit


def _draw(found: Calibration) -> Iterator[RenderableType]:
    from rich.text import Text

    people = count_noun(found.annotators, "person", "people")
    items = count_noun(found.items, "labelled item")
    yield Text(make_visible(f"{found.metric}: {items}, {count_noun(found.labels, 'label')} by {people}"), "bold")
    yield ""
    for sentence, style in _conclude(found):
        yield Text(make_visible(sentence), style)
    yield ""
    rows = [_describe(one) for one in (*found.association, *found.discrimination)]
    yield tabulate(("measure", "value", "95% interval"), rows, {1})
    yield ""
    yield from _draw_decisions(found)
    yield from _draw_means(found)


def _describe(one: Measure) -> tuple[str, str, str]:
    value = "" if one.value is None else format_number(one.value)
    return _NAMES[one.name], value, format_interval(one.interval) or one.reason or ""


def _conclude(found: Calibration) -> Iterator[tuple[str, str]]:
    """What the numbers mean, in words."""
    auroc = next((one for one in found.discrimination if one.name == "auroc"), None)
    bias = next(one for one in found.association if one.name == "bias")
    if auroc is None or auroc.value is None:
        yield (
            "All labels say the same, which does not show whether the judge tells right from wrong: "
            f"label {_rare(found)}.",
            "yellow",
        )
    elif auroc.interval is not None and auroc.interval.low < 0.5 < auroc.interval.high:
        yield "✗ The judge cannot be told from guessing: the interval of its AUROC contains 0.5.", "red"
    elif auroc.value < _POOR:
        yield (
            "! The judge is little better than guessing: it ranks a good answer above a bad one in "
            f"{auroc.value:.0%} of the cases.",
            "yellow",
        )
    else:
        yield f"✓ The judge ranks a good answer above a bad one in {auroc.value:.0%} of the cases.", "green"
    if bias.value is not None and bias.interval is not None and not bias.interval.low <= 0 <= bias.interval.high:
        how = "generous" if bias.value > 0 else "strict"
        yield f"It is {format_number(abs(bias.value))} more {how} than people: use the corrected mean.", ""
    if found.is_few:
        yield (
            f"Only {found.items} items are labelled; label {ENOUGH_LABELS} or more, so that intervals are narrow "
            "enough to decide by.",
            "yellow",
        )
    for reason, count in found.unused:
        yield f"{count_noun(count, 'label')} {reason} {'was' if count == 1 else 'were'} not used.", ""


def _rare(found: Calibration) -> str:
    return "some bad answers too" if found.yes else "some good answers too"


def _draw_decisions(found: Calibration) -> Iterator[RenderableType]:
    from rich.text import Text

    if found.threshold is None:
        return
    yield Text(
        f"Yes from {format_number(found.threshold.threshold)} on (best by Youden's index, on all labels)", "bold"
    )
    yield ""
    if found.decisions:
        rows = [_describe(one) for one in found.decisions]
        people = found.people.value
        if people is not None:
            rows.append(
                ("people with one another (alpha)", format_number(people), format_interval(found.people.interval))
            )
        yield tabulate(("on questions held out", "value", "95% interval"), rows, {1})
    else:
        yield Text("There are too few questions to hold some out, so it is not known how good such decisions are.")
    yield ""


def _draw_means(found: Calibration) -> Iterator[RenderableType]:
    from rich.text import Text

    mean = found.mean
    rows = [
        ("judge alone", format_number(mean.judged), "", f"{mean.rows}"),
        ("judge corrected by labels", format_number(mean.value), format_interval(mean.interval), f"{mean.rows}"),
        ("labels alone", format_number(mean.labelled), format_interval(mean.labelled_interval), f"{mean.labels}"),
    ]
    yield tabulate(("mean of what people would say", "value", "95% interval", "items"), rows, {1, 3})
    if mean.worth is not None and mean.rows > mean.labels:
        yield Text(f"With this judge, {mean.labels} labels are worth {mean.worth:.0f} without it.")
    for sentence in explain_sampling(found.sampling) if found.sampling else ():
        yield Text(make_visible(sentence), "yellow")
    yield ""


def _draw_biases(biases: Sequence[Bias]) -> Iterator[RenderableType]:
    """What makes the judge err, in sentences, and the effects of all properties."""
    from rich.text import Text

    if not biases:
        return
    yield Text("What makes the judge err", "bold")
    certain = [one for one in biases if one.is_significant]
    for one in certain:
        yield Text(make_visible(f"! {one}"), "yellow")
    if not certain:
        yield Text("Nothing that these labels can show.")
    yield ""
    rows = [
        (
            one.name,
            format_signed(one.effect.slope),
            format_interval(one.effect.interval),
            format_probability(one.p_adjusted),
        )
        for one in biases
    ]
    yield tabulate(("property", "effect on the error", "95% interval", "adjusted p"), rows, {1, 3})
    yield ""


def _draw_promise(found: Promise | None, limit: float | None, confidence: float) -> Iterator[RenderableType]:
    from rich.text import Text

    if found is None or limit is None:
        return
    for sentence, style in _promise(found, limit, confidence):
        yield Text(sentence, style)
    yield ""
    rows = [
        (
            format_number(one.threshold),
            format_percent(one.coverage),
            format_percent(one.risk),
            format_percent(one.upper),
        )
        for one in found.curve
    ]
    header = ("sent from", "answers sent", "wrong among them", f"upper bound ({confidence:.0%})")
    yield tabulate(header, rows, {0, 1, 2, 3})
    yield Text("Each bound holds for a threshold that was chosen beforehand, not for the best of them.", "dim")
    yield ""


def _promise(found: Promise, limit: float, confidence: float) -> Iterator[tuple[str, str]]:
    kept = found.wanted
    share, sure = format_percent(limit, 2), f"with {confidence:.0%} confidence"
    if kept is not None:
        yield (
            f"✓ Send answers from {format_number(kept.threshold)} on: at most {share} of them are wrong, {sure}.",
            "green",
        )
        yield f"Of {kept.labels} labelled answers, {kept.sent} would be sent, {kept.wrong} of them wrong.", ""
    elif found.best is not None:
        yield (
            f"✗ At most {share} cannot be promised with {found.items} labels; the best that can be is "
            f"{found.best.limit:.1%}, from {format_number(found.best.threshold)} on, {sure}.",
            "red",
        )
        yield _say_needed(found, limit, confidence), ""
    else:
        yield f"✗ Nothing can be promised with {found.items} labels.", "red"


def _say_needed(found: Promise, limit: float, confidence: float) -> str:
    needed = count_needed(limit, 1 - confidence)
    if found.items < needed:
        return f"Even if no answer were wrong, {needed} labels would be needed."
    return "A stricter judge, or more labels of answers with high values, would help."
