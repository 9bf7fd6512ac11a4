"""One query with everything known about it; judges and metrics of answers read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.data.evidence.citations import Citation
from rageval_spec.data.evidence.nuggets import NUGGETS, Nugget, parse_nuggets
from rageval_spec.dataclass import dataclass, field

if TYPE_CHECKING:
    from rageval_spec.data.traces import Step

Part = Literal[
    "answer", "contexts", "context_ids", "reference", "reference_contexts", "relevant", "answerable", "group",
    "condition", "nuggets", "steps",
]  # fmt: skip
"""The parts that a query can lack. Every query has a question."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A question, a system's answer, and the gold answer. What is not known is None.

    Attributes:
        answer: the system's text; "" if it wrote nothing.
        contexts: the texts that the answer was written from, best first; () if there were none.
        context_ids, scores: the document ids of the contexts, and the retriever's scores, in the same order.
        references: gold answers, each correct by itself; a metric that needs only one uses the first.
        reference_contexts: the texts that contain the gold answer.
        relevant: relevance by document id, from the qrels.
        answerable: whether the collection contains an answer to the question.
        group, condition: queries of one group ask the same question under several conditions ("clean", "noisy").
        error: why the system gave no answer; `answer` is then None.
        is_unfinished: True if the evaluation stopped before the system was asked, which is no failure of the system.
        cost: what the answer cost, in US dollars.
        cache_read_tokens, cache_write_tokens: the input tokens that came from the provider's cache, or went there.
        truncated: True if the model stopped at its token limit.
        columns: the question's other columns, those that no part is read from, by name. They are read from the file
            when a value is first looked up. Two samples can be equal with other columns.
        answer_columns: the other columns of a recorded answer, by name: numbers, yes or no, and short texts.
        citations: what the answer cites, in order; None if it was not looked for when the answer was read.
        steps: what an agent did, in order; () if it did nothing. Only metrics that need steps get them.
        claims: the statements that a metric asks a judge about, one by one; None unless a metric sets them.
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
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    scores: tuple[float | None, ...] | None = None
    claims: tuple[str, ...] | None = None
    truncated: bool | None = field(default=None, compare=False)
    columns: Mapping[str, Any] | None = field(default=None, compare=False)
    answer_columns: Mapping[str, Any] | None = None
    citations: tuple[Citation, ...] | None = None
    steps: tuple[Step, ...] | None = None

    @property
    def reference(self) -> str | None:
        """The first gold answer, or None."""
        return self.references[0] if self.references else None

    @property
    def nuggets(self) -> tuple[Nugget, ...] | None:
        """The facts that a good answer has, from the column `nuggets` of the question; None if it has none.

        Raises:
            DataError: the column holds something else.
        """
        value = (self.columns or {}).get(NUGGETS)
        return None if value in (None, "") else parse_nuggets(value, f"the column '{NUGGETS}'")

    def lacks(self, part: Part | Literal["claims", "goal"]) -> bool:
        """Whether a part is unknown (None). Empty texts and empty lists of contexts are known, as are the latter's ids.

        Nuggets are not parsed here: what is wrong with them is told where they are judged.
        """
        if part in (NUGGETS, "goal"):
            return (self.columns or {}).get(part) in (None, "")
        return getattr(self, part) is None and not (part == "context_ids" and self.contexts == ())
