"""The contract of systems that answer questions.

An answer is kept in the store the moment it arrives, under everything that it depends on: the system's block and its
files, and the text that is asked. What a query is called is no part of that, unless the system is told.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field

from rageval_spec.plugin import Answering, Context, System, SystemNode
from rageval_spec.reading.answer_rows import AnswerRow, table_of
from rageval_spec.systems.shared.kept import KeptAnswers
from rageval_spec.systems.shared.questions import Question, Received, list_questions
from rageval_spec.systems.shared.templates import Variables

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.systems.shared.interview import Interview


class AnsweringNode(SystemNode):
    """A block of a system that is asked."""

    version: str | int = Field(
        default="1",
        description=(
            "Any word. Change it if the system changes during an evaluation: every question is "
            "asked again. A finished evaluation's questions are asked again in any case."
        ),
    )
    concurrency: int | None = Field(
        default=None, ge=1, le=256, description="How many questions to ask at once. Default: `limits.concurrency`."
    )
    timeout: float = Field(default=60, gt=0, le=86400, description="How many seconds one try can take in total.")
    requests_per_minute: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The most requests per minute, including retries."
    )


N = TypeVar("N", bound=AnsweringNode)


class AnsweringSystem(System[N]):
    """Asks a question a query, several at once; what an unfinished evaluation has answers to is not asked again."""

    needs = frozenset({"queries"})
    can_answer = True
    stored = False
    counts: ClassVar[str] = "questions"
    """What its progress counts."""
    not_in_answers: ClassVar[frozenset[str]] = frozenset({"concurrency", "timeout", "retries", "requests_per_minute"})
    """Keys of the node on which no answer depends."""

    def __init__(self, node: N, context: Context) -> None:
        """Ask nobody yet."""
        super().__init__(node, context)
        self._interviews: dict[str, Interview] = {}

    @property
    @abstractmethod
    def variables(self) -> frozenset[str]:
        """Which of `VARIABLES` the system is told. May open what it needs to know that."""

    @property
    def dispensable_variables(self) -> frozenset[str]:
        """Those of `variables` that are left out of a question where the dataset does not have them."""
        return frozenset()

    def guess_variables(self) -> Sequence[frozenset[str]]:
        """What `variables` may be, as far as that is known without running anything of the user's."""
        return (self.variables,)

    @abstractmethod
    def ask(self, told: Variables) -> AnswerRow:
        """The answer to one question, without `seconds`. Called from several threads.

        Raises:
            AskError: there is none.
            RagevalError: nobody can be asked at all.
        """

    def receive(self, told: Variables) -> Received:
        """The answer to one question, with its reply where the system keeps that."""
        return Received(self.ask(told))

    def pack(self, row: AnswerRow, reply: bytes | None) -> bytes | None:  # noqa: ARG002 - for those that keep it
        """What is kept of an answer, or of a reply that holds none, whose row has an error; None for nothing."""
        return row.pack() if row.error is None else None

    def unpack(self, content: bytes) -> AnswerRow | None:
        """The answer in what was kept; None where it has none, so that the question is asked again."""
        return AnswerRow.unpack(content)

    def close(self, *, at_once: bool = False) -> None:
        """End what is under way, and let go of what is open: nobody waits for an answer any longer.

        With `at_once`, as after Ctrl-C, nothing is waited for.
        """

    def take_back(self) -> Sequence[tuple[Variables, str]]:
        """Which answers have turned out since the last call to be none: what was told, and why. Asked after errors,
        and after `close`.
        """
        return ()

    @property
    def key(self) -> str:
        """The sha256 of everything that its answers depend on beside the question, in hex."""
        digests = [self.context.fingerprint(file) for file in self.inputs()]
        content = self.content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in self.not_in_answers}
        text = json.dumps([content, digests], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def answer(self, collection: Collection) -> Answering:
        """A row for each query, in their order; equal questions are asked once.

        Where the spec's limits allow no further question, the row says so, as those of other errors do.

        Raises:
            RagevalError: nobody can be asked at all.
        """
        from rageval_spec.systems.shared.interview import Interview

        interview = self._interviews[collection.name] = Interview(self, collection)
        return interview.hold()

    def finish(self, dataset: str) -> bool:
        """Let its answers on a dataset be those of a finished evaluation; False where something is left to ask."""
        interview = self._interviews.pop(dataset, None)
        return interview is not None and interview.finish()

    def describe_reuse(self, count: int) -> str | None:
        """That answers are those of an unfinished evaluation; None where there are none."""
        return KeptAnswers(self).describe(count) if count else None

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """The rows that the store has; asks nobody."""
        rows: dict[str, AnswerRow] = {}
        kept = KeptAnswers(self)
        for wanted in self.guess_variables():
            asked = [
                (query_id, question)
                for query_id, question in list_questions(self, collection, wanted)
                if isinstance(question, Question)
            ]
            found = kept.find([question for _, question in asked])
            rows.update((name, found[question.digest]) for name, question in asked if question.digest in found)
        return table_of(rows.items())
