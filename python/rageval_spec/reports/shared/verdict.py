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
    """`token_f1 of v2 fell from 0.358 to 0.307.` for a gate on the difference from another system, else ""."""
    if gate.baseline is None or gate.observed is None:
        return ""
    before = evaluation.aggregate(gate.dataset, gate.baseline, gate.metric, gate.slice)
    now = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
    if before is None or now is None or before.mean is None or now.mean is None or before.mean == now.mean:
        return ""
    verb = "fell" if now.mean < before.mean else "rose"
    old, new = tell_apart(before.mean, now.mean, digits=digits)
    graded = f", a regression of {gate.severity} severity" if gate.severity else ""
    return f"{gate.metric} {verb} from {old} ({gate.baseline}) to {new} ({gate.system}){graded}."


def _close(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
