"""The owner of what workers share: the store's answers, the budget, the pace of endpoints, and the display.

It lives in the process of the command, so one place looks up, counts and stores whatever costs money, and the limits
hold for all workers together. A question that one worker asks is claimed: others wait for its answer. What a worker
held that has died (claims, slots, calls under way) is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Any

from rageval_spec.data.chat import LimitError
from rageval_spec.endpoints.pacing import CallPace, Clock, Slots, StoppedError
from rageval_spec.engines.shared.message_line import LostOwnerError, Message, Reply
from rageval_spec.plugin import Shared

Settings = tuple[str, float | None, float | None, int]
"""An endpoint: its name, its requests and tokens per minute, and how many calls at once."""
_OF_ANSWERS = frozenset({"find", "has_any", "keep", "drop"})
_OF_BUDGET = frozenset({"count_question", "count_error", "count_unread", "count_guess"})
_OF_USAGE = frozenset({"use", "use_question", "time", "time_answers"})
"""Messages that are methods of these."""


class Owner:
    """Answers the messages of workers. Safe to use from several threads; answers can come later, from other threads."""

    def __init__(self, shared: Shared, answer: Callable[[str, Reply], None], put: Callable[[Path], Any]) -> None:
        """`answer` sends an answer to a worker; `put` returns what a worker can open as the content of a file."""
        self.shared = shared
        self.put = cache(put)
        self.answer = answer
        self.clock = Clock()
        self.lock = RLock()
        self.desks: dict[str, _Desk] = {}
        self._tasks: dict[int, _Desk] = {}
        self._endpoints: dict[Settings, _Endpoint] = {}
        self._progress: dict[str, dict[str, tuple[int, int, int, int]]] = {}

    def handle(self, worker: str, messages: Sequence[Message]) -> None:
        """Do what the messages of a worker say, in their order."""
        with self.lock:
            desk = self.desks.setdefault(worker, _Desk(self, worker))
            for message in messages:
                if message.name == "begin_task":
                    self._tasks[message.arguments[0]] = desk
                else:
                    desk.take(message)

    def has_begun(self, task: int) -> bool:
        """Whether a worker has begun to compute a task."""
        return task in self._tasks

    def lose_task(self, task: int) -> None:
        """Free what the worker held that died while it computed a task."""
        with self.lock:
            if task in self._tasks:
                self._tasks[task].lose()

    def stop(self) -> None:
        """Let no further call begin."""
        self.clock.stop()
        for endpoint in [*self._endpoints.values()]:
            endpoint.stop()

    def find_endpoint(self, settings: Settings) -> _Endpoint:
        if settings not in self._endpoints:
            self._endpoints[settings] = _Endpoint(settings, self.clock)
        return self._endpoints[settings]

    def show(self, worker: str, label: str, unit: str | None, done: int, total: int) -> None:
        """Show the progress of all workers. One whose count falls has begun something new: both count."""
        counts = self._progress.setdefault(label, {})
        earlier, of_earlier, last, of_last = counts.get(worker, (0, 0, 0, 0))
        if done < last:
            earlier, of_earlier = earlier + last, of_earlier + of_last
        counts[worker] = (earlier, of_earlier, done, total)
        sums = [sum(column) for column in zip(*counts.values(), strict=True)]
        self.shared.counting(label, unit)(sums[0] + sums[2], sums[1] + sums[3])


class _Desk:
    """What the owner does for one worker, and what that worker holds: claims, tries and calls."""

    def __init__(self, owner: Owner, worker: str) -> None:
        self._owner = owner
        self._worker = worker
        self._claims: set[tuple[str, bytes]] = set()
        self._tries: dict[tuple[Settings, float], AbstractContextManager[None]] = {}
        self._calls: list[float] = []
        self._is_lost = False

    def take(self, message: Message) -> None:
        """Do what a message says, and answer it if it has a number."""
        found, failure = None, None
        try:
            if message.name == "begin_try":
                self._begin_try(message)
                return
            found = self._do(message)
        except (Exception, LostOwnerError) as error:
            failure = error
        if message.number is not None:
            self._owner.answer(self._worker, Reply(message.number, found, failure))

    def lose(self) -> None:
        """Free everything: the worker has died. If it has not, it can still store answers, but begins no calls."""
        self._is_lost = True
        for claim in [*self._claims]:
            self._release(*claim)
        for settings, begun in [*self._tries]:
            self._end_try(settings, begun, is_unused=True)
        for expected in [*self._calls]:
            self._end_call(expected, is_interrupted=True)

    def _do(self, message: Message) -> Any:
        name, arguments, named = message.name, message.arguments, message.named
        shared = self._owner.shared
        if name in _OF_ANSWERS:
            return getattr(shared.answers, name)(*arguments, **named)
        if name in _OF_BUDGET:
            with suppress(LimitError):  # it stops the next call
                getattr(shared.budget, name)(*arguments, **named)
            return None
        if name in _OF_USAGE:
            method = {"use": "count", "use_question": "count_question"}.get(name, name)
            return getattr(shared.budget.usage, method)(*arguments, **named)
        others: dict[str, Callable[..., Any]] = {
            "claim": self._claim, "release": self._release, "try_call": self._try_call, "end_call": self._end_call,
            "begin_retry": self._begin_retry, "end_try": self._end_try, "correct": self._correct, "tell": shared.tell,
            "progress": self._show, "flush": _do_nothing, "fetch": self._owner.put,
        }  # fmt: skip
        return others[name](*arguments, **named)

    def _claim(self, model: str, question: bytes) -> tuple[bool, dict[bytes, bytes]]:
        """Whether the worker may ask a question, with the answer that is stored."""
        answers, claim = self._owner.shared.answers, (model, question)
        is_taken = any(claim in desk._claims for desk in self._owner.desks.values() if desk is not self)
        if is_taken or not answers.claim(model, question):
            return False, {}
        self._claims.add(claim)
        return True, dict(answers.find(model, [question]))

    def _release(self, model: str, question: bytes) -> None:
        if (model, question) in self._claims:
            self._claims.discard((model, question))
            self._owner.shared.answers.release(model, question)

    def _try_call(self, cost: float, *, is_of_system: bool) -> bool:
        self._refuse_lost()
        has_begun = self._owner.shared.budget.try_call(cost, is_of_system=is_of_system)
        if has_begun:
            self._calls.append(cost)
        return has_begun

    def _begin_retry(self, *, is_of_system: bool) -> None:
        self._refuse_lost()
        self._owner.shared.budget.begin_retry(is_of_system=is_of_system)

    def _end_call(self, expected: float = 0.0, cost: float | None = 0.0, *, is_interrupted: bool = False) -> None:
        if expected in self._calls:
            self._calls.remove(expected)
            self._owner.shared.budget.end_call(expected, cost, is_interrupted=is_interrupted)

    def _begin_try(self, message: Message) -> None:
        """Answer when the try may begin."""
        self._refuse_lost()
        settings, tokens = message.arguments
        number = message.number or 0

        def begin(begun: float, slot: AbstractContextManager[None]) -> None:
            with self._owner.lock:
                self._tries[settings, begun] = slot
                if self._is_lost:
                    self._end_try(settings, begun, is_unused=True)
            self._owner.answer(self._worker, Reply(number, begun))

        self._owner.find_endpoint(settings).waiting.put((tokens, begin))

    def _end_try(
        self,
        settings: Settings,
        begun: float,
        *,
        refused: bool = False,
        wait: float | None = None,
        is_unused: bool = False,
    ) -> tuple[bool, float | None]:
        """End a try, or a turn that no try used. Returns whether many are refused, and for how many seconds all are."""
        endpoint = self._owner.find_endpoint(settings)
        if slot := self._tries.pop((settings, begun), None):
            endpoint.end(begun, slot, refused=refused, wait=wait, is_unused=is_unused)
        throttle = endpoint.pace.throttle
        return throttle.is_crowded, throttle.count_refusing(self._owner.clock.now())

    def _correct(self, settings: Settings, tokens: int) -> None:
        self._owner.find_endpoint(settings).pace.correct(tokens)

    def _show(self, label: str, unit: str | None, done: int, total: int) -> None:
        self._owner.show(self._worker, label, unit, done, total)

    def _refuse_lost(self) -> None:
        if self._is_lost:
            raise LostOwnerError("this worker was given up; another one computes its task")


def _do_nothing() -> None:
    """All that came before has been done."""


class _Endpoint:
    """Lets the tries of all workers to one endpoint begin, one after the other, in the order in which they asked."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        name, *_, at_once = settings
        self.pace = CallPace(clock, *settings[1:])
        self.waiting: SimpleQueue[tuple[int, Callable[[float, AbstractContextManager[None]], None]]] = SimpleQueue()
        self._slots = Slots(at_once)
        Thread(target=self._admit, name=f"pace of {name}", daemon=True).start()

    def _admit(self) -> None:
        with suppress(StoppedError):
            while True:
                tokens, begin = self.waiting.get()
                slot = self._slots.take()
                slot.__enter__()
                begin(self.pace.wait(tokens), slot)

    def end(
        self,
        begun: float,
        slot: AbstractContextManager[None],
        *,
        refused: bool,
        wait: float | None,
        is_unused: bool,
    ) -> None:
        if not (is_unused and not self.pace.throttle.is_probing):  # a probe that comes to nothing must end, too
            self.pace.record(begun, refused=refused, wait=wait)
        self._slots.resize(self.pace.throttle.room)
        slot.__exit__(None, None, None)

    def stop(self) -> None:
        self._slots.stop()
        self.pace.stop()
