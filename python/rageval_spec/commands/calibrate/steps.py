"""`calibrate --spec`: chooses where each step of a cascade or a waterfall decides by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.calibration.cascading import Bands, count_decisions, find_bands
from rageval_spec.calibration.controlling import Control
from rageval_spec.calibration.keeping import count_labels
from rageval_spec.calibration.measuring import ENOUGH_LABELS
from rageval_spec.commands.calibrate.gathering import Gathered, Read, choose_metric, gather, list_bounds
from rageval_spec.commands.calibrate.keeping import check_place, write_calibrations
from rageval_spec.commands.calibrate.promising import find_promise, render_promise
from rageval_spec.commands.calibrate.settings import read_guarantee, read_scale
from rageval_spec.commands.results import open_results_of
from rageval_spec.data.judge_calibration import Labelled
from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import UsageError
from rageval_spec.judging.delegation import describe_saving
from rageval_spec.pipeline.asking import find_asked, open_parts
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.labels import read_columns, read_labels
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.runner import STORE
from rageval_spec.spec import load
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class StepsFound:
    """The bounds of a cascade's steps.

    Attributes:
        judge, metric: their names.
        steps: the names of the steps, in order.
        labelled: the labels, which are people's or the last step's decisions.
        bands: the bounds and how they do.
        saving: the calls that the last step is spared, in words; "" if it makes none.
    """

    judge: str
    metric: str
    steps: tuple[str, ...]
    labelled: Labelled
    bands: Bands
    saving: str


def calibrate_steps(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    spec: Path,
    agreement: float | None = None,
    against: str = "people",
    guarantee: str | None = None,
    confidence: float = 0.95,
    control: Control = "ltt",
    output: Path | None = None,
    overrides: Sequence[str] = (),
    store: Path | None = None,
    no_store: bool = False,
) -> bytes:
    """Choose where the steps of a cascade or a waterfall decide by themselves, as text or JSON.

    Replies that the spec's store has are used; others are asked for, within the limits of the spec.

    Args:
        results, labels, columns, scale, form, output: as for `calibrate`.
        metrics: the metric whose judge it is; if there is only one, none need be named.
        spec: the spec with the judge.
        agreement: the share of its decisions with which each step of a cascade must agree.
        against: what to agree with: `people`, that is the labels, or `last`, the last step's decisions.
        guarantee: what to promise instead: `wrong answers sent <= 2%`.
        confidence: the probability with which the promise must be kept.
        control: how the risk is controlled.
        overrides: values that replace those of the spec.
        store: where replies are kept; by default in the spec's store.
        no_store: keep no replies, and use none.

    Raises:
        DataError: a file cannot be read, or the results lack the answers' texts.
        UsageError: an option is wrong, or the judge has no steps.
        LimitError: the limits of the spec allow no further call.
    """
    if (agreement is None) == (guarantee is None):
        raise UsageError("steps need one of the two: --agreement 0.95, or --guarantee 'wrong answers sent <= 2%'")
    if output is not None:
        check_place(output)
    _check_labels(labels, against, promises=guarantee is not None)
    limit, loaded = read_guarantee(guarantee), load(spec, overrides=overrides)
    place = None if no_store else store or loaded.folder / STORE
    evaluation = open_results_of(loaded.name, results, f"rageval-spec calibrate RESULTS --spec {spec}")
    with ProgressDisplay() as display, open_parts(loaded, place, display) as parts:
        kinds = ("cascade",) if limit is None else ("cascade", "waterfall")
        asked = find_asked(parts, choose_metric(parts, metrics, kinds))
        gathered = gather(evaluation, asked, parts, display, _read_labels(labels, columns, scale))
        if limit is not None:
            promised = find_promise(gathered, limit, confidence, control)
            return render_promise(promised, gathered, form, output, evaluation)
        found = _choose(gathered, agreement or 0.0)
        entry = gathered.keep(found.labelled, found.bands.list_bounds(), tuple(found.bands.list_figures(found.steps)))
    kept = None if output is None else write_calibrations(output, evaluation, [entry])
    if form == "json":
        return dump_visible(asdict(found) | {"bounds": list_bounds(entry)}).encode()
    return render_text(lambda _: _draw(found, kept))


def _check_labels(labels: Sequence[Path], against: str, *, promises: bool) -> None:
    if promises and (against != "people" or not labels):
        raise UsageError("a guarantee needs the labels of people: --labels labels.csv")
    if (against == "people") != bool(labels):
        raise UsageError(
            "--against people needs --labels" if not labels else "--against last takes no labels; leave out --labels"
        )


def _read_labels(labels: Sequence[Path], columns: Sequence[str], scale: str | None) -> Read | None:
    return (read_labels(labels, read_columns(columns)), read_scale(scale)) if labels else None


def _choose(gathered: Gathered, agreement: float) -> StepsFound:
    asked, said = gathered.asked, gathered.ask_steps()
    if gathered.joined is None:
        places, decisions = said.find_last()
        said = said.take(places)
        labelled = count_decisions(said, decisions)
    else:
        decisions, labelled = [*gathered.joined.labelled], count_labels(gathered.joined)
    bands = find_bands(said, decisions, agreement)
    spared = [gathered.samples[said.items[place]] for place in bands.spared]
    members = gathered.list_steps()
    saving = describe_saving(members[-1], asked.criterion, spared)
    steps = tuple(member.context.name for member in members)
    return StepsFound(asked.judge.context.name, asked.metric.context.name, steps, labelled, bands, saving)


def _draw(found: StepsFound, kept: str | None) -> Iterator[RenderableType]:
    from rich.text import Text

    labelled, bands = found.labelled, found.bands
    source = f"labels of {count_noun(labelled.annotators, 'person', 'people')}"
    if labelled.by == "last step":
        source = f"decisions of its last step, '{found.steps[-1]}'"
    items = count_noun(bands.items, "answer")
    yield Text(make_visible(f"{found.metric}, cascade '{found.judge}': {items} with {source}"), "bold")
    yield ""
    spared = len(bands.spared) / bands.items
    yield Text(
        make_visible(
            f"'{found.steps[-1]}' need not be asked about {format_percent(spared)} of the answers"
            + (f": {found.saving}." if found.saving else ".")
        ),
        "green" if bands.spared else "yellow",
    )
    for name, step in zip(found.steps, bands.steps, strict=False):
        if not step.decided:
            told = f"'{name}' agrees on too little to decide anything by itself at {format_percent(bands.wanted)}."
            yield Text(make_visible(told), "yellow")
    if bands.items < ENOUGH_LABELS:
        few = f"Only {items}: take {ENOUGH_LABELS} or more, so that the steps' agreement is known well enough."
        yield Text(few, "yellow")
    yield ""
    rows = [
        (
            make_visible(name),
            str(step.reached),
            f"{step.decided} ({format_percent(step.decided / step.reached)})" if step.reached else "0",
            "" if step.agreement is None else format_percent(step.agreement),
            format_interval(step.interval),
            "" if step.band.low is None else format_number(step.band.low),
            "" if step.band.high is None else format_number(step.band.high),
        )
        for name, step in zip(found.steps, bands.steps, strict=False)
    ]
    heads = ("step, on questions held out", "asked", "decides", "agrees", "95% interval", "no up to", "yes from")
    yield tabulate(heads, rows, {1, 2, 3, 5, 6})
    yield ""
    if kept is not None:
        yield make_visible(kept)
