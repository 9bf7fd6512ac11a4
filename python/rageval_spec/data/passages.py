"""Passages: places in documents that answer a question, and what chunks of documents are worth by them.

A golden set that names chunks is worth nothing after the documents are cut anew. One that names passages stays: which
chunks are relevant follows from where a chunk lies in its document. `PassageRelevance` derives the judgements
(`query_id, doc_id, relevance`) of a ranking of chunks, with which all ranking measures are computed as trec_eval does:

- A ranking is read from its top. The characters of a passage that a chunk contains count at the first chunk that has
  them; those that chunks above it have do not count again.
- With `at_least`, a passage is found at the first chunk at which at least this share of its characters has been seen.
  This chunk has the passage's grade as its relevance.
- Without it, coverage is graded in tenths: a chunk's relevance is the passage's grade, times the tenths of the passage
  that have been seen at this chunk, less those that were seen above it. They add up to ten times the grade.
- A chunk that finds several passages has the highest of these numbers, as a document with several passages has.
- A chunk that contains a part of a passage and adds nothing has the relevance 0: duplicates count once.
- What a ranking does not find is relevant all the same: the chunk of the corpus that adds most, then the next one. What
  no known chunk contains is an item of its own, by the passage's name, which no system can find.

Tenths, because relevance is a whole number, because a share below 5 % is an overlap rather than content, and because
measures with a gain of 2^relevance - 1 stay finite.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl

TENTHS = 10
"""Into how many steps the coverage of a passage is graded."""
DEFAULT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a document that answers a question.

    Attributes:
        document: the document's id, such as its path below a folder.
        start, end: the offsets of its characters, half open; None if it is only known by its quote.
        quote: its text; None if it is only known by its offsets.
        grade: its relevance, at least 0.
        similarity: how similar the quote is to the text at the offsets, from 0 to 1.
        occurrences: how often the quote stands in the document; the first place counts.
        place: where it is written: `golden.jsonl:12`.
    """

    document: str
    start: int | None = None
    end: int | None = None
    quote: str | None = None
    grade: int = 1
    similarity: float = 1.0
    occurrences: int = 1
    place: str = ""

    @property
    def length(self) -> int:
        """The number of its characters."""
        return len(self.quote or "") if self.start is None or self.end is None else self.end - self.start

    @property
    def name(self) -> str:
        """`guide.md[120:180]`, or `guide.md "the first words of a quote…"`."""
        if self.start is not None:
            return f"{self.document}[{self.start}:{self.end}]"
        text = " ".join((self.quote or "").split())
        return f'{self.document} "{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"}"'


_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is known of a chunk: its document and its offsets there, its text, or both. What is unknown is None."""

    document: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


def name_document(chunk: Chunk, chunk_id: str, documents: Collection[str]) -> Chunk:
    """The chunk with its document, if it does not name one and its id does: `guide.md`, `guide.md#3`."""
    named = next((one for one in (chunk_id, chunk_id.rpartition("#")[0]) if one in documents), None)
    return chunk if named is None or chunk.document is not None else replace(chunk, document=named)


class Touch(NamedTuple):
    """A part of a passage that a chunk contains: the passage's number, and offsets in the passage, half open."""

    passage: int
    start: int
    end: int


Touches = Mapping[str, Sequence[Touch]]
"""The parts of a question's passages that chunks contain, by the chunk's id; chunks without a part are left out."""
Located = Callable[[Passage, Chunk], "tuple[int, int] | None"]
"""Finds the part of a passage that a chunk contains, as offsets in the passage."""


