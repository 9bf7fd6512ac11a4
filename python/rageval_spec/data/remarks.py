"""Notes that are not written yet, because what they count is still in parts.

A step can be computed in parts: on several machines, or a few questions at a time. A note such as "3 of 40 replies
came without probabilities" can only be written when all parts are together. Until then, each part has a `Remark`: the
facts of its samples, and the name of the function that writes notes from the facts of all of them. Facts are of JSON's
types, with tuples for lists, so that parts can be files.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError

Fact: TypeAlias = "bool | int | float | str | tuple[Fact, ...] | None"
Writer: TypeAlias = Callable[..., Iterable[Note]]
"""Takes the facts, a sequence, and then the settings. The order of the facts must not matter."""

_WRITERS: dict[str, Writer] = {}


@dataclass(frozen=True, slots=True)
class Remark:
    """Facts from which notes are written once those of all parts of a step are together.

    Attributes:
        writer: the name of the function that writes the notes, as `writes_notes` registered it.
        facts: what it counts, for example one fact for each sample.
        settings: its other arguments, which are the same for all parts: the name of a judge, for instance.
        is_same: whether every part has the same facts, because they are not about its questions. One part's then stand
            for all.
        topic: what the facts are about, if a metric asked a judge about several things.
        topics: how many things these are. A note that is the same for all of them is written once; any other begins
            with its topic.
    """

    writer: str
    facts: tuple[Fact, ...]
    settings: tuple[Fact, ...] = ()
    is_same: bool = False
    topic: str = ""
    topics: int = 0

    def write(self) -> Iterator[Note]:
        """The notes on these facts. Raises `DataError` if this version has no such writer."""
        if self.writer not in _WRITERS:
            raise DataError(f"no part of this version writes notes as {self.writer!r}")
        yield from _WRITERS[self.writer](self.facts, *self.settings)


AnyNote: TypeAlias = Note | Remark


W = TypeVar("W", bound=Writer)


def writes_notes(function: W) -> W:
    """Register a function as a writer of notes. It can then be used in `remark`, also after facts were stored."""
    _WRITERS[_name(function)] = function
    return function


def remark(writer: Writer, facts: Iterable[Fact], *settings: Fact) -> Remark:
    """A remark whose notes a registered function will write."""
    return Remark(_name(writer), tuple(facts), settings)


def _name(function: Writer) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def join(parts: Sequence[Sequence[AnyNote]]) -> tuple[AnyNote, ...]:
    """The notes and remarks of all parts of a step. Equal notes are one; facts of the same kind are put together.

    If a part has several remarks of a kind, the first one belongs to the first of every other part, and so on.
    """
    found: dict[tuple[object, int], AnyNote] = {}
    facts: dict[tuple[object, int], list[Fact]] = {}
    for part in parts:
        seen: dict[object, int] = {}
        for one in part:
            kind = one if isinstance(one, Note) else replace(one, facts=())
            place = seen[kind] = seen.get(kind, -1) + 1
            key = (kind, 0 if isinstance(one, Note) else place)
            found.setdefault(key, one)
            if isinstance(one, Remark) and not (one.is_same and facts.get(key)):
                facts.setdefault(key, []).extend(one.facts)
    return tuple(one if isinstance(one, Note) else replace(one, facts=tuple(facts[key])) for key, one in found.items())


def write_notes(remarks: Sequence[AnyNote]) -> tuple[Note, ...]:
    """All notes, with those of remarks written, in the order given; equal notes are one."""
    written = [(one, note) for one in remarks for note in ([one] if isinstance(one, Note) else one.write())]
    topics: dict[Note, set[str]] = {}
    for one, note in written:
        if isinstance(one, Remark) and one.topics:
            topics.setdefault(note, set()).add(one.topic)
    notes = []
    for one, note in written:
        if isinstance(one, Remark) and one.topics and len(topics[note]) < one.topics:
            note = replace(note, message=f"{one.topic}: {note.message}")
        notes.append(note)
    return tuple(dict.fromkeys(notes))


def name_topics(parts: Sequence[tuple[str, Sequence[AnyNote]]]) -> tuple[AnyNote, ...]:
    """The notes on several topics, given with them. A note that not all of them have names its topic."""
    notes = [[one for one in of_topic if isinstance(one, Note)] for _, of_topic in parts]
    shared = set(notes[0]).intersection(*notes[1:]) if notes else set()
    named: list[AnyNote] = []
    for topic, of_topic in parts:
        for one in of_topic:
            if isinstance(one, Remark):
                named.append(replace(one, topic=topic, topics=len(parts)))
            else:
                named.append(one if one in shared else replace(one, message=f"{topic}: {one.message}"))
    return tuple(named)


_BYTES = 8


def digest_texts(texts: Iterable[str]) -> str:
    """A fact that tells which texts there were, in 11 characters for each, without the texts."""
    digests = {hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for text in texts}
    return base64.b85encode(b"".join(sorted(digests))).decode()


def count_texts(facts: Iterable[str]) -> int:
    """How many different texts some facts of `digest_texts` stand for. Raises `DataError` if one is no such fact."""
    try:
        wholes = [base64.b85decode(fact) for fact in facts]
    except ValueError as error:
        raise DataError("digests of texts are damaged") from error
    return len({whole[start : start + _BYTES] for whole in wholes for start in range(0, len(whole), _BYTES)})
