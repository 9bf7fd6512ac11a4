"""Makes a test set: has questions written, checks them, and has those replaced that fail a check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from rageval_spec.data.assessment import Failed
from rageval_spec.generation.candidates import Candidate
from rageval_spec.generation.checking import Checker
from rageval_spec.generation.picking import Picker, Places
from rageval_spec.generation.requests import DRAFT_TOKENS, Draft, Unsuitable, ask_for_draft
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.generation.asking import Asker
    from rageval_spec.generation.chunks import Chunk
    from rageval_spec.generation.duplicates import Questions
    from rageval_spec.generation.mixes import Mix, Slot
    from rageval_spec.generation.search import Search

_SUPPOSED = Draft("What is question {number}, which is not written yet, going to ask about this?", "An answer. " * 8)
"""Stands for a draft whose reply is not there yet."""


@dataclass(frozen=True)
class Order:
    """What is ordered.

    Attributes:
        count: how many questions.
        mix: the shares of types, difficulties, styles and kinds.
        language: the code of the language to write in; None for that of the documents.
        seed: chooses the chunks.
        attempts: how many questions may be tried for each that is wanted.
        per_chunk: how many questions are made from a chunk at most.
        within: a question is rejected if no retriever ranks its source this high; 0 accepts any rank.
        closed_book: whether to reject questions that the model answers without documents.
        steers_difficulty: whether to set questions aside of whose measured difficulty there are enough, and to try
            others. Where no others are found, those that were set aside are taken after all.
    """

    count: int
    mix: Mix
    language: str | None = None
    seed: int = 13
    attempts: int = 4
    per_chunk: int = 2
    within: int = 20
    closed_book: bool = False
    steers_difficulty: bool = False

    @property
    def steps(self) -> int:
        """How many things are asked about a question that passes every check: its text, two checks, and more."""
        return 5 if self.closed_book else 3


@dataclass(frozen=True)
class Corpus:
    """What questions are made from.

    Attributes:
        chunks: all chunks.
        titles: the title of each document by its id.
        find_groups: returns up to a number of groups of chunks that belong together, as positions, best first.
        search: the retrievers that say how hard a source is to find.
    """

    chunks: Sequence[Chunk]
    titles: dict[str, str]
    find_groups: Callable[[int], Sequence[Places]]
    search: Search

    def show(self, chunk: Chunk) -> str:
        """The text of a chunk as models see it: below its document's title and its headings."""
        above = dict.fromkeys(line for line in (self.titles[chunk.doc_id], *chunk.headings) if line.strip())
        where = " > ".join(line for line in above if line not in chunk.text[: len(line) + 8])
        return f"[{where}]\n{chunk.text}" if where else chunk.text


@dataclass
class Made:
    """A test set, with what was rejected on the way.

    Attributes:
        accepted: the questions, in the order of their slots.
        rejected: the questions that failed a check, in the order in which they were tried.
        shortages: why there are fewer questions than were ordered; empty if there are as many.
        stopped: why it ended before it was done: a limit, or an endpoint that does not answer; None if it was done.
    """

    accepted: list[Candidate] = field(default_factory=list)
    rejected: list[Candidate] = field(default_factory=list)
    shortages: list[str] = field(default_factory=list)
    stopped: str | None = None


def make_questions(order: Order, corpus: Corpus, asker: Asker, known: Questions, expect: Callable[[int], None]) -> Made:
    """Make the questions that were ordered, or as many as the corpus and the models give.

    Args:
        order: what is wanted.
        corpus: what to make it from.
        asker: asks the models.
        known: the questions so far, to find duplicates; none at first.
        expect: called with the number of steps that each round of questions takes.
    """
    return _Maker(order, corpus, asker, known).make(expect)


