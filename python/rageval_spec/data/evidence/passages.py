"""Passages: places in documents that answer a question, and what chunks of documents are worth by them.

A ranking of chunks is read from its top. A character of a passage counts at the first chunk that has it, and not again.
With `at_least`, the chunk at which that share of a passage's characters has been seen has the passage's grade as its
relevance; otherwise coverage is graded, and a chunk has the grade times the tenths of the passage that it adds. Of
several passages, the highest number counts. What a ranking lacks is relevant all the same: in the chunks of the corpus
that add most, and by the passage's name where no known chunk has it. docs/passages.md explains these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl

TENTHS = 10
"""The steps of graded coverage. Relevance is a whole number; less than 5 % of a passage is an overlap rather than
content; and measures with a gain of 2^relevance - 1 stay finite."""
DEFAULT_SHARE = 0.5
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Passage:
    """A place in a document that answers a question.

    Attributes:
        document: the document's id, such as its path below a folder.
        start, end: the offsets of its characters, half open; None if it is only known by its quote.
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


class Coverage:
    """How much of some passages was seen. Characters count once, whatever chunk they are in."""

    def __init__(self, passages: Sequence[Passage], at_least: float | None) -> None:
        """Start with nothing seen; `at_least` is None for graded coverage."""
        self._passages, self._at_least = passages, at_least
        self._seen, self._credited = [0] * len(passages), [0] * len(passages)  # a bit for each character

    def share(self, number: int) -> float:
        """The share of a passage's characters that was seen."""
        return self._seen[number].bit_count() / self._passages[number].length

    def weigh(self, touches: Sequence[Touch]) -> tuple[int, int]:
        """What a chunk would add, without adding it: its relevance, and the number of characters."""
        joined = self._join(touches).items()
        added = sum(seen.bit_count() - self._seen[number].bit_count() for number, seen in joined)
        return max((self._worth(number, seen.bit_count()) for number, seen in joined), default=0), added

    def add(self, touches: Sequence[Touch]) -> int:
        """See a chunk; returns its relevance."""
        relevance, _ = self.weigh(touches)
        for number, seen in self._join(touches).items():
            self._credited[number], self._seen[number] = self._steps(number, seen.bit_count()), seen
        return relevance

    def list_rest(self) -> dict[str, int]:
        """What was not found of each passage, by its name."""
        rest = ((one.name, self._worth(number, one.length)) for number, one in enumerate(self._passages))
        return {name: worth for name, worth in rest if worth}

    def _join(self, touches: Sequence[Touch]) -> dict[int, int]:
        joined = {number: self._seen[number] for number, _, _ in touches}
        for number, start, end in touches:
            joined[number] |= ((1 << (end - start)) - 1) << start
        return joined

    def _steps(self, number: int, seen: int) -> int:
        """The steps of a passage's coverage that so many characters reach."""
        length = self._passages[number].length
        if self._at_least is None:
            return (2 * TENTHS * seen + length) // (2 * length)
        return int(seen / length >= self._at_least)

    def _worth(self, number: int, seen: int) -> int:
        return self._passages[number].grade * (self._steps(number, seen) - self._credited[number])


def judge_ranking(
    passages: Sequence[Passage], ranked: Iterable[tuple[str, Sequence[Touch]]], others: Touches, at_least: float | None
) -> dict[str, int]:
    """The relevance of chunks for one question, by their ids.

    `ranked` are the chunks of a ranking that touch a passage, best first; `others` those of the corpus, of which the
    result has only those that complete what the ranking lacks.
    """
    coverage, judged = Coverage(passages, at_least), dict[str, int]()
    for chunk_id, touches in ranked:
        judged[chunk_id] = coverage.add(touches)
    left = {chunk_id: touches for chunk_id, touches in others.items() if chunk_id not in judged}
    while left:
        best = max(left, key=lambda chunk_id: coverage.weigh(left[chunk_id]))  # the first of equals
        if coverage.weigh(left[best]) == (0, 0):
            break
        if relevance := coverage.add(left.pop(best)):
            judged[best] = relevance
    return judged | coverage.list_rest()


