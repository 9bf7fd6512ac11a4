"""`calibrate --orders`: asks a judge again with contexts, choices and examples in the reverse order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.calibration.label_choice import read_scale, read_spec_labels
from rageval_spec.calibration.labelled_items import Answered, join_labels, read_samples
from rageval_spec.calibration.order_effect import SIGNIFICANT, OrderEffect, adjust, measure_order
from rageval_spec.commands.results_argument import is_spec, open_results_of
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.terminal import render_text
from rageval_spec.errors import UsageError
from rageval_spec.judging.composition import assess_or_fail
from rageval_spec.judging.grade_scores import list_scores
from rageval_spec.pipeline.cost_estimate import ExpectedCalls, add_up
from rageval_spec.pipeline.execution.sample_judging import AskedJudge, find_asked, open_parts
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.runner import STORE
from rageval_spec.spec import load
from rageval_spec.wording import (
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    list_choices,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.commands.calibrate.judge_runs import Running
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label
    from rageval_spec.data.outcomes import Interval
    from rageval_spec.data.samples import Sample
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.plugin import Judge
    from rageval_spec.spec.blocks.spec_node import Spec

_SEED = 42


@dataclass(frozen=True, slots=True)
class OrderReport:
    """What the orders do to a judge.

    Attributes:
        judge, metric: their names.
        effects: one for each part that could be reversed.
    """

    judge: str
    metric: str
    effects: tuple[OrderEffect, ...]


@dataclass(frozen=True, slots=True)
class _Trial:
    """The same answers in two orders: what is reversed, the judge and the samples of the reverse, and their places."""

    part: str
    judge: Judge[Any]
    samples: Sequence[Sample]
    places: Sequence[int]


def try_orders(
    results: str | None,
    spec: Path | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    orders: int,
    running: Running,
) -> bytes:
    """Ask a judge about the same answers in the reverse order, and say what that changes, as text or JSON.

    Replies that the spec's store has are used; others are asked for, within the limits of the spec. What that costs is
    said first.

    Args:
        results: the results with the answers; None for the last ones. Or the spec.
        spec: the spec with the judge, if that is not `results`.
        labels, columns, scale, form: as for `calibrate`. With labels of the metric, only answers that have some are
            used.
        metrics: the metric whose judge is asked; if only one metric has a judge, none need be named.
        orders: the number of answers to ask about at most; which ones is drawn with a fixed seed.
        running: the store, and values that replace those of the spec.

    Raises:
        DataError: a file cannot be read, or the results lack the answers' texts.
        UsageError: an option is wrong, or nothing can be reversed.
        LimitError: the limits of the spec allow no further call.
    """
    if spec is None and results is not None and is_spec(results):
        spec, results = Path(results), None
    if spec is None:
        raise UsageError("--orders needs the spec with the judge: rageval-spec calibrate spec.yaml --orders 100")
    loaded = load(spec, overrides=running.overrides)
    evaluation = open_results_of(loaded.name, results, f"rageval-spec calibrate RESULTS --spec {spec}")
    told = _read_labels(loaded, labels, columns)
    store = None if running.no_store else running.store or loaded.folder / STORE
    with ProgressDisplay() as display, open_parts(loaded, store, display) as parts:
        asked = find_asked(parts, _choose_metric(parts, metrics))
        items, said = _list_items(evaluation, asked.metric.context.name, told, scale)
        items = _draw(items, orders)
        texts = read_samples(evaluation, items)
        found = _ask(asked, parts, display, items, [texts[item] for item in items], said)
    if form == "json":
        return dump_visible(asdict(found)).encode()
    return render_text(lambda _: _show(found))


def _choose_metric(parts: SpecPlugins, metrics: Sequence[str]) -> str:
    """The metric that is named, or the only one with a judge."""
    if len(metrics) > 1:
        raise UsageError("--orders asks one judge at a time; name one metric")
    judged = [name for name, one in parts.answer_metrics.items() if one.judges()]
    if not metrics and len(judged) != 1:
        raise UsageError(f"name the metric whose judge to ask: --metric; the spec has {list_choices(judged) or 'none'}")
    return metrics[0] if metrics else judged[0]


def _read_labels(spec: Spec, labels: Sequence[Path], columns: Sequence[str]) -> list[Label]:
    """The labels of the files, else those that the spec names; none if it names none."""
    if labels:
        return read_labels(labels, read_columns(columns))
    return read_spec_labels(spec) if spec.labels else []


def _list_items(
    evaluation: Evaluation, metric: str, labels: Sequence[Label], scale: str | None
) -> tuple[list[Answered], Mapping[Answered, float]]:
    """The labelled answers with their labels; without labels, all answers with a value."""
    if metric not in evaluation.metrics:
        raise UsageError(f"the results have no metric '{metric}'; run the spec first, or name other results")
    told = [one for one in labels if one.metric in ("", metric)]
    if not told:
        rows = evaluation.values.filter(metric=metric).drop_nulls("value").select("dataset", "system", "query_id")
        return [*rows.iter_rows()], {}
    if any(one.claim is not None for one in told):
        raise UsageError("labels of claims cannot say how good whole answers are; label whole answers")
    joined = join_labels(evaluation, told, metric, read_scale(scale))
    said = {item[:3]: label for item, label in zip(joined.items, joined.labelled, strict=True)}
    return [*said], said


def _draw(items: Sequence[Answered], count: int) -> list[Answered]:
    """A random part of the items, in their order; the same for the same items."""
    import numpy as np

    chosen = np.random.Generator(np.random.PCG64(_SEED)).permutation(len(items))[:count]
    return [items[int(place)] for place in sorted(chosen)]


def _ask(
    asked: AskedJudge,
    parts: SpecPlugins,
    display: ProgressDisplay,
    items: Sequence[Answered],
    samples: Sequence[Sample],
    said: Mapping[Answered, float],
) -> OrderReport:
    """Ask in the usual and in every reverse order; say first what that costs."""
    trials = [*_plan_trials(asked, samples)]
    if not trials:
        raise UsageError(
            f"the judge '{asked.judge.context.name}' has nothing to reverse: no answer has two contexts that it reads, "
            "and it has no choices and no examples"
        )
    usual = _Trial("", asked.judge, samples, range(len(samples)))
    _announce(asked, parts, display, [usual, *trials])
    display.announce(f"ask {asked.judge.context.name}")
    before = _assess(asked, usual)
    effects = []
    for trial in trials:
        display.announce(f"ask {asked.judge.context.name}, {trial.part} in the reverse order")
        chosen = [items[place] for place in trial.places]
        effects.append(
            measure_order(
                trial.part,
                [before[place] for place in trial.places],
                _assess(asked, trial),
                [(dataset, query_id) for dataset, _, query_id in chosen],
                [said[item] for item in chosen] if said else None,
            )
        )
    return OrderReport(asked.judge.context.name, asked.metric.context.name, adjust(effects))


def _plan_trials(asked: AskedJudge, samples: Sequence[Sample]) -> Iterator[_Trial]:
    """What can be reversed: contexts, where there are several and the judge reads them, and parts of its prompt."""
    criterion = asked.criterion
    reads_contexts = "contexts" in (criterion.text, criterion.against, *criterion.shown)
    if reads_contexts or not asked.judge.reads_criteria:
        places = [place for place, one in enumerate(samples) if len(set(one.contexts or ())) > 1]
        if places:
            yield _Trial("contexts", asked.judge, [_reverse(samples[place]) for place in places], places)
    for part, judge in asked.judge.list_reversals().items():
        yield _Trial(part, judge, samples, range(len(samples)))


def _reverse(sample: Sample) -> Sample:
    """The sample with its contexts in the reverse order."""
    contexts, ids = sample.contexts, sample.context_ids
    return replace(sample, contexts=contexts and contexts[::-1], context_ids=ids and ids[::-1], columns=sample.columns)


def _announce(asked: AskedJudge, parts: SpecPlugins, display: ProgressDisplay, trials: Sequence[_Trial]) -> None:
    """Say which calls are still to be made."""
    for trial in trials:
        trial.judge.expect([asked.criterion])
    estimates = [trial.judge.estimate(asked.criterion, trial.samples) for trial in trials]
    calls = tuple(one for one in add_up(parts, reduce(or_, estimates)) if one.calls)
    if calls:
        display.tell(ExpectedCalls(calls).render().rstrip())


def _assess(asked: AskedJudge, trial: _Trial) -> list[float | None]:
    """The judge's values, from 0 to 1; None where it failed."""
    findings, _ = assess_or_fail(trial.judge, asked.criterion, trial.samples)
    return list_scores(findings, asked.criterion)


