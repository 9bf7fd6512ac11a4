"""Passages in files of questions: what the rows say, where it stands in the documents, and which chunks have it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.evidence.passages import DEFAULT_SHARE, Chunk, Passage, PassageRelevance, Touch, name_document
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.plugin import InputFile
from rageval_spec.reading.column_names import CHUNK
from rageval_spec.reading.formats.json_files import text_of
from rageval_spec.reading.formats.records import Records, qrels_table
from rageval_spec.reading.quote_search import Found, PassageFinder, PassageIndex, SearchedText, find_run, is_similar
from rageval_spec.reading.rows import split_ids
from rageval_spec.recorded.answers_and_steps import UnusableReplyError, is_missing, read_count, read_id, read_text
from rageval_spec.wording import count_noun

MOST_GRADE = 100
"""Graded coverage makes ten times as much of it, and measures raise 2 to the power of that."""
_DOCUMENT, _QUOTE = ("document", "document_id", "doc_id"), ("quote", "text")
_GRADE = ("grade", "relevance")
_LONGEST = 80
_LEAST_SHARED = 0.5
"""The least similarity of a chunk to its document. Chunks can have headers, and lack what questions were made from."""
_LEAST_HERE = 0.9
"""The least share of what a chunk has in common with its document in a row that must be at the chunk's offsets."""


