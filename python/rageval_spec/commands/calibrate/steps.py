"""`calibrate --spec`: asks every step of a cascade about the same answers, and chooses where each decides by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.calibration.cascading import Asked, Bands, count_decisions, find_bands
from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.keeping import count_labels
from rageval_spec.calibration.measuring import ENOUGH_LABELS
from rageval_spec.calibration.samples import read_samples
from rageval_spec.commands.calibrate.keeping import check_place, write_calibrations
from rageval_spec.commands.calibrate.settings import read_scale
from rageval_spec.commands.results import open_results
from rageval_spec.data.assessment import Finding
from rageval_spec.data.judge_calibration import JudgeCalibration, Labelled
from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import UsageError
from rageval_spec.judging.calibrated import find_surroundings
from rageval_spec.judging.delegation import assess_or_fail, describe_saving
from rageval_spec.judging.grading import scale_score
from rageval_spec.pipeline.asking import AskedJudge, expect_calls, find_asked, open_parts
from rageval_spec.pipeline.estimate import Expectation
from rageval_spec.plugin.identity import digest_criterion, digest_identity, identify_judge
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.labels import read_columns, read_labels
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.runner import STORE
from rageval_spec.spec import load
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.calibration.samples import Answered
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.sample import Sample
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.plugin import Judge


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
    agreement: float | None,
    against: str,
    output: Path | None = None,
) -> bytes:
    """Choose where the steps of a cascade decide by themselves, as text or JSON.

    Replies that the spec's store has are used; others are asked for, within the limits of the spec.

    Args:
        results, labels, columns, scale, form, output: as for `calibrate`.
        metrics: the metric whose judge is the cascade; if there is only one, none need be named.
        spec: the spec with the cascade.
        agreement: the share of its decisions with which each step must agree.
        against: what to agree with: `people`, that is the labels, or `last`, the last step's decisions.

    Raises:
        DataError: a file cannot be read, or the results lack the answers' texts.
        UsageError: an option is wrong, or the judge is not a cascade.
        LimitError: the limits of the spec allow no further call.
    """
    if agreement is None:
        raise UsageError("--spec needs the agreement that its cascade's steps must reach: --agreement 0.95")
    if output is not None:
        check_place(output)
    if (against == "people") != bool(labels):
        raise UsageError(
            "--against people needs --labels" if not labels else "--against last takes no labels; leave out --labels"
        )
    loaded = load(spec)
    evaluation = open_results(results).evaluation
    with ProgressDisplay() as display, open_parts(loaded, loaded.folder / STORE, display) as parts:
        asked = find_asked(parts, _choose_metric(parts, metrics))
        found = _choose(evaluation, asked, parts, display, agreement, _read_labels(labels, columns, scale))
        entry = _keep(found, asked)
    kept = None if output is None else write_calibrations(output, evaluation, [entry])
    if form == "json":
        bounds = [{key: value for key, value in asdict(one).items() if value is not None} for one in entry.steps]
        return dump_visible(asdict(found) | {"bounds": bounds}).encode()
    return render_text(lambda _: _draw(found, kept))


_Read = tuple[Sequence[Any], Any]


def _read_labels(labels: Sequence[Path], columns: Sequence[str], scale: str | None) -> _Read | None:
    return (read_labels(labels, read_columns(columns)), read_scale(scale)) if labels else None


def _choose_metric(parts: Parts, metrics: Sequence[str]) -> str:
    """The metric that is named, or the only one whose judge is a cascade."""
    if metrics:
        if len(metrics) > 1:
            raise UsageError("the steps of one judge at a time: name one metric")
        return metrics[0]
    found = [name for name, one in parts.answer_metrics.items() if [j.node.use for j in one.judges()] == ["cascade"]]
    if len(found) != 1:
        told = f"the metrics {', '.join(found)} ask cascades" if found else "no metric asks a cascade"
        raise UsageError(f"{told}; name the one to calibrate: --metric faithfulness")
    return found[0]


def _choose(
    evaluation: Evaluation,
    asked: AskedJudge,
    parts: Parts,
    display: ProgressDisplay,
    agreement: float,
    read: _Read | None,
) -> StepsFound:
    judge, name = asked.judge, asked.metric.context.name
    if judge.node.use != "cascade":
        raise UsageError(
            f"--agreement is for cascades; '{judge.context.name}' of {name} is a judge of the kind {judge.node.use}"
        )
    items, joined = _list_items(evaluation, name), None
    if read is not None:
        labels, scale = read
        joined = join_labels(evaluation, [one for one in labels if one.metric in ("", name)], name, scale)
        if any(item[3] is not None for item in joined.items):
            raise UsageError("labels of claims cannot say where the steps of a cascade are sure; label whole answers")
        items = [item[:3] for item in joined.items]
    samples = read_samples(evaluation, items)
    said = _ask(asked, parts, display, [samples[item] for item in items], items)
    if joined is None:
        places, decisions = said.find_last()
        said = said.take(places)
        labelled = count_decisions(said, decisions)
    else:
        decisions, labelled = [*joined.labelled], count_labels(joined)
    bands = find_bands(said, decisions, agreement)
    spared = [samples[said.items[place]] for place in bands.spared]
    members = _list_steps(asked)
    saving = describe_saving(members[-1], asked.criterion, spared)
    steps = tuple(member.context.name for member in members)
    return StepsFound(judge.context.name, name, steps, labelled, bands, saving)


def _list_steps(asked: AskedJudge) -> Sequence[Judge[Any]]:
    """The judges of the steps, in order."""
    judge: Any = asked.judge
    members: Sequence[Judge[Any]] = judge.members
    return members


def _list_items(evaluation: Evaluation, metric: str) -> list[Answered]:
    """All answers with a value of the metric."""
    if metric not in evaluation.metrics:
        raise UsageError(f"the results have no metric '{metric}'; run the spec first, or name other results")
    rows = evaluation.values.filter(metric=metric).drop_nulls("value").select("dataset", "system", "query_id")
    return [*rows.iter_rows()]


def _ask(
    asked: AskedJudge, parts: Parts, display: ProgressDisplay, samples: Sequence[Sample], items: Sequence[Answered]
) -> Asked:
    """What each step says of all samples; says first what that costs."""
    members = _list_steps(asked)
    for member in members:
        member.expect([asked.criterion])
    if calls := expect_calls(parts, members, asked.criterion, samples):
        display.tell(Expectation(calls).render().rstrip())
    scores = []
    for member in members:
        display.announce(f"ask {member.context.name}")
        findings, _ = assess_or_fail(member, asked.criterion, samples)
        scores.append(
            [
                scale_score(one.score, asked.criterion) if isinstance(one, Finding) and one.score is not None else None
                for one in findings
            ]
        )
    return Asked(items, scores)


def _keep(found: StepsFound, asked: AskedJudge) -> JudgeCalibration:
    identity = identify_judge(asked.judge, find_surroundings(asked.judge))
    return JudgeCalibration(
        judge=found.judge,
        metric=found.metric,
        criterion=digest_criterion(asked.criterion),
        of="answers",
        scale=asked.criterion.scale or (0.0, 1.0),
        identity=identity,
        digest=digest_identity(identity),
        labelled=found.labelled,
        steps=found.bands.list_bounds(),
        held_out=tuple(found.bands.list_figures(found.steps)),
    )


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
