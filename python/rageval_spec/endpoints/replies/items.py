"""Orders the numbered items of a reply, such as a verdict on each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rageval_spec.endpoints.replies.unreadable import UnreadableReplyError


def put_in_order(items: Sequence[Mapping[str, Any]], key: str, decision: str) -> Sequence[Mapping[str, Any]]:
    """Items in the order of their numbers under `key`, from 1.

    If a model gives the same number to all of three or more items, it does not number them, and their positions count.
    Of two items with the same number, one could be repeated and the other missing, so their positions count only if
    both have the same decision.

    Raises:
        UnreadableReplyError: one number occurs twice and another is missing.
    """
    numbers = [item[key] for item in items]
    if sorted(numbers) == list(range(1, len(numbers) + 1)):
        return sorted(items, key=lambda item: int(item[key]))
    if len({*numbers}) == 1 and (len(items) > 2 or len({item[decision] for item in items}) == 1):
        return items
    missing = min({*range(1, len(numbers) + 1)} - {*numbers})
    raise UnreadableReplyError(f'there is no {decision} with "{key}": {missing}, and two with another number')
