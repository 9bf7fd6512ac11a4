"""The reasons, in the same words for every metric, why a query has no value or needs no judge."""

from __future__ import annotations

from collections.abc import Sequence

EMPTY_ANSWER = "the answer is empty"
EMPTY_REFERENCE = "the reference is empty"
UNDECIDED = "the judge found nothing to judge"
NO_CONTEXTS = "there are no contexts, or only empty ones"


def is_blank(texts: Sequence[str] | str | None) -> bool:
    """Whether there are no texts, or only white space in them."""
    return not texts or not any(text.strip() for text in ((texts,) if isinstance(texts, str) else texts))
