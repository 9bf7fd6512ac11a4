"""What an evaluation may spend, and what it has spent. Everything that asks an endpoint shares it."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Condition

from rageval_spec.data.call_errors import LimitError
from rageval_spec.plugin.memory import Memory
from rageval_spec.plugin.spent import advise_retry, describe_errors, describe_spent
from rageval_spec.plugin.usage import Usage
from rageval_spec.wording import count_noun

FEWEST_QUESTIONS = 20
"""A share of errors means nothing before this many questions were asked."""
_ADVICE = "run again to continue from the stored replies; each run has the full limit"


@dataclass
class Budget:
    """Counts calls, their cost and their errors, from any number of threads.

    Attributes:
        max_calls: how many requests may be sent, retries included; None for no limit.
        max_cost: how many US dollars may be spent; None for no limit.
        max_errors: how many questions may get no usable reply: a number, or a share of those asked.
        retry_errors: whether to retry questions that failed in an earlier evaluation.
        calls: how many calls have begun, including questions to systems.
        interrupted: how many of these calls ended before their reply came.
        asked_of_systems: how many of these calls are questions to answering systems.
        retries: how often a call was tried again after an error.
        cost: what the calls that have ended cost, in US dollars.
        questions: how many questions to judges and systems were asked to the end; one can take several calls.
        errors: how many of these questions got no usable reply.
        lasting: how many of these errors a retry would not change: a wrong URL or path, a fault in a function.
        unread: the digests of requests whose replies cannot be read, including those of earlier evaluations.
        stopped: why no further call may be made; None while calls may be made.
        under_way: calls that have begun and have not ended.
        guessed: calls whose cost is an estimate, because the endpoint did not report how many tokens it used.
        usage: what the replies behind the values took, including stored replies, which cost nothing now.
        memory: facts about objects, kept as long as both the object and this evaluation exist.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    max_errors: int | float | None = None
    retry_errors: bool = False
    calls: int = field(default=0, init=False)
    interrupted: int = field(default=0, init=False)
    asked_of_systems: int = field(default=0, init=False)
    retries: int = field(default=0, init=False)
    cost: float = field(default=0.0, init=False)
    questions: int = field(default=0, init=False)
    errors: int = field(default=0, init=False)
    lasting: int = field(default=0, init=False)
    unread: set[bytes] = field(default_factory=set, init=False, repr=False)
    stopped: LimitError | None = field(default=None, init=False)
    under_way: int = field(default=0, init=False, repr=False)
    guessed: int = field(default=0, init=False)
    usage: Usage = field(default_factory=Usage, init=False, repr=False, compare=False)
    memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)
    _reserved: float = field(default=0.0, init=False, repr=False)
    _priced: int = field(default=0, init=False, repr=False)
    _changed: Condition = field(default_factory=Condition, init=False, repr=False, compare=False)

    def try_call(self, cost: float = 0.0, *, is_of_system: bool = False) -> bool:
        """Count a call before it is made; `cost` is the most that it can be expected to cost.

        Returns False and counts nothing if only the calls under way leave no room for it. They can cost less than
        expected, so the caller tries again after `wait_for_room`. While it waits, it must not hold anything that those
        calls need in order to end. With `is_of_system`, counts the call in `asked_of_systems` too.

        Raises:
            LimitError: neither this call nor any later one may be made.
        """
        with self._changed:
            self._check_limits(cost)
            if not self._has_room(cost):
                return False
            self.calls += 1
            self.asked_of_systems += is_of_system
            self.under_way += 1
            if cost:
                self._priced += 1
                self._reserved += cost
            return True

    def wait_for_room(self, cost: float) -> None:
        """Wait until the calls under way leave room for a call of this cost, or until the evaluation has stopped."""
        with self._changed:
            while self.stopped is None and not self._has_room(cost):
                self._changed.wait()

    def end_call(self, expected: float = 0.0, cost: float = 0.0, *, is_interrupted: bool = False) -> None:
        """Replace the expected cost of a call with its real cost."""
        with self._changed:
            self.under_way -= 1
            self.interrupted += is_interrupted
            self.cost += cost
            if expected:
                self._priced -= 1
                # Sums of floats leave a remainder, and a caller would wait for it although no call is under way.
                self._reserved = self._reserved - expected if self._priced else 0.0
            self._changed.notify_all()

    def begin_retry(self) -> None:
        """Count a retry of a call before it is made.

        Raises:
            LimitError: neither this retry nor any later call may be made.
        """
        with self._changed:
            self._check_calls()
            self.retries += 1

    def count_question(self, *, failed: bool = False, is_lasting: bool = False) -> None:
        """Count a question that was asked to the end; `failed` if it got no usable reply. See `count_error`."""
        with self._changed:
            self.questions += 1
            if failed:
                self.count_error(is_lasting=is_lasting)

    def count_error(self, *, is_lasting: bool = False) -> None:
        """Count one of the questions as failed; `is_lasting` if a retry would not help, as after a 404.

        Above `max_errors`, no further call may begin.
        """
        with self._changed:
            self.errors += 1
            self.lasting += is_lasting
            if self.stopped is None and self._has_too_many_errors():
                share = self.max_errors or 0
                limit = f"{share}" if isinstance(share, int) else f"{100 * share:g}%"
                self._stop(f"limits.max_errors: {describe_errors(self)} (limit: {limit})")

    def count_unread(self, digest: bytes) -> None:
        """Count a request whose replies cannot be read; each request counts once. Only `retry_errors` retries it."""
        with self._changed:
            self.unread.add(digest)

    def count_guess(self) -> None:
        """Count a call whose cost is an estimate."""
        with self._changed:
            self.guessed += 1

    def describe(self) -> str:
        """What was spent, as a sentence for the user; empty if no call was made."""
        return describe_spent(self)

    def advise(self, *, is_finished: bool = False) -> str | None:
        """How to retry what failed, as a sentence for the user; None if nothing failed or it was retried already.

        After a finished evaluation, a plain run asks the systems again; `--retry-errors` asks only what failed.
        """
        return advise_retry(self, is_finished=is_finished)

    def _check_calls(self) -> None:
        if self.stopped is None and self.max_calls is not None and self.calls + self.retries >= self.max_calls:
            self._stop(f"limits.max_calls: {self.max_calls} of {count_noun(self.max_calls, 'call')} made")
        if self.stopped is not None:
            raise LimitError(str(self.stopped))

    def _check_limits(self, cost: float) -> None:
        self._check_calls()
        if self.stopped is None and self.max_cost is not None and self.cost + cost > self.max_cost:
            spent = f"{self.cost:.4g} of {self.max_cost:g} USD are spent"
            self._stop(f"limits.max_cost: {spent}, and the next call may cost {cost:.4g}")
        if self.stopped is not None:
            raise LimitError(str(self.stopped))

    def _has_room(self, cost: float) -> bool:
        """Whether one more call fits into `max_cost`, if set, even if every call in flight costs its maximum."""
        return self.max_cost is None or not self._priced or self.cost + self._reserved + cost <= self.max_cost

    def _stop(self, reason: str) -> None:
        self.stopped = LimitError(f"{reason}; {_ADVICE}")
        self._changed.notify_all()

    def _has_too_many_errors(self) -> bool:
        if self.max_errors is None:
            return False
        if isinstance(self.max_errors, int):
            return self.errors > self.max_errors
        return self.questions >= FEWEST_QUESTIONS and self.errors > self.max_errors * self.questions