def _show(found: OrderReport) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(make_visible(f"{found.metric}, judge '{found.judge}': the same answers in the reverse order"), "bold")
    yield ""
    for one in found.effects:
        answers = count_noun(one.answers, "answer")
        yield Text(f"{one.part.capitalize()} reversed, {answers}", "bold")
        for sentence, is_effect in _conclude(one):
            yield Text(f"{'!' if is_effect else ' '} {sentence}", "yellow" if is_effect else "")
        if one.failed:
            yield Text(f"  {count_noun(one.failed, 'answer')} could not be judged in both orders.", "yellow")
        yield ""


def _conclude(one: OrderEffect) -> Iterator[tuple[str, bool]]:
    if not one.answers:
        return
    if not one.changed:
        yield "No value changes.", False
        return
    flips = one.to_yes + one.to_no
    share = f"{format_percent(flips / one.answers)}"
    if one.flips is not None:
        share += f" [{format_percent(one.flips.low)}, {format_percent(one.flips.high)}]"
    yield (
        f"{count_noun(one.changed, 'value')} {'changes' if one.changed == 1 else 'change'}. Of the decisions, {share} "
        f"flip: {one.to_yes} to yes, {one.to_no} to no (adjusted {format_p_value(one.p_flips)}).",
        one.p_flips < SIGNIFICANT,
    )
    how = "generous" if one.difference > 0 else "strict"
    low = "" if one.interval is None else f" {format_interval(_turn(one.interval, one.difference))}"
    yield (
        f"The reverse order makes the judge {format_number(abs(one.difference))}{low} more {how} (adjusted "
        f"{format_p_value(one.p_difference)}).",
        one.p_difference < SIGNIFICANT,
    )
    if one.errors is not None:
        usual, reverse = map(format_number, one.errors)
        yield f"Its mean absolute error is {usual} in the usual order, and {reverse} in the reverse one.", False


def _turn(interval: Interval, sign: float) -> Interval:
    """The interval of the size of an effect."""
    if sign >= 0:
        return interval
    return replace(interval, low=-interval.high, high=-interval.low)
