"""Answers that only refuse: they claim nothing, and need no judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rageval_spec.judging.refusals import find_bare_refusal
from rageval_spec.metrics.shared.reasons import EMPTY_ANSWER, is_blank
from rageval_spec.plugin import Judge, Measurement

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample


def explain_refusal(answer: str | None) -> str | None:
    """Why an answer claims nothing, where all that it does is refuse; None elsewhere."""
    phrase = find_bare_refusal(answer or "")
    return None if phrase is None else f"the answer refuses: '{phrase}'"


def settle_refusal(sample: Sample, judge: Judge[Any]) -> Measurement | None:
    """No value where an answer is empty, or only refuses and the judge does not want to see that: it claims nothing."""
    if is_blank(sample.answer):
        return Measurement.unscorable(EMPTY_ANSWER)
    reason = None if judge.decides_refusals else explain_refusal(sample.answer)
    return None if reason is None else Measurement.unscorable(reason)
