"""Makes a test set: has questions written, checks them, and has those replaced that fail a check.

Checks that cost nothing come first, then those for which models must be asked. A candidate is a question on its way
into the test set: what it is made from, what was found, and why it was rejected.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Literal, TypeVar, get_args

from rageval_spec.data.findings import Failed, Finding, is_supported
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass, field
from rageval_spec.generation import model_requests
from rageval_spec.generation.chunks import Chunk, Rankings, Search, find_ranks, measure_difficulty, name_question
from rageval_spec.generation.question_faults import AcceptedQuestions, TextSpan, find_leak, find_quote, find_unanchored
from rageval_spec.generation.question_mix import Mix, Picker, Places, Slot
from rageval_spec.judging.language import NAMES, find_language
from rageval_spec.wording import count_noun

T = TypeVar("T")

LOOKED_AT = 5
"""How many of a retriever's best chunks must not answer a question that is to have no answer."""
SUPPORTED = 1.0
"""The share of the answer's claims that the chunks must support."""


class Checker:
    """Checks questions in rounds. A question that fails a check is not asked about any further."""

    def __init__(self, order: Order, corpus: Corpus, asker: model_requests.Asker, known: AcceptedQuestions) -> None:
        """`known` are the questions that were accepted; those that pass are added."""
        self._order = order
        self._corpus = corpus
        self._asker = asker
        self._known = known
        self._chunks = {chunk.chunk_id: chunk for chunk in corpus.chunks}

    def check(self, candidates: Sequence[Candidate], wanted: Counter[str] | None = None) -> None:
        """Check questions in the order of their slots, and reject or accept each.

        `wanted` says how many questions of each measured difficulty may pass; the others are rejected before a model is
        asked about them. None lets all pass.
        """
        for one in _written(candidates):
            self._read(one)
        self._compare(candidates, is_last=False)
        rankings = self._look_for_sources(candidates)
        if wanted is not None:
            _keep_wanted(candidates, wanted)
        self._ask_about(candidates, rankings)
        self._ask_for_support(candidates)
        self._ask_about_parts(candidates)
        if self._order.closed_book:
            self._ask_without_documents(candidates)
        self._compare(candidates, is_last=True)

    def _read(self, one: Candidate) -> None:
        assert one.draft is not None, "only written questions are read"
        question, draft = one.question, one.draft
        told = find_language(question)
        wanted = self._order.language or find_language(" ".join(one.texts))
        one.language = told or (draft.language if draft.language in NAMES else "") or wanted or ""
        base = (wanted or "").split("-")[0].lower()
        if base and (told or (one.language if self._order.language else base)) != base:
            one.reject("wrong_language", f"{NAMES.get(one.language, one.language)} instead of {NAMES.get(base, base)}")
        if (phrase := find_unanchored(question)) is not None:
            one.reject("not_standalone", f"it says '{phrase}'")
        if (leak := find_leak(question, draft.answer, one.slot.type, one.language)) is not None:
            one.reject("leak", f"it says '{leak}'")
        if one.slot.kind != "unanswerable":
            self._find_evidence(one)

    def _find_evidence(self, one: Candidate) -> None:
        assert one.draft is not None, "only written questions are read"
        found = [find_quote(quote, one.texts, number - 1) for number, quote in one.draft.quotes]
        one.spans = tuple(dict.fromkeys(span for spans in found if spans for span in spans))
        without = set(range(len(one.chunks))) - {span.place for span in one.spans}
        if not one.draft.quotes:
            one.reject("no_evidence", "the model quotes nothing")
        elif not one.spans:
            quote = one.draft.quotes[0][1]
            shown = quote if len(quote) <= 80 else quote[:80] + "..."
            one.reject("no_evidence", f"the passage does not say '{shown}'")
        elif without:
            ids = ", ".join(one.chunks[place].chunk_id for place in sorted(without))
            one.reject("no_evidence", f"nothing is quoted from {ids}")

    def _compare(self, candidates: Sequence[Candidate], *, is_last: bool) -> None:
        """Reject what asks the same as an accepted question; at last, accept what is left."""
        for one in _written(candidates):
            if (same := self._known.find(one.question)) is not None:
                one.reject("duplicate", f"like question {same.number + 1} of those accepted ({same.likeness})")
            elif is_last:
                self._known.add(one.question)

    def _look_for_sources(self, candidates: Sequence[Candidate]) -> Rankings:
        rankings = self._corpus.search.rank({one.query_id: one.question for one in _written(candidates)})
        for one in _written(candidates):
            if one.slot.kind == "unanswerable":
                continue
            ids = [chunk.chunk_id for chunk in one.chunks]
            one.ranks = find_ranks(rankings, one.query_id, ids)
            one.difficulty = measure_difficulty(one.ranks)
            best = min((rank for rank in one.ranks.values() if rank is not None), default=None)
            if self._order.within and (best is None or best > self._order.within):
                one.reject("not_found", f"not among the first {self._order.within} of {' or '.join(one.ranks)}")
        return rankings

    def _ask_about(self, candidates: Sequence[Candidate], rankings: Rankings) -> None:
        """Whether the chunks answer the question, and whether it makes sense without them."""

        def conclude(one: Candidate, opinion: model_requests.QuestionOpinion) -> None:
            if not opinion.stands_alone:
                one.reject("not_standalone", opinion.reason)
            if one.slot.kind == "unanswerable":
                if opinion.answerable:
                    one.reject("answerable", opinion.answer or opinion.reason)
            elif not opinion.answerable:
                one.reject("not_answerable", opinion.reason)

        asked = [*_left(candidates)]
        passages = [self._list_passages(one, rankings) for one in asked]
        questions = [
            model_requests.ask_whether_answered(one.question, texts) for one, texts in zip(asked, passages, strict=True)
        ]
        self._conclude(asked, self._asker.check(questions, model_requests.CHECK_TOKENS), conclude)

    def _list_passages(self, one: Candidate, rankings: Rankings) -> list[str]:
        """The chunks of a question; of an unanswerable one, also what retrievers find first."""
        ids = [chunk.chunk_id for chunk in one.chunks]
        if one.slot.kind == "unanswerable":
            ids += [found for best in rankings.values() for found in best.get(one.query_id, ())[:LOOKED_AT]]
        return [self._corpus.show(self._chunks[chunk_id]) for chunk_id in dict.fromkeys(ids)]

    def _ask_for_support(self, candidates: Sequence[Candidate]) -> None:
        """Whether the chunks support the answer, as the product's judges decide it for any answer."""

        def conclude(one: Candidate, finding: Finding) -> None:
            unsupported = [claim for claim in finding.claims if not is_supported(claim.verdict, claim.score)]
            if unsupported:
                one.reject("unsupported", unsupported[0].reason or unsupported[0].text)
            elif not finding.claims and not finding.claimless and (finding.score or 0.0) < SUPPORTED:
                one.reject("unsupported", finding.reason or "")

        asked = [*_answerable(candidates)]
        samples = [
            Sample(one.query_id, one.question, answer=one.answer, contexts=tuple(map(self._corpus.show, one.chunks)))
            for one in asked
        ]
        self._conclude(asked, self._asker.judge(samples), conclude)

    def _ask_about_parts(self, candidates: Sequence[Candidate]) -> None:
        """Whether one chunk alone answers a question that should need several."""

        def conclude(one: Candidate, opinion: model_requests.QuestionOpinion) -> None:
            if opinion.answerable:
                one.reject("one_chunk_suffices", opinion.answer or opinion.reason)

        several = [one for one in _answerable(candidates) if one.slot.kind == "multi_hop"]
        pairs = [(one, chunk) for one in several for chunk in one.chunks]
        questions = [
            model_requests.ask_whether_answered(one.question, [self._corpus.show(chunk)]) for one, chunk in pairs
        ]
        self._conclude([one for one, _ in pairs], self._asker.check(questions, model_requests.CHECK_TOKENS), conclude)

    def _ask_without_documents(self, candidates: Sequence[Candidate]) -> None:
        """Whether the model knows the answer anyway, so that the question would not test retrieval."""

        def note(one: Candidate, answer: str) -> None:
            one.own_answer = answer

        def conclude(one: Candidate, is_same: bool) -> None:
            if is_same:
                one.reject("known", one.own_answer)

        asked = [*_answerable(candidates)]
        found = self._asker.check(
            [model_requests.ask_closed_book(one.question) for one in asked], model_requests.ANSWER_TOKENS
        )
        for one, answer in zip(asked, found, strict=True):
            one.own_answer = "An answer that is not there yet." if answer is None else ""
        self._conclude(asked, found, note)
        known = [one for one in _answerable(candidates) if one.own_answer]
        questions = [model_requests.ask_whether_same(one.question, one.answer, one.own_answer) for one in known]
        self._conclude(known, self._asker.check(questions, model_requests.COMPARISON_TOKENS), conclude)

    def _conclude(
        self,
        asked: Sequence[Candidate],
        found: Sequence[T | Failed | None],
        conclude: Callable[[Candidate, T], None],
    ) -> None:
        """Apply what was found; what is not known yet rejects nothing, and a check that failed rejects."""
        for one, result in zip(asked, found, strict=True):
            if isinstance(result, Failed):
                one.fail(result, "check_failed")
            elif result is not None:
                conclude(one, result)


