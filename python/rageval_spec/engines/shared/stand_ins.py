"""What a worker has in place of the store's answers, the budget and the pace of endpoints: it asks their owner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import local
from typing import Any, NamedTuple

from rageval_spec.data.chat import ChatReply, ChatRequest
from rageval_spec.endpoints.pacing import Clock
from rageval_spec.engines.shared.message_line import MessageLine
from rageval_spec.plugin import Shared
from rageval_spec.plugin.budget import Budget, Usage
from rageval_spec.progress import Progress
from rageval_spec.store.store import MemoryAnswers

SHOWN_EVERY = 0.25
"""Seconds between two reports of progress on one thing."""
_FULL = 0.2
"""Seconds until a call is tried again for which only the calls under way leave no room in the budget."""


def make_shared(
    line: MessageLine, open_content: Callable[[Any], bytes], *, retry_failed: bool, is_limited: bool
) -> Shared:
    """The stand-ins that ask over a line; with `is_limited`, each call asks the budget for leave.

    `open_content` makes a file's content of what the owner's `put` gave for it.
    """
    return Shared(
        RemoteAnswers(line),
        RemoteBudget(line, retry_failed=retry_failed, is_limited=is_limited),
        partial(_count, line),
        partial(line.post, "tell"),
        lambda name: partial(RemotePace, line, name),
        lambda path: open_content(line.ask("fetch", path)),
        threads=1,
    )


class RemoteAnswers(MemoryAnswers):
    """The owner's answers; what else a store of answers has is in this process.

    A claim brings the stored answer with it, so that looking it up asks only once.
    """

    def __init__(self, line: MessageLine) -> None:
        """Ask over this line."""
        super().__init__()
        self._line = line
        self._claimed: dict[tuple[str, bytes], Mapping[bytes, bytes]] = {}

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        known = self._claimed.pop((model, questions[0]), None) if len(questions) == 1 else None
        found: Mapping[bytes, bytes] = self._line.ask("find", model, list(questions)) if known is None else known
        return found

    def has_any(self, model: str) -> bool:
        return bool(self._line.ask("has_any", model))

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self._line.ask("keep", model, dict(answers))

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        self._line.ask("drop", model, list(questions))

    def claim(self, model: str, question: bytes) -> bool:
        is_granted, known = self._line.ask("claim", model, question)
        if is_granted:
            self._claimed[model, question] = known
        return bool(is_granted)

    def release(self, model: str, question: bytes) -> None:
        self._claimed.pop((model, question), None)
        self._line.post("release", model, question)


def _post(name: str) -> Any:
    """A method that tells the owner what it was called with."""

    def post(self: Any, *arguments: Any, **named: Any) -> None:
        self._line.post(name, *arguments, **named)

    return post


class RemoteBudget(Budget):
    """The owner's budget."""

    def __init__(self, line: MessageLine, *, retry_failed: bool, is_limited: bool) -> None:
        """Without limits, calls begin without asking, and are only counted."""
        super().__init__(retry_failed=retry_failed)
        self._line = line
        self._begin = line.ask if is_limited else line.post
        self.usage = RemoteUsage(line)

    def try_call(self, cost: float = 0.0, *, is_of_system: bool = False) -> bool:
        return self._begin("try_call", cost, is_of_system=is_of_system) is not False

    def wait_for_room(self, cost: float = 0.0) -> None:  # noqa: ARG002 - the owner knows what the call may cost
        time.sleep(_FULL)

    def begin_retry(self, *, is_of_system: bool = False) -> None:
        self._begin("begin_retry", is_of_system=is_of_system)

    end_call = _post("end_call")
    count_question = _post("count_question")
    count_error = _post("count_error")
    count_unread = _post("count_unread")
    count_guess = _post("count_guess")


class AskedDigest(NamedTuple):
    """What `Usage` needs to know of a request."""

    digest: bytes


class RemoteUsage(Usage):
    """The owner's counts. Texts stay here: only numbers and digests travel."""

    def __init__(self, line: MessageLine) -> None:
        """Count over this line."""
        super().__init__()
        self._line = line

    def count(self, model: str, replies: Iterable[tuple[ChatRequest, ChatReply]], sample: int = 0) -> None:
        counted = [(AskedDigest(request.digest), _strip(reply)) for request, reply in replies]
        self._line.post("use", model, counted, sample)

    def count_question(
        self, model: str, question: ChatRequest, replies: Sequence[ChatReply], sample: int = 0, *, is_read: bool
    ) -> None:
        counted = [_strip(reply) for reply in replies]
        asked = AskedDigest(question.digest)
        self._line.post("use_question", model, asked, counted, sample, is_read=is_read)

    time = _post("time")
    time_answers = _post("time_answers")


def _strip(reply: ChatReply) -> ChatReply:
    return replace(reply, text="", choices=None)


class RemotePace:
    """The owner's `CallPace` of an endpoint, with its `Slots`: what they allow holds for all workers together.

    A call gets its slot and its time at once, before it asks the budget. `slots` and `throttle` are this object, which
    says what the owner last told about refusals.
    """

    def __init__(
        self,
        line: MessageLine,
        name: str,
        clock: Clock,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        at_once: int = 1,
    ) -> None:
        """The same limits as those of a `CallPace`; `name` tells the endpoint from others."""
        self._line = line
        self._clock = clock
        self._endpoint = (name, requests_per_minute, tokens_per_minute, at_once)
        self._turn = local()
        self.room = at_once
        self.is_crowded = False
        self._refusing_since: float | None = None

    @property
    def slots(self) -> RemotePace:
        return self

    @property
    def throttle(self) -> RemotePace:
        return self

    @contextmanager
    def take(self, tokens: int = 0) -> Iterator[None]:
        end = partial(self._line.post, "end_try", self._endpoint, is_unused=True)
        ask = partial(self._line.ask, is_stopped=lambda: self._clock.is_stopped, late=end)
        self._turn.begun = begun = ask("begin_try", self._endpoint, tokens)
        try:
            yield
        finally:
            end(begun)  # unless `record` has ended it

    def wait(self, tokens: int) -> float:  # noqa: ARG002 - `take` has waited
        begun: float = self._turn.begun
        return begun

    def resize(self, room: int) -> None:
        """The owner does it."""

    def record(self, begun: float, *, refused: bool, wait: float | None = None) -> None:
        end = self._line.ask if refused else self._line.post
        told = end("end_try", self._endpoint, begun, refused=refused, wait=wait)
        self.is_crowded, seconds = told or (False, None)
        self._refusing_since = None if seconds is None else self._clock.now() - seconds

    def has_refused_for(self, seconds: float, now: float) -> bool:
        return self._refusing_since is not None and now - self._refusing_since >= seconds

    def correct(self, tokens: int) -> None:
        self._line.post("correct", self._endpoint, tokens)

    def stop(self) -> None:
        """Nothing waits here that the clock does not end."""


def _count(line: MessageLine, label: str, unit: str | None) -> Progress:
    shown = -SHOWN_EVERY

    def show(done: int, total: int, unit: str | None = unit) -> None:
        nonlocal shown
        now = time.monotonic()
        if done >= total or now - shown >= SHOWN_EVERY:
            shown = now
            line.post("progress", label, unit, done, total)

    return show
