"""What an evaluation may spend, and what it has spent.

Everything that asks an endpoint shares the budget. `Memory` holds facts that an evaluation keeps about an object, such
as the results of a model's questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Condition, Lock
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

from rageval_spec.data import arithmetic
from rageval_spec.data.chat import ChatReply, ChatRequest, LimitError, ReplyCounts, UnfinishedError
from rageval_spec.dataclass import dataclass, field
from rageval_spec.wording import count_noun


class Shard(NamedTuple):
    """Which part of an evaluation this is: part `number`, from 1, of `total`. By default it is the whole."""

    number: int = 1
    total: int = 1

    def __str__(self) -> str:
        """`3/8`, as the command line has it."""
        return f"{self.number}/{self.total}"

    def take(self, limit: int) -> int:
        """This part's share of a limit. The shares of all parts add up to it."""
        return limit * self.number // self.total - limit * (self.number - 1) // self.total

    def take_at_once(self, limit: int) -> int:
        """This part's share of what may be under way at the same time, which is at least one call."""
        return max(1, self.take(limit))

    def take_rate(self, rate: float | None) -> float | None:
        """This part's share of calls, tokens or dollars; None for no limit."""
        return None if rate is None else rate / self.total


WHOLE = Shard()


class Reservation:
    """One call's share of a budget: reserves every try before it is made. The call ends with the `with` block.

    `cost` is what the call really cost, in US dollars; None if that is unknown. The caller sets it before the block
    ends.
    """

    def __init__(self, budget: Budget, expected: float = 0.0, *, is_of_system: bool = False) -> None:
        """Reserve nothing yet; `expected` is the most that the call can cost."""
        self._budget = budget
        self._expected = expected
        self._is_of_system = is_of_system
        self._has_begun = False
        self.cost: float | None = 0.0

    def begin(self) -> Callable[[], None] | None:
        """Reserve the first try. If calls under way leave no room for it, return a function that waits until they do.

        Raises `LimitError` if neither this call nor any later one may be made.
        """
        self._has_begun = self._budget.try_call(self._expected, is_of_system=self._is_of_system)
        return None if self._has_begun else partial(self._budget.wait_for_room, self._expected)

    def begin_retry(self) -> None:
        """Reserve a retry. Raises `LimitError` if neither this retry nor any later call may be made."""
        self._budget.begin_retry(is_of_system=self._is_of_system)

    def __enter__(self) -> Self:
        """Enter the block of the call; returns this reservation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the call. A call that the evaluation stopped counts as interrupted, not as failed."""
        if self._has_begun:
            is_interrupted = isinstance(error, UnfinishedError)
            self._budget.end_call(self._expected, self.cost, is_interrupted=is_interrupted)


_DIGEST_BYTES = 16
"""How many bytes of a request's digest are kept. They tell any number of requests apart, in half the memory."""


@dataclass(frozen=True, slots=True)
class Used:
    """Replies and their tokens; a number of tokens is None if the endpoint did not report it for every reply."""

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0


@dataclass(frozen=True, slots=True)
class EndpointUse:
    """What an endpoint did now, as opposed to the store: its calls, their seconds, and its questions."""

    calls: int = 0
    seconds: float = 0.0
    replies: ReplyCounts = field(default_factory=ReplyCounts)


class UsageEntry(NamedTuple):
    """What counts of one request to a model: its reply's tokens, or the number of replies to a question.

    `second` of a question is 1 if its last reply could be read, else 0. `digest` is the beginning of the request's.
    """

    is_question: bool
    model: str
    sample: int
    digest: bytes
    first: int | None
    second: int | None


