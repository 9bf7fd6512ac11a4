"""The text of `calibrate`: what the numbers mean in words, then the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rageval_spec.calibration.learning import Learning
from rageval_spec.calibration.maps import MapChoice, MapTrial
from rageval_spec.calibration.measures import Measure
from rageval_spec.calibration.measuring import Calibration, Promise
from rageval_spec.calibration.reliability import Reliability
from rageval_spec.calibration.sampling import explain_promise, explain_sampling
from rageval_spec.commands.calibrate.bias_table import draw_biases
from rageval_spec.commands.calibrate.diagram import draw_diagram
from rageval_spec.commands.calibrate.headline import Sentence, conclude, say_promise
from rageval_spec.commands.calibrate.labels_to_buy import draw_curve, say_needs
from rageval_spec.commands.calibrate.settings import Settings
from rageval_spec.commands.calibrate.side_by_side import draw_comparison
from rageval_spec.commands.calibrate.slice_table import draw_slices
from rageval_spec.commands.calibrate.structure import Found, Group
from rageval_spec.reports.shared.console import tabulate
from rageval_spec.wording import (
    count_noun,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    make_visible,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.calibration.joining import Joined

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
    "brier": "Brier score",
    "log_loss": "log loss",
}
_OWN: Mapping[str, str] = {
    "kappa": "people's own kappa",
    "fleiss": "people's own kappa (Fleiss')",
    "alpha-nominal": "people's own decisions (alpha)",
}
"""What the agreement of people's yes and no is called."""
_CRITERIA: Mapping[str, str] = {"youden": "the highest Youden index", "f1": "the highest F1"}
_DETAILS = ("pearson", "spearman", "kendall", "average_precision", "balanced_accuracy", "f1")
"""What only `--details` shows: others say nearly the same, and all tables should fit on one screen."""


def draw_group(group: Group, settings: Settings) -> Iterator[RenderableType]:
    """What labels of one criterion show. Several judges are compared first, and then described in words."""
    from rich.text import Text

    if group.comparison is not None:
        yield from draw_comparison(group.comparison, details=settings.details)
    is_short = len(group.found) > 1 and not settings.details
    for found in group.found:
        yield from _draw_head(found.calibration, found.joined.bounds)
        yield from _draw_clusters(found.joined)
        if is_short:
            yield from _draw_promise(found.promise, settings, found.calibration)
        else:
            yield from _draw_all(found, settings)
    if group.found and not settings.details:
        yield Text("--details adds the reliability diagram, all measures, slices and the effects of biases.", "dim")
        yield ""


def _draw_clusters(joined: Joined) -> Iterator[RenderableType]:
    """How many clusters the labelled questions are in, if the evaluation says which belong together."""
    from rich.text import Text

    if joined.together:
        questions, clusters = (len({*of}) for of in (joined.questions, joined.clusters))
        told = f"Intervals: {count_noun(questions, 'labelled question')} in {count_noun(clusters, 'cluster')}."
        yield Text(told, "dim")
        yield ""


def _draw_all(found: Found, settings: Settings) -> Iterator[RenderableType]:
    """The tables of a judge on one metric."""
    calibration, details = found.calibration, settings.details
    yield from _draw_measures(calibration, details=details)
    yield from _draw_decisions(calibration, details=details)
    if calibration.reliability is not None and details:
        yield from _draw_reliability(calibration.reliability, calibration.map)
    yield from _draw_means(calibration, is_weighted=bool(found.joined.shares))
    if calibration.learning is not None:
        yield from _draw_learning(calibration.learning, calibration.items, details=details)
    yield from draw_biases(found.biases, details=details)
    if details or any(part.kind != "slice" for part in found.slices):
        yield from draw_slices(found.slices)
    yield from _draw_promise(found.promise, settings, calibration)


def _draw_head(found: Calibration, bounds: tuple[float, float]) -> Iterator[RenderableType]:
    from rich.text import Text

    people = count_noun(found.annotators, "person", "people")
    items = count_noun(found.items, "labelled item")
    yield Text(make_visible(f"{found.metric}: {items}, {count_noun(found.labels, 'label')} by {people}"), "bold")
    yield ""
    if bounds != (0.0, 1.0):
        yield Text(f"Shown from 0 (worst) to 1 (best); values of the metric go from {bounds[0]:g} to {bounds[1]:g}.")
    yield from _write(conclude(found))


def _write(sentences: Iterable[Sentence]) -> Iterator[RenderableType]:
    """The sentences, one a line, and an empty line if there are any."""
    from rich.text import Text

    written = [Text(make_visible(sentence), style) for sentence, style in sentences]
    yield from written
    if written:
        yield ""


def _draw_measures(found: Calibration, *, details: bool) -> Iterator[RenderableType]:
    shown = (*found.discrimination, *found.association)
    left_out = () if details else _DETAILS if found.discrimination else ("pearson", "kendall")
    rows = [_describe(one) for one in shown if one.name not in left_out]
    yield tabulate(("measure", "value", "95% interval"), rows, {1})
    yield ""


