"""Asks a judge again about frozen answers, and says whether it has changed.

Or it asks about them in the reverse order, and says whether the judge then says something else.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.calibration.verdict_sentences import list_told
from rageval_spec.data.labels import Anchor, AnchorSet
from rageval_spec.data.outcomes import Interval
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import asdict, dataclass, replace
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.view import Block, Heading, tabulate, write_text
from rageval_spec.errors import BROKEN, GATE_FAILED, PASSED, UsageError
from rageval_spec.judging.calibrated_judge import find_surroundings
from rageval_spec.judging.composition import asks_chat
from rageval_spec.judging.grade_scores import list_scores
from rageval_spec.libraries import Floats, np
from rageval_spec.pipeline.cost_estimate import ExpectedCalls, add_up
from rageval_spec.pipeline.execution.anchor_judging import (
    JudgeDrift,
    build_sample,
    compare_frozen,
    find_frozen,
    read_anchors,
)
from rageval_spec.pipeline.execution.sample_judging import AskedJudge, open_parts
from rageval_spec.pipeline.planning.default_model import load_chosen
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.plugin import Judge
from rageval_spec.plugin.judge_identity import explain_difference, identify_judge
from rageval_spec.progress import ProgressDisplay
from rageval_spec.statistics.intervals import Resampling, compute_exact_interval, compute_p_of_signs, number_clusters
from rageval_spec.statistics.mean_intervals import MeanValues, compute_difference_range, compute_mean_interval
from rageval_spec.statistics.weighted_clusters import lay_out_clusters
from rageval_spec.wording import (
    agree,
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_probability,
    format_signed,
)


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """What the reverse order of one part does to a judge.

    Attributes:
        part: what is reversed: `contexts`, `options`, `choices`, `examples`.
        answers: how many answers the judge assessed in both orders.
        failed: how many it could not assess in one of them.
        changed: how many got another value.
        to_yes, to_no: how many decisions flipped at the threshold, by what they became.
        flips: the exact interval of the share of decisions that flipped.
        p_flips: McNemar's exact test, whether flips go one way; Holm-adjusted for all tests of the judge.
        difference: by how much values change on average; positive is more generous in the reverse order.
        interval: its interval, which holds for several answers to a question; None with fewer than two questions.
        p_difference: of no difference; Holm-adjusted for all tests of the judge.
        errors: the mean absolute error against people in the usual and in the reverse order; None without answers.
    """

    part: str
    answers: int
    failed: int
    changed: int
    to_yes: int
    to_no: int
    flips: Interval | None
    p_flips: float
    difference: float
    interval: Interval | None
    p_difference: float
    errors: tuple[float, float] | None

    @property
    def p_value(self) -> float:
        """Of no effect in one direction, by one of the two tests."""
        return min(self.p_flips, self.p_difference)


@dataclass(frozen=True)
class OrderReport:
    """What the order of contexts and of parts of the prompt does to a judge: an effect for each part with an order."""

    judge: str
    metric: str
    effects: tuple[OrderEffect, ...]


class _Round(NamedTuple):
    """What a judge is asked: which part is reversed, about which anchors, and their samples."""

    part: str
    judge: Judge[Any]
    places: Sequence[int]
    samples: Sequence[Sample]


class DriftOutput(NamedTuple):
    """The text or JSON, and the exit code: 0 without drift, 1 with it, 3 if most answers got no value."""

    content: bytes
    exit_code: int


def show_drift(
    anchors: Path, spec: Path, metric: str | None, form: str, *, alpha: float = 0.05, overrides: Sequence[str] = ()
) -> DriftOutput:
    """Ask the judge of a spec about frozen answers, and compare with what it said before.

    Stored replies are not used, and nothing is stored. A judge with a chat model is asked twice, to know its own noise.
    """
    frozen, loaded = read_anchors(anchors), load_chosen(spec, overrides)
    budget = loaded.limits.budget()
    values: list[list[float | None]] = []
    for time in (1, 2):
        with ProgressDisplay() as display, open_parts(loaded, None, display, budget) as parts:
            asked = find_frozen(parts, metric, frozen)
            usual = _plan_usual(asked, frozen)
            if time == 1:
                times = 2 if asks_chat(asked.judge) else 1
                _tell_cost(asked, parts, display, [usual], times)
            values.append(_ask(asked, display, usual))
            identity = identify_judge(asked.judge, find_surroundings(asked.judge))
        if times == 1:
            break
    difference = explain_difference(identity, frozen.identity)
    if budget.stopped is not None:
        raise budget.stopped
    found = compare_frozen(frozen, asked, values, difference, alpha)
    if found is None:
        failed = f"{asked.judge.context.name} gave a value to fewer than half of the {len(frozen.anchors)} anchors"
        return DriftOutput(f"{make_visible(failed)}, too few to detect drift.\n".encode(), BROKEN)
    content = dump_visible(asdict(found)).encode() if form == "json" else write_text(_describe(found))
    return DriftOutput(content, GATE_FAILED if found.has_drifted else PASSED)


def show_reversed(
    anchors: Path, spec: Path, metric: str | None, form: str, *, alpha: float = 0.05, overrides: Sequence[str] = ()
) -> DriftOutput:
    """Ask the judge of a spec about frozen answers as they are and in the reverse order, and compare the two.

    A judge without anything to reverse is a UsageError.
    """
    frozen, loaded = read_anchors(anchors), load_chosen(spec, overrides)
    budget = loaded.limits.budget()
    with ProgressDisplay() as display, open_parts(loaded, None, display, budget) as parts:
        asked = find_frozen(parts, metric, frozen)
        usual, rounds = _plan_usual(asked, frozen), [*_plan_reversed(asked, frozen)]
        if not rounds:
            raise UsageError(
                f"the judge '{asked.judge.context.name}' has nothing to reverse: no answer has two contexts that it "
                "reads, and it has no choices and no examples"
            )
        _tell_cost(asked, parts, display, [usual, *rounds])
        before, *after = [_ask(asked, display, one) for one in (usual, *rounds)]
    if budget.stopped is not None:
        raise budget.stopped
    effects = []
    for one, values in zip(rounds, after, strict=True):
        of = [frozen.anchors[place] for place in one.places]
        effects.append(measure_order(one.part, [before[place] for place in one.places], values, of, frozen.threshold))
    adjusted = adjust(effects)
    found = OrderReport(asked.judge.context.name, asked.metric.context.name, adjusted)
    as_json = form == "json"
    content = dump_visible(asdict(found)).encode() if as_json else write_text(_describe_orders(found, alpha))
    if any(one.answers < one.failed for one in adjusted):
        return DriftOutput(content, BROKEN)
    return DriftOutput(content, GATE_FAILED if any(one.p_value < alpha for one in adjusted) else PASSED)


def measure_order(
    part: str,
    usual: Sequence[float | None],
    reverse: Sequence[float | None],
    anchors: Sequence[Anchor],
    threshold: float,
) -> OrderEffect:
    """Compare a judge's values of the same answers in two orders; values are from 0 to 1, None where the judge failed.

    From `threshold` on, a value is a yes.
    """
    rows = [row for row, pair in enumerate(zip(usual, reverse, strict=True)) if None not in pair]
    one, two = (np.array([of[row] for row in rows], dtype=float) for of in (usual, reverse))
    is_yes, becomes_yes = one >= threshold, two >= threshold
    to_yes, to_no = int((~is_yes & becomes_yes).sum()), int((is_yes & ~becomes_yes).sum())
    difference, interval, p_value = _average(two - one, [(anchors[row].dataset, anchors[row].query_id) for row in rows])
    errors = None
    if rows:
        said = np.array([anchors[row].label for row in rows])
        errors = float(np.abs(one - said).mean()), float(np.abs(two - said).mean())
    return OrderEffect(
        part=part,
        answers=len(rows),
        failed=len(usual) - len(rows),
        changed=int((one != two).sum()),
        to_yes=to_yes,
        to_no=to_no,
        flips=compute_exact_interval(to_yes + to_no, len(rows)),
        p_flips=compute_p_of_signs(to_yes, to_yes + to_no),
        difference=difference,
        interval=interval,
        p_difference=p_value,
        errors=errors,
    )


def adjust(effects: Sequence[OrderEffect]) -> tuple[OrderEffect, ...]:
    """The same with p-values that are Holm-adjusted for all of them."""
    raw = [p_value for one in effects for p_value in (one.p_flips, one.p_difference)]
    adjusted = kernels.holm(raw) if raw else []
    return tuple(
        replace(one, p_flips=adjusted[2 * place], p_difference=adjusted[2 * place + 1])
        for place, one in enumerate(effects)
    )


def _average(differences: Floats, clusters: Sequence[Hashable]) -> tuple[float, Interval | None, float]:
    """The mean with its interval and p-value, by the sums of the clusters."""
    if not len(differences):
        return 0.0, None, 1.0
    mean = float(differences.mean())
    members = number_clusters(clusters, len(differences))
    groups = int(members.max()) + 1
    if groups < 2:
        return mean, None, 1.0
    sums = np.bincount(members, differences - mean)
    error = math.sqrt(groups / (groups - 1) * float((sums**2).sum())) / len(differences)
    values = MeanValues(differences, compute_difference_range((0.0, 1.0)), lay_out_clusters(clusters))
    interval = compute_mean_interval(values, Resampling())
    if error == 0:
        return mean, interval, 1.0 if mean == 0 else 0.0
    return mean, interval, kernels.student_p_value(abs(mean) / error, groups - 1)


def _plan_usual(asked: AskedJudge, frozen: AnchorSet) -> _Round:
    places = range(len(frozen.anchors))
    return _Round("", asked.judge, places, [build_sample(frozen, place) for place in places])


def _plan_reversed(asked: AskedJudge, frozen: AnchorSet) -> Iterator[_Round]:
    """What can be reversed: contexts, where there are several and the judge reads them, and parts of its prompt."""
    criterion, (_, judge, places, samples) = asked.criterion, _plan_usual(asked, frozen)
    if "contexts" in (criterion.text, criterion.against, *criterion.shown) or not judge.reads_criteria:
        several = [place for place in places if len(set(samples[place].contexts or ())) > 1]
        if several:
            yield _Round("contexts", judge, several, [_reverse(samples[place]) for place in several])
    for part, other in judge.list_reversals().items():
        yield _Round(part, other, places, samples)


def _reverse(sample: Sample) -> Sample:
    contexts, ids = sample.contexts, sample.context_ids
    return replace(sample, contexts=contexts and contexts[::-1], context_ids=ids and ids[::-1], columns=sample.columns)


def _tell_cost(
    asked: AskedJudge, parts: SpecPlugins, display: ProgressDisplay, rounds: Sequence[_Round], times: int = 1
) -> None:
    for one in rounds:
        one.judge.expect([asked.criterion])
    estimate = reduce(or_, [one.judge.estimate(asked.criterion, one.samples) for one in rounds])
    calls = []
    for of in (one for one in add_up(parts, estimate) if one.calls):
        tokens = of.tokens._replace(input=of.tokens.input * times, output=of.tokens.output * times)
        cost = None if of.cost is None else of.cost * times
        calls.append(replace(of, calls=of.calls * times, tokens=tokens, cost=cost))
    if calls:
        display.tell(ExpectedCalls(tuple(calls)).render().rstrip())


def _ask(asked: AskedJudge, display: ProgressDisplay, one: _Round) -> list[float | None]:
    """The judge's scores, from 0 to 1; None where it gives none."""
    one.judge.expect([asked.criterion])
    display.announce(f"ask {asked.judge.context.name}" + (f", {one.part} in the reverse order" if one.part else ""))
    return list_scores(one.judge.assess(asked.criterion, one.samples).findings, asked.criterion)