def _keep_wanted(candidates: Sequence[Candidate], wanted: Counter[str]) -> None:
    left = wanted.copy()
    for one in _written(candidates):
        if one.difficulty is not None:
            left[one.difficulty] -= 1
            if left[one.difficulty] < 0:
                one.reject("enough", f"{one.difficulty} to find")


def _left(candidates: Sequence[Candidate]) -> Iterable[Candidate]:
    """Those that were not rejected, supposed ones among them."""
    return (one for one in candidates if one.reason is None and one.unfinished is None)


def _written(candidates: Sequence[Candidate]) -> Iterable[Candidate]:
    """Those that were not rejected and whose text is known."""
    return (one for one in _left(candidates) if not one.is_supposed)


def _answerable(candidates: Sequence[Candidate]) -> Iterable[Candidate]:
    return (one for one in _left(candidates) if one.slot.kind != "unanswerable")


Reason = Literal[
    "no_reply", "unreadable", "unsuitable", "wrong_language", "not_standalone", "leak", "no_evidence", "duplicate",
    "not_found", "enough", "not_answerable", "one_chunk_suffices", "answerable", "unsupported", "known", "check_failed",
]  # fmt: skip
"""Why a question was rejected, in the order of the checks."""
REASONS: Mapping[Reason, str] = {
    "no_reply": "the call that should write the question failed",
    "unreadable": "the replies that should hold the question could not be read",
    "unsuitable": "the model could not write such a question about the passage",
    "wrong_language": "the question is in another language",
    "not_standalone": "the question does not make sense without the passage",
    "leak": "the question contains its answer",
    "no_evidence": "the quoted evidence is not in the passage",
    "duplicate": "another question asks the same",
    "not_found": "no retriever finds the source of the question",
    "enough": "there are enough questions of this difficulty",
    "not_answerable": "the passage does not answer the question",
    "one_chunk_suffices": "one passage alone answers a question that should need several",
    "answerable": "the corpus answers a question that should have no answer",
    "unsupported": "the passage does not support the answer",
    "known": "the model answers the question without the corpus",
    "check_failed": "a check got no usable reply",
}
"""What each reason means."""
assert set(REASONS) == set(get_args(Reason))