class Coverage:
    """How much of some passages was seen. Characters count once, whatever chunk they are in."""

    def __init__(self, passages: Sequence[Passage], at_least: float | None) -> None:
        """Start with nothing seen; `at_least` is None for graded coverage."""
        self._passages, self._at_least = passages, at_least
        self._seen: list[tuple[tuple[int, int], ...]] = [()] * len(passages)
        self._credited = [0] * len(passages)

    def share(self, number: int) -> float:
        """The share of a passage's characters that was seen."""
        return _count(self._seen[number]) / self._passages[number].length

    def weigh(self, touches: Sequence[Touch]) -> tuple[int, int]:
        """What a chunk would add, without adding it: its relevance, and the number of characters."""
        relevance = added = 0
        for number, parts in _join(self._seen, touches).items():
            relevance = max(relevance, self._worth(number, _count(parts)))
            added += _count(parts) - _count(self._seen[number])
        return relevance, added

    def add(self, touches: Sequence[Touch]) -> int:
        """See a chunk; returns its relevance."""
        relevance, _ = self.weigh(touches)
        for number, parts in _join(self._seen, touches).items():
            self._credited[number] += self._steps(number, _count(parts))
            self._seen[number] = parts
        return relevance

    def list_rest(self) -> dict[str, int]:
        """What was not found of each passage, by its name."""
        rest = ((one, self._worth(number, one.length)) for number, one in enumerate(self._passages))
        return {one.name: worth for one, worth in rest if worth}

    def _steps(self, number: int, seen: int) -> int:
        """The steps of a passage's coverage that so many characters reach, less those that were reached before."""
        length = self._passages[number].length
        if self._at_least is None:
            return (2 * TENTHS * seen + length) // (2 * length) - self._credited[number]
        return int(seen / length >= self._at_least) - self._credited[number]

    def _worth(self, number: int, seen: int) -> int:
        return self._passages[number].grade * self._steps(number, seen)


