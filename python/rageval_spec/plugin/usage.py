"""What the replies of chat models behind an evaluation's values took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from rageval_spec.data.reply_counts import ReplyCounts

if TYPE_CHECKING:
    from rageval_spec.data.chat import ChatReply, ChatRequest

_DIGEST_BYTES = 16
"""How many bytes of a request's digest are kept. They tell any number of requests apart, in half the memory."""


@dataclass(frozen=True, slots=True)
class Used:
    """Replies and their tokens; a number of tokens is None if the endpoint did not report it for every reply."""

    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What an endpoint did now, as opposed to the store: its calls, their seconds, and its questions."""

    calls: int = 0
    seconds: float = 0.0
    replies: ReplyCounts = field(default_factory=ReplyCounts)


class Usage:
    """Counts replies and their tokens by model, from any number of threads.

    Equal requests to a model count once, and stored replies count as much as new ones. So the numbers depend only on
    what was asked, not on when, in which order or how often.
    """

    def __init__(self) -> None:
        """Start without replies."""
        self._lock = Lock()
        self._used: dict[str, Used] = {}
        self._seen: dict[tuple[str, int], set[bytes]] = {}
        self._times: dict[str, tuple[int, float]] = {}
        self._questions: dict[tuple[str, int], set[bytes]] = {}
        self._counts: dict[str, ReplyCounts] = {}
        self._asked: dict[str, Asked] = {}

    def count(self, model: str, replies: Iterable[tuple[ChatRequest, ChatReply]], sample: int = 0) -> None:
        """Count the replies of a model; `sample` is the model's `ChatModel.sample`."""
        with self._lock:
            seen = self._seen.setdefault((model, sample), set())
            for request, reply in replies:
                digest = request.digest[:_DIGEST_BYTES]
                if digest not in seen:
                    seen.add(digest)
                    self._used[model] = _add(self._used.get(model, _NOTHING), reply)

    def time(self, metric: str, samples: int, seconds: float) -> None:
        """Add the time in which a metric computed the values of some samples."""
        with self._lock:
            known = self._times.get(metric, (0, 0.0))
            self._times[metric] = known[0] + samples, known[1] + seconds

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
        with self._lock:
            seen = self._questions.setdefault((model, sample), set())
            digest = question.digest[:_DIGEST_BYTES]
            if digest not in seen:
                seen.add(digest)
                self._counts[model] = self._counts.get(model, _NO_COUNTS) + counts
            if made:
                before = self._asked.get(model, _NOT_ASKED)
                seconds = sum(reply.seconds or 0.0 for reply in made)
                self._asked[model] = Asked(before.calls + len(made), before.seconds + seconds, before.replies + counts)

    def replies_of(self, model: str) -> ReplyCounts:
        """How often the replies of a model could be read, whenever they came."""
        return self._counts.get(model, _NO_COUNTS)

    def asked_now(self) -> Mapping[str, Asked]:
        """What the endpoints did now, by the model's name; models that only stored replies served are absent."""
        with self._lock:
            return dict(self._asked)

    def of(self, model: str) -> Used:
        """What the replies of a model took, by its name in the spec."""
        return self._used.get(model, _NOTHING)


_NOTHING = Used()
_NO_COUNTS = ReplyCounts()
_NOT_ASKED = Asked()


def _add(used: Used, reply: ChatReply) -> Used:
    return Used(
        used.calls + 1,
        _add_tokens(used.input_tokens, reply.input_tokens),
        _add_tokens(used.output_tokens, reply.output_tokens),
    )


def _add_tokens(tokens: int | None, more: int | None) -> int | None:
    return None if tokens is None or more is None else tokens + more
