"""Checks questions: first what costs nothing, then what models must be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.data.assessment import Failed, Finding, is_supported
from rageval_spec.data.sample import Sample
from rageval_spec.generation.evidence import find_quote
from rageval_spec.generation.phrasing import find_leak, find_unanchored
from rageval_spec.generation.requests import (
    ANSWER_TOKENS,
    CHECK_TOKENS,
    COMPARISON_TOKENS,
    Opinion,
    ask_closed_book,
    ask_whether_answered,
    ask_whether_same,
)
from rageval_spec.generation.search import find_ranks, measure_difficulty
from rageval_spec.judging.language import NAMES, find_language

if TYPE_CHECKING:
    from rageval_spec.generation.asking import Asker
    from rageval_spec.generation.candidates import Candidate
    from rageval_spec.generation.duplicates import Questions
    from rageval_spec.generation.making import Corpus, Order
    from rageval_spec.generation.search import Rankings

T = TypeVar("T")

LOOKED_AT = 5
"""How many of a retriever's best chunks must not answer a question that is to have no answer."""
SUPPORTED = 1.0
"""The share of the answer's claims that the chunks must support."""


class Checker:
    """Checks questions in rounds. A question that fails a check is not asked about any further."""

    def __init__(self, order: Order, corpus: Corpus, asker: Asker, known: Questions) -> None:
        """`known` are the questions that were accepted; those that pass are added."""
        self._order = order
        self._corpus = corpus
        self._asker = asker
        self._known = known
        self._chunks = {chunk.chunk_id: chunk for chunk in corpus.chunks}

    def check(self, candidates: Sequence[Candidate], wanted: Counter[str] | None = None) -> None:
        """Check questions in the order of their slots, and reject or accept each.

        Args:
            candidates: the questions.
            wanted: how many questions of each measured difficulty may pass; the others are rejected before a model is
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
        """What the words of the question show."""
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
            one.reject("no_evidence", f"the passage does not say '{_cut(one.draft.quotes[0][1])}'")
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

        def conclude(one: Candidate, opinion: Opinion) -> None:
            if not opinion.stands_alone:
                one.reject("not_standalone", opinion.reason)
            if one.slot.kind == "unanswerable":
                if opinion.answerable:
                    one.reject("answerable", opinion.answer or opinion.reason)
            elif not opinion.answerable:
                one.reject("not_answerable", opinion.reason)

        asked = [*_left(candidates)]
        passages = [self._list_passages(one, rankings) for one in asked]
        questions = [ask_whether_answered(one.question, texts) for one, texts in zip(asked, passages, strict=True)]
        self._conclude(asked, self._asker.check(questions, CHECK_TOKENS), conclude)

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
        samples = [_build_sample(one, [self._corpus.show(chunk) for chunk in one.chunks]) for one in asked]
        self._conclude(asked, self._asker.judge(samples), conclude)

    def _ask_about_parts(self, candidates: Sequence[Candidate]) -> None:
        """Whether one chunk alone answers a question that should need several."""

        def conclude(one: Candidate, opinion: Opinion) -> None:
            if opinion.answerable:
                one.reject("one_chunk_suffices", opinion.answer or opinion.reason)

        several = [one for one in _answerable(candidates) if one.slot.kind == "multi_hop"]
        pairs = [(one, chunk) for one in several for chunk in one.chunks]
        questions = [ask_whether_answered(one.question, [self._corpus.show(chunk)]) for one, chunk in pairs]
        self._conclude([one for one, _ in pairs], self._asker.check(questions, CHECK_TOKENS), conclude)

    def _ask_without_documents(self, candidates: Sequence[Candidate]) -> None:
        """Whether the model knows the answer anyway, so that the question would not test retrieval."""

        def note(one: Candidate, answer: str) -> None:
            one.own_answer = answer

        def conclude(one: Candidate, is_same: bool) -> None:
            if is_same:
                one.reject("known", one.own_answer)

        asked = [*_answerable(candidates)]
        found = self._asker.check([ask_closed_book(one.question) for one in asked], ANSWER_TOKENS)
        for one, answer in zip(asked, found, strict=True):
            one.own_answer = "An answer that is not there yet." if answer is None else ""
        self._conclude(asked, found, note)
        known = [one for one in _answerable(candidates) if one.own_answer]
        questions = [ask_whether_same(one.question, one.answer, one.own_answer) for one in known]
        self._conclude(known, self._asker.check(questions, COMPARISON_TOKENS), conclude)

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


def _build_sample(one: Candidate, contexts: Sequence[str]) -> Sample:
    parts: dict[str, Any] = {"answer": one.answer, "contexts": tuple(contexts)}
    return Sample(one.query_id, one.question, **parts)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "..."
