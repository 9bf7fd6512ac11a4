"""Checks whether a test set is large enough for what its gates, or anybody, should see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rageval_spec.audit.finding import Check, Finding, Table
from rageval_spec.audit.question_set import QuestionSet
from rageval_spec.wording import count_noun, format_number

COUNT = 200
"""The wanted number of questions."""
TITLE = "Size"
UNKNOWN = "another evaluation"
"""What a system is compared with if the values of no second evaluation are known."""


class Power(NamedTuple):
    """What the questions can show of one cell.

    Attributes:
        against: what the system is compared with.
        smallest_drop: the smallest true drop that is found with a probability of 80%; None if there are too few
            questions for any.
        max_drop: the drop that a gate must find; None without one.
        needed: how many questions finding it takes.
    """

    system: str
    metric: str
    against: str
    questions: int
    sd: float
    smallest_drop: float | None
    max_drop: float | None = None
    needed: int | None = None


def check_size(questions: QuestionSet, wanted: int, powers: Sequence[Power] | None, why_none: str) -> Check:
    """The check `size`.

    Args:
        questions: the test set.
        wanted: how many questions there should be.
        powers: what the questions can show, from the values of an evaluation; None without one.
        why_none: why there are no values, and what to do.
    """
    findings = [*_find_too_few(questions, wanted), *(found for power in powers or () for found in _find_weak(power))]
    if powers is None:
        remark = f"What drop the questions can show is not known: {why_none}."
        return Check("size", TITLE, tuple(findings), remark=remark)
    remark = _explain(powers) if powers else ""
    return Check("size", TITLE, tuple(findings), remark=remark, tables=(_tabulate(powers),) if powers else ())


def _explain(powers: Sequence[Power]) -> str:
    text = "The smallest drop is one that a paired test finds with a probability of 80%."
    if any(power.against == UNKNOWN for power in powers):
        text += (
            f" Against '{UNKNOWN}' it is an upper estimate: it takes a second evaluation as unrelated, and values of "
            "the same questions usually go together. For the real one: plan --power --from A --from B."
        )
    return text


def _find_too_few(questions: QuestionSet, wanted: int) -> list[Finding]:
    count = len(questions.questions)
    if count >= wanted:
        return []
    message = f"{count_noun(count, 'question')}, and {wanted:,} are wanted"
    advice = f"add {count_noun(wanted - count, 'question')}, or say how many are enough with --count"
    return [Finding("few_questions", "warning", message, advice, details={"questions": count, "wanted": wanted})]


def _find_weak(power: Power) -> list[Finding]:
    """A gate on a drop that the questions cannot show."""
    if power.max_drop is None or power.needed is None or power.needed <= power.questions:
        return []
    message = (
        f"the gate on {power.metric} must find a drop of {power.max_drop:g} against {power.against}, which takes "
        f"{count_noun(power.needed, 'question')}; there are {power.questions:,}"
    )
    shown = "" if power.smallest_drop is None else f", or raise max_drop to {_round_up(power.smallest_drop):.3f}"
    more = count_noun(power.needed - power.questions, "question")
    details = {"needed": power.needed, "questions": power.questions, "max_drop": power.max_drop}
    advice = f"add {more}{shown}"
    return [Finding("weak_gate", "warning", message, advice, (), power.system, power.metric, details=details)]


def _round_up(drop: float) -> float:
    """A drop in thousandths that is not below it: a smaller one would still be too small."""
    return math.ceil(round(drop * 1000, 6)) / 1000


def _tabulate(powers: Sequence[Power]) -> Table:
    header = ("system", "metric", "compared with", "questions", "sd", "smallest drop")
    rows = (
        (
            one.system,
            one.metric,
            one.against,
            f"{one.questions:,}",
            format_number(one.sd),
            _show_drop(one),
        )
        for one in powers
    )
    values = ((*one[:5], one.smallest_drop if one.sd else None) for one in powers)
    return Table(header, tuple(rows), tuple(values))


def _show_drop(one: Power) -> str:
    if one.smallest_drop is None:
        return "too few questions"
    return format_number(one.smallest_drop) if one.sd else "unknown: all values are equal"
