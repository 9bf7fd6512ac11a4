"""One query with everything that is known of it: what judges read and metrics of answers look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal[
    "answer",
    "contexts",
    "context_ids",
    "reference",
    "reference_contexts",
    "relevant",
    "answerable",
    "group",
    "condition",
]
"""What a query may lack. Every query has a question."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question, what a system made of it, and what would have been right.

    Attributes:
        answer: what the system wrote; "" where it wrote nothing; None where it is not known.
        contexts: the texts that the answer was made from, best first; None where the system does not say, () where
            it had none.
        context_ids: the ids of the contexts' documents, in the same order.
        references: gold answers, each right by itself; the first is the one that is compared with where one is needed.
        reference_contexts: the texts that hold the gold answer.
        relevant: relevance by document id, from the qrels; None where the dataset has none for this query.
        answerable: whether the question has an answer in the collection; None where nobody says.
        group, condition: queries of one group ask the same under several conditions ("clean", "noisy").
        error: why the system gave no answer; then `answer` is None.
        is_unfinished: the evaluation stopped before the system was asked, as `error` says; it has not failed.
        seconds: how long the system took; None where it is not known, as are the others.
        cost: in US dollars.
        claims: the statements that a metric asks a judge about one by one; None unless a metric set them.
    """

    query_id: str
    question: str
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] | None = None
    relevant: Mapping[str, int] | None = None
    answerable: bool | None = None
    group: str | None = None
    condition: str | None = None
    error: str | None = None
    is_unfinished: bool = False
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    claims: tuple[str, ...] | None = None

    @property
    def reference(self) -> str | None:
        """The first gold answer, or None."""
        return self.references[0] if self.references else None

    def lacks(self, part: Part | Literal["claims"]) -> bool:
        """Whether a part is not known. Empty texts and empty lists of contexts are known."""
        return getattr(self, part) is None
