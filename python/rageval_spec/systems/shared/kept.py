"""A system's answers in the store, from unfinished and from finished evaluations.

Each answer is stored as soon as it arrives, under the system's key prefixed with `UNFINISHED`. When an evaluation
finishes, the answers that it used move to the key without the prefix, each with the time when its evaluation began.
Unless the system's block says `reuse: always`, only answers with the prefix are reused: a system may have changed
unnoticed since a finished evaluation. An evaluation that was killed, interrupted or stopped by
a limit did not finish, so the next one continues with its answers. Older stores do not make this distinction: their
answers are under the key without the prefix, as if from finished evaluations.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from rageval_spec.endpoints.claims import hold_claim
from rageval_spec.store.replies import WHEN
from rageval_spec.systems.shared.ages import describe_days
from rageval_spec.systems.shared.questions import complete
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.reading.answer_rows import AnswerRow
    from rageval_spec.systems.shared.asked import AnsweringSystem
    from rageval_spec.systems.shared.questions import Question

UNFINISHED = "unfinished:"
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
        self._unfinished = UNFINISHED + system.key

    @property
    def includes_finished(self) -> bool:
        """Whether answers of finished evaluations are reused too: `--retry-errors` repairs the last evaluation."""
        return self._system.context.budget.retry_errors or self._keeps_all

    @property
    def _keeps_all(self) -> bool:
        return bool(self._system.node.reuse == "always")

    def find(self, questions: Sequence[Question]) -> dict[bytes, AnswerRow]:
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

    def hold(self, question: Question, sleep: Callable[[float], None]) -> AbstractContextManager[AnswerRow | None]:
        """The answer if another process with the same store got it in the meantime; None if it must be asked now."""
        digest = question.digest
        return hold_claim(self._answers, self._unfinished, digest, lambda: self.find([question]).get(digest), sleep)

    def forget(self, digests: Iterable[bytes]) -> None:
        """Stop using these answers."""
        self._answers.keep(self._unfinished, dict.fromkeys(digests, _NOTHING))

    def count_days(self, questions: Sequence[Question]) -> Counter[date | None]:
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

    def _read(self, key: str, questions: Sequence[Question]) -> dict[bytes, AnswerRow]:
        rows: dict[bytes, AnswerRow] = {}
        for start in range(0, len(questions), LOOKED_UP_AT_ONCE):
            told = {question.digest: question.told for question in questions[start : start + LOOKED_UP_AT_ONCE]}
            found = self._answers.find(key, list(told))
            unpacked = ((digest, self._system.unpack(content)) for digest, content in found.items())
            rows.update((digest, complete(row, told[digest])) for digest, row in unpacked if row is not None)
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