def _join(
    seen: Sequence[tuple[tuple[int, int], ...]], touches: Sequence[Touch]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """The parts of each touched passage that are seen with a chunk: without overlaps, in order."""
    joined = {number: seen[number] for number, _, _ in touches}
    for number, start, end in touches:
        merged = list[tuple[int, int]]()
        for first, last in sorted((*joined[number], (start, end))):
            if merged and first <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        joined[number] = tuple(merged)
    return joined


def _count(parts: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in parts)


def judge_ranking(
    passages: Sequence[Passage], ranked: Iterable[tuple[str, Sequence[Touch]]], others: Touches, at_least: float | None
) -> dict[str, int]:
    """The relevance of chunks for one question, by their ids.

    `ranked` are the chunks of a ranking that touch a passage, best first; `others` those of the corpus. Of the chunks
    that are not ranked, only those that are needed to complete what the ranking lacks are in the result.
    """
    coverage, judged = Coverage(passages, at_least), dict[str, int]()
    for chunk_id, touches in ranked:
        judged[chunk_id] = max(judged.get(chunk_id, 0), coverage.add(touches))
    left = {chunk_id: touches for chunk_id, touches in others.items() if chunk_id not in judged}
    while left:
        best = max(left, key=lambda chunk_id: coverage.weigh(left[chunk_id]))  # the first of equals
        if coverage.weigh(left[best]) == (0, 0):
            break
        if relevance := coverage.add(left.pop(best)):
            judged[best] = relevance
    return judged | coverage.list_rest()


def _list_whole(passages: Sequence[Passage]) -> dict[str, list[Touch]]:
    """The documents that passages are in, as chunks that contain all of them."""
    found: dict[str, list[Touch]] = {one.document: [] for one in passages}
    for number, one in enumerate(passages):
        found[one.document].append(Touch(number, 0, one.length))
    return found


@dataclass(frozen=True)
class PassageRelevance:
    """The passages of a dataset's questions, and the judgements that follow from them for a ranking of chunks.

    Attributes:
        passages: those of each question, by query id; at least one each.
        corpus: the chunks of the dataset's corpus that touch a passage, by query id, those without any as well.
        locate: finds the part of a passage that another chunk contains.
        at_least: the share of a passage's characters that must be seen to find it; None for graded coverage.
        chunk_ids: the ids of all chunks of the corpus, less those that are ids of documents: a system's chunks can have
            the ids of their documents.
        judged: judgements of chunks by their ids, which the dataset has beside passages: columns `tables.QRELS`.
    """

    passages: Mapping[str, tuple[Passage, ...]]
    corpus: Mapping[str, Touches]
    locate: Located
    at_least: float | None = DEFAULT_SHARE
    chunk_ids: frozenset[str] = frozenset()
    judged: pl.DataFrame | None = field(default=None)

    @cached_property
    def documents(self) -> frozenset[str]:
        """The ids of the documents that passages are in."""
        return frozenset(one.document for found in self.passages.values() for one in found)

    def find_touches(self, query_id: str, chunks: Iterable[tuple[str, Chunk]]) -> dict[str, Sequence[Touch]]:
        """The chunks that contain a part of a question's passages; those of the corpus are known by their ids."""
        found, known = dict[str, Sequence[Touch]](), self.corpus.get(query_id, {})
        touches: Sequence[Touch]
        for chunk_id, chunk in chunks:
            if chunk.start is None and chunk_id in self.chunk_ids:
                touches = known.get(chunk_id, ())
            else:
                named = name_document(chunk, chunk_id, self.documents)
                parts = ((n, self.locate(one, named)) for n, one in enumerate(self.passages.get(query_id, ())))
                touches = [Touch(n, *part) for n, part in parts if part is not None]
            if touches:
                found[chunk_id] = touches
        return found

    def judge_corpus(self) -> pl.DataFrame:
        """The judgements without a ranking: as many chunks of the corpus as it takes to find all passages."""
        return self._tabulate(dict.fromkeys(self.passages, ()), self.corpus)

    def judge_run(self, run: pl.DataFrame) -> pl.DataFrame:
        """The judgements for a run over the corpus: `query_id, doc_id, score`. Ties are ordered as trec_eval does.

        The id of a document that a passage is in stands for all of it, unless the corpus has chunks of this id.

        Raises:
            DataError: none of its chunks is known.
        """
        known = {*self.chunk_ids, *self.documents, *(() if self.judged is None else self.judged["doc_id"])}
        if run.height and known.isdisjoint(run["doc_id"]):
            what = "a chunk of the dataset's corpus or a document that a passage is in"
            raise DataError(
                f"none of the chunks in the run is {what}, so nobody knows where they are; "
                f"the first is {run['doc_id'][0][:60]!r}; name the file of these chunks in 'corpus'"
            )
        touches = {
            query_id: {**_list_whole(found), **self.corpus[query_id]} for query_id, found in self.passages.items()
        }
        pairs = [(query_id, chunk_id) for query_id, found in touches.items() for chunk_id in found]
        schema = {"query_id": pl.String, "doc_id": pl.String}
        touching = run.join(pl.DataFrame(pairs, schema=schema, orient="row"), on=[*schema], how="semi")
        order = [pl.col("score").cast(pl.Float32), pl.col("doc_id")]
        ranked: dict[str, list[str]] = {query_id: [] for query_id in self.passages}
        for query_id, doc_id in touching.sort(order, descending=True).select("query_id", "doc_id").iter_rows():
            ranked[query_id].append(doc_id)
        return self._tabulate(ranked, touches)

    def judge_contexts(self, touches: Mapping[str, Touches]) -> pl.DataFrame:
        """The judgements for the contexts of answers, in their order, by query id."""
        ranked = {query_id: tuple(touches.get(query_id, ())) for query_id in self.passages}
        return self._tabulate(ranked, {q: {**self.corpus.get(q, {}), **touches.get(q, {})} for q in self.passages})

    def _tabulate(self, ranked: Mapping[str, Sequence[str]], known: Mapping[str, Touches]) -> pl.DataFrame:
        rows = list[tuple[str, str, int]]()
        for query_id, passages in self.passages.items():
            touches = known.get(query_id, {})
            read = ((chunk_id, touches[chunk_id]) for chunk_id in ranked[query_id])
            found = judge_ranking(passages, read, self.corpus.get(query_id, {}), self.at_least)
            rows += [(query_id, chunk_id, relevance) for chunk_id, relevance in found.items()]
        table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
        if self.judged is None:
            return table
        both = pl.concat([table, self.judged]).group_by("query_id", "doc_id", maintain_order=True)
        return both.agg(pl.col("relevance").max())

    def tabulate_passages(self) -> pl.DataFrame:
        """The passages in the place of judgements, which stay the same however the documents are cut."""
        rows = [(query_id, one.name, one.grade) for query_id, found in self.passages.items() for one in found]
        table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
        return table if self.judged is None else pl.concat([table, self.judged])
