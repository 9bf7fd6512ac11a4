"""Describes the outcome of an evaluation and its gates, in the same words in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation, GateOutcome, Verdict

MARKS: dict[Verdict, str] = {"pass": "✓", "warn": "!", "fail": "✗", "inconclusive": "?"}


def describe_verdict(evaluation: Evaluation) -> str:
    """`2 of 5 gates failed, 1 warned`; also says if there are no gates, or if the evaluation itself failed."""
    gates = _describe_gates(evaluation)
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'evaluation')} of a system failed; {gates}"
    return f"nothing could be scored; {gates}" if evaluation.scored_nothing else gates


def _describe_gates(evaluation: Evaluation) -> str:
    if not evaluation.gates:
        return "no gates to check"
    return describe_worse(evaluation.gates) or f"{count_noun(len(evaluation.gates), 'gate')} passed"


def describe_worse(gates: Sequence[GateOutcome]) -> str:
    """`2 of 5 gates failed, 1 is inconclusive, 1 warned`; "" if all gates passed."""
    counts = Counter(gate.outcome for gate in gates)
    undecided = counts["inconclusive"]
    said = [
        (counts["fail"], "failed"),
        (undecided, "is inconclusive" if undecided == 1 else "are inconclusive"),
        (counts["warn"], "warned"),
    ]
    parts = [f"{count} {words}" for count, words in said if count]
    if not parts:
        return ""
    parts[0] = parts[0].replace(" ", f" of {count_noun(len(gates), 'gate')} ", 1)
    if any(gate.outcome == "inconclusive" and gate.counted == "fail" for gate in gates):
        return ", ".join(parts) + ("" if counts["fail"] else ", which counts as failed")
    return ", ".join(parts) + ("" if counts["fail"] else ", none failed")


def worst_first(gates: Iterable[GateOutcome]) -> list[GateOutcome]:
    """Failed gates first, then inconclusive gates, warnings and passed gates; each group in the order of the spec.

    An inconclusive gate that counts as passed comes after warnings.
    """
    return sorted(gates, key=lambda gate: gate.rank)


def worst_outcome(gates: Sequence[GateOutcome]) -> Verdict | None:
    """The worst outcome, or None if there are no gates."""
    return worst_first(gates)[0].outcome if gates else None
