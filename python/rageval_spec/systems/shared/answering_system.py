"""Base classes for systems that answer questions, and the interview that asks them.

An interview asks one system the questions of one collection, with limits on concurrency, retries and rate. An answer
is stored as soon as it arrives, under a digest of everything it depends on: the system's block, its files and the
text of the question. A query's id is not part of the digest unless the system is told the id.

The store has answers from unfinished and from finished evaluations. A new answer is under the system's key with the
prefix `unfinished:`. When an evaluation finishes, the answers that it used move to the key without the prefix, each
with the time when its evaluation began. Unless the system's block says `reuse: always`, only answers with the prefix
are reused: a system may have changed unnoticed since a finished evaluation. An evaluation that was killed,
interrupted or stopped by a limit did not finish, so the next one continues with its answers. Older stores do not make
this distinction: their answers are under the key without the prefix, as if from finished evaluations.
"""

from __future__ import annotations

import hashlib
import json
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from rageval_spec.data.chat import LimitError
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import UNFINISHED, Collection
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.endpoints.shared_questions import hold_claim
from rageval_spec.endpoints.tries import PATIENCE, BrokenDownError, Limits, Tries
from rageval_spec.plugin import Answering, Context, GeneratingNode, System
from rageval_spec.plugin.budget import Reservation
from rageval_spec.recorded.answers_and_steps import AnswerRow, table_of
from rageval_spec.store.replies import WHEN
from rageval_spec.systems.shared import question_templates
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl


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
    def ask(self, told: question_templates.Variables) -> AnswerRow:
        """The answer to one question, without `seconds`. Called from several threads.

        Raises:
            AskError: the system gave no answer.
            RagevalError: the system cannot be asked at all.
        """

    def receive(self, told: question_templates.Variables) -> question_templates.Received:
        """The answer to one question, with its reply if the system stores replies."""
        return question_templates.Received(self.ask(told))

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

    def take_back(self) -> Sequence[tuple[question_templates.Variables, str]]:
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
                for query_id, question in question_templates.list_questions(self.reader, collection, wanted)
                if isinstance(question, question_templates.SystemQuestion)
            ]
            found = kept.find([question for _, question in asked])
            rows.update((name, found[question.digest]) for name, question in asked if question.digest in found)
        return table_of(rows.items())


Result = tuple[bytes, AnswerRow] | BaseException | None
"""An answer with its question's digest; the error that ends the interview; or None when a thread ends."""
_PATIENCE = 0.2
"""Seconds until an interrupt is noticed at the latest: a library's signal handler may keep waits uninterrupted."""


