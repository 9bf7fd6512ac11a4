"""What the systems that answer questions share: who is asked what, how many at once, how often, and what is kept.

An answer is kept in the store the moment it arrives, under everything that it depends on: the system's block and its
files, and the text that is asked. What a query is called is no part of that, unless the system is told.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from rageval_spec.data.chat import LimitError
from rageval_spec.data.tables import Collection
from rageval_spec.endpoints.pacing import Breaker, Clock, Pace, StoppedError, draw_wait
from rageval_spec.plugin import Answering, System, SystemNode
from rageval_spec.reading.answer_rows import AnswerRow, table_of
from rageval_spec.wording import count_noun, make_visible

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Note

VARIABLES = ("question", "query_id", "contexts")
"""What a system may be told of a query: `contexts` are the dataset's reference contexts."""
LOOKED_UP_AT_ONCE = 4096
_MOST_SHOWN = 500
_NO_ANSWER = b""
"""Kept in the place of what is no answer any more; found, it is none."""
_VARIABLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")

Variables = Mapping[str, Any]


class AskError(Exception):
    """A question was not answered.

    Attributes:
        is_temporary: whether asking again may help.
        wait: the seconds that the system asks to wait before; None where it does not.
        reply: what came, where that may be read otherwise another time.
    """

    def __init__(
        self, message: str, *, is_temporary: bool = False, wait: float | None = None, reply: bytes | None = None
    ) -> None:
        """Keep the message on one line, cut where it is long."""
        shown = make_visible(message.strip())
        super().__init__(shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "...")
        self.is_temporary = is_temporary
        self.wait = wait
        self.reply = reply


class Received(NamedTuple):
    """An answer, and the reply that it was read from, where that may be read otherwise another time."""

    row: AnswerRow
    reply: bytes | None = None


class AnsweringNode(SystemNode):
    """A block of a system that is asked."""

    version: str | int = Field(
        default="1",
        description="Any word: write another one when the system changed, and every question is asked anew.",
    )
    concurrency: int | None = Field(
        default=None, ge=1, le=256, description="Questions at once; `limits.concurrency` by default."
    )
    timeout: float = Field(default=60, gt=0, le=86400, description="Seconds that one try may take, all in all.")
    requests_per_minute: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="How often it may be asked, further tries included."
    )


N = TypeVar("N", bound=AnsweringNode)


class AnsweringSystem(System[N]):
    """Asks a question a query, several at once; what was answered before is not asked again."""

    needs = frozenset({"queries"})
    can_answer = True
    stored = False
    counts: ClassVar[str] = "questions"
    """What its progress counts."""
    not_in_answers: ClassVar[frozenset[str]] = frozenset({"concurrency", "timeout", "retries", "requests_per_minute"})
    """Keys of the node on which no answer depends."""

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

    def close(self) -> None:
        """End what is under way, and let go of what is open: nobody waits for an answer any longer."""

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
        return _Interview(self, collection).hold()

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """The rows that the store has; asks nobody."""
        rows: dict[str, AnswerRow] = {}
        key = self.key
        for wanted in self.guess_variables():
            asked = [
                (query_id, question)
                for query_id, question in _list_questions(self, collection, wanted)
                if isinstance(question, _Question)
            ]
            found = _find(self, key, [question for _, question in asked])
            rows.update((name, found[question.digest]) for name, question in asked if question.digest in found)
        return table_of(rows.items())


@dataclass(frozen=True, slots=True)
class _Question:
    digest: bytes
    told: Variables


