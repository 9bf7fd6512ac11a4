"""Finds quotes in documents, and the parts of passages that chunks contain.

A quote is looked for as it is; then without case, accents, white space and punctuation; then with small edits, as the
place with the highest similarity of rapidfuzz: 1 - insertions and deletions / letters and digits of both. The ends of
this place can be off by a few characters.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from rageval_spec.data.evidence.passages import Chunk, Passage
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later

SIMILAR = 0.8
"""The least similarity of a quote to a place in its document. Texts about other things stay below 0.6."""
FEWEST_LETTERS = 20
"""A quote with fewer letters and digits must stand in its document as it is, but for case and punctuation."""
_WORD = compile_later(r"[^\W_]+")
_JOINT = compile_later(r"[^\W_]{2}")
_ALIGNED = 500
"""The most letters and digits that are compared with every place of a document, which takes time by their square."""
_LEAST_PART = 12
"""The fewest letters and digits by which a part of a text is recognised."""
_MOST_PLACES = 10
"""The places at which such a part is compared further, where a text repeats it."""


class Found(NamedTuple):
    """A place in a document, half open, and its similarity to a quote; how often exactly this text stands there."""

    start: int
    end: int
    similarity: float = 1.0
    occurrences: int = 1


class SearchedText:
    """A text, and what is left of it without case, accents, white space and punctuation."""

    def __init__(self, text: str) -> None:
        """Take the text; it is folded when that is first needed."""
        self.text = text

    @cached_property
    def _fold(self) -> tuple[str, array[int]]:
        parts, offsets = list[str](), array("Q")
        for word in _WORD.finditer(self.text):
            if word[0].isascii():
                parts.append(word[0].lower())
                offsets.extend(range(word.start(), word.end()))
                continue
            for place, letter in enumerate(word[0], word.start()):
                folded = _fold_letter(letter)
                parts.append(folded)
                offsets.extend([place] * len(folded))
        return "".join(parts), offsets

    @property
    def letters(self) -> str:
        """Its letters and digits in lower case."""
        return self._fold[0]

    def unfold(self, first: int, last: int, *, widely: bool = False) -> tuple[int, int]:
        """The offsets in the text of some of its letters, half open; `widely` with what is between them and others."""
        offsets = self._fold[1]
        if not widely:
            return offsets[first], offsets[last - 1] + 1
        start = offsets[first - 1] + 1 if first else 0
        return start, offsets[last] if last < len(offsets) else len(self.text)

    def find(self, quote: str, near: int | None = None) -> Found | None:
        """The place that is most similar to a quote, however little it is; None if there is none.

        Of several places with exactly this text, those count where it is not a part of longer words, and of these the
        first, or that which begins nearest to an offset.
        """
        if not (places := [(at, at + len(quote)) for at in _list_starts(quote, self.text)]):
            wanted = SearchedText(quote).letters
            starts = _list_starts(wanted, self.letters) if wanted else ()
            if not (places := [self.unfold(at, at + len(wanted)) for at in starts]):
                return self._find_similar(wanted)
        places = [one for one in places if self._is_whole(*one)] or places
        start, end = places[0] if near is None else min(places, key=lambda place: abs(place[0] - near))
        return Found(start, end, occurrences=len(places) if near is None else 1)

    def _is_whole(self, start: int, end: int) -> bool:
        return not any(0 < at < len(self.text) and _JOINT.match(self.text, at - 1) for at in (start, end))

    def _find_similar(self, wanted: str) -> Found | None:
        """The most similar place; that of a long text is where its beginning is, up to its end."""
        from rapidfuzz.distance import Indel
        from rapidfuzz.fuzz import partial_ratio_alignment

        first = partial_ratio_alignment(wanted[:_ALIGNED], self.letters)
        last = partial_ratio_alignment(wanted[-_ALIGNED:], self.letters)
        if not wanted or not self.letters or first is None or last is None:
            return None
        start, end = first.dest_start, last.dest_end
        if not 0 < end - start < 2 * len(wanted):
            end = start + len(wanted)
        place = self.letters[start:end]
        return Found(*self.unfold(start, start + len(place)), Indel.normalized_similarity(wanted, place))


@lru_cache(maxsize=65_536)
def _fold_letter(letter: str) -> str:
    parts = unicodedata.normalize("NFKD", letter.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one))


def is_similar(quote: str, found: Found | None) -> bool:
    """Whether a place says what a quote says."""
    if found is None or found.similarity < SIMILAR:
        return False
    return found.similarity == 1 or len(SearchedText(quote).letters) >= FEWEST_LETTERS


class PassageFinder:
    """Finds the part of a passage that a chunk contains.

    A chunk with offsets is where it says. One without is looked for in the document, and if it is not there, because
    it has a header of its own, or because the document is not known, the passage is looked for in the chunk.
    """

    def __init__(self, documents: Mapping[str, SearchedText]) -> None:
        """Take the documents by id, as far as they are known."""
        self._documents = documents
        self._chunks = lru_cache(maxsize=64)(SearchedText)
        self._quotes = lru_cache(maxsize=4096)(SearchedText)
        self._find_run = lru_cache(maxsize=64)(lambda wanted, document: find_run(wanted, document.letters, 8))

    def locate(self, passage: Passage, chunk: Chunk) -> tuple[int, int] | None:
        """The part, as offsets in the passage; None if the chunk contains nothing of it."""
        if chunk.document is not None and chunk.document != passage.document:
            return None
        if passage.start is not None and (spans := [*self._list_spans(passage, chunk)]):
            parts = [(max(start, passage.start), min(end, passage.start + passage.length)) for start, end in spans]
            first, last = max(parts, key=lambda part: part[1] - part[0])
            return (first - passage.start, last - passage.start) if first < last else None
        if (quote := self.quote(passage)) is None:
            what = "a chunk without 'document_id', 'start' and 'end' cannot be compared with offsets in it"
            message = f"{passage.place}: the text of {passage.document!r} is not known, and {what}"
            raise DataError(f"{message}; name the documents in 'documents', or write the passage as a quote")
        return _find_part(self._quotes(quote), self._chunks(chunk.text)) if chunk.text else None

    def quote(self, passage: Passage) -> str | None:
        """The text of a passage, as its document has it; None if it is not known."""
        document = self._documents.get(passage.document)
        if document is None or passage.start is None:
            return passage.quote
        return document.text[passage.start : passage.end]

    def _list_spans(self, passage: Passage, chunk: Chunk) -> Iterator[tuple[int, int]]:
        """Where a chunk is in the passage's document; a text that repeats can be in several places."""
        if chunk.document is not None and chunk.start is not None and chunk.end is not None:
            yield chunk.start, chunk.end
            return
        document = self._documents.get(passage.document)
        if document is None or not chunk.text:
            return
        wanted = self._chunks(chunk.text).letters
        if len(wanted) < _LEAST_PART:
            return
        if starts := [*_list_starts(wanted, document.letters)]:
            yield from (document.unfold(at, at + len(wanted), widely=True) for at in starts)
        elif (run := self._find_run(wanted, document)).length >= max(2 * _LEAST_PART, len(wanted) / 2):
            yield document.unfold(run.there, run.there + run.length, widely=True)  # without its own header or footer


