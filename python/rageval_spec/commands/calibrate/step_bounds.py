"""`calibrate --spec`: chooses where each step of a cascade or a waterfall decides by itself.

With `--guarantee`, it looks for bounds with which few of the answers that are sent are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rageval_spec.calibration.calibration_report import check_place, count_labels, write_calibrations
from rageval_spec.calibration.judge_quality import ENOUGH_LABELS
from rageval_spec.calibration.judge_reports import read_guarantee, read_scale
from rageval_spec.calibration.thresholds import Bands, Control, Promise, count_decisions, find_bands, promise_steps
from rageval_spec.calibration.verdict_sentences import describe_promise, list_told
from rageval_spec.commands.calibrate.judges_against_labels import Gathered, choose_metric, gather, list_bounds
from rageval_spec.commands.results_argument import open_results_of
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.judge_calibration import CalibrationLabels, Guaranteed, JudgeCalibration, StepBounds
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import dump_visible
from rageval_spec.drawing.view import Block, Heading, Line, Span, tabulate, write_text
from rageval_spec.errors import UsageError
from rageval_spec.judging.composition import describe_saving
from rageval_spec.pipeline.execution.sample_judging import find_asked, open_parts
from rageval_spec.pipeline.planning.default_model import load_chosen
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.runner import STORE
from rageval_spec.statistics.raters.risk_control import send_through_stages, send_through_steps
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent


@dataclass(frozen=True)
class StepsFound:
    """The bounds of a cascade's steps, by labels or by its last step; `saving` is "" if that makes no calls."""

    judge: str
    metric: str
    steps: tuple[str, ...]
    labelled: CalibrationLabels
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

    Replies that the spec's store has are used; others are asked for, within the limits of the spec. The arguments are
    the options of the command. If only one metric has such a judge, none need be named.
    """
    if (agreement is None) == (guarantee is None):
        raise UsageError("steps need one of the two: --agreement 0.95, or --guarantee 'wrong answers sent <= 2%'")
    if output is not None:
        check_place(output)
    if guarantee is not None and (against != "people" or not labels):
        raise UsageError("a guarantee needs the labels of people: --labels labels.csv")
    if (against == "people") != bool(labels):
        needed = "--against people needs --labels"
        raise UsageError(needed if not labels else "--against last takes no labels; leave out --labels")
    limit, loaded = read_guarantee(guarantee), load_chosen(spec, overrides)
    place = None if no_store else store or loaded.folder / STORE
    evaluation = open_results_of(loaded.name, results, f"rageval-spec calibrate RESULTS --spec {spec}")
    with ProgressDisplay() as display, open_parts(loaded, place, display) as parts:
        kinds = ("cascade",) if limit is None else ("cascade", "waterfall")
        asked = find_asked(parts, choose_metric(parts, metrics, kinds))
        read = (read_labels(labels, read_columns(columns)), read_scale(scale)) if labels else None
        gathered = gather(evaluation, asked, parts, display, read)
        if limit is not None:
            promised = find_promise(gathered, limit, confidence, control)
            return render_promise(promised, gathered, form, output, evaluation)
        found = _choose(gathered, agreement or 0.0)
        entry = gathered.keep(found.labelled, found.bands.list_bounds(), tuple(found.bands.list_figures(found.steps)))
    kept = None if output is None else write_calibrations(output, evaluation, [entry])
    if form == "json":
        return dump_visible(asdict(found) | {"bounds": list_bounds(entry)}).encode()
    return write_text(_describe_steps(found, kept))


def _choose(gathered: Gathered, agreement: float) -> StepsFound:
    asked, said = gathered.asked, gathered.ask_steps()
    if gathered.joined is None:
        said = said.take([place for place, score in enumerate(said.scores[-1]) if score is not None])
        decisions = [score for score in said.scores[-1] if score is not None]
        labelled = count_decisions(said, decisions)
    else:
        decisions, labelled = [*gathered.joined.labelled], count_labels(gathered.joined)
    bands = find_bands(said, decisions, agreement)
    spared = [gathered.samples[said.items[place]] for place in bands.spared]
    saving = describe_saving(gathered.members[-1], asked.criterion, spared)
    return StepsFound(asked.judge.context.name, asked.metric.context.name, gathered.steps, labelled, bands, saving)


def _describe_steps(found: StepsFound, kept: str | None) -> Iterator[Block]:
    labelled, bands = found.labelled, found.bands
    source = f"labels of {count_noun(labelled.annotators, 'person', 'people')}"
    if labelled.by == "last step":
        source = f"decisions of its last step, '{found.steps[-1]}'"
    items = count_noun(bands.items, "answer")
    yield Heading(f"{found.metric}, cascade '{found.judge}': {items} with {source}")
    spared = format_percent(len(bands.spared) / bands.items)
    saving = f": {found.saving}" if found.saving else ""
    sign = "✓" if bands.spared else "!"
    told = [f"{sign} '{found.steps[-1]}' need not be asked about {spared} of the answers{saving}."]
    for name, step in zip(found.steps, bands.steps, strict=False):
        if not step.decided:
            at = format_percent(bands.wanted)
            told.append(f"! '{name}' agrees on too little to decide anything by itself at {at}.")
    if bands.items < ENOUGH_LABELS:
        few = f"! Only {items}: take {ENOUGH_LABELS} or more, so that the steps' agreement is known well enough."
        told.append(few)
    yield list_told(told)
    rows = [
        (
            name,
            str(step.reached),
            f"{step.decided} ({format_percent(step.decided / step.reached)})" if step.reached else "0",
            "" if step.agreement is None else format_percent(step.agreement),
            format_interval(step.interval),
            *("" if end is None else format_number(end) for end in (step.band.low, step.band.high)),
        )
        for name, step in zip(found.steps, bands.steps, strict=False)
    ]
    heads = ("step, on questions held out", "asked", "decides", "agrees", "95% interval", "no up to", "yes from")
    yield tabulate(heads, rows, range(1, 7))
    if kept is not None:
        yield Line(kept)


_HIGHEST = 1.0


@dataclass(frozen=True)
class PromiseFound:
    """A promise of a judge of several steps; up to `lows`, each step of a cascade says no. A waterfall has none."""

    judge: str
    metric: str
    steps: tuple[str, ...]
    lows: tuple[float | None, ...]
    limit: float
    confidence: float
    found: Promise

    @property
    def bounded_lows(self) -> list[float | None]:
        """`lows` that are no higher than the highest score."""
        return [None if low is None else min(low, _HIGHEST) for low in self.lows]


def find_promise(gathered: Gathered, limit: float, confidence: float, control: Control) -> PromiseFound:
    joined, judge = gathered.joined, gathered.asked.judge
    if joined is None:
        raise UsageError("a guarantee needs the labels of people: --labels labels.csv")
    lows: tuple[float | None, ...] = ()
    if gathered.kind == "cascade":
        cascade: object = judge
        lows = tuple(cascade.find_lows(gathered.asked.criterion.kind))  # type: ignore[attr-defined]
        said = gathered.ask_steps()
        steps, columns = gathered.steps, said.scores
        rule = send_through_steps(lows)
    else:
        values = gathered.ask_stages()
        steps, columns, rule = tuple(values), [*values.values()], send_through_stages
    rows = [*zip(*columns, strict=True)]
    together = gathered.kind == "waterfall"
    found = promise_steps(
        rows, joined.labelled, joined.clusters, rule, limit, confidence, together=together, control=control
    )
    return PromiseFound(judge.context.name, joined.metric, steps, lows, limit, confidence, found)


def render_promise(
    promised: PromiseFound, gathered: Gathered, form: str, output: Path | None, evaluation: Evaluation
) -> bytes:
    """The promise as text or JSON; writes the calibration if there is one to write."""
    entry, kept = _keep(promised, gathered), None
    if output is not None and entry is not None:
        kept = write_calibrations(output, evaluation, [entry])
    if form == "json":
        bounds = None if entry is None else list_bounds(entry)
        return dump_visible(asdict(promised) | {"lows": promised.bounded_lows, "bounds": bounds}).encode()
    return write_text(_describe_promise(promised, gathered, kept, output))


def _keep(promised: PromiseFound, gathered: Gathered) -> JudgeCalibration | None:
    found = promised.found
    if found.bounds is None or found.wanted is None or gathered.joined is None:
        return None
    kept = found.wanted
    confidence = None if found.control == "crc" else kept.confidence
    guarantee = Guaranteed(kept.limit, kept.sent, kept.wrong, kept.labels, confidence, control=found.control)
    bounds = [min(bound, _HIGHEST) for bound in found.bounds]
    if promised.lows:
        steps = [
            StepBounds(place, low, bound)
            for place, (low, bound) in enumerate(zip(promised.bounded_lows, bounds, strict=True))
        ]
    else:
        steps = [StepBounds(name, person=bound) for name, bound in zip(promised.steps, bounds, strict=True)]
    return gathered.keep(count_labels(gathered.joined), tuple(steps), guarantee=guarantee)


def _describe_promise(
    promised: PromiseFound, gathered: Gathered, kept: str | None, output: Path | None
) -> Iterator[Block]:
    found, joined = promised.found, gathered.joined
    yield Heading(f"{promised.metric}, judge '{promised.judge}': {found.items} labelled questions")
    sampling, items = (None, 0) if joined is None else (joined.sampling, len(joined.items))
    yield from describe_promise(found, promised.limit, promised.confidence, sampling, items, of_steps=True)
    if (bounds := found.bounds or found.best_bounds) is not None:
        header = ("step", "yes from") if promised.lows else ("stage", "to a person below")
        rows = zip(promised.steps, (format_number(min(one, _HIGHEST)) for one in bounds), strict=True)
        yield tabulate(header, rows, (1,))
    if kept is not None:
        yield Line(kept)
    elif output is not None:
        yield Line(Span("Nothing was written, because the promise cannot be kept.", "yellow"))