class _Interview:
    """One system and one collection."""

    def __init__(self, system: AnsweringSystem[Any], collection: Collection) -> None:
        self._system = system
        self._context = system.context
        self._key = system.key
        self._rows: dict[bytes, AnswerRow] = {}
        self._asked = list(_list_questions(system, collection, system.variables, system.dispensable_variables))
        self._clock = Clock()
        self._pace = Pace(self._clock, system.node.requests_per_minute, None)
        self._breaker = Breaker(self._clock)
        self._not_asked = 0
        self._taken_back: dict[bytes, str] = {}
        self._lock = Lock()

    def hold(self) -> Answering:
        """Take what was answered before, ask the rest."""
        questions = {question.digest: question for _, question in self._asked if isinstance(question, _Question)}
        self._rows.update(_find(self._system, self._key, list(questions.values())))
        self._report(len(questions))
        waiting = [question for digest, question in questions.items() if digest not in self._rows]
        if waiting:
            self._ask_all(waiting, len(questions))
        table = table_of((query_id, self._row(question)) for query_id, question in self._asked)
        return Answering(table, tuple(self._remark(len(questions))))

    def _row(self, question: _Question | AnswerRow) -> AnswerRow:
        return question if isinstance(question, AnswerRow) else self._rows[question.digest]

    def _remark(self, total: int) -> Iterator[Note]:
        from rageval_spec.data.evaluation import Note

        if self._not_asked:
            message = f"{self._not_asked} of {count_noun(total, 'question')} were not asked, after too many failures"
            yield Note("not_asked", message, count=self._not_asked)

    def _report(self, total: int) -> None:
        if total:
            self._context.progress(len(self._rows), total)

    def _ask_all(self, waiting: Sequence[_Question], total: int) -> None:
        """Ask from several threads. Where nobody can be asked any longer, those under way are waited for, and kept."""
        results: SimpleQueue[tuple[bytes, AnswerRow] | BaseException | None] = SimpleQueue()
        tasks = iter(waiting)
        at_once = min(self._system.node.concurrency or self._context.concurrency, len(waiting))
        failure: BaseException | None = None
        try:
            for number in range(at_once):
                name = f"{self._context.name}-{number}"
                # Daemons: a question that nobody waits for any longer must not hold up the end of the program.
                Thread(target=self._work, args=(tasks, results), name=name, daemon=True).start()
            while at_once:
                result = results.get()
                if result is None:
                    at_once -= 1
                elif isinstance(result, BaseException):
                    failure = failure or result
                else:
                    self._rows[result[0]] = result[1]
                    self._report(total)
        finally:
            self._clock.stop()
            self._system.close()
            self._take_back()
        if failure is not None:
            raise failure
        self._rows.update((digest, AnswerRow(error=reason)) for digest, reason in self._taken_back.items())

    def _take_back(self) -> None:
        """Forget answers that have turned out to be none; all of them each time, because one may be kept just now."""
        found = {_digest(told): reason for told, reason in self._system.take_back()}
        with self._lock:
            self._taken_back.update(found)
            forgotten = dict.fromkeys(self._taken_back, _NO_ANSWER)
        for _ in found:
            with suppress(LimitError):
                self._context.budget.count_error()
        if forgotten:
            self._context.answers.keep(self._key, forgotten)

    def _work(
        self, tasks: Iterator[_Question], results: SimpleQueue[tuple[bytes, AnswerRow] | BaseException | None]
    ) -> None:
        try:
            while not self._clock.is_stopped:
                with self._lock:
                    question = next(tasks, None)
                if question is None:
                    break
                results.put((question.digest, self._ask_and_keep(question)))
        except StoppedError:
            pass
        except BaseException as error:
            self._clock.stop()
            results.put(error)
        finally:
            results.put(None)

    def _ask_and_keep(self, question: _Question) -> AnswerRow:
        if (complaint := self._breaker.complain()) is not None:
            with self._lock:
                self._not_asked += 1
            return AnswerRow(error=complaint)
        try:
            row = self._ask(question)
        except AskError as error:
            if self._clock.is_stopped:
                raise StoppedError from None
            self._breaker.record(str(error) if error.is_temporary else None)
            self._take_back()
            self._context.budget.count_question(failed=True)
            return AnswerRow(error=str(error))
        except LimitError as error:
            return AnswerRow(error=str(error))
        self._breaker.record(None)
        self._context.budget.count_question()
        return row

    def _keep(self, question: _Question, row: AnswerRow, reply: bytes | None) -> None:
        content = self._system.pack(row, reply)
        if content is not None:
            self._context.answers.keep(self._key, {question.digest: content})

    def _ask(self, question: _Question) -> AnswerRow:
        """The answer, with the seconds of the try that gave it; kept."""
        budget, cost, is_interrupted = self._context.budget, 0.0, True
        budget.begin_question()
        try:
            row = self._try(question)
            cost, is_interrupted = row.cost or 0.0, False
            return row
        except AskError:
            is_interrupted = self._clock.is_stopped
            raise
        finally:
            budget.end_call(cost=cost, is_interrupted=is_interrupted)

    def _try(self, question: _Question) -> AnswerRow:
        """`_ask`, until it is answered or has failed."""
        retries = getattr(self._system.node, "retries", 0)
        for tries in count(1):
            self._pace.wait(0)
            start = time.monotonic()
            try:
                row, reply = self._system.receive(question.told)
            except AskError as error:
                if not error.is_temporary or tries > retries:
                    self._keep(question, AnswerRow(seconds=time.monotonic() - start, error=str(error)), error.reply)
                    raise _after(error, tries) from error.__cause__
                if error.wait is not None:
                    self._pace.hold(error.wait)
                self._clock.sleep(draw_wait(tries))
                self._context.budget.begin_retry()
            else:
                seconds = time.monotonic() - start
                row = _complete(replace(row, seconds=seconds), question.told)
                self._keep(question, row, reply)
                return row
        raise AssertionError("a loop without end has ended")