def _find_part(quote: SearchedText, chunk: SearchedText) -> tuple[int, int] | None:
    """The part of a quote that stands in a chunk: all of it, or its longest run of letters and digits that does.

    A run shorter than 24 must reach an end of both.
    """
    wanted, given = quote.letters, chunk.letters
    if not wanted:
        return (0, len(quote.text)) if quote.text in chunk.text else None
    if wanted in given:
        return 0, len(quote.text)
    at, there, length = find_run(wanted, given)
    ends = at * there == 0 and (at + length == len(wanted) or there + length == len(given))
    if length < _LEAST_PART or (length < 2 * _LEAST_PART and not ends):
        return None
    return quote.unfold(at, at + length, widely=True)


class Run(NamedTuple):
    """Letters and digits that two texts share in a row: where in the one, where in the other, and how many."""

    at: int
    there: int
    length: int


def find_run(text: str, other: str, most: int = 64) -> Run:
    """The longest run of one text in another, of those that hold one of `most` parts of 12, the ends among them."""
    best, last = Run(0, 0, 0), len(text) - _LEAST_PART
    for at in sorted({last * number // (most - 1) for number in range(most)}) if last >= 0 else ():
        for there in islice(_list_starts(text[at : at + _LEAST_PART], other), _MOST_PLACES):
            after = _count_equal(text[at:], other[there : there + len(text) - at])
            before = _count_equal(text[:at][::-1], other[max(0, there - at) : there][::-1])
            best = max(best, Run(at - before, there - before, before + after), key=lambda one: one.length)
    return best


def _list_starts(wanted: str, text: str) -> Iterator[int]:
    """Where a text begins in another, without overlaps."""
    return (one.start() for one in re.finditer(re.escape(wanted), text))


def _count_equal(one: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


class PassageIndex:
    """Passages by what tells that a chunk may touch them: its document, or 12 letters and digits that both have.

    A chunk whose document is not known and which shares fewer than 24 in a row with a passage can go unnoticed.
    """

    def __init__(self, passages: Mapping[str, Sequence[Passage]], finder: PassageFinder) -> None:
        """Take passages by query id."""
        self._by_document: dict[str, set[str]] = defaultdict(set)
        self._by_letters: dict[str, set[str]] = defaultdict(set)
        self._short = set[str]()
        for query_id, passage in ((query_id, one) for query_id, found in passages.items() for one in found):
            self._by_document[passage.document].add(query_id)
            letters = SearchedText(finder.quote(passage) or "").letters
            if len(letters) < 2 * _LEAST_PART:
                self._short.add(query_id)
            for at in range(len(letters) - _LEAST_PART + 1):
                self._by_letters[letters[at : at + _LEAST_PART]].add(query_id)

    def list_candidates(self, chunk: Chunk) -> Sequence[str]:
        """The ids of the queries with a passage that a chunk may touch, sorted."""
        if chunk.document is not None:
            return sorted(self._by_document.get(chunk.document, ()))
        letters = SearchedText(chunk.text or "").letters
        parts = {letters[at : at + _LEAST_PART] for at in range(0, len(letters), _LEAST_PART)}
        return sorted(self._short.union(*(self._by_letters[part] for part in parts & self._by_letters.keys())))
