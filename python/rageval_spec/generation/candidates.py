"""A question on its way into the test set: what it is made from, what was found, and why it was rejected."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from rageval_spec.data.assessment import Failed
    from rageval_spec.generation.chunks import Chunk
    from rageval_spec.generation.evidence import Span
    from rageval_spec.generation.mixes import Slot
    from rageval_spec.generation.requests import Draft

Reason = Literal[
    "no_reply",
    "unreadable",
    "unsuitable",
    "wrong_language",
    "not_standalone",
    "leak",
    "no_evidence",
    "duplicate",
    "not_found",
    "enough",
    "not_answerable",
    "one_chunk_suffices",
    "answerable",
    "unsupported",
    "known",
    "check_failed",
]
"""Why a question was rejected, in the order of the checks."""
REASONS: Mapping[Reason, str] = {
    "no_reply": "the call that should write the question failed",
    "unreadable": "the replies that should hold the question could not be read",
    "unsuitable": "the model could not write such a question about the passage",
    "wrong_language": "the question is in another language",
    "not_standalone": "the question does not make sense without the passage",
    "leak": "the question contains its answer",
    "no_evidence": "the quoted evidence is not in the passage",
    "duplicate": "another question asks the same",
    "not_found": "no retriever finds the source of the question",
    "enough": "there are enough questions of this difficulty",
    "not_answerable": "the passage does not answer the question",
    "one_chunk_suffices": "one passage alone answers a question that should need several",
    "answerable": "the corpus answers a question that should have no answer",
    "unsupported": "the passage does not support the answer",
    "known": "the model answers the question without the corpus",
    "check_failed": "a check got no usable reply",
}
"""What each reason means."""
assert set(REASONS) == set(get_args(Reason))


@dataclass
class Candidate:
    """A question of the test set, or one that was rejected.

    Attributes:
        slot: what it should be like.
        attempt: how many questions were tried for the slot before it.
        chunks: what it should be answered from; for an unanswerable one, what it is about.
        places: the positions of these chunks in the corpus.
        draft: what the model wrote; None if it wrote no question.
        spans: where the evidence stands in the chunks.
        ranks: where each retriever ranks its sources; None if one is not found.
        difficulty: how hard its sources are to find; None for an unanswerable question.
        reason: why it was rejected; None if it was not.
        detail: what exactly was found.
        raw: the reply that could not be read.
        language: the code of its language; "" if it is not clear.
        own_answer: what the model answers without documents; "" if it knows no answer.
        is_call_failed: whether it was rejected because a call failed, which another evaluation can change.
        unfinished: why it was not checked to the end: a limit; None if it was.
        is_supposed: whether it stands for a reply that is not there yet, while calls are estimated.
    """

    slot: Slot
    attempt: int
    chunks: tuple[Chunk, ...]
    places: tuple[int, ...] = ()
    draft: Draft | None = None
    spans: Sequence[Span] = ()
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    difficulty: str | None = None
    reason: Reason | None = None
    detail: str = ""
    raw: str | None = None
    language: str = ""
    own_answer: str = ""
    is_call_failed: bool = False
    unfinished: str | None = None
    is_supposed: bool = False

    @property
    def question(self) -> str:
        """Its text; "" if there is none."""
        return "" if self.draft is None else self.draft.question

    @property
    def answer(self) -> str:
        """Its answer; "" if there is none."""
        return "" if self.draft is None else self.draft.answer

    @property
    def texts(self) -> list[str]:
        """The texts of its chunks."""
        return [chunk.text for chunk in self.chunks]

    @property
    def query_id(self) -> str:
        """Its id, made from its text and its chunks: the same question has the same id in every test set."""
        content = "\0".join((self.question, *(chunk.chunk_id for chunk in self.chunks)))
        return f"q-{hashlib.sha256(content.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"

    def reject(self, reason: Reason, detail: str = "", raw: str | None = None) -> None:
        """Reject the question, unless it was rejected already."""
        if self.reason is None:
            self.reason, self.detail, self.raw = reason, detail, raw

    def readmit(self) -> None:
        """Take back that it was rejected, so that it is checked again."""
        self.reason, self.detail, self.raw = None, "", None

    def fail(self, failed: Failed, reason: Reason) -> None:
        """Reject the question because a reply is missing or cannot be read; a limit leaves it undecided."""
        if failed.is_unfinished:
            self.unfinished = failed.reason
        elif self.reason is None:
            self.is_call_failed = failed.raw is None
            self.reject(reason, failed.reason, failed.raw)