class Usage:
    """Counts replies and their tokens by model, from any number of threads.

    Equal requests to a model count once, and stored replies count as much as new ones. So the numbers depend only on
    what was asked, not on when, in which order or how often.

    Attributes:
        log: what was counted, if it is kept: another process can `add` it to its own. None by default.
    """

    def __init__(self) -> None:
        """Start without replies."""
        self._lock = Lock()
        self.log: list[UsageEntry] | None = None
        self._used: dict[str, Used] = {}
        self._seen: dict[tuple[bool, str, int], set[bytes]] = {}
        self._times: dict[str, tuple[int, float]] = {}
        self._answering: dict[str, tuple[int, float]] = {}
        self._counts: dict[str, ReplyCounts] = {}
        self._asked: dict[str, EndpointUse] = {}

    def count(self, model: str, replies: Iterable[tuple[ChatRequest, ChatReply]], sample: int = 0) -> None:
        """Count the replies of a model; `sample` is the model's `ChatModel.sample`."""
        self.add(
            UsageEntry(False, model, sample, request.digest[:_DIGEST_BYTES], reply.input_tokens, reply.output_tokens)
            for request, reply in replies
        )

    def add(self, entries: Iterable[UsageEntry]) -> None:
        """Count what was not counted before."""
        with self._lock:
            for one in entries:
                seen = self._seen.setdefault((one.is_question, one.model, one.sample), set())
                if one.digest in seen:
                    continue
                seen.add(one.digest)
                if self.log is not None:
                    self.log.append(one)
                if one.is_question:
                    counts = ReplyCounts.of(one.first or 0, is_read=bool(one.second))
                    self._counts[one.model] = self._counts.get(one.model, _NO_COUNTS) + counts
                else:
                    self._used[one.model] = _add(self._used.get(one.model, _NOTHING), one)

    def time(self, metric: str, samples: int, seconds: float) -> None:
        """Add the time in which a metric computed the values of some samples."""
        self._add_time(self._times, metric, samples, seconds)

    def time_answers(self, system: str, answers: int, seconds: float) -> None:
        """Add the time in which a system gave some answers."""
        self._add_time(self._answering, system, answers, seconds)

    def _add_time(self, times: dict[str, tuple[int, float]], name: str, count: int, seconds: float) -> None:
        with self._lock:
            known = times.get(name, (0, 0.0))
            times[name] = known[0] + count, known[1] + seconds

    @property
    def metric_times(self) -> Mapping[str, tuple[int, float]]:
        """The samples and the seconds of each metric that computed values now, the time of its judges included."""
        return {name: time for name, time in self._times.items() if time[0]}

    @property
    def answer_times(self) -> Mapping[str, tuple[int, float]]:
        """The answers and the seconds of each system that was asked now."""
        return {name: time for name, time in self._answering.items() if time[0]}

    def time_of(self, metric: str) -> float | None:
        """The seconds that a metric took for each sample; None if it computed none, because they were stored."""
        samples, seconds = self._times.get(metric, (0, 0.0))
        return seconds / samples if samples else None

    def count_question(
        self, model: str, question: ChatRequest, replies: Sequence[ChatReply], sample: int = 0, *, is_read: bool
    ) -> None:
        """Count a question that ended with these replies; `is_read` if the last one could be read.

        A question whose calls all failed does not count: nothing was there to read.
        """
        if not replies:
            return
        counts = ReplyCounts.of(len(replies), is_read=is_read)
        made = [reply for reply in replies if not reply.reused]
        self.add([UsageEntry(True, model, sample, question.digest[:_DIGEST_BYTES], len(replies), int(is_read))])
        if made:
            with self._lock:
                before = self._asked.get(model, _NOT_ASKED)
                seconds = before.seconds + sum(reply.seconds or 0.0 for reply in made)
                self._asked[model] = EndpointUse(before.calls + len(made), seconds, before.replies + counts)

    def replies_of(self, model: str) -> ReplyCounts:
        """How often the replies of a model could be read, whenever they came."""
        return self._counts.get(model, _NO_COUNTS)

    def asked_now(self) -> Mapping[str, EndpointUse]:
        """What the endpoints did now, by the model's name; models that only stored replies served are absent."""
        with self._lock:
            return dict(self._asked)

    def of(self, model: str) -> Used:
        """What the replies of a model took, by its name in the spec."""
        return self._used.get(model, _NOTHING)


