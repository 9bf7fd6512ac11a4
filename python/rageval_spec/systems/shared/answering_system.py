"""Base classes for systems that answer questions, and the interview that asks them.

An interview asks one system the questions of one collection, with limits on concurrency, retries and rate. An answer
is stored as soon as it arrives, under a digest of everything it depends on: the system's block, its files and the
text of the question. A query's id is not part of the digest unless the system gets the id.

An evaluation that was killed, interrupted or stopped by a limit is continued by the next one. After one that reached
its outcome, all questions are asked again: a system may have changed unnoticed. `kept_answers` says what is taken over.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, field_validator, model_validator

from rageval_spec.data.chat import LimitError
from rageval_spec.data.outcomes import TakenOver
from rageval_spec.data.tables import UNFINISHED, Collection
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.endpoints.tries import PATIENCE, BrokenDownError, Limits, Tries
from rageval_spec.libraries import pl
from rageval_spec.plugin import Answering, Context, GeneratingNode, System
from rageval_spec.plugin.budget import Reservation
from rageval_spec.recorded.answers_and_steps import AnswerRow, table_of
from rageval_spec.recorded.http_replies import ReplyLayout
from rageval_spec.recorded.json_path import parse_path
from rageval_spec.store.disk import InputFile
from rageval_spec.systems.shared.kept_answers import AnswerOrigin, KeptAnswer, KeptAnswers
from rageval_spec.systems.shared.question_templates import (
    VARIABLES,
    AskError,
    Received,
    SystemQuestion,
    Variables,
    complete,
    digest_of,
    find_unknown,
    list_questions,
    list_variables,
)
from rageval_spec.wording import count_noun


class AnsweringNode(GeneratingNode):
    """The block of a system that is asked questions."""

    version: str | int = Field(
        default="1",
        description=(
            "Any word. Change it if the system changes while an evaluation is interrupted: every question is "
            "asked again. A finished evaluation's questions are asked again in any case, unless `reuse` is always."
        ),
    )
    reuse: Literal["unfinished", "always"] = Field(
        default="unfinished",
        description=(
            "unfinished: ask every question again after an evaluation that reached its outcome, and only the missing "
            "ones after one that was interrupted or stopped by a limit. always: keep the answers until `version` "
            "changes, which must be written then. Reports show how many answers were kept, and when they were asked."
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


def check_path(text: str | None) -> str | None:
    """The text, if it is a path into JSON."""
    if text is not None:
        parse_path(text)
    return text


class RetrievingNode(AnsweringNode):
    """The block of a system whose reply is JSON, and which may be a retriever without answers."""

    retrieves: str | None = Field(
        default=None,
        description="For a retriever without answers: the path of the ids of the documents that it found, best first: "
        "`$.hits[*].id`.",
    )
    scores: str | None = Field(
        default=None,
        description="With `retrieves`, the path of the documents' scores: `$.hits[*].score`. Reports show them; the "
        "order of the ids is the ranking.",
    )

    @field_validator("retrieves", mode="before")
    @classmethod
    def _refuse_true(cls, found: Any) -> Any:
        if found is True:
            raise ValueError("write the path of the ids in the reply, such as 'retrieves: $.hits[*].id'")
        return found

    @model_validator(mode="after")
    def _check_scores(self) -> RetrievingNode:
        if self.scores is not None and self.retrieves is None:
            raise ValueError("'scores' belong to the ids of 'retrieves'; add it, such as 'retrieves: $.hits[*].id'")
        return self

    @property
    def templates(self) -> dict[str, Any]:
        """What is filled in for each question, by its key in the block."""
        raise NotImplementedError


def check_template(template: Any) -> Any:
    """The template, if its variables have names and it can be written as JSON."""
    list_variables(template)
    try:
        json.dumps(template, allow_nan=False)
    except ValueError:
        raise ValueError("JSON has neither NaN nor infinity") from None
    return template


N = TypeVar("N", bound=AnsweringNode)
R = TypeVar("R", bound=RetrievingNode)


class AnsweringSystem(System[N]):
    """Asks one question per query, several at once. Answers of an unfinished evaluation are taken over.

    With `reuse: always`, those of finished evaluations are taken over too.
    """

    needs = frozenset({"queries"})
    can_answer = True
    stored = False
    counts: ClassVar[str] = "questions"
    """The noun that its progress counts."""
    not_in_answers: ClassVar[frozenset[str]] = frozenset(
        {"concurrency", "timeout", "retries", "requests_per_minute", "reuse", "generator"}
        | {"citations_from", "retrieval_step"}
    )
    """Keys of the node that do not affect answers."""
    later_keys = frozenset({"reuse"})

    def __init__(self, node: N, context: Context) -> None:
        """Store the arguments. Nothing is asked yet."""
        super().__init__(node, context)
        self._interviews: dict[str, Interview] = {}
        self._turn = Lock()
        self._known: dict[bytes, AnswerOrigin] = {}

    @property
    def reader(self) -> str:
        """How messages name the system as a reader of a collection."""
        return f"systems.{self.context.name}: {self.node.use}"

    @property
    def writes_answers(self) -> bool:
        return not getattr(self.node, "retrieves", None)

    @property
    @abstractmethod
    def variables(self) -> frozenset[str]:
        """The `VARIABLES` that the system gets. May import or open what is needed to find out."""

    @property
    def dispensable_variables(self) -> frozenset[str]:
        """Those of `variables` that are left out of a question if the dataset does not have them."""
        return frozenset()

    def guess_variables(self) -> Sequence[frozenset[str]]:
        """The possible values of `variables`, as far as they are known without running user code."""
        return (self.variables,)

    @abstractmethod
    def ask(self, told: Variables) -> AnswerRow | Received:
        """The answer to one question, without `seconds`, with its reply if the system stores replies.

        Called from several threads. Raises `AskError` if there is no answer, and any other `RagevalError` if the system
        cannot be asked at all.
        """

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
        """Answers found to be invalid since the last call: what the system got, and why they are invalid.
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
        """Equal questions are asked once.

        Called again before `finish`, with more queries, it asks only those that it was not asked before, whether it
        answered them or failed. If the spec's limits allow no more questions, the row has an error that says so.
        Parts of a step that run in threads of one process wait for one another: each asks several questions at once.
        """
        with self._turn:
            return self._interview(collection).hold()

    def begin(self, collection: Collection) -> None:
        with self._turn:
            self._interview(collection).begin()

    def _interview(self, collection: Collection) -> Interview:
        interview = self._interviews.setdefault(collection.name, Interview(self))
        interview.prepare(collection)
        return interview

    def list_code(self) -> Iterable[Path]:
        """The files of code, besides `inputs`, that its answers can depend on, as far as its files name them."""
        return ()

    def digest_code(self) -> dict[str, str]:
        files = [InputFile(path, ()) for path in self.list_code()]
        return {str(file.path): self.context.fingerprint(file) for file in files}

    def finish(self, dataset: str) -> None:
        interview = self._interviews.pop(dataset, None)
        if interview is not None:
            interview.finish(is_last=not self._interviews)

    def describe_reuse(self, count: int) -> str | None:
        kept = KeptAnswers(self)
        taken = kept.sum_up(self._known, len(self._known), 0)
        return None if taken is None else kept.describe(replace(taken, answers=count))

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        rows: dict[str, AnswerRow] = {}
        kept = KeptAnswers(self)
        for wanted in self.guess_variables():
            listed = list_questions(self.reader, collection, wanted)
            asked = [(name, question) for name, question in listed if isinstance(question, SystemQuestion)]
            found = kept.find([question for _, question in asked])
            rows.update((name, found[question.digest].row) for name, question in asked if question.digest in found)
            self._known |= {digest: one.origin for digest, one in found.items()}
        return table_of(rows.items(), self.node.citations_from)