class _Maker:
    def __init__(self, order: Order, corpus: Corpus, asker: Asker, known: Questions) -> None:
        slots = order.mix.list_slots(order.count, order.seed)
        several = sum(slot.kind == "multi_hop" for slot in slots)
        groups = corpus.find_groups(several * order.attempts) if several else ()
        self._order = order
        self._corpus = corpus
        self._asker = asker
        self._slots = slots
        self._picker = Picker(corpus.chunks, groups, order.per_chunk, order.seed)
        self._checker = Checker(order, corpus, asker, known)
        self._asked: defaultdict[str, list[str]] = defaultdict(list)
        self._attempts: Counter[int] = Counter()
        self._filled: set[int] = set()
        self._set_aside: list[Candidate] = []
        self._made = Made()

    def make(self, expect: Callable[[int], None]) -> Made:
        """Rounds of questions: each round tries one for every slot that is still empty, if a chunk is left for it."""
        pending: Sequence[Slot] = self._slots
        while pending and self._made.stopped is None:
            candidates = list(self._deal(pending))
            if not candidates:
                break
            expect(len(candidates) * self._order.steps)
            self._draft(candidates)
            self._checker.check(candidates, self._count_wanted() if self._order.steers_difficulty else None)
            self._sort_out(candidates)
            pending = [slot for slot in self._list_empty() if self._attempts[slot.number] < self._order.attempts]
        while self._set_aside and self._made.stopped is None:
            self._readmit(expect)
        self._made.rejected += self._set_aside
        self._made.accepted.sort(key=lambda one: one.slot.number)
        if self._made.stopped is None:
            unserved: list[Slot] = []
            spent: list[Slot] = []
            for slot in self._list_empty():
                (unserved if self._attempts[slot.number] < self._order.attempts else spent).append(slot)
            self._made.shortages += self._explain_shortage(unserved, spent)
        return self._made

    def _list_empty(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.number not in self._filled]

    def _count_wanted(self) -> Counter[str]:
        """How many more questions of each difficulty are wanted; below 0 where there are too many."""
        answerable = sum(slot.kind != "unanswerable" for slot in self._slots)
        shares = self._order.mix.shares["difficulty"]
        wanted = Counter({name: ceil(share * answerable / 100 - 1e-9) for name, share in shares.items()})
        wanted.subtract(one.difficulty for one in self._made.accepted if one.difficulty is not None)
        return wanted

    def _readmit(self, expect: Callable[[int], None]) -> None:
        """Check one question that was set aside for each empty slot, of the difficulty that is most wanted."""
        wanted, offered = self._count_wanted(), defaultdict[int, list[Candidate]](list)
        for one in self._set_aside:
            if one.slot.number in self._filled:
                self._made.rejected.append(one)
            else:
                offered[one.slot.number].append(one)
        chosen = list[Candidate]()
        for _, own in sorted(offered.items()):
            best = max(own, key=lambda one: (wanted[one.difficulty or ""], -one.attempt))
            own.remove(best)
            wanted[best.difficulty or ""] -= 1
            best.readmit()
            chosen.append(best)
        self._set_aside = [one for own in offered.values() for one in own]
        expect(len(chosen) * (self._order.steps - 1))
        self._checker.check(chosen)
        self._sort_out(chosen)

    def _deal(self, slots: Sequence[Slot]) -> Iterator[Candidate]:
        for slot, places in zip(slots, self._picker.pick(slots), strict=True):
            if places is not None:
                chunks = tuple(self._corpus.chunks[place] for place in places)
                yield Candidate(slot, self._attempts[slot.number], chunks, places)
                self._attempts[slot.number] += 1

    def _draft(self, candidates: Sequence[Candidate]) -> None:
        questions = [
            ask_for_draft(
                one.slot,
                [self._corpus.show(chunk) for chunk in one.chunks],
                self._order.language,
                [asked for chunk in one.chunks for asked in self._asked[chunk.chunk_id]],
            )
            for one in candidates
        ]
        for one, found in zip(candidates, self._asker.write(questions, DRAFT_TOKENS), strict=True):
            if found is None:
                one.is_supposed = True
                one.draft = _SUPPOSED._replace(question=_SUPPOSED.question.format(number=one.slot.number))
                self._note(one)
            elif isinstance(found, Unsuitable):
                one.reject("unsuitable", found.reason)
            elif isinstance(found, Failed):
                one.fail(found, "no_reply" if found.raw is None else "unreadable")
            else:
                one.draft = found
                self._note(one)

    def _note(self, one: Candidate) -> None:
        """Remember that a question was written from these chunks, so that the next one asks something else."""
        self._picker.count_use(one.places)
        for chunk in one.chunks:
            self._asked[chunk.chunk_id].append(one.question)

    def _sort_out(self, candidates: Sequence[Candidate]) -> None:
        """Keep what passed every check; the slots of the others stay empty."""
        for one in candidates:
            if one.unfinished is not None:
                self._made.stopped = one.unfinished
            elif one.reason is None:
                self._made.accepted.append(one)
                self._filled.add(one.slot.number)
            elif one.reason == "enough":
                self._set_aside.append(one)
            else:
                self._made.rejected.append(one)
        failed = [one for one in candidates if one.is_call_failed]
        if failed and 2 * len(failed) >= len(candidates) and all(one.reason is not None for one in candidates):
            self._made.stopped = self._made.stopped or failed[0].detail

    def _explain_shortage(self, unserved: Sequence[Slot], spent: Sequence[Slot]) -> Iterator[str]:
        several = sum(slot.kind == "multi_hop" for slot in unserved)
        if several:
            what = "have nothing more" if self._picker.can_group else "have nothing"
            yield f"{count_noun(several, 'question')} over several chunks: the chunks {what} in common to ask about"
        if rest := len(unserved) - several:
            most = count_noun(self._order.per_chunk, "question")
            yield (
                f"{count_noun(rest, 'question')}: no chunk is left to ask about "
                f"({count_noun(len(self._corpus.chunks), 'chunk')}, at most {most} each)"
            )
        if spent:
            tried = count_noun(self._order.attempts, "attempt")
            yield f"{count_noun(len(spent), 'question')}: none passed the checks in {tried}"