class CoverageShare(BaseModel):
    """How much of a passage must be seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_least: float = Field(
        default=DEFAULT_SHARE, gt=0, le=1, description="The share of a passage's characters that finds it."
    )


Row = tuple[str, str, Mapping[str, Any]]
"""The place, the query id and the values of a row."""


def read_relevant(
    rows: Iterable[Row], names: Sequence[str], *, is_table: bool
) -> tuple[pl.DataFrame | None, dict[str, Sequence[Passage]]]:
    """What rows call relevant: documents by their ids, as qrels, and passages by query id.

    The first of `names` that a row has is the column; of a table, its cells hold lists as text. None without ids.

    Raises:
        DataError: a passage or an id is wrong, a grade is no integer, or a document is judged twice for a query.
    """
    key, places, judgements = None, list[str](), list[tuple[str, str, str]]()
    passages: dict[str, Sequence[Passage]] = {}
    for place, query_id, row in rows:
        key = key or next((name for name in names if name in row), None)
        value = row.get(key) if key else None
        listed = split_ids(place, "the list of relevant documents", value) if is_table else value
        ids, found = split_relevant(place, listed)
        passages |= {query_id: found} if found else {}
        for doc_id, grade in _judgements(place, ids):
            places.append(place)
            judgements.append((query_id, doc_id, grade))
    if not judgements:
        return None, passages
    names = ("query_id", "doc_id", "relevance")
    frame = pl.DataFrame(judgements, schema=dict.fromkeys(names, pl.String), orient="row")
    return qrels_table(Records(frame, lambda index: places[index])), passages


def _judgements(place: str, value: object) -> Iterator[tuple[str, str]]:
    """The document and grade, as text, of each relevant document of a row."""
    listed = value if isinstance(value, list | dict) else [] if value is None else [value]
    for document in listed:
        grade = json.dumps(listed[document]) if isinstance(listed, dict) else "1"
        yield text_of(place, "the id of a relevant document", "id", document) or "", grade


def is_passage(value: Any) -> bool:
    """Whether a value of `relevant` is a passage, and not a map of ids to grades."""
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in (*_DOCUMENT, "quote"))


def split_relevant(place: str, value: Any) -> tuple[Any, list[Passage]]:
    """What a row calls relevant: ids, as they are in the row, and passages. Raises DataError: a passage is wrong."""
    if is_passage(value):
        return None, [_read_passage(place, "the relevant passage", value)]
    if not isinstance(value, list):
        return value, []
    found = list[Passage]()
    for number, one in enumerate(value):
        if isinstance(one, Mapping):
            found.append(_read_passage(place, f"relevant[{number}]", one))
            if any(replace(found[-1], grade=other.grade) == other for other in found[:-1]):
                raise DataError(f"{place}: relevant[{number}], the passage {found[-1].name}, is listed twice")
    return [one for one in value if not isinstance(one, Mapping)], found


def _read_passage(place: str, what: str, value: Mapping[str, Any]) -> Passage:
    document, quote, grade = (
        next((value[name] for name in names if not is_missing(value.get(name))), None)
        for names in (_DOCUMENT, _QUOTE, _GRADE)
    )
    try:
        if document is None:
            raise UnusableReplyError(f"{what} names no document; write {{document: guide.md, quote: ...}}")
        start, end = (
            None if is_missing(value.get(key)) else read_count(value[key], f"{what}.{key}") for key in ("start", "end")
        )
        text = None if quote is None else read_text(quote, f"{what}.quote")
        if (start is None) != (end is None) or (text is None and start is None):
            raise UnusableReplyError(f"{what} needs a quote, or both 'start' and 'end'")
        if start is not None and end is not None and end <= start:
            raise UnusableReplyError(f"{what} is empty: its end, {end}, is not after its start, {start}")
        if text is not None and not text.strip():
            raise UnusableReplyError(f"{what}.quote is empty")
        weight = 1 if grade is None else read_count(grade, f"{what}.grade")
        if not 1 <= weight <= MOST_GRADE:
            raise UnusableReplyError(f"{what}.grade must be from 1 to {MOST_GRADE}, not {weight}")
        return Passage(read_id(document, f"{what}.document"), start, end, text, weight, place=place)
    except UnusableReplyError as error:
        raise DataError(f"{place}: {error}") from error


def list_originals(path: Path) -> Sequence[InputFile]:
    """The files of `documents`; the folder itself if it is missing or has none."""
    from rageval_spec.generation.documents import list_files

    found = [InputFile(file, ("documents",)) for file in list_files(path)]
    return found or [InputFile(path, ("documents",), kind="folder")]


def _keep_highest(passages: Iterable[Passage]) -> list[Passage]:
    """Each place once, with the highest of its grades."""
    kept: dict[tuple[object, ...], Passage] = {}
    for one in passages:
        key = (one.document, one.start, one.end, one.quote if one.start is None else None)
        if key not in kept or kept[key].grade < one.grade:
            kept[key] = one
    return [*kept.values()]


@dataclass(frozen=True)
class PassageSources:
    """The files that passages are looked up in.

    Attributes:
        documents: the folder or the file of the documents; None if the dataset names none.
        read_corpus: gives the records of the corpus from the start, with the columns `CHUNK`; None without a corpus.
        at_least: the share of a passage's characters that must be seen to find it; None for graded coverage.
    """

    documents: Path | None
    read_corpus: Callable[[], Iterator[Records]] | None
    at_least: float | None = field(default=DEFAULT_SHARE)

    def relate(self, passages: Mapping[str, Sequence[Passage]], judged: pl.DataFrame | None = None) -> PassageRelevance:
        """Find the passages in the documents, and the chunks of the corpus that touch them.

        Raises:
            DataError: a document, or a quote in it, cannot be found, and the message shows the nearest place; a chunk
                of such a document stands elsewhere than its offsets say, or most say something else than what is
                there; or no chunk has anything of a passage, and its document is not known or is named otherwise.
        """
        wanted = {one.document for found in passages.values() for one in found}
        texts = {name: SearchedText(text) for name, text in self._read_documents(wanted).items()}
        settled = {
            query_id: _keep_highest(self._settle(one, texts) for one in found) for query_id, found in passages.items()
        }
        finder, chunk_ids, named = PassageFinder(texts), set[str](), set[str]()
        misplaced, placed = list[str](), 0
        index, bare = PassageIndex(settled, finder), PassageRelevance(settled, {}, finder.locate)
        touches: dict[str, dict[str, Sequence[Touch]]] = {query_id: {} for query_id in settled}
        for chunk_id, chunk in self._list_chunks(wanted):
            chunk_ids.add(chunk_id)
            named.update(filter(None, [chunk.document]))
            found = {
                query_id: bare.find_touches(query_id, [(chunk_id, chunk)]) for query_id in index.list_candidates(chunk)
            }
            for query_id, touched in found.items():
                touches[query_id] |= touched
            if chunk.start is not None and chunk.text and chunk.document in wanted & texts.keys():
                placed += 1
                misplaced += _check_place(chunk_id, chunk, texts[chunk.document])
        if 2 * len(misplaced) > placed:
            raise DataError(f"{misplaced[0]}; so it is for {len(misplaced):,} of {count_noun(placed, 'chunk')}")
        if chunk_ids:
            _check_found(settled, touches, texts, sorted(named))
        return PassageRelevance(settled, touches, finder.locate, self.at_least, frozenset(chunk_ids - wanted), judged)

    def _read_documents(self, wanted: set[str]) -> dict[str, str]:
        """The texts of documents by id: those of `documents`, or else whole documents of the corpus."""
        if self.documents is not None:
            from rageval_spec.generation.documents import read_documents

            return {one.doc_id: one.text for one in read_documents(self.documents).documents}
        found: dict[str, str] = {}
        for records in () if self.read_corpus is None else self.read_corpus():
            whole = records.frame.filter(pl.col("doc_id").is_in([*wanted]) & pl.col("document_id").is_null())
            found |= dict(whole.select("doc_id", pl.col("text").fill_null("")).iter_rows())
        return found

    def _settle(self, one: Passage, texts: Mapping[str, SearchedText]) -> Passage:
        """A passage with the offsets that it has in its document, if that is known."""
        document = texts.get(one.document)
        if document is None and self.documents is not None:
            hint = (
                suggest(one.document, [*texts])
                or f"it has {count_noun(len(texts), 'document')}, such as {min(texts)!r}"
            )
            raise DataError(f"{one.place}: there is no document {one.document!r} in {self.documents}; {hint}")
        quote, there = one.quote, "" if document is None or one.start is None else document.text[one.start : one.end]
        if document is None and quote is not None and one.length != len(quote):
            sizes = f"the quote has {len(quote)} characters, and 'start' and 'end' are {one.length} apart"
            raise DataError(f"{one.place}: {sizes}; correct them, or name the documents in 'documents'")
        if document is not None and quote is None and len(there) < one.length:
            size = f"{one.document} has {len(document.text):,} characters"
            raise DataError(f"{one.place}: the passage {one.name} does not exist: {size}")
        if document is None or quote is None or (there and SearchedText(there).letters == SearchedText(quote).letters):
            return one
        found = document.find(quote, one.start)
        if found is None or not is_similar(quote, found):
            raise DataError(_explain_absent(one, document, found))
        start, end, similarity, occurrences = found
        return replace(one, start=start, end=end, similarity=similarity, occurrences=occurrences)

    def _list_chunks(self, documents: set[str]) -> Iterator[tuple[str, Chunk]]:
        for records in () if self.read_corpus is None else self.read_corpus():
            for row, values in enumerate(records.frame.select(column.name for column in CHUNK).iter_rows()):
                if (chunk_id := values[0]) is not None:  # that is refused where the corpus is read
                    yield chunk_id, name_document(_read_chunk(records.locate(row), *values[1:]), chunk_id, documents)


def _explain_absent(one: Passage, document: SearchedText, nearest: Found | None) -> str:
    message = f"{one.place}: the quote {_show(one.quote or '')} is not in {one.document!r}"
    if nearest is None:
        return f"{message}; quote words that stand there"
    start, end, similarity, _ = nearest
    told = f"characters {start:,} to {end:,} (similarity {similarity:.2f}): {_show(document.text[start:end])}"
    return f"{message}; the nearest place is {told}; correct the quote, or give 'start' and 'end'"


def _check_place(chunk_id: str, chunk: Chunk, document: SearchedText) -> Iterator[str]:
    """What is wrong with the offsets of a chunk, if its text has nothing to do with what is there.

    Raises:
        DataError: its text stands elsewhere in the document.
    """
    from rapidfuzz.distance import Indel

    there, said = document.text[chunk.start : chunk.end], chunk.text or ""
    if there == said:
        return
    known, given = SearchedText(there).letters, SearchedText(said).letters
    if known in given and 2 * len(known) >= len(given):
        return
    here, best = find_run(given, known), find_run(given, document.letters, 8)
    is_elsewhere = best.length >= len(given) / 2 and (
        here.length < _LEAST_HERE * best.length or (chunk.end or 0) - (chunk.start or 0) > 2 * len(said)
    )
    if not is_elsewhere and Indel.normalized_similarity(known, given) >= _LEAST_SHARED:
        return
    start, end = document.unfold(best.there, best.there + best.length) if is_elsewhere else (0, 0)
    found = f", and its text is at {start:,} to {end:,}" if is_elsewhere else ""
    place = f"characters {chunk.start:,} to {chunk.end:,} of {chunk.document!r} are {_show(there)}{found}"
    told = f"the chunk {chunk_id!r} is {_show(said)}, but {place}; count characters as 'documents' has them"
    if is_elsewhere:
        raise DataError(told)
    yield told


def _check_found(
    settled: Mapping[str, Sequence[Passage]],
    touches: Mapping[str, Mapping[str, Sequence[Touch]]],
    texts: Mapping[str, SearchedText],
    named: Sequence[str],
) -> None:
    """Refuse passages of which no chunk has anything, where that looks like a mistake in a name or a quote."""
    found = {(query_id, one.passage) for query_id, of in touches.items() for each in of.values() for one in each}
    for one in (one for query_id, of in settled.items() for n, one in enumerate(of) if (query_id, n) not in found):
        if one.document not in named and (hint := suggest(one.document, named)):
            what = f"no chunk names the document {one.document!r}; {hint} Chunks and passages must name documents alike"
        elif one.document not in texts and one.start is None:
            what = f"no chunk has anything of the passage {one.name}; correct the quote, or name 'documents'"
        elif not found:
            others = f"the chunks are of documents such as {named[0]!r}" if named else "the chunks name no documents"
            what = f"no chunk has anything of any passage, and all values would be 0: {others}"
        else:
            continue
        raise DataError(f"{one.place}: {what}")


def _show(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…")


def _read_chunk(place: str, text: str | None, document: str | None, start: Any, end: Any) -> Chunk:
    """A chunk of a corpus. Raises DataError: its offsets are no offsets."""
    if is_missing(start):
        return Chunk(document, text=text)
    try:
        first = read_count(start, "'start'")
        last = first + len(text or "") if is_missing(end) else read_count(end, "'end'")
    except UnusableReplyError as error:
        raise DataError(f"{place}: {error}") from error
    if last < first:
        raise DataError(f"{place}: the chunk ends at {last}, before its start at {first}")
    return Chunk(document, first, last, text)
