"""The stored answers of a system, and which of them an evaluation takes over.

An evaluation that has not reached its outcome has a beginning: its id, its time, and the code and files at that time.
Its answers are stored under the system's key with the prefix `unfinished:<id>:`, each with the time and the commit at
which it was asked. The next evaluation continues it if the beginning is recent enough, and if code and files are the
same. Otherwise it makes a beginning of its own, and the old answers are not read again.

When an evaluation reaches its outcome, its answers move to the key without the prefix. There they are for
`--retry-failed`, which takes over those of the last evaluation only, and for `reuse: always`, which takes over all.
Answers of earlier versions of this package have no time, and beginnings without an id are not continued.

Each shard of an evaluation (`run --shard 3/8`) has a beginning and an end of its own: those that share a store do not
end one another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

from rageval_spec.data.outcomes import UNKNOWN, AnswerSource, TakenOver
from rageval_spec.dataclass import asdict, dataclass, field
from rageval_spec.endpoints.shared_questions import hold_claim
from rageval_spec.plugin.budget import WHOLE
from rageval_spec.store.checkout import CodeState
from rageval_spec.store.replies import UNFINISHED_PREFIX, WHEN
from rageval_spec.systems.shared.question_templates import SystemQuestion, complete
from rageval_spec.wording import count_noun, describe_asked, describe_sources

if TYPE_CHECKING:
    from rageval_spec.plugin import Context
    from rageval_spec.recorded.answers_and_steps import AnswerRow

LOOKED_UP_AT_ONCE = 4096
_NOTHING = b""
"""Stored in place of an answer that is no longer valid."""
_START = WHEN + b"start"
"""Stands in for a question's digest: its entry is the beginning of the last unfinished evaluation."""
_LAST = WHEN + b"last"
"""The same for the id of the last evaluation that reached its outcome."""
_SHOWN = 10

_Content: TypeAlias = tuple[bytes, Mapping[str, Any]]
"""What is stored for a question, and what is known of when it was asked."""