def _describe(found: JudgeDrift) -> Iterator[Block]:
    times = "asked twice" if found.asked == 2 else "asked once"
    yield Heading(f"{found.metric}, judge '{found.judge}': {count_noun(found.anchors, 'anchor')}, {times}")
    yield list_told(_conclude(found))
    flips, shift = found.flips, found.shift
    p_values = ["" if one is None else format_probability(one) for one in (flips.p_value, flips.p_moved, shift.p_value)]
    agreed = f"{format_percent(shift.before)} → {format_percent(shift.now)}"
    rows = [
        (
            "decisions that changed",
            _count(flips.up + flips.down, flips.rows),
            format_interval(flips.interval),
            p_values[0],
        ),
        ("  from no to yes", str(flips.up), "", ""),
        ("  from yes to no", str(flips.down), "", ""),
        ("values that changed", _count(flips.moved, flips.rows), "", p_values[1]),
        ("mean of the values", format_signed(shift.difference), format_interval(shift.interval), ""),
        ("agreement with people", agreed, f"{shift.gained} gained, {shift.lost} lost", p_values[2]),
    ]
    yield tabulate(("since the anchors were frozen", "", "95% interval", "p"), rows, (1, 3), ())


def _count(count: int, rows: int) -> str:
    return f"{count} ({format_percent(count / rows)})"


