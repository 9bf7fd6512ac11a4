"""Says in a sentence what an evaluation came to.

`Not ready: 1 of 3 gates failed. token_f1 fell from 0.358 (v1) to 0.307 (v2).`
"""

from __future__ import annotations

from dataclasses import dataclass

from rageval_spec.data.evaluation import Evaluation, GateOutcome, Overall
from rageval_spec.reports.shared.outcomes import describe_worse, worst_first
from rageval_spec.wording import DIGITS, count_noun, tell_apart

_TITLES: dict[Overall, str] = {
    "pass": "Ready",
    "warn": "Ready, with warnings",
    "fail": "Not ready",
    "error": "Incomplete",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """The outcome in words.

    Attributes:
        verdict: the outcome as a word of the data.
        title: the outcome for people: `Not ready`.
        summary: how many gates passed or failed, without a full stop.
        reason: the worst outcome as a sentence with a full stop; "" if everything passed.
    """

    verdict: Overall
    title: str
    summary: str
    reason: str

    def __str__(self) -> str:
        """The whole sentence."""
        return f"{self.title}: {self.summary}.{f' {self.reason}' if self.reason else ''}"


def describe_headline(evaluation: Evaluation, digits: int = DIGITS) -> Headline:
    """The outcome of an evaluation in words; without gates, the title says that the evaluation is complete."""
    verdict = evaluation.verdict
    title = _TITLES[verdict] if evaluation.gates or verdict != "pass" else "Complete"
    if verdict == "warn" and worst_first(evaluation.gates)[0].outcome == "inconclusive":
        title = "Undecided"
    return Headline(verdict, title, _summarize(evaluation), _explain(evaluation, digits))


def _summarize(evaluation: Evaluation) -> str:
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'part')} of the evaluation failed"
    if evaluation.scored_nothing:
        return "nothing could be scored"
    total = len(evaluation.gates)
    if not total:
        return "the spec has no gates"
    passed = "the only gate passed" if total == 1 else f"all {total} gates passed"
    return describe_worse(evaluation.gates) or passed


def _explain(evaluation: Evaluation, digits: int) -> str:
    if evaluation.failures:
        return _close(evaluation.failures[0])
    worst = next(iter(worst_first(evaluation.gates)), None)
    if worst is None or worst.outcome == "pass":
        return ""
    fall = "" if worst.outcome == "inconclusive" else _describe_fall(evaluation, worst, digits)
    return fall or _close(worst.reason)


def _describe_fall(evaluation: Evaluation, gate: GateOutcome, digits: int) -> str:
    """`token_f1 fell from 0.358 (v1) to 0.307 (v2).` for a gate on the difference from a baseline, else ""."""
    means = _find_means(evaluation, gate)
    if means is None or means[0] == means[1]:
        return ""
    verb = "fell" if means[1] < means[0] else "rose"
    old, new = tell_apart(*means, digits=digits)
    graded = f", a regression of {gate.severity} severity" if gate.severity else ""
    if gate.baseline in evaluation.systems:
        return f"{gate.metric} {verb} from {old} ({gate.baseline}) to {new} ({gate.system}){graded}."
    return f"{gate.metric} of {gate.system} {verb} from {old} ({gate.baseline}) to {new}{graded}."


def _find_means(evaluation: Evaluation, gate: GateOutcome) -> tuple[float, float] | None:
    """The baseline's mean and the system's; for an earlier evaluation, those of the queries that both have."""
    if gate.baseline is None or gate.observed is None:
        return None
    before = evaluation.aggregate(gate.dataset, gate.baseline, gate.metric, gate.slice)
    now = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
    if before is not None and now is not None and before.mean is not None and now.mean is not None:
        return before.mean, now.mean
    cell = {"dataset": gate.dataset, "system": gate.system, "metric": gate.metric}
    earlier = evaluation.base_values.filter(baseline=gate.baseline, **cell).get_column("value")
    if gate.slice is not None or earlier.is_empty():
        return None
    mean = earlier.mean()
    assert isinstance(mean, float), "base values are numbers"
    return mean, mean + gate.observed


def _close(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
