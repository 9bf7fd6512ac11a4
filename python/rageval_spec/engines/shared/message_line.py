"""A worker's line to the owner: questions that wait for an answer, and posts that do not.

Messages arrive in the order in which they were sent. What the threads of a process say at the same time travels
together, so that many calls under way cost few messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Condition, Event, Thread
from typing import Any, NamedTuple

from rageval_spec.dataclass import dataclass, field
from rageval_spec.endpoints.pacing import StoppedError

PATIENCE = 0.2
"""The longest time, in seconds, before a thread that waits for an answer notices that it was stopped."""
SOON = 0.1
"""Seconds that posts wait for company."""


class Message(NamedTuple):
    """What a worker says. A post has no number, because it gets no answer."""

    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    number: int | None = None


class Reply(NamedTuple):
    """The owner's answer to the message with this number: what it found, or the error to raise."""

    number: int
    found: Any = None
    error: BaseException | None = None


class LostOwnerError(BaseException):
    """The process that owns the evaluation has ended, or has given up this worker.

    It is no `Exception`, because it says nothing about the step that is being computed.
    """


@dataclass
class _Waiting:
    answered: Event = field(default_factory=Event)
    reply: Reply | None = None
    late: Callable[[Any], None] | None = None


class MessageLine:
    """Sends what threads ask and post, and gives each its answer."""

    def __init__(self, send: Callable[[Sequence[Message]], None], receive: Callable[[], Sequence[Reply]]) -> None:
        """`send` delivers messages and returns when they arrived; `receive` waits a moment for answers."""
        self._send = send
        self._receive = receive
        self._numbers = count()
        self._outgoing: list[Message] = []
        self._waiting: dict[int, _Waiting] = {}
        self._changed = Condition()
        self._failure: BaseException | None = None
        for work in (self._deliver, self._collect):
            Thread(target=work, name=f"line-{work.__name__}", daemon=True).start()

    def ask(
        self,
        name: str,
        *arguments: Any,
        is_stopped: Callable[[], bool] = lambda: False,
        late: Callable[[Any], None] | None = None,
        **named: Any,
    ) -> Any:
        """The owner's answer; raises the error that the owner gives, or `StoppedError` if `is_stopped` says so.

        An answer that comes after that is given to `late`, which gives back what the owner lent.
        """
        waiting = _Waiting()
        with self._changed:
            number = next(self._numbers)
            self._waiting[number] = waiting
            self._outgoing.append(Message(name, arguments, named, number))
            self._changed.notify_all()
        while not waiting.answered.wait(PATIENCE):
            if self._failure is not None:
                raise LostOwnerError(f"the evaluation has ended: {self._failure}") from self._failure
            if is_stopped():
                with self._changed:
                    if waiting.reply is None:
                        waiting.late = late
                        raise StoppedError
                waiting.answered.wait()
        assert waiting.reply is not None, "it was answered"
        if waiting.reply.error is not None:
            raise waiting.reply.error
        return waiting.reply.found

    def post(self, name: str, *arguments: Any, **named: Any) -> None:
        """Tell the owner something that needs no answer. It arrives before what this thread asks or posts later."""
        with self._changed:
            self._outgoing.append(Message(name, arguments, named))
            if len(self._outgoing) == 1:
                self._changed.notify_all()

    def _deliver(self) -> None:
        while self._failure is None:
            with self._changed:
                while not self._outgoing:
                    self._changed.wait()
                if all(message.number is None for message in self._outgoing):
                    self._changed.wait(SOON)
                messages, self._outgoing = self._outgoing, []
            try:
                self._send(messages)
            except BaseException as error:
                self._failure = error

    def _collect(self) -> None:
        """Receive answers while there are questions, so that an idle worker is silent."""
        while self._failure is None:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
            try:
                replies = self._receive()
            except BaseException as error:
                self._failure = error
                return
            late = []
            with self._changed:
                for reply in replies:
                    waiting = self._waiting.pop(reply.number, None)
                    if waiting is None:
                        continue
                    waiting.reply = reply
                    waiting.answered.set()
                    if waiting.late is not None and reply.error is None:
                        late.append((waiting.late, reply.found))
            for give_back, found in late:
                give_back(found)