def _describe(one: Measure) -> tuple[str, str, str]:
    value = "" if one.value is None else format_number(one.value)
    return _NAMES[one.name], value, format_interval(one.interval) or one.reason or ""


def _draw_decisions(found: Calibration, *, details: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    if found.threshold is None or found.threshold.threshold is None:
        return
    criterion = found.threshold.criterion
    best = _CRITERIA.get(criterion, f"the lowest with a {criterion.replace('>=', ' of ')} or more")
    yield Text(f"Yes from {format_number(found.threshold.threshold)} on ({best}, on all labels)", "bold")
    yield ""
    if found.decisions:
        rows = [_describe(one) for one in found.decisions if details or one.name not in _DETAILS]
        own = found.people_decisions
        if own.value is not None:
            rows.append((_OWN[own.coefficient], format_number(own.value), format_interval(own.interval)))
        people = found.people.value
        if people is not None:
            rows.append(
                ("people with one another (alpha)", format_number(people), format_interval(found.people.interval))
            )
        yield tabulate(("on questions held out", "value", "95% interval"), rows, {1})
    else:
        yield Text(
            "There are too few questions, or too few good or bad answers, to hold some out, so it is not known how "
            "good such decisions are."
        )
    yield ""


def _draw_reliability(found: Reliability, maps: MapChoice) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text("Do the values mean what they say?", "bold")
    yield ""
    yield draw_diagram(found.bins)
    yield ""
    rows = [
        ("calibration error, equal widths", format_number(found.error.value), format_interval(found.error.interval)),
        (
            "calibration error, equal counts",
            format_number(found.error_by_mass.value),
            format_interval(found.error_by_mass.interval),
        ),
        ("calibration error with chance", format_number(found.error.plain), ""),
        *map(_describe, found.losses),
        ("  miscalibration", format_number(found.brier_parts.miscalibration), ""),
        ("  less discrimination", format_number(found.brier_parts.discrimination), ""),
        ("  plus uncertainty", format_number(found.brier_parts.uncertainty), ""),
    ]
    yield tabulate(("measure", "value", "95% interval"), rows, {1})
    yield ""
    yield from _draw_maps(maps)


def _draw_maps(maps: MapChoice) -> Iterator[RenderableType]:
    from rich.text import Text

    if maps.trials:
        header = (
            "map, on questions held out",
            "calibration error",
            "95% interval",
            "Brier",
            "log loss",
            "gain (Brier)",
        )
        yield tabulate(header, [_describe_trial(one) for one in maps.trials], {1, 3, 4})
    used = "none" if maps.chosen is None else maps.chosen.kind
    yield Text(make_visible(f"Use {used}" + (f": {maps.reason}." if maps.reason else ".")))
    yield ""


def _describe_trial(one: MapTrial) -> tuple[str, ...]:
    gain = "" if one.gain is None else f"{format_signed(one.gain)} {format_interval(one.gain_interval)}"
    error = format_number(one.error.value), format_interval(one.error.interval)
    return one.kind, *error, format_number(one.brier), format_number(one.log_loss), gain


def _draw_means(found: Calibration, *, is_weighted: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    mean = found.mean
    rows = [
        ("judge alone", format_number(mean.judged), "", f"{mean.rows:,}"),
        ("judge corrected by labels", format_number(mean.value), format_interval(mean.interval), f"{mean.rows:,}"),
        ("labels alone", format_number(mean.labelled), format_interval(mean.labelled_interval), f"{mean.labels:,}"),
    ]
    yield tabulate(("mean of what people would say", "value", "95% interval", "items"), rows, {1, 3})
    if mean.worth is not None and mean.rows > mean.labels:
        yield Text(f"With this judge, {mean.labels:,} labels are worth {mean.worth:,.0f} without it.")
    if is_weighted:
        yield Text("In these means, questions count as the spec's weights say; other measures count all alike.", "dim")
    for sentence in explain_sampling(found.sampling) if found.sampling else ():
        yield Text(make_visible(sentence), "yellow")
    yield ""


def _draw_learning(found: Learning, items: int, *, details: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text("Labels to buy", "bold")
    yield from _write((sentence, "") for sentence in say_needs(found, items))
    if details:
        yield draw_curve(found)
        yield ""


def _draw_promise(found: Promise | None, settings: Settings, of: Calibration) -> Iterator[RenderableType]:
    from rich.text import Text

    if found is None or settings.limit is None:
        return
    warning = explain_promise(of.sampling)
    told = say_promise(found, settings.limit, settings.confidence, of.items)
    yield from _write([*told, *([] if warning is None else [(f"! {warning}", "yellow")])])
    rows = [
        (
            format_number(one.threshold),
            format_percent(one.coverage),
            format_percent(one.risk),
            format_percent(one.upper),
        )
        for one in found.curve
    ]
    header = ("sent from", "answers sent", "wrong among them", f"upper bound ({settings.confidence:.0%})")
    yield tabulate(header, rows, {0, 1, 2, 3})
    yield Text("Each bound holds for a threshold that was chosen beforehand, not for the best of them.", "dim")
    yield ""
