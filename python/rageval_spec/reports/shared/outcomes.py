"""Describes the outcome of an evaluation and its gates, in the same words in every report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation, GateOutcome, Verdict

MARKS: dict[Verdict, str] = {"pass": "✓", "warn": "!", "fail": "✗"}


def describe_verdict(evaluation: Evaluation) -> str:
    """`2 of 5 gates failed, 1 warned`; also says if there are no gates, or if the evaluation itself failed."""
    gates = _describe_gates(evaluation)
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'evaluation')} of a system failed; {gates}"
    return f"nothing could be scored; {gates}" if evaluation.scored_nothing else gates


def _describe_gates(evaluation: Evaluation) -> str:
    total = len(evaluation.gates)
    if not total:
        return "no gates to check"
    failed, warned = (sum(gate.outcome == outcome for gate in evaluation.gates) for outcome in ("fail", "warn"))
    if failed:
        return f"{failed} of {count_noun(total, 'gate')} failed" + (f", {warned} warned" if warned else "")
    if warned:
        return f"{warned} of {count_noun(total, 'gate')} warned, none failed"
    return f"{count_noun(total, 'gate')} passed"


def worst_first(gates: Iterable[GateOutcome]) -> list[GateOutcome]:
    """Failed gates first, then warnings, then passed gates; each group in the order of the spec."""
    rank: dict[Verdict, int] = {"fail": 0, "warn": 1, "pass": 2}
    return sorted(gates, key=lambda gate: rank[gate.outcome])


def worst_outcome(gates: Sequence[GateOutcome]) -> Verdict | None:
    """The worst outcome, or None if there are no gates."""
    return worst_first(gates)[0].outcome if gates else None