def _conclude(found: JudgeDrift) -> Iterator[str]:
    flips = found.flips
    changed = f"{flips.up + flips.down} of {flips.rows} decisions changed ({format_percent(flips.share)})"
    noise = "" if found.noise is None else format_percent(found.noise)
    beside = f"; asked twice now, it differs from itself in {noise}" if noise else ""
    if found.has_drifted:
        yield f"✗ The judge has changed: {changed}{beside}."
        if found.shift.p_value >= 0.05:
            yield "Its agreement with people shows no change, so an average would not have shown it."
        yield "Calibrate it again, and freeze new anchors."
    elif found.noise is None:
        yield "✓ The judge gives exactly the same values as before."
    else:
        yield f"✓ No change can be seen: {changed}{beside}."
    if found.difference is not None:
        yield f"! The anchors were {found.difference}."
    if found.failed:
        yield f"! {count_noun(found.failed, 'anchor')} got no value and {agree(found.failed, 'is')} left out."


def _describe_orders(found: OrderReport, alpha: float) -> Iterator[Block]:
    yield Heading(f"{found.metric}, judge '{found.judge}': the same answers in the reverse order", 2)
    for one in found.effects:
        yield Heading(f"{one.part.capitalize()} reversed, {count_noun(one.answers, 'answer')}")
        told = [f"! {text}" if 0 <= p_value < alpha else text for text, p_value in _describe_effect(one)]
        if one.failed:
            told.append(f"! {count_noun(one.failed, 'answer')} could not be judged in both orders.")
        yield list_told(told)


def _describe_effect(one: OrderEffect) -> Iterator[tuple[str, float]]:
    """What the order does, with the p-value of it; -1 for what has none."""
    if one.errors is None:
        return
    if not one.changed:
        yield "No value changes.", -1
        return
    share = format_percent((one.to_yes + one.to_no) / one.answers)
    yield (
        f"{count_noun(one.changed, 'value')} {agree(one.changed, 'changes')}. Of the decisions, {share} "
        f"{format_interval(one.flips, 1, format_percent)} flip: {one.to_yes} to yes, {one.to_no} to no "
        f"(adjusted {format_p_value(one.p_flips)}).",
        one.p_flips,
    )
    change = " ".join((format_signed(one.difference), format_interval(one.interval))).rstrip()
    yield (
        f"In the reverse order, values change by {change} on average (adjusted {format_p_value(one.p_difference)}).",
        one.p_difference,
    )
    usual, reverse = map(format_number, one.errors)
    yield f"Its mean absolute error is {usual} in the usual order, and {reverse} in the reverse one.", -1