class Interview:
    """One run of questions from one collection to one system.

    An evaluation that asks more and more questions holds several; each takes over what became of the questions before.

    Attributes:
        is_settled: whether every question was answered, or failed for a reason that another try would not change.
    """

    def __init__(self, system: AnsweringSystem[Any], collection: Collection, earlier: Interview | None = None) -> None:
        """List the questions. Nothing is asked yet. `earlier` is the last interview of the same evaluation."""
        self._system = system
        self._context = system.context
        self._dataset = collection.name
        self._kept = KeptAnswers(system)
        self._asked = list(
            question_templates.list_questions(system.reader, collection, system.variables, system.dispensable_variables)
        )
        node = system.node
        limits = Limits(
            node.concurrency or system.context.concurrency,
            getattr(node, "retries", 0),
            node.requests_per_minute,
            patience=getattr(node, "patience", PATIENCE),
        )
        self._tries = Tries(limits, Clock())
        self.is_settled = False
        self._is_first = earlier is None
        self._rows: dict[bytes, AnswerRow] = {} if earlier is None else dict(earlier._rows)
        self._unsettled: int = 0 if earlier is None else earlier._unsettled
        self._left: set[bytes] = set() if earlier is None else set(earlier._left)
        self._taken_back: dict[bytes, str] = {} if earlier is None else dict(earlier._taken_back)
        self._lock = Lock()

    def hold(self) -> Answering:
        """Reuse earlier answers and ask the remaining questions."""
        questions = self._questions()
        unknown = [question for digest, question in questions.items() if digest not in self._rows]
        found = self._kept.find(unknown)
        self._rows.update(found)
        waiting = [question for question in unknown if question.digest not in found]
        total = len(self._rows) + len(waiting)
        self._report(total)
        if self._is_first:
            self._announce(len(waiting))
        if waiting and self._left:  # it broke down before
            self._leave_all(waiting)
        elif waiting:
            self._kept.begin()
            self._ask_all(waiting, total)
        self.is_settled = not self._unsettled
        table = table_of((query_id, self._row(question)) for query_id, question in self._asked)
        days = self._kept.count_days(list(questions.values()))
        notes = remark_on_age(days, len(questions), self._system.node)
        return Answering(self._mark_unfinished(table), tuple(notes))

    def _mark_unfinished(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table, with a column that distinguishes queries that were not asked from those that failed."""
        import polars as pl

        if not self._left:
            return table
        left = [
            isinstance(question, question_templates.SystemQuestion) and question.digest in self._left
            for _, question in self._asked
        ]
        return table.with_columns(pl.Series(UNFINISHED, left))

    def finish(self) -> bool:
        """Mark the answers as those of a finished evaluation; False if questions are left to ask."""
        if self.is_settled:
            self._kept.finish(list(self._questions()))
        return self.is_settled

    def _questions(self) -> dict[bytes, question_templates.SystemQuestion]:
        return {
            question.digest: question
            for _, question in self._asked
            if isinstance(question, question_templates.SystemQuestion)
        }

    def _announce(self, waiting: int) -> None:
        if self._rows:
            origin = self._kept.describe(len(self._rows), self._kept.count_days(list(self._questions().values())))
            rest = f"; asking {count_noun(waiting, 'question')}" if waiting else ""
            self._context.tell(f"{self._context.name} on {self._dataset}: reusing {origin}{rest}")

    def _row(self, question: question_templates.SystemQuestion | AnswerRow) -> AnswerRow:
        return question if isinstance(question, AnswerRow) else self._rows[question.digest]

    def _report(self, total: int) -> None:
        if total:
            self._context.progress(len(self._rows), total)

    def _ask_all(self, waiting: Sequence[question_templates.SystemQuestion], total: int) -> None:
        """Ask from several threads. If the system cannot be asked any more, calls in flight finish and are stored."""
        results: SimpleQueue[Result] = SimpleQueue()
        tasks = iter(waiting)
        at_once = min(self._system.node.concurrency or self._context.concurrency, len(waiting))
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
        found = {question_templates.digest_of(told): reason for told, reason in self._system.take_back()}
        with self._lock:
            self._taken_back.update(found)
            forgotten = list(self._taken_back)
        for _ in found:
            with suppress(LimitError):
                self._context.budget.count_error(is_lasting=True)
        if forgotten:
            self._kept.forget(forgotten)

    def _work(self, tasks: Iterator[question_templates.SystemQuestion], results: SimpleQueue[Result]) -> None:
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

    def _ask_and_keep(self, question: question_templates.SystemQuestion) -> AnswerRow:
        try:
            row = self._ask(question)
        except BrokenDownError as complaint:
            return self._leave(question, str(complaint))
        except question_templates.AskError as error:
            self._take_back()
            self._context.budget.count_question(failed=True, is_lasting=not error.is_temporary)
            with self._lock:
                self._unsettled += error.is_temporary
            return AnswerRow(error=_describe(error))
        except LimitError as error:
            return self._leave(question, str(error))
        self._context.budget.count_question()
        return row

    def _leave(self, question: question_templates.SystemQuestion, reason: str) -> AnswerRow:
        """The row of a question that was not asked. This is not a failure; the next evaluation asks it."""
        with self._lock:
            self._unsettled += 1
            self._left.add(question.digest)
        return AnswerRow(error=reason)

    def _leave_all(self, questions: Sequence[question_templates.SystemQuestion]) -> None:
        reason = next(self._rows[digest].error for digest in self._left)
        self._rows.update((question.digest, self._leave(question, str(reason))) for question in questions)

    def _keep(self, question: question_templates.SystemQuestion, row: AnswerRow, reply: bytes | None) -> None:
        content = self._system.pack(row, reply)
        if content is not None:
            self._kept.keep(question.digest, content)

    def _ask(self, question: question_templates.SystemQuestion) -> AnswerRow:
        """Get and store the answer, timed by the successful try. Another process may have asked it instead."""
        with self._kept.hold(question, self._tries.sleep) as found:
            return found or self._call(question)

    def _call(self, question: question_templates.SystemQuestion) -> AnswerRow:
        with Reservation(self._context.budget, is_of_system=True) as reservation:
            try:
                row = self._tries.make(lambda: self._try(question), reservation)
            except question_templates.AskError as error:
                if self._tries.is_stopped:
                    raise StoppedError from None
                self._keep(question, AnswerRow(seconds=error.seconds, error=str(error)), error.reply)
                raise
            reservation.cost = row.cost
            return row

    def _try(self, question: question_templates.SystemQuestion) -> AnswerRow:
        start = time.monotonic()
        try:
            row, reply = self._system.receive(question.told)
        except question_templates.AskError as error:
            error.seconds = time.monotonic() - start
            raise
        row = question_templates.complete(replace(row, seconds=time.monotonic() - start), question.told)
        self._keep(question, row, reply)
        return row


def _take(results: SimpleQueue[Result]) -> Result:
    while True:
        with suppress(Empty):
            return results.get(timeout=_PATIENCE)


def _describe(error: question_templates.AskError) -> str:
    return str(error) if error.tries == 1 else f"{error} (after {count_noun(error.tries, 'try', 'tries')})"


UNFINISHED_PREFIX = "unfinished:"
LOOKED_UP_AT_ONCE = 4096
_NOTHING = b""
"""Stored in place of an answer that is no longer valid."""
_START = b"start"
"""Stands in for a question's digest: its entry says when the unfinished evaluation started asking."""


class KeptAnswers:
    """The stored answers of one system."""

    def __init__(self, system: AnsweringSystem[Any]) -> None:
        """Prepare the keys. Nothing is looked up yet."""
        self._system = system
        self._answers = system.context.answers
        self._finished = system.key
        self._unfinished = UNFINISHED_PREFIX + system.key

    @property
    def includes_finished(self) -> bool:
        """Whether answers of finished evaluations are reused too: `--retry-errors` repairs the last evaluation."""
        return self._system.context.budget.retry_errors or self._keeps_all

    @property
    def _keeps_all(self) -> bool:
        return bool(self._system.node.reuse == "always")

    def find(self, questions: Sequence[question_templates.SystemQuestion]) -> dict[bytes, AnswerRow]:
        """The stored answers to questions, by digest. Damaged answers are left out."""
        rows = self._read(self._unfinished, questions)
        if self.includes_finished:
            rows.update(self._read(self._finished, [asked for asked in questions if asked.digest not in rows]))
        return rows

    def begin(self) -> None:
        """Record the start time before the first question, unless the evaluation is continuing an earlier one."""
        if self._read_start() is None:
            start = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds")}).encode("ascii")
            self._answers.keep(self._unfinished, {_START: start})
            self._begun_now.add(self._unfinished)

    def keep(self, digest: bytes, content: bytes) -> None:
        """Store an answer of the current evaluation."""
        self._answers.keep(self._unfinished, {digest: content})

    def hold(
        self, question: question_templates.SystemQuestion, sleep: Callable[[float], None]
    ) -> AbstractContextManager[AnswerRow | None]:
        """The answer if another process with the same store got it in the meantime; None if it must be asked now."""
        digest = question.digest
        return hold_claim(self._answers, self._unfinished, digest, lambda: self.find([question]).get(digest), sleep)

    def forget(self, digests: Iterable[bytes]) -> None:
        """Stop using these answers."""
        self._answers.keep(self._unfinished, dict.fromkeys(digests, _NOTHING))

    def count_days(self, questions: Sequence[question_templates.SystemQuestion]) -> Counter[date | None]:
        """How many of these questions have an answer only from a finished evaluation, by the day when it was asked.

        The day is in UTC; None if an earlier version stored the answer. Empty unless the system keeps all answers.
        """
        if not self._keeps_all:
            return Counter()
        asked_now = self._read(self._unfinished, questions)
        kept = [*self._read(self._finished, [one for one in questions if one.digest not in asked_now])]
        times: dict[bytes, bytes] = {}
        for start in range(0, len(kept), LOOKED_UP_AT_ONCE):
            names = [WHEN + digest for digest in kept[start : start + LOOKED_UP_AT_ONCE]]
            times.update(self._answers.find(self._finished, names))
        return Counter(_read_day(times.get(WHEN + digest, _NOTHING)) for digest in kept)

    def finish(self, digests: Sequence[bytes]) -> None:
        """Move answers to those of finished evaluations.

        They are copied before they are removed: a kill in between leaves the evaluation unfinished but loses nothing.
        """
        begun = self._answers.find(self._unfinished, [_START]).get(_START, _NOTHING)
        for start in range(0, len(digests), LOOKED_UP_AT_ONCE):
            found = self._answers.find(self._unfinished, digests[start : start + LOOKED_UP_AT_ONCE])
            answers = {digest: content for digest, content in found.items() if content != _NOTHING}
            if answers:
                times = {WHEN + digest: begun for digest in answers}
                self._answers.keep(self._finished, {**answers, **times})
        self.forget([*digests, _START])

    def describe(self, count: int, days: Mapping[date | None, int] | None = None) -> str:
        """Say where `count` answers come from: `120 answers of an unfinished evaluation`, and since when.

        `days` is what `count_days` found.
        """
        answers = count_noun(count, "answer")
        if self._keeps_all:
            return f"{answers} of earlier evaluations (reuse: always{f'; {describe_days(days)}' if days else ''})"
        if self.includes_finished:
            return f"{answers} of the last evaluation (--retry-errors)"
        if self._unfinished in self._begun_now:
            return f"{answers} that this evaluation already has"
        start = self._read_start()
        since = "" if start is None else f", started {start:%Y-%m-%d %H:%M} UTC"
        return f"{answers} of an unfinished evaluation{since}"

    @property
    def _begun_now(self) -> set[str]:
        """Keys of systems that had no answers before this evaluation. Equal blocks share a key."""
        return self._system.context.budget.memory.remember(self._answers, set)

    def _read(self, key: str, questions: Sequence[question_templates.SystemQuestion]) -> dict[bytes, AnswerRow]:
        rows: dict[bytes, AnswerRow] = {}
        for start in range(0, len(questions), LOOKED_UP_AT_ONCE):
            told = {question.digest: question.told for question in questions[start : start + LOOKED_UP_AT_ONCE]}
            found = self._answers.find(key, list(told))
            unpacked = ((digest, self._system.unpack(content)) for digest, content in found.items())
            rows.update(
                (digest, question_templates.complete(row, told[digest])) for digest, row in unpacked if row is not None
            )
        return rows

    def _read_start(self) -> datetime | None:
        return _read_time(self._answers.find(self._unfinished, [_START]).get(_START, _NOTHING))


def _read_time(content: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(json.loads(content)["time"]).astimezone(UTC)
    except (ValueError, KeyError, TypeError):
        return None


def _read_day(content: bytes) -> date | None:
    time = _read_time(content)
    return None if time is None else time.date()


_MOST_DAYS = 3
_UNKNOWN = "an unknown day"


def describe_days(days: Mapping[date | None, int]) -> str:
    """`asked on 2026-03-01`, `3 asked on 2026-03-01, 1 on 2026-03-02`, or the first and the last of many days."""
    known = sorted(day for day in days if day is not None)
    if len(days) == 1:
        return f"asked on {known[0] if known else _UNKNOWN}"
    if len(days) > _MOST_DAYS:
        rest = f", {days[None]} on {_UNKNOWN}" if None in days else ""
        return f"{sum(days[day] for day in known)} asked from {known[0]} to {known[-1]}{rest}"
    parts = [f"{days[day]} {'asked ' if index == 0 else ''}on {day}" for index, day in enumerate(known)]
    return ", ".join([*parts, *([f"{days[None]} on {_UNKNOWN}"] if None in days else [])])


def remark_on_age(days: Mapping[date | None, int], asked: int, node: AnsweringNode) -> Iterator[Note]:
    """A note if answers are kept from finished evaluations.

    Args:
        days: how many answers were asked on each day, in UTC; None stands for an unknown day.
        asked: how many different questions the system has on the dataset.
        node: the system's block.
    """
    kept = sum(days.values())
    if not kept:
        return
    are = "is" if kept == 1 else "are"
    message = (
        f"{kept} of {count_noun(asked, 'answer')} {are} kept from earlier evaluations, {describe_days(days)} "
        f"(reuse: always, version: {node.version})"
    )
    yield Note("kept_answers", message, count=kept)