@dataclass
class Candidate:
    """A question of the test set, or one that was rejected.

    Attributes:
        attempt: how many questions were tried for the slot before it.
        chunks: what it should be answered from; or what an unanswerable one is about. `places` are their positions.
        draft: what the model wrote; None if it wrote no question.
        spans: where the evidence stands in the chunks.
        ranks: where each retriever ranks its sources; None if one is not found.
        difficulty: how hard its sources are to find; None for an unanswerable question.
        reason: why it was rejected; None if it was not. `detail` is what exactly was found.
        raw: the reply that could not be read.
        own_answer: what the model answers without documents; "" if it knows no answer.
        is_call_failed: whether it was rejected because a call failed, which another evaluation can change.
        unfinished: why it was not checked to the end: a limit; None if it was.
        is_supposed: whether it stands for a reply that is not there yet, while calls are estimated.
    """

    slot: Slot
    attempt: int
    chunks: tuple[Chunk, ...]
    places: tuple[int, ...] = ()
    draft: model_requests.Draft | None = None
    spans: Sequence[TextSpan] = ()
    ranks: Mapping[str, int | None] = field(default_factory=dict)
    difficulty: str | None = None
    reason: Reason | None = None
    detail: str = ""
    raw: str | None = None
    language: str = ""
    own_answer: str = ""
    is_call_failed: bool = False
    unfinished: str | None = None
    is_supposed: bool = False

    @property
    def question(self) -> str:
        return "" if self.draft is None else self.draft.question

    @property
    def answer(self) -> str:
        return "" if self.draft is None else self.draft.answer

    @property
    def texts(self) -> list[str]:
        return [chunk.text for chunk in self.chunks]

    @property
    def query_id(self) -> str:
        return name_question(self.question, (chunk.chunk_id for chunk in self.chunks))

    def reject(self, reason: Reason, detail: str = "", raw: str | None = None) -> None:
        if self.reason is None:
            self.reason, self.detail, self.raw = reason, detail, raw

    def fail(self, failed: Failed, reason: Reason) -> None:
        """Reject the question because a reply is missing or cannot be read; a limit leaves it undecided."""
        if failed.is_unfinished:
            self.unfinished = failed.reason
        elif self.reason is None:
            self.is_call_failed = failed.raw is None
            self.reject(reason, failed.reason, failed.raw)