_NOTHING = Used()
_NO_COUNTS = ReplyCounts()
_NOT_ASKED = EndpointUse()


def _add(used: Used, reply: UsageEntry) -> Used:
    known = ((used.input_tokens, reply.first), (used.output_tokens, reply.second))
    sums = (None if first is None or more is None else first + more for first, more in known)
    return Used(used.calls + 1, *sums)


T = TypeVar("T")


class Memory:
    """Remembers one value per owner; safe to use from several threads. An owner that is freed is forgotten."""

    def __init__(self) -> None:
        """Create an empty memory."""
        self._known: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def __len__(self) -> int:
        """How many owners have a value and still exist."""
        return len(self._known)

    def remember(self, owner: object, make: Callable[[], T]) -> T:
        """The owner's value; the first call for an owner makes it with `make`."""
        with self._lock:
            if owner not in self._known:
                self._known[owner] = make()
            known: T = self._known[owner]
            return known


_SPENT = (
    "calls", "interrupted", "asked_of_systems", "retries", "retries_of_systems", "cost", "unpriced", "guessed",
    "questions", "errors", "lasting",
)  # fmt: skip
FEWEST_QUESTIONS = 20
"""A share of errors means nothing before this many questions were asked."""
_ADVICE = "run again to continue from the stored replies; each run has the full limit"


CostStatus = Literal["known", "partly known", "unknown"]


