"""The texts of a sample as a judge sees them, and the findings if they are empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rageval_spec.data.assessment import Criterion, Finding, TextPart, read_part
from rageval_spec.judging.prompts import fence, fence_all
from rageval_spec.judging.segments import is_blank

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

_TAGS: Mapping[TextPart, str] = {
    "question": "question",
    "answer": "answer",
    "reference": "reference_answer",
    "contexts": "context",
    "claims": "context",
    "reference_contexts": "reference_context",
}
_SEVERAL: frozenset[TextPart] = frozenset({"contexts", "reference_contexts", "claims"})
"""Parts that are numbered because they can have several texts."""
_NAMES: Mapping[TextPart, str] = {
    "reference": "reference answer",
    "reference_contexts": "reference contexts",
    "claims": "contexts",
}
"""Prompts call claims contexts. A reply is stored under the digest of its prompt, so no word of it may change."""


def name_part(part: TextPart) -> str:
    """The name of a part of a sample, as messages write it."""
    return _NAMES.get(part, part)


def fence_part(sample: Sample, part: TextPart, tag: str | None = None) -> str:
    """A part of a sample in fences, contexts numbered; "" if the sample does not have it."""
    texts = read_part(sample, part)
    tag = tag or _TAGS[part]
    return fence_all(tag, texts) if part in _SEVERAL else "\n".join(fence(tag, text) for text in texts)


def fence_parts(sample: Sample, parts: Iterable[TextPart]) -> str:
    """The distinct parts that a sample has, in reading order: question first, answer last."""
    order: tuple[TextPart, ...] = ("question", "contexts", "claims", "reference_contexts", "reference", "answer")
    wanted = {*parts}
    return "\n".join(filter(None, (fence_part(sample, part) for part in order if part in wanted)))


def settle(criterion: Criterion, sample: Sample) -> Finding | None:
    """The finding if there is nothing to judge or nothing to support it; None if a model must decide."""
    if criterion.kind == "grade":
        return None
    what = name_part(criterion.text)
    if is_blank([criterion.text_of(sample)]):
        reason = f"there are no {what}" if criterion.kind == "usefulness" else f"the {what} makes no claim"
        return Finding(None, reason=reason)
    if criterion.kind == "support" and is_blank(criterion.sources_of(sample)):
        return Finding(0.0, reason=explain_no_sources(criterion))
    return None


def explain_no_sources(criterion: Criterion) -> str:
    """Why no claim can be supported: the texts that it is judged against are empty."""
    what, beside = name_part(criterion.text), name_part(criterion.against)
    return f"nothing can support the {what}: there is no text in the {beside}"
