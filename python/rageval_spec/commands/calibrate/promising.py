"""`calibrate --spec --guarantee`: bounds of several steps with which few of the answers that are sent are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.calibration.controlling import Control, StepsPromise, promise_steps
from rageval_spec.calibration.keeping import count_labels
from rageval_spec.calibration.sampling import explain_promise
from rageval_spec.commands.calibrate.gathering import Gathered, list_bounds
from rageval_spec.commands.calibrate.keeping import write_calibrations
from rageval_spec.data.judge_calibration import Guaranteed, JudgeCalibration, StepBounds
from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import UsageError
from rageval_spec.reports.shared.console import render_text, tabulate
from rageval_spec.statistics.control import send_through_stages, send_through_steps
from rageval_spec.statistics.guarantees import count_needed
from rageval_spec.wording import format_number, format_percent, make_visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rageval_spec.data.evaluation import Evaluation

_HIGHEST = 1.0


@dataclass(frozen=True)
class PromiseFound:
    """A promise of a judge of several steps.

    Attributes:
        steps: the names of the steps or stages, in order.
        lows: up to which score each step of a cascade says no; empty for a waterfall.
        limit, confidence: what was asked for.
        found: what can be promised.
    """

    judge: str
    metric: str
    steps: tuple[str, ...]
    lows: tuple[float | None, ...]
    limit: float
    confidence: float
    found: StepsPromise


def find_promise(gathered: Gathered, limit: float, confidence: float, control: Control) -> PromiseFound:
    """Find the bounds of a cascade or a waterfall that keep a promise."""
    joined, judge = gathered.joined, gathered.asked.judge
    if joined is None:
        raise UsageError("a guarantee needs the labels of people: --labels labels.csv")
    lows: tuple[float | None, ...] = ()
    if gathered.kind == "cascade":
        cascade: object = judge
        lows = tuple(cascade.find_lows(gathered.asked.criterion.kind))  # type: ignore[attr-defined]
        said = gathered.ask_steps()
        steps, columns = tuple(member.context.name for member in gathered.list_steps()), said.scores
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
    entry = _keep(promised, gathered)
    kept = None
    if output is not None and entry is not None:
        kept = write_calibrations(output, evaluation, [entry])
    if form == "json":
        bounds = None if entry is None else list_bounds(entry)
        lows = [None if low is None else min(low, _HIGHEST) for low in promised.lows]
        return dump_visible(asdict(promised) | {"lows": lows, "bounds": bounds}).encode()
    warning = None if gathered.joined is None else explain_promise(gathered.joined.sampling)
    return render_text(lambda _: _draw(promised, kept, warning, is_wanted=output is not None))


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
            StepBounds(place, None if low is None else min(low, _HIGHEST), bound)
            for place, (low, bound) in enumerate(zip(promised.lows, bounds, strict=True))
        ]
    else:
        steps = [StepBounds(name, person=bound) for name, bound in zip(promised.steps, bounds, strict=True)]
    return gathered.keep(count_labels(gathered.joined), tuple(steps), guarantee=guarantee)


def _draw(
    promised: PromiseFound, kept: str | None, warning: str | None, *, is_wanted: bool
) -> Iterator[RenderableType]:
    from rich.text import Text

    found = promised.found
    yield Text(make_visible(f"{promised.metric}, judge '{promised.judge}': {found.labels} labelled questions"), "bold")
    yield ""
    for sentence, style in _conclude(promised):
        yield Text(make_visible(sentence), style)
    if warning is not None:
        yield Text(f"! {warning}", "yellow")
    yield ""
    bounds = found.bounds or found.best_bounds
    if bounds is not None:
        what = "yes from" if promised.lows else "to a person below"
        pairs = zip(promised.steps, bounds, strict=True)
        rows = [(make_visible(name), format_number(min(one, _HIGHEST))) for name, one in pairs]
        yield tabulate(("step" if promised.lows else "stage", what), rows, {1})
        yield ""
    curve = [(format_percent(one.coverage), format_percent(one.risk), format_percent(one.upper)) for one in found.curve]
    yield tabulate(("answers sent", "wrong among them", f"upper bound ({promised.confidence:.0%})"), curve, {0, 1, 2})
    yield Text("Each bound holds for a rule that was chosen beforehand, not for the best of them.", "dim")
    yield ""
    if kept is not None:
        yield make_visible(kept)
    elif is_wanted:
        yield Text("Nothing was written, because the promise cannot be kept.", "yellow")


def _conclude(promised: PromiseFound) -> Iterator[tuple[str, str]]:
    found, share = promised.found, format_percent(promised.limit, 2)
    sure = f"with {promised.confidence:.0%} confidence"
    kept = found.wanted
    if kept is not None and found.control == "crc":
        yield f"✓ On average, at most {share} of all answers are wrong and sent.", "green"
        yield (
            "This limits the mean over sets of labels, and wrong answers among all answers. --control ltt limits their "
            "share among the answers that are sent, with a confidence.",
            "",
        )
    elif kept is not None:
        yield f"✓ At most {share} of the answers that are sent are wrong, {sure}.", "green"
    elif found.best is not None:
        yield (
            f"✗ Not possible with {found.labels} labels: the best that can be promised is {found.best.limit:.1%}, "
            f"{sure}.",
            "red",
        )
        yield _say_needed(promised), ""
    else:
        yield f"✗ Nothing can be promised with {found.labels} labels.", "red"
    if kept is not None:
        tested = found.labels - found.learnt
        yield f"Of {tested} labelled answers, {kept.sent} would be sent, {kept.wrong} of them wrong.", ""
    if found.learnt:
        yield f"{found.learnt} other labels say which bounds to relax first.", ""


def _say_needed(promised: PromiseFound) -> str:
    found = promised.found
    needed = count_needed(promised.limit, 1 - promised.confidence)
    if found.labels - found.learnt < needed:
        total = math.ceil(needed * found.labels / (found.labels - found.learnt))
        return f"Even if no answer were wrong, {total} labels would be needed."
    return "Stricter judges, or more labels of answers with high values, would help."
