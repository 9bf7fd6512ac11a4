"""Base classes of metrics for which an answer that only refuses claims nothing and needs no judge."""

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
    """The keys of a metric for which an answer that only refuses claims nothing."""

    phrases: tuple[str, ...] = Field(
        default=(),
        description=f"{PHRASES_TEXT} Write them whole: any other words beside a phrase count as a claim.",
    )


R = TypeVar("R", bound=RefusalNode)


class RefusalAwareMetric(JudgedMetric[R]):
    """A metric that settles answers that only refuse, by the built-in list and the node's own phrases."""

    version = "2"
    hidden = ("phrases",)
    later_keys = frozenset({"phrases"})

    def explain_refusal(self, answer: str | None) -> str | None:
        """Why an answer claims nothing, if it only refuses; else None."""
        phrase = find_bare_refusal(answer or "", self.node.phrases)
        return None if phrase is None else f"the answer refuses: '{phrase}'"

    def settle_refusal(self, sample: Sample) -> Measurement | None:
        """No value for an empty answer, or for one that only refuses, unless the judge decides refusals itself."""
        if is_blank(sample.answer):
            return Measurement.unscorable(EMPTY_ANSWER)
        reason = None if self.judge.decides_refusals else self.explain_refusal(sample.answer)
        return None if reason is None else Measurement.unscorable(reason)
