"""Answers that only refuse: they claim nothing, and need no judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import Field

from rageval_spec.judging.refusals import PHRASES_TEXT, find_bare_refusal
from rageval_spec.metrics.shared.judged import JudgedMetric, JudgedNode
from rageval_spec.metrics.shared.reasons import EMPTY_ANSWER, is_blank
from rageval_spec.plugin import Measurement

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample


class RefusalNode(JudgedNode):
    """A node of a metric to which an answer that only refuses claims nothing."""

    phrases: tuple[str, ...] = Field(default=(), description=PHRASES_TEXT)


R = TypeVar("R", bound=RefusalNode)


class RefusalAwareMetric(JudgedMetric[R]):
    """A metric that settles answers that only refuse, by the list and by the node's own phrases."""

    hidden = ("phrases",)
    later_keys = frozenset({"phrases"})

    def explain_refusal(self, answer: str | None) -> str | None:
        """Why an answer claims nothing, where all that it does is refuse; None elsewhere."""
        phrase = find_bare_refusal(answer or "", self.node.phrases)
        return None if phrase is None else f"the answer refuses: '{phrase}'"

    def settle_refusal(self, sample: Sample) -> Measurement | None:
        """No value where an answer is empty, or only refuses and the judge does not want to see that."""
        if is_blank(sample.answer):
            return Measurement.unscorable(EMPTY_ANSWER)
        reason = None if self.judge.decides_refusals else self.explain_refusal(sample.answer)
        return None if reason is None else Measurement.unscorable(reason)