class TemplateSystem(AnsweringSystem[R]):
    """Sends filled-in templates, and reads JSON by the paths that its block has for some parts of a reply."""

    parts: ClassVar[tuple[str, ...]]
    """The keys of these paths."""

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(list_variables(list(self.node.templates.values())))

    def check_columns(self, list_columns: Callable[[], Sequence[str] | None]) -> Iterator[FileFault]:
        if self.variables <= {*VARIABLES} or (columns := list_columns()) is None:
            return
        for key, template in self.node.templates.items():
            yield from find_unknown(template, key, columns)

    @cached_property
    def _layout(self) -> ReplyLayout:
        return ReplyLayout(**{part: parse_path(path) for part in self.parts if (path := getattr(self.node, part))})


Result = tuple[bytes, AnswerRow] | BaseException | None
"""An answer with its question's digest; the error that ends the interview; or None when a thread ends."""
_PATIENCE = 0.2
"""Seconds until an interrupt is noticed at the latest: a library's signal handler may keep waits uninterrupted."""


class Interview:
    """The questions of one evaluation of a dataset to one system.

    It can be held again with more questions, and takes over what became of those before.
    """

    def __init__(self, system: AnsweringSystem[Any]) -> None:
        """Ask nothing yet."""
        self._system = system
        self._context = system.context
        self._kept = KeptAnswers(system)
        self._was_held = self._context.resume.is_told
        self._rows: dict[bytes, AnswerRow] = {}
        self._origins: dict[bytes, AnswerOrigin] = {}
        self._left: set[bytes] = set()
        self._prepared: dict[bytes, None] = {}
        self._taken_back: dict[bytes, str] = {}
        self._lock = Lock()

    def prepare(self, collection: Collection) -> None:
        system, node = self._system, self._system.node
        self._place = f"{self._context.name} on {collection.name}"
        self._asked = list(list_questions(system.reader, collection, system.variables, system.dispensable_variables))
        self._questions = {one.digest: one for _, one in self._asked if isinstance(one, SystemQuestion)}
        self._prepared |= dict.fromkeys(self._questions)
        shard = self._context.shard
        self._at_once = shard.take_at_once(node.concurrency) if node.concurrency else self._context.concurrency
        retries, patience = getattr(node, "retries", 0), getattr(node, "patience", PATIENCE)
        limits = Limits(self._at_once, retries, shard.take_rate(node.requests_per_minute), patience=patience)
        self._tries = Tries(limits, Clock(), make_pace=self._context.make_pace(f"systems.{self._context.name}"))

    def begin(self) -> None:
        """Record the beginning, which other processes then find, and say once what they will take over."""
        ended = self._kept.explain_end()
        self._kept.begin()
        if self._was_held:
            return
        self._was_held = True
        for digest, one in self._kept.find([*self._questions.values()]).items():
            self._take_over(digest, one)
        self._announce(len(self._questions) - len(self._rows), ended)

    def hold(self) -> Answering:
        """Reuse earlier answers and ask the remaining questions."""
        unknown = [question for digest, question in self._questions.items() if digest not in self._rows]
        ended = None if self._was_held else self._kept.explain_end()
        self._kept.begin()
        found = self._kept.find(unknown)
        for digest, one in found.items():
            self._take_over(digest, one)
        waiting = [question for question in unknown if question.digest not in found]
        total = len(self._rows) + len(waiting)
        self._report(total)
        if not self._was_held:
            self._announce(len(waiting), ended)
        self._was_held = True
        if waiting and self._left:  # it broke down before
            reason = str(next(self._rows[digest].error for digest in self._left))
            self._rows.update((question.digest, self._leave(question, reason)) for question in waiting)
        elif waiting:
            self._ask_all(waiting, total)
        rows = ((name, one if isinstance(one, AnswerRow) else self._rows[one.digest]) for name, one in self._asked)
        return Answering(
            self._mark_unfinished(table_of(rows, self._system.node.citations_from)), taken_over=self._sum_up()
        )

    def _take_over(self, digest: bytes, kept: KeptAnswer) -> AnswerRow:
        row = kept.row
        if not self._kept.is_asked_now(digest):
            self._origins[digest] = kept.origin
            row = replace(row, asked=kept.origin.time)
        self._rows[digest] = row
        return row

    def _sum_up(self) -> TakenOver | None:
        taken = {digest: origin for digest, origin in self._origins.items() if digest in self._questions}
        answered = sum(self._rows[digest].error is None for digest in self._questions)
        return self._kept.sum_up(taken, len(self._questions), answered - len(taken))

    def _mark_unfinished(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table, with a column that distinguishes queries that were not asked from those that failed."""
        if not self._left:
            return table
        left = [isinstance(one, SystemQuestion) and one.digest in self._left for _, one in self._asked]
        return table.with_columns(pl.Series(UNFINISHED, left))

    def finish(self, *, is_last: bool) -> None:
        """Mark the answers as those of a finished evaluation; `is_last` says that no other dataset has answers."""
        self._kept.finish([*self._prepared])
        if is_last:
            self._kept.end()

    def _announce(self, waiting: int, ended: str | None) -> None:
        taken = self._kept.sum_up(self._origins, len(self._rows), 0)
        if taken is not None:
            rest = f"; asking {count_noun(waiting, 'question')}" if waiting else ""
            self._context.tell(f"{self._place}: taking over {self._kept.describe(taken)}{rest}")
        elif self._rows:
            self._context.tell(f"{self._place}: has the same answers as a system with an equal block")
        elif ended is not None:
            self._context.tell(
                f"{self._place}: asks all questions; the unfinished evaluation is not continued: {ended}"
            )

    def _report(self, total: int) -> None:
        if total:
            self._context.progress(len(self._rows), total)

    def _ask_all(self, waiting: Sequence[SystemQuestion], total: int) -> None:
        """Ask from several threads. If the system cannot be asked any more, calls in flight finish and are stored."""
        results: SimpleQueue[Result] = SimpleQueue()
        tasks = iter(waiting)
        at_once = min(self._at_once, len(waiting))
        failure: BaseException | None = None
        is_interrupted = True
        try:
            for number in range(at_once):
                name = f"{self._context.name}-{number}"
                # Daemon threads: a question whose answer is no longer needed must not delay the end of the program.
                Thread(target=self._work, args=(tasks, results), name=name, daemon=True).start()
            while at_once:
                result = _take(results)
                if result is None:
                    at_once -= 1
                elif isinstance(result, BaseException):
                    failure = failure or result
                else:
                    self._rows[result[0]] = result[1]
                    self._report(total)
            is_interrupted = False
        finally:
            self._tries.stop()
            self._system.close(at_once=is_interrupted)
            self._take_back()
        if failure is not None:
            raise failure
        self._rows.update((digest, AnswerRow(error=reason)) for digest, reason in self._taken_back.items())

    def _take_back(self) -> None:
        """Forget invalid answers. Repeats all of them each time, because one may have been stored only now."""
        invalid = [*self._system.take_back()]
        found = {digest_of(told): reason for told, reason in invalid}
        for digest, one in self._questions.items() if invalid else ():  # each repeat has a digest of its own
            found.update((digest, reason) for told, reason in invalid if told == one.told)
        with self._lock:
            self._taken_back.update(found)
            forgotten = list(self._taken_back)
        for _ in found:
            with suppress(LimitError):
                self._context.budget.count_error(is_lasting=True)
        if forgotten:
            self._kept.forget(forgotten)

    def _work(self, tasks: Iterator[SystemQuestion], results: SimpleQueue[Result]) -> None:
        try:
            while not self._tries.is_stopped:
                with self._lock:
                    question = next(tasks, None)
                if question is None:
                    break
                results.put((question.digest, self._ask_and_keep(question)))
        except StoppedError:
            pass
        except BaseException as error:
            self._tries.stop()
            results.put(error)
        finally:
            results.put(None)

    def _ask_and_keep(self, question: SystemQuestion) -> AnswerRow:
        try:
            row = self._ask(question)
        except BrokenDownError as complaint:
            return self._leave(question, str(complaint))
        except AskError as error:
            self._take_back()
            self._context.budget.count_question(failed=True, is_lasting=not error.is_temporary)
            after = f" (after {count_noun(error.tries, 'try', 'tries')})" if error.tries > 1 else ""
            return AnswerRow(error=f"{error}{after}")
        except LimitError as error:
            return self._leave(question, str(error))
        self._context.budget.count_question()
        return row

    def _leave(self, question: SystemQuestion, reason: str) -> AnswerRow:
        """The row of a question that was not asked. This is not a failure; the next evaluation asks it."""
        with self._lock:
            self._left.add(question.digest)
        return AnswerRow(error=reason)

    def _keep(self, question: SystemQuestion, row: AnswerRow, reply: bytes | None) -> None:
        content = self._system.pack(row, reply)
        if content is not None:
            self._kept.keep(question.digest, content)

    def _ask(self, question: SystemQuestion) -> AnswerRow:
        """Get and store the answer, timed by the successful try. Another process may have asked it instead."""
        with self._kept.hold(question, self._tries.sleep) as found:
            return self._call(question) if found is None else self._take_over(question.digest, found)

    def _call(self, question: SystemQuestion) -> AnswerRow:
        with Reservation(self._context.budget, is_of_system=True) as reservation:
            try:
                row = self._tries.make(lambda: self._try(question), reservation)
            except AskError as error:
                if self._tries.is_stopped:
                    raise StoppedError from None
                self._keep(question, AnswerRow(seconds=error.seconds, error=str(error)), error.reply)
                raise
            reservation.cost = row.cost
            return row

    def _try(self, question: SystemQuestion) -> AnswerRow:
        start = time.monotonic()
        try:
            found = self._system.ask(question.told)
        except AskError as error:
            error.seconds = time.monotonic() - start
            raise
        row, reply = found if isinstance(found, Received) else (found, None)
        row = complete(replace(row, seconds=time.monotonic() - start), question.told)
        self._keep(question, row, reply)
        return row


def _take(results: SimpleQueue[Result]) -> Result:
    while True:
        with suppress(Empty):
            return results.get(timeout=_PATIENCE)
