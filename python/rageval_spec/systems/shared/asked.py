"""Base classes for systems that answer questions.

An answer is stored as soon as it arrives, under a digest of everything it depends on: the system's block, its files
and the text of the question. A query's id is not part of the digest unless the system is told the id.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from rageval_spec.plugin import Answering, Context, GeneratingNode, System
from rageval_spec.reading.answer_rows import AnswerRow, table_of
from rageval_spec.systems.shared.kept import KeptAnswers
from rageval_spec.systems.shared.questions import Question, Received, list_questions
from rageval_spec.systems.shared.templates import Variables

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.systems.shared.interview import Interview


class AnsweringNode(GeneratingNode):
    """The block of a system that is asked questions."""

    version: str | int = Field(
        default="1",
        description=(
            "Any word. Change it if the system changes during an evaluation: every question is "
            "asked again. A finished evaluation's questions are asked again in any case, unless `reuse` is always."
        ),
    )
    reuse: Literal["unfinished", "always"] = Field(
        default="unfinished",
        description=(
            "unfinished: ask every question again after a finished evaluation, and only the missing ones after an "
            "unfinished one. always: keep the answers until `version` changes, which must be written then. Reports say "
            "how many answers were kept, and when they were asked."
        ),
    )
    concurrency: int | None = Field(
        default=None, ge=1, le=256, description="How many questions to ask at once. Default: `limits.concurrency`."
    )
    timeout: float = Field(default=60, gt=0, le=86400, description="How many seconds one try can take in total.")
    requests_per_minute: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The most requests per minute, including retries."
    )

    @model_validator(mode="after")
    def _check_version(self) -> AnsweringNode:
        if self.reuse == "always" and "version" not in self.model_fields_set:
            raise ValueError(
                "with 'reuse: always', answers are kept until the version changes; write the system's version, "
                "such as 'version: v7'"
            )
        return self


N = TypeVar("N", bound=AnsweringNode)


class AnsweringSystem(System[N]):
    """Asks one question per query, several at once. Answers of an unfinished evaluation are reused.

    With `reuse: always`, those of finished evaluations are reused too.
    """

    needs = frozenset({"queries"})
    can_answer = True
    stored = False
    counts: ClassVar[str] = "questions"
    """The noun that its progress counts."""
    not_in_answers: ClassVar[frozenset[str]] = frozenset(
        {"concurrency", "timeout", "retries", "requests_per_minute", "reuse", "generator"}
    )
    """Keys of the node that do not affect answers."""
    later_keys = frozenset({"reuse"})

    def __init__(self, node: N, context: Context) -> None:
        """Store the arguments. Nothing is asked yet."""
        super().__init__(node, context)
        self._interviews: dict[str, Interview] = {}

    @property
    def reader(self) -> str:
        """How messages name the system as a reader of a collection."""
        return f"systems.{self.context.name}: {self.node.use}"

    @property
    @abstractmethod
    def variables(self) -> frozenset[str]:
        """The `VARIABLES` that the system is told. May import or open what is needed to find out."""

    @property
    def dispensable_variables(self) -> frozenset[str]:
        """Those of `variables` that are left out of a question if the dataset does not have them."""
        return frozenset()

    def guess_variables(self) -> Sequence[frozenset[str]]:
        """The possible values of `variables`, as far as they are known without running user code."""
        return (self.variables,)

    @abstractmethod
    def ask(self, told: Variables) -> AnswerRow:
        """The answer to one question, without `seconds`. Called from several threads.

        Raises:
            AskError: the system gave no answer.
            RagevalError: the system cannot be asked at all.
        """

    def receive(self, told: Variables) -> Received:
        """The answer to one question, with its reply if the system stores replies."""
        return Received(self.ask(told))

    def pack(self, row: AnswerRow, reply: bytes | None) -> bytes | None:  # noqa: ARG002 - for subclasses that store it
        """The bytes to store for an answer, or for an unusable reply (its row has an error); None to store nothing."""
        return row.pack() if row.error is None else None

    def unpack(self, content: bytes) -> AnswerRow | None:
        """The answer in stored bytes; None if they contain no answer, so that the question is asked again."""
        return AnswerRow.unpack(content)

    def close(self, *, at_once: bool = False) -> None:
        """End calls in flight and release resources. No answer is needed any more.

        With `at_once`, as after Ctrl-C, do not wait for anything.
        """

    def take_back(self) -> Sequence[tuple[Variables, str]]:
        """Answers found to be invalid since the last call: what the system was told, and why they are invalid.
        Called after errors and after `close`.
        """
        return ()

    @property
    def key(self) -> str:
        """The SHA-256, in hex, of everything that its answers depend on besides the question."""
        digests = [self.context.fingerprint(file) for file in self.inputs()]
        content = self.content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in self.not_in_answers}
        text = json.dumps([content, digests], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def answer(self, collection: Collection) -> Answering:
        """A row for each query, in order. Equal questions are asked once.

        Called again before `finish`, with more queries, it asks only those that it was not asked before, whether it
        answered them or failed.

        If the spec's limits allow no more questions, the row has an error that says so.

        Raises:
            RagevalError: the system cannot be asked at all.
        """
        from rageval_spec.systems.shared.interview import Interview

        earlier = self._interviews.get(collection.name)
        interview = self._interviews[collection.name] = Interview(self, collection, earlier)
        return interview.hold()

    def finish(self, dataset: str) -> bool:
        """Mark its answers on a dataset as those of a finished evaluation; False if questions are left to ask."""
        interview = self._interviews.pop(dataset, None)
        return interview is not None and interview.finish()

    def describe_reuse(self, count: int) -> str | None:
        """A phrase that says where reused answers come from; None if there are none."""
        return KeptAnswers(self).describe(count) if count else None

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """The rows that the store has. Asks no questions."""
        rows: dict[str, AnswerRow] = {}
        kept = KeptAnswers(self)
        for wanted in self.guess_variables():
            asked = [
                (query_id, question)
                for query_id, question in list_questions(self.reader, collection, wanted)
                if isinstance(question, Question)
            ]
            found = kept.find([question for _, question in asked])
            rows.update((name, found[question.digest]) for name, question in asked if question.digest in found)
        return table_of(rows.items())
