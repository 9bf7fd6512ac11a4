"""Asks one system the questions of one collection, with limits on concurrency, retries and rate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from rageval_spec.data.call_errors import LimitError
from rageval_spec.data.tables import UNFINISHED
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.endpoints.patience import PATIENCE
from rageval_spec.endpoints.tries import BrokenDownError, Limits, Tries
from rageval_spec.plugin import Answering
from rageval_spec.plugin.reservation import Reservation
from rageval_spec.reading.answer_rows import AnswerRow, table_of
from rageval_spec.systems.shared.ages import remark_on_age
from rageval_spec.systems.shared.kept import KeptAnswers
from rageval_spec.systems.shared.questions import AskError, Question, complete, digest_of, list_questions
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.systems.shared.asked import AnsweringSystem
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
        self._asked = list(list_questions(system.reader, collection, system.variables, system.dispensable_variables))
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
        left = [isinstance(question, Question) and question.digest in self._left for _, question in self._asked]
        return table.with_columns(pl.Series(UNFINISHED, left))

    def finish(self) -> bool:
        """Mark the answers as those of a finished evaluation; False if questions are left to ask."""
        if self.is_settled:
            self._kept.finish(list(self._questions()))
        return self.is_settled

    def _questions(self) -> dict[bytes, Question]:
        return {question.digest: question for _, question in self._asked if isinstance(question, Question)}

    def _announce(self, waiting: int) -> None:
        if self._rows:
            origin = self._kept.describe(len(self._rows), self._kept.count_days(list(self._questions().values())))
            rest = f"; asking {count_noun(waiting, 'question')}" if waiting else ""
            self._context.tell(f"{self._context.name} on {self._dataset}: reusing {origin}{rest}")

    def _row(self, question: Question | AnswerRow) -> AnswerRow:
        return question if isinstance(question, AnswerRow) else self._rows[question.digest]

    def _report(self, total: int) -> None:
        if total:
            self._context.progress(len(self._rows), total)

    def _ask_all(self, waiting: Sequence[Question], total: int) -> None:
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
        found = {digest_of(told): reason for told, reason in self._system.take_back()}
        with self._lock:
            self._taken_back.update(found)
            forgotten = list(self._taken_back)
        for _ in found:
            with suppress(LimitError):
                self._context.budget.count_error(is_lasting=True)
        if forgotten:
            self._kept.forget(forgotten)

    def _work(self, tasks: Iterator[Question], results: SimpleQueue[Result]) -> None:
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

    def _ask_and_keep(self, question: Question) -> AnswerRow:
        try:
            row = self._ask(question)
        except BrokenDownError as complaint:
            return self._leave(question, str(complaint))
        except AskError as error:
            self._take_back()
            self._context.budget.count_question(failed=True, is_lasting=not error.is_temporary)
            with self._lock:
                self._unsettled += error.is_temporary
            return AnswerRow(error=_describe(error))
        except LimitError as error:
            return self._leave(question, str(error))
        self._context.budget.count_question()
        return row

    def _leave(self, question: Question, reason: str) -> AnswerRow:
        """The row of a question that was not asked. This is not a failure; the next evaluation asks it."""
        with self._lock:
            self._unsettled += 1
            self._left.add(question.digest)
        return AnswerRow(error=reason)

    def _leave_all(self, questions: Sequence[Question]) -> None:
        reason = next(self._rows[digest].error for digest in self._left)
        self._rows.update((question.digest, self._leave(question, str(reason))) for question in questions)

    def _keep(self, question: Question, row: AnswerRow, reply: bytes | None) -> None:
        content = self._system.pack(row, reply)
        if content is not None:
            self._kept.keep(question.digest, content)

    def _ask(self, question: Question) -> AnswerRow:
        """Get and store the answer, timed by the successful try. Another process may have asked it instead."""
        with self._kept.hold(question, self._tries.sleep) as found:
            return found or self._call(question)

    def _call(self, question: Question) -> AnswerRow:
        with Reservation(self._context.budget, is_of_system=True) as reservation:
            try:
                row = self._tries.make(lambda: self._try(question), reservation)
            except AskError as error:
                if self._tries.is_stopped:
                    raise StoppedError from None
                self._keep(question, AnswerRow(seconds=error.seconds, error=str(error)), error.reply)
                raise
            reservation.cost = row.cost or 0.0
            return row

    def _try(self, question: Question) -> AnswerRow:
        start = time.monotonic()
        try:
            row, reply = self._system.receive(question.told)
        except AskError as error:
            error.seconds = time.monotonic() - start
            raise
        row = complete(replace(row, seconds=time.monotonic() - start), question.told)
        self._keep(question, row, reply)
        return row


def _take(results: SimpleQueue[Result]) -> Result:
    while True:
        with suppress(Empty):
            return results.get(timeout=_PATIENCE)


def _describe(error: AskError) -> str:
    return str(error) if error.tries == 1 else f"{error} (after {count_noun(error.tries, 'try', 'tries')})"