def _list_questions(
    system: AnsweringSystem[Any],
    collection: Collection,
    wanted: frozenset[str],
    dispensable: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, _Question | AnswerRow]]:
    """Each query's id and its question; where a variable is not known of it, the error."""
    queries = collection.require("queries", f"systems.{system.context.name}: {system.node.use}")
    contexts = _reference_contexts(collection) if "contexts" in wanted else {}
    for query_id, text in queries.select("query_id", "text").iter_rows():
        known = {"question": text, "query_id": query_id, "contexts": contexts.get(query_id)}
        left_out = {name for name in dispensable if known[name] is None}
        told = {name: known[name] for name in VARIABLES if name in wanted - left_out}
        if told.get("contexts", ()) is None:
            yield query_id, AnswerRow(error="was not asked: the dataset has no reference contexts for this query")
            continue
        yield query_id, _Question(_digest(told), told)


def _digest(told: Variables) -> bytes:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


def _complete(row: AnswerRow, told: Variables) -> AnswerRow:
    """An answer that says nothing of its contexts was made from those that the system was told."""
    given = told.get("contexts") if row.contexts is None else row.contexts
    return replace(row, contexts=None if given is None else tuple(given))


def _find(system: AnsweringSystem[Any], key: str, questions: Sequence[_Question]) -> dict[bytes, AnswerRow]:
    """What was answered before; a damaged answer is none."""
    rows: dict[bytes, AnswerRow] = {}
    for start in range(0, len(questions), LOOKED_UP_AT_ONCE):
        told = {question.digest: question.told for question in questions[start : start + LOOKED_UP_AT_ONCE]}
        found = system.context.answers.find(key, list(told))
        unpacked = ((digest, system.unpack(content)) for digest, content in found.items())
        rows.update((digest, _complete(row, told[digest])) for digest, row in unpacked if row is not None)
    return rows


def _after(error: AskError, tries: int) -> AskError:
    if tries == 1:
        return error
    return AskError(f"{error} (after {count_noun(tries, 'try', 'tries')})", is_temporary=error.is_temporary)


def _reference_contexts(collection: Collection) -> dict[str, list[str] | None]:
    references = collection.references
    if references is None:
        return {}
    return dict(references.select("query_id", "reference_contexts").iter_rows())


def list_variables(template: Any) -> set[str]:
    """The names in double braces that the texts of a template hold, wherever they stand in it.

    Raises:
        ValueError: one is none of `VARIABLES`.
    """
    names = {name for text in _texts_of(template) for name in _VARIABLE.findall(text)}
    for name in sorted(names - set(VARIABLES)):
        raise ValueError(f"'{{{{ {name} }}}}' stands for nothing; there are {', '.join(VARIABLES)}")
    return names


def fill_in(template: Any, told: Variables) -> Any:
    """A template with its variables filled in; a text that is one variable alone becomes what that is, a list too."""
    if isinstance(template, dict):
        return {fill_in(key, told): fill_in(value, told) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill_in(item, told) for item in template]
    if not isinstance(template, str):
        return template
    whole = _VARIABLE.fullmatch(template)
    if whole is not None:
        return told[whole[1]]
    return _VARIABLE.sub(lambda match: _as_text(told[match[1]]), template)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "\n\n".join(value)


def _texts_of(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from _texts_of(key)
            yield from _texts_of(value)
    elif isinstance(template, (list, tuple)):
        for item in template:
            yield from _texts_of(item)