class Asked(Protocol):
    """What is known of a system whose answers are stored: an `AnsweringSystem`."""

    context: Context
    node: Any

    @property
    def key(self) -> str: ...

    def unpack(self, content: bytes) -> AnswerRow | None: ...

    def digest_code(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of an evaluation that has not reached its outcome.

    Attributes:
        id: tells it from all others.
        time: when it began, in UTC, as ISO 8601 with seconds.
        commit, changes: the code that was checked out, as in `CodeState`.
        files: the sha256 of each file that the answers can depend on besides those in the system's key, by its path.
        repairs: the id of the evaluation of which it asks again what failed; None if it asks everything.
    """

    id: str
    time: str
    commit: str | None = None
    changes: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    repairs: str | None = None

    def explain_end(self, now: Beginning, longest: float) -> str | None:
        """Why an evaluation that begins `now` does not continue this one; None if it does, within `longest` seconds."""
        age = (datetime.fromisoformat(now.time) - datetime.fromisoformat(self.time)).total_seconds()
        if not longest:
            return "resume is never"
        if age > longest:
            return f"it began {_describe_age(age)} ago, and 'resume' allows {_describe_age(longest)}"
        if self.commit != now.commit:
            return f"the commit changed from {_shorten(self.commit)} to {_shorten(now.commit)}"
        if self.commit is not None and (self.changes is None or now.changes is None):
            return "git did not list what changed since the commit"
        if self.changes != now.changes:
            return "the uncommitted changes are others"
        if changed := sorted({name for name, _ in self.files.items() ^ now.files.items()}):
            return f"{changed[0]} changed"
        return None


class AnswerOrigin(NamedTuple):
    """Where an answer comes from, when it was asked, and at which state of the code; None where that is not known."""

    source: AnswerSource | None
    time: str | None
    commit: str | None


class KeptAnswer(NamedTuple):
    """A stored answer."""

    row: AnswerRow
    origin: AnswerOrigin


class KeptAnswers:
    """The stored answers of one system. Make it once for an evaluation of a dataset; see the module."""

    def __init__(self, system: Asked) -> None:
        """Prepare the keys. Nothing is looked up yet."""
        self._system = system
        self._answers = system.context.answers
        self._finished = system.key
        self._pointer = UNFINISHED_PREFIX + system.key
        self._rule = system.context.resume
        part = b"" if system.context.shard == WHOLE else str(system.context.shard).encode("ascii")
        self._start, self._end = _START + part, _LAST + part

    def find(self, questions: Sequence[SystemQuestion]) -> dict[bytes, KeptAnswer]:
        """The stored answers to take over, by digest. Damaged answers are left out."""
        found: dict[bytes, KeptAnswer] = {}
        if (beginning := self._continued) is not None:
            found = self._read(_key_of(beginning.id, self._finished), questions, "unfinished")
            # Another process that had the same beginning may have reached its outcome meanwhile.
            rest = [one for one in questions if one.digest not in found]
            found |= self._read(self._finished, rest, "unfinished", beginning.id)
        if self._rule.is_fresh:
            return found
        rest = [one for one in questions if one.digest not in found]
        if self._keeps_all:
            found |= self._read(self._finished, rest, "always")
        elif self._retries:
            repaired = self._last if beginning is None else beginning.repairs
            found |= {} if repaired is None else self._read(self._finished, rest, "last", repaired)
        return found

    def begin(self) -> None:
        """Record the beginning before the first question, unless an earlier evaluation is continued."""
        memory = self._memory
        with memory.lock, hold_claim(self._answers, self._pointer, self._start, lambda: None, time.sleep):
            if self._finished in memory.begun:
                return
            beginning = self._continued
            if beginning is None:
                beginning = self._now
                self._answers.keep(self._pointer, {self._start: _pack(asdict(beginning))})
            memory.begun[self._finished] = beginning

    def keep(self, digest: bytes, content: bytes) -> None:
        began = self._begun
        state = {"time": _tell_time(), "commit": _name(began), "by": self._rule.evaluation}
        self._answers.keep(_key_of(began.id, self._finished), {digest: content, WHEN + digest: _pack(state)})
        self._memory.asked.add((self._finished, digest))

    def hold(
        self, question: SystemQuestion, sleep: Callable[[float], None]
    ) -> AbstractContextManager[KeptAnswer | None]:
        """The answer if another process with the same store got it in the meantime; None if it must be asked now."""
        digest, key = question.digest, _key_of(self._begun.id, self._finished)
        return hold_claim(self._answers, key, digest, lambda: self.find([question]).get(digest), sleep)

    def forget(self, digests: Iterable[bytes]) -> None:
        self._answers.keep(_key_of(self._begun.id, self._finished), dict.fromkeys(digests, _NOTHING))

    def finish(self, digests: Sequence[bytes]) -> None:
        """Make these questions' answers those of the last evaluation, which reached its outcome."""
        began = self._begun
        key = _key_of(began.id, self._finished)
        for start in range(0, len(digests), LOOKED_UP_AT_ONCE):
            some = digests[start : start + LOOKED_UP_AT_ONCE]
            moved: dict[bytes, bytes] = {}
            taken = self._find_repaired(began, some) | self._find_with_times(key, some)
            for digest, (content, when) in taken.items():
                moved |= {digest: content, WHEN + digest: _pack({**when, "evaluation": began.id})}
            if moved:
                self._answers.keep(self._finished, moved)
        self._answers.keep(self._finished, {self._end: began.id.encode("ascii")})
        self._answers.drop(key, [name for digest in digests for name in (digest, WHEN + digest)])

    def end(self) -> None:
        """Say that the evaluation reached its outcome on all datasets, so that no later one continues it."""
        pointed = self._read_start()
        if pointed is not None and pointed.id == self._begun.id:
            self._answers.drop(self._pointer, [self._start])

    def explain_end(self) -> str | None:
        """Why the answers of an unfinished evaluation are not taken over; None if they are, or if there is none."""
        earlier = self._read_start()
        if earlier is None or self._finished in self._memory.begun or not self._has_any(earlier):
            return None
        return "--fresh" if self._rule.is_fresh else earlier.explain_end(self._now, self._rule.longest)

    def describe(self, taken: TakenOver) -> str:
        """Say where answers come from: `120 answers of an unfinished evaluation, asked ...`."""
        return f"{count_noun(taken.answers, 'answer')} of {describe_sources(taken)}, {describe_asked(taken)}"

    def sum_up(self, origins: Mapping[bytes, AnswerOrigin], questions: int, asked_now: int) -> TakenOver | None:
        """What was taken over of the answers to so many different questions; None if nothing was."""
        if not origins:
            return None
        times = sorted(one.time for one in origins.values() if one.time is not None)
        names = [one.commit or UNKNOWN for one in origins.values()]
        if asked_now:
            names += [_name(self._begun) or UNKNOWN] * asked_now
        commits = {name: names.count(name) for name in dict.fromkeys(names)}
        return TakenOver(
            dataset="",
            system=self._system.context.name,
            answers=len(origins),
            questions=questions,
            sources=tuple(dict.fromkeys(one.source for one in origins.values() if one.source is not None)),
            first=times[0] if times else None,
            last=times[-1] if times else None,
            undated=len(origins) - len(times),
            version=str(self._system.node.version),
            commits={} if set(commits) <= {UNKNOWN} else commits,
        )

    def is_asked_now(self, digest: bytes) -> bool:
        """Whether this evaluation asked the question now, in any process, perhaps for a system with an equal block."""
        return (self._finished, digest) in self._memory.asked

    @property
    def _keeps_all(self) -> bool:
        return bool(self._system.node.reuse == "always")

    @property
    def _retries(self) -> bool:
        return self._system.context.budget.retry_failed

    @property
    def _begun(self) -> Beginning:
        """The beginning of the current evaluation, which is made if there is none."""
        if self._finished not in self._memory.begun:
            self.begin()
        return self._memory.begun[self._finished]

    @property
    def _continued(self) -> Beginning | None:
        """The beginning of the evaluation whose answers count: of this one, or of one that it continues."""
        if (begun := self._memory.begun.get(self._finished)) is not None:
            return begun
        earlier = None if self._rule.is_fresh else self._read_start()
        if earlier is None or earlier.explain_end(self._now, self._rule.longest) is not None:
            return None
        return earlier if self._has_any(earlier) or not self._retries else None

    @cached_property
    def _now(self) -> Beginning:
        """What the beginning of this evaluation is, if it continues no other."""
        code = self._rule.find_code()
        return Beginning(
            id=uuid4().hex,
            time=_tell_time(),
            commit=code.commit,
            changes=code.changes,
            files=self._system.digest_code(),
            repairs=self._last if self._retries else None,
        )

    @property
    def _last(self) -> str:
        """The id of the last evaluation that reached its outcome; "" if none did, or an earlier version wrote it."""
        return self._answers.find(self._finished, [self._end]).get(self._end, _NOTHING).decode("ascii")

    @property
    def _memory(self) -> _Remembered:
        return self._system.context.budget.memory.remember(self._answers, lambda: _Remembered(self._rule.begun))

    def _has_any(self, beginning: Beginning) -> bool:
        return self._answers.has_any(_key_of(beginning.id, self._finished))

    def _find_repaired(self, began: Beginning, digests: Sequence[bytes]) -> dict[bytes, _Content]:
        """What was taken over from finished evaluations."""
        if self._rule.is_fresh or not (self._keeps_all or (self._retries and began.repairs is not None)):
            return {}
        found = self._find_with_times(self._finished, digests)
        of_last = (began.repairs, began.id)
        return {d: one for d, one in found.items() if self._keeps_all or one[1].get("evaluation", "") in of_last}

    def _read_start(self) -> Beginning | None:
        try:
            content = json.loads(self._answers.find(self._pointer, [self._start]).get(self._start, _NOTHING))
            found = Beginning(**content)
            datetime.fromisoformat(found.time)
        except (ValueError, TypeError):
            return None
        return found

    def _read(
        self, key: str, questions: Sequence[SystemQuestion], source: AnswerSource, evaluation: str | None = None
    ) -> dict[bytes, KeptAnswer]:
        """The answers under a key; with `evaluation`, only those of the evaluation with this id, "" for none."""
        rows: dict[bytes, KeptAnswer] = {}
        for start in range(0, len(questions), LOOKED_UP_AT_ONCE):
            told = {question.digest: question.told for question in questions[start : start + LOOKED_UP_AT_ONCE]}
            for digest, (content, when) in self._find_with_times(key, list(told)).items():
                row = self._system.unpack(content)
                if row is not None and (evaluation is None or when.get("evaluation", "") == evaluation):
                    if when.get("by") == self._rule.evaluation:
                        self._memory.asked.add((self._finished, digest))
                    origin = AnswerOrigin(source, when.get("time"), when.get("commit"))
                    rows[digest] = KeptAnswer(complete(row, told[digest]), origin)
        return rows

    def _find_with_times(self, key: str, digests: Sequence[bytes]) -> dict[bytes, _Content]:
        """Stored contents, each with what is known of when it was asked."""
        found = {d: content for d, content in self._answers.find(key, digests).items() if content != _NOTHING}
        times = self._answers.find(key, [WHEN + digest for digest in found]) if found else {}
        return {digest: (content, _unpack(times.get(WHEN + digest, _NOTHING))) for digest, content in found.items()}


class _Remembered:
    """What one evaluation remembers of the answers in a store, by the keys of systems: equal blocks share a key."""

    def __init__(self, begun: dict[str, Beginning]) -> None:
        """`begun` is shared: beginnings that another process made appear in it."""
        self.lock = Lock()
        self.begun = begun
        self.asked: set[tuple[str, bytes]] = set()


def _key_of(beginning: str, key: str) -> str:
    return f"{UNFINISHED_PREFIX}{beginning}:{key}"


def _name(beginning: Beginning) -> str | None:
    return CodeState(beginning.commit, beginning.changes).name


def _tell_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _pack(state: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(state)).encode("ascii")


def _unpack(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
        datetime.fromisoformat(found.get("time", "2026-01-01"))
    except (ValueError, AttributeError, TypeError):
        return {}
    return dict(found)


def _shorten(commit: str | None) -> str:
    return "none" if commit is None else commit[:_SHOWN]


def _describe_age(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h" if seconds >= 3600 else f"{seconds / 60:.3g} min"