@dataclass(frozen=True)
class PassageRelevance:
    """The passages of a dataset's questions, and the judgements that follow from them: columns `tables.QRELS`.

    Attributes:
        passages: those of each question, by query id; at least one each.
        corpus: the chunks of the dataset's corpus that touch a passage, by query id, those without any as well.
        locate: finds the part of a passage that a chunk contains, as offsets in the passage.
        at_least: the share of a passage's characters that must be seen to find it; None for graded coverage.
        chunk_ids: the ids of the chunks of the corpus, less those of documents, which chunks of a system can have too.
        judged: judgements of chunks by their ids, which the dataset has beside passages.
    """

    passages: Mapping[str, Sequence[Passage]]
    corpus: Mapping[str, Touches]
    locate: Callable[[Passage, Chunk], tuple[int, int] | None]
    at_least: float | None = DEFAULT_SHARE
    chunk_ids: frozenset[str] = frozenset()
    judged: pl.DataFrame | None = field(default=None)

    @cached_property
    def documents(self) -> frozenset[str]:
        """The ids of the documents that passages are in."""
        return frozenset(one.document for found in self.passages.values() for one in found)

    def find_touches(self, query_id: str, chunks: Iterable[tuple[str, Chunk]]) -> dict[str, Sequence[Touch]]:
        """The chunks that contain a part of a question's passages; those of the corpus are known by their ids."""
        found = dict[str, Sequence[Touch]]()
        for chunk_id, chunk in chunks:
            if chunk.start is None and (chunk.text is None or chunk_id in self.chunk_ids):
                found[chunk_id] = self._list_known(query_id).get(chunk_id, ())
                continue
            named = name_document(chunk, chunk_id, self.documents)
            parts = ((n, self.locate(one, named)) for n, one in enumerate(self.passages.get(query_id, ())))
            found[chunk_id] = [Touch(n, *part) for n, part in parts if part is not None]
        return {chunk_id: touches for chunk_id, touches in found.items() if touches}

    def judge(self, ranked: Mapping[str, Touches] | None = None) -> pl.DataFrame:
        """The judgements for the chunks of rankings, best first, by query id, and for what these lack.

        Without rankings, they are of as many chunks of the corpus as it takes to find all passages.
        """
        rows = list[tuple[str, str, int]]()
        for query_id, passages in self.passages.items():
            read = (ranked or {}).get(query_id, {}).items()
            found = judge_ranking(passages, read, self.corpus[query_id], self.at_least)
            rows += [(query_id, chunk_id, relevance) for chunk_id, relevance in found.items()]
        return self._tabulate(rows)

    def judge_run(self, run: pl.DataFrame) -> pl.DataFrame:
        """The judgements for a run over the corpus: `query_id, doc_id, score`. Ties are ordered as trec_eval does.

        The id of a document that a passage is in stands for all of it, unless the corpus has a chunk of this id.

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
        touches = {query_id: self._list_known(query_id) for query_id in self.passages}
        pairs = [(query_id, chunk_id) for query_id, found in touches.items() for chunk_id in found]
        wanted = pl.DataFrame(pairs, {"query_id": pl.String, "doc_id": pl.String}, orient="row")
        best_first = [pl.col("score").cast(pl.Float32), pl.col("doc_id")]
        touching = run.join(wanted, on=wanted.columns, how="semi").sort(best_first, descending=True)
        ranked: dict[str, dict[str, Sequence[Touch]]] = {query_id: {} for query_id in self.passages}
        for query_id, doc_id in touching.select(wanted.columns).iter_rows():
            ranked[query_id][doc_id] = touches[query_id][doc_id]
        return self.judge(ranked)

    def tabulate_passages(self) -> pl.DataFrame:
        """The passages in the place of judgements, which stay the same however the documents are cut."""
        rows = ((query_id, one.name, one.grade) for query_id, found in self.passages.items() for one in found)
        return self._tabulate(rows)

    def _list_known(self, query_id: str) -> Touches:
        """The chunks of the corpus that touch a question's passages, and whole documents that it has no chunk for."""
        found: dict[str, list[Touch]] = {}
        for number, one in enumerate(self.passages.get(query_id, ())):
            found.setdefault(one.document, []).append(Touch(number, 0, one.length))
        return {**found, **self.corpus.get(query_id, {})}

    def _tabulate(self, rows: Iterable[tuple[str, str, int]]) -> pl.DataFrame:
        table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
        both = table if self.judged is None else pl.concat([table, self.judged])
        return both.group_by("query_id", "doc_id", maintain_order=True).agg(pl.col("relevance").max())