_SUPPOSED = model_requests.Draft(
    "What is question {number}, which is not written yet, going to ask about this?", "An answer. " * 8
)
"""Stands for a draft whose reply is not there yet."""


@dataclass(frozen=True)
class Order:
    """What is ordered.

    Attributes:
        language: the code of the language to write in; None for that of the documents.
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
    """What questions are made from: chunks, the titles of documents by id, a function that pairs a number of chunks
    by position, best first, and the retrievers that say how hard a source is to find.
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


class QuestionMaker:
    """Makes the questions that were ordered, or as many as the corpus and the models give.

    Attributes:
        accepted: the questions, in the order of their slots.
        rejected: the questions that failed a check, in the order in which they were tried.
        shortages: why there are fewer questions than were ordered; empty if there are as many.
        stopped: why it ended before it was done: a limit, or an endpoint that does not answer; None if it was done.
    """

    def __init__(self, order: Order, corpus: Corpus, asker: model_requests.Asker, known: AcceptedQuestions) -> None:
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
        self.accepted: list[Candidate] = []
        self.rejected: list[Candidate] = []
        self.shortages: list[str] = []
        self.stopped: str | None = None

    def make(self, expect: Callable[[int], None]) -> None:
        """Rounds of questions: each round tries one for every slot that is still empty, if a chunk is left for it.

        `expect` is called with the number of steps that each round takes.
        """
        pending: Sequence[Slot] = self._slots
        while pending and self.stopped is None:
            candidates = list(self._deal(pending))
            if not candidates:
                break
            expect(len(candidates) * self._order.steps)
            self._draft(candidates)
            self._checker.check(candidates, self._count_wanted() if self._order.steers_difficulty else None)
            self._sort_out(candidates)
            pending = [slot for slot in self._list_empty() if self._attempts[slot.number] < self._order.attempts]
        while self._set_aside and self.stopped is None:
            self._readmit(expect)
        self.rejected += self._set_aside
        self.accepted.sort(key=lambda one: one.slot.number)
        if self.stopped is None:
            unserved: list[Slot] = []
            spent: list[Slot] = []
            for slot in self._list_empty():
                (unserved if self._attempts[slot.number] < self._order.attempts else spent).append(slot)
            self.shortages += self._explain_shortage(unserved, spent)

    def _list_empty(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.number not in self._filled]

    def _count_wanted(self) -> Counter[str]:
        """How many more questions of each difficulty are wanted; below 0 where there are too many."""
        answerable = sum(slot.kind != "unanswerable" for slot in self._slots)
        shares = self._order.mix.shares["difficulty"]
        wanted = Counter({name: ceil(share * answerable / 100 - 1e-9) for name, share in shares.items()})
        wanted.subtract(one.difficulty for one in self.accepted if one.difficulty is not None)
        return wanted

    def _readmit(self, expect: Callable[[int], None]) -> None:
        """Check one question that was set aside for each empty slot, of the difficulty that is most wanted."""
        wanted, offered = self._count_wanted(), defaultdict[int, list[Candidate]](list)
        for one in self._set_aside:
            if one.slot.number in self._filled:
                self.rejected.append(one)
            else:
                offered[one.slot.number].append(one)
        chosen = list[Candidate]()
        for _, own in sorted(offered.items()):
            best = max(own, key=lambda one: (wanted[one.difficulty or ""], -one.attempt))
            own.remove(best)
            wanted[best.difficulty or ""] -= 1
            best.reason, best.detail, best.raw = None, "", None
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
            model_requests.ask_for_draft(
                one.slot,
                [self._corpus.show(chunk) for chunk in one.chunks],
                self._order.language,
                [asked for chunk in one.chunks for asked in self._asked[chunk.chunk_id]],
            )
            for one in candidates
        ]
        for one, found in zip(candidates, self._asker.write(questions, model_requests.DRAFT_TOKENS), strict=True):
            if found is None:
                one.is_supposed = True
                one.draft = _SUPPOSED._replace(question=_SUPPOSED.question.format(number=one.slot.number))
                self._note(one)
            elif isinstance(found, model_requests.Unsuitable):
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
                self.stopped = one.unfinished
            elif one.reason is None:
                self.accepted.append(one)
                self._filled.add(one.slot.number)
            elif one.reason == "enough":
                self._set_aside.append(one)
            else:
                self.rejected.append(one)
        failed = [one for one in candidates if one.is_call_failed]
        if failed and 2 * len(failed) >= len(candidates) and all(one.reason is not None for one in candidates):
            self.stopped = self.stopped or failed[0].detail

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
