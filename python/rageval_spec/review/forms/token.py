"""Tokens: the hidden field of a form's row that says what was judged.

Spreadsheets change what they take for numbers or dates: the query `007` becomes 7, `1/2` a day in January. A token is a
text that they leave alone. It also has a digest of the texts that the person saw, so that an edited text is noticed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rageval_spec.review.tasks import ReviewClaim, ReviewTask

_PREFIX = "rv1."
_CHECK_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Token:
    """What a row of a form is about.

    Attributes:
        dataset, system, query_id: whose answer to which question.
        metric, claim: the metric and the number of the claim; "" and None for the whole answer.
        answer_digest: the digest of the answer.
        reason, probability: why, and how likely, the answer was chosen; None if it is not known.
        shown: the digest of the texts that the row shows, as `digest_shown` gives it.
    """

    dataset: str
    system: str
    query_id: str
    metric: str
    claim: int | None
    answer_digest: str
    reason: str
    probability: float | None
    shown: str

    @classmethod
    def of(cls, task: ReviewTask, claim: ReviewClaim | None, shown: Sequence[str]) -> Token:
        """The token of a task's answer, or of one of its claims, with the texts that the row shows."""
        metric, number = ("", None) if claim is None else (claim.metric, claim.number)
        digest = digest_shown(shown)
        return cls(*task.key, metric, number, task.answer_digest, task.reason, task.probability, digest)

    def encode(self) -> str:
        """The token as a text of letters, digits, `-`, `_` and dots."""
        content = json.dumps(astuple(self), separators=(",", ":")).encode()
        return f"{_PREFIX}{base64.urlsafe_b64encode(content).decode().rstrip('=')}.{_check(content)}"


def decode_token(text: str) -> Token | None:
    """The token of a text; None if it is none, or damaged."""
    body, dot, check = text.strip().removeprefix(_PREFIX).rpartition(".")
    if not dot or not text.strip().startswith(_PREFIX):
        return None
    try:
        content = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        if _check(content) != check:
            return None
        return Token(*json.loads(content))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None


def digest_shown(texts: Sequence[str]) -> str:
    """A digest of the texts of a row. It ignores what spreadsheets change: white space, and a `'` at the beginning."""
    folded = json.dumps([" ".join(text.split()).lstrip("' ") for text in texts])
    return hashlib.sha256(folded.encode()).hexdigest()[:_CHECK_LENGTH]


def _check(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_CHECK_LENGTH]
