"""Labels: what people judged about answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_DIGEST_LENGTH = 16
RANDOM_REASONS = frozenset({"random", "slice"})
"""The reasons of answers that were drawn at random from all answers, or from all of a slice."""


@dataclass(frozen=True, slots=True)
class Label:
    """One person's judgement of one answer, or of one claim of it, on one criterion.

    Attributes:
        query_id: the question.
        metric: the criterion: `faithfulness`; "" if the file has only one and does not name it.
        value: a number, or the name of a class. Yes and no are 1 and 0.
        annotator: who judged; "" if it is not said.
        dataset, system: whose answer it was; "" if it is not said.
        answer: the digest of the answer, as `digest_answer` gives it; "" if it is not said.
        claim: the claim's number within the answer, from 0; None if the whole answer was judged.
        time, comment: as the file has them, "" if it does not.
        reason: why the answer was chosen for labelling: `random`, `low + unsure`; "" if it is not said.
        probability: how likely it was to be chosen, above 0 and at most 1; None if it is not said.
        place: where the label stands: `labels.csv:12`.
    """

    query_id: str
    metric: str
    value: float | str
    annotator: str
    dataset: str = ""
    system: str = ""
    answer: str = ""
    claim: int | None = None
    time: str = ""
    comment: str = ""
    reason: str = ""
    probability: float | None = None
    place: str = ""

    @property
    def item(self) -> tuple[str, str, str, str, int | None]:
        """What was judged: labels with the same item and metric judge the same thing."""
        return (self.dataset, self.query_id, self.system, self.answer, self.claim)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The words of `reason`."""
        return tuple(word for part in self.reason.split("+") if (word := part.strip()))


def digest_answer(text: str) -> str:
    """A digest of an answer's text. A label that names it belongs to this text and to no other."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGEST_LENGTH]