class Cost(NamedTuple):
    """What calls cost: the US dollars that are known of, and whether they are all; None if none are known."""

    dollars: float | None
    status: CostStatus

    def __str__(self) -> str:
        """`$0.40`, `at least $0.40`, or `unknown`."""
        if self.dollars is None:
            return "unknown"
        return f"{'at least ' if self.status == 'partly known' else ''}${self.dollars:,.2f}"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How many requests may be sent, retries included: to systems that answer, and to models; None for no limit."""

    systems: int | None = None
    models: int | None = None


@dataclass
class Budget:
    """Counts calls, their cost in US dollars and their errors, from any number of threads. No limit is None.

    Attributes:
        max_calls: how many requests may be sent, retries included; a number bounds those to systems and those to
            models, each on its own.
        max_errors: how many questions may get no usable reply: a number, or a share of those asked.
        retry_failed: whether to retry questions that failed in an earlier evaluation.
        calls: how many calls have begun, including `asked_of_systems`, the questions to answering systems.
        interrupted, under_way: how many of these calls ended before their reply came, or have not ended.
        retries: how often a call was tried again after an error; `retries_of_systems` of these are to answering
            systems.
        cost: what the calls that have ended cost, as far as it is known; `unpriced` of them have an unknown cost.
        guessed: calls whose cost is an estimate, because the endpoint did not report how many tokens it used.
        questions: how many questions to judges and systems were asked to the end; one can take several calls.
        errors: how many of these questions got no usable reply; for `lasting` of them a retry would not change that: a
            wrong URL or path, a fault in a function.
        unread: the digests of requests whose replies cannot be read, including those of earlier evaluations.
        stopped: why no further call may be made; None while calls may be made.
        usage: what the replies behind the values took, including stored replies, which cost nothing now.
    """

    max_calls: int | CallLimits | None = None
    max_cost: float | None = None
    max_errors: int | float | None = None
    retry_failed: bool = False
    calls: int = field(default=0, init=False)
    interrupted: int = field(default=0, init=False)
    asked_of_systems: int = field(default=0, init=False)
    retries: int = field(default=0, init=False)
    retries_of_systems: int = field(default=0, init=False)
    cost: float = field(default=0.0, init=False)
    unpriced: int = field(default=0, init=False)
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

    def begin_batch(self, *, retry_failed: bool) -> None:
        """Forget the questions so far, in a process that goes on for long; what was called and what it cost stays.

        A question that failed in an earlier batch is then asked once more, as if by another evaluation.
        """
        self.retry_failed = retry_failed
        self.memory, self.usage, self.unread = Memory(), Usage(), set()

    def try_call(self, cost: float = 0.0, *, is_of_system: bool = False) -> bool:
        """Count a call before it is made; `cost` is the most that it can be expected to cost.

        Returns False and counts nothing if only the calls under way leave no room for it. They can cost less than
        expected, so the caller tries again after `wait_for_room`. While it waits, it must not hold anything that those
        calls need in order to end. With `is_of_system`, counts the call in `asked_of_systems` too.

        Raises:
            LimitError: neither this call nor any later one may be made.
        """
        with self._changed:
            self._check_limits(cost, is_of_system=is_of_system)
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

    def end_call(self, expected: float = 0.0, cost: float | None = 0.0, *, is_interrupted: bool = False) -> None:
        """Replace the expected cost of a call with its real cost; None if that is unknown."""
        with self._changed:
            self.under_way -= 1
            self.interrupted += is_interrupted
            self.cost += cost or 0.0
            self.unpriced += cost is None
            if expected:
                self._priced -= 1
                # Sums of floats leave a remainder, and a caller would wait for it although no call is under way.
                self._reserved = self._reserved - expected if self._priced else 0.0
            self._changed.notify_all()

    def begin_retry(self, *, is_of_system: bool = False) -> None:
        """Count a retry of a call before it is made. Raises `LimitError` if no further call may be made."""
        with self._changed:
            self._check_calls(is_of_system=is_of_system)
            self.retries += 1
            self.retries_of_systems += is_of_system

    def count_question(self, *, failed: bool = False, is_lasting: bool = False) -> None:
        """Count a question that was asked to the end; `failed` if it got no usable reply."""
        with self._changed:
            self.questions += 1
            if failed:
                self.count_error(is_lasting=is_lasting)

    @property
    def spent(self) -> dict[str, float]:
        """What was spent until now, by the names of attributes."""
        return {name: getattr(self, name) for name in _SPENT}

    def add(self, spent: Mapping[str, float]) -> None:
        """Add what another process spent on the same evaluation. `check_errors` says what follows from it."""
        with self._changed:
            for name in _SPENT:
                more = spent.get(name, 0)
                setattr(self, name, getattr(self, name) + (more if name == "cost" else int(more)))

    def count_error(self, *, is_lasting: bool = False) -> None:
        """Count one of the questions as failed; `is_lasting` if a retry would not help, as after a 404.

        Above `max_errors`, no further call may begin.
        """
        with self._changed:
            self.errors += 1
            self.lasting += is_lasting
            self.check_errors()

    def check_errors(self) -> None:
        """Stop if there were more errors than `max_errors`."""
        with self._changed:
            if self.stopped is None and self._has_too_many_errors():
                share = self.max_errors or 0
                limit = f"{share}" if isinstance(share, int) else f"{100 * share:g}%"
                self._stop(f"limits.max_errors: {self._describe_errors()} (limit: {limit})")

    def count_unread(self, digest: bytes) -> None:
        """Count a request whose replies cannot be read; each request counts once. Only `retry_failed` retries it."""
        with self._changed:
            self.unread.add(digest)

    def count_guess(self) -> None:
        """Count a call whose cost is an estimate."""
        with self._changed:
            self.guessed += 1

    @property
    def total_cost(self) -> Cost | None:
        """What the calls of this evaluation cost so far; None if none was made."""
        if not self.unpriced:
            return Cost(self.cost, "known") if self.calls else None
        return Cost(self.cost, "partly known") if self.cost else Cost(None, "unknown")

    def describe_progress(self) -> str:
        """What was spent so far, for a display of progress; "" while nothing is known of a cost."""
        cost = self.total_cost
        return f"{cost} so far" if cost is not None and cost.dollars else ""

    def describe(self) -> str:
        """Calls, questions, retries and cost, and what failed or was interrupted; empty if no call was made."""
        calls = self.calls - self.asked_of_systems
        again = min(calls, sum(one.replies.repeats for one in self.usage.asked_now().values()))
        unfinished = self.interrupted + self.under_way
        cost = f"about {self.cost:.4g} USD" if self.cost else ""
        if self.unpriced:
            unknown = f"(the cost of {count_noun(self.unpriced, 'call')} is unknown)"
            cost = f"at least {self.cost:.4g} USD {unknown}" if self.cost else "cost unknown"
        guessed = (
            f"the cost of {count_noun(self.guessed, 'call')} is an estimate, because the endpoint did not report how "
            "many tokens it used"
        )
        spent = (
            f"made {count_noun(calls, 'call')}" if calls else "",
            f"asked systems {count_noun(self.asked_of_systems, 'question')}" if self.asked_of_systems else "",
            f"{count_noun(again, 'call')} of these because a reply could not be read" if again else "",
            f"{count_noun(self.retries, 'retry', 'retries')} after errors" if self.retries else "",
            cost,
        )
        ended = (
            f"{count_noun(unfinished, 'call')} interrupted before a reply came" if unfinished else "",
            guessed if self.guessed else "",
            self._describe_errors() if self.errors else "",
        )
        return "; ".join(filter(None, (", ".join(filter(None, spent)), *ended)))

    def _describe_errors(self) -> str:
        return f"{self.errors} of {count_noun(self.questions, 'question')} got no usable reply"

    def advise(self, *, is_finished: bool = False) -> str | None:
        """How to retry what failed, as a sentence for the user; None if nothing failed or it was retried already.

        After an outcome, a plain run asks the systems again; `--retry-failed` asks only what failed.
        """
        if self.lasting:
            failed = count_noun(self.lasting, "question")
            told = f"{failed} failed for a reason that a retry does not change; correct the spec or the system first"
            return f"{told}, then run with --retry-failed to ask only what failed" if is_finished else told
        if self.unread and not self.retry_failed:
            unread = count_noun(len(self.unread), "question")
            return f"run again with --retry-failed to retry {unread} whose replies could not be read"
        if self.errors <= len(self.unread):
            return None
        return f"run again {'with --retry-failed ' if is_finished else ''}to retry failed calls"

    def _check_calls(self, *, is_of_system: bool) -> None:
        limits = self.max_calls if isinstance(self.max_calls, CallLimits) else CallLimits(*[self.max_calls] * 2)
        of_systems = self.asked_of_systems + self.retries_of_systems
        most, made, whom = limits.models, self.calls + self.retries - of_systems, "models"
        if is_of_system:
            most, made, whom = limits.systems, of_systems, "systems"
        if self.stopped is None and most is not None and made >= most:
            self._stop(f"limits.max_calls: {most} of {count_noun(most, 'call')} to {whom} made")
        if self.stopped is not None:
            raise LimitError(str(self.stopped))

    def _check_limits(self, cost: float, *, is_of_system: bool) -> None:
        self._check_calls(is_of_system=is_of_system)
        if self.stopped is None and self.max_cost is not None and self._exceeds_cost(self.cost + cost):
            spent = f"{self.cost:.4g} of {self.max_cost:g} USD are spent"
            self._stop(f"limits.max_cost: {spent}, and the next call may cost {cost:.4g}")
        if self.stopped is not None:
            raise LimitError(str(self.stopped))

    def _has_room(self, cost: float) -> bool:
        """Whether one more call fits into `max_cost`, if set, even if every call in flight costs its maximum."""
        return not self._priced or not self._exceeds_cost(self.cost + self._reserved + cost)

    def _exceeds_cost(self, cost: float) -> bool:
        """Whether a sum of costs is above `max_cost`, by more than the rounding of as many sums as there were calls."""
        return self.max_cost is not None and arithmetic.exceeds(cost, self.max_cost, terms=3 * self.calls + 2)

    def _stop(self, reason: str) -> None:
        self.stopped = LimitError(f"{reason}; {_ADVICE}")
        self._changed.notify_all()

    def _has_too_many_errors(self) -> bool:
        most = self.max_errors
        if most is None or isinstance(most, int):
            return most is not None and self.errors > most
        return self.questions >= FEWEST_QUESTIONS and arithmetic.exceeds(self.errors, most * self.questions)
