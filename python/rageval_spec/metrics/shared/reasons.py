"""Why a query has no value, or a value without a judge: the same words in every metric."""

from __future__ import annotations

from collections.abc import Sequence

EMPTY_ANSWER = "the answer is empty"
EMPTY_REFERENCE = "the reference is empty"
UNDECIDED = "the judge found nothing to judge"
NO_CONTEXTS = "there are no contexts, or only empty ones"


def is_blank(texts: Sequence[str] | str | None) -> bool:
    """Whether there is no text, or nothing but white space in each."""
    return not texts or not any(text.strip() for text in ((texts,) if isinstance(texts, str) else texts))
