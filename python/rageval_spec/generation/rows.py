"""The rows of a test set, as a JSON Lines file that the dataset `jsonl` reads without any mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rageval_spec.generation.candidates import Candidate
    from rageval_spec.generation.chunks import Chunk
    from rageval_spec.generation.documents import Document

Row = dict[str, Any]
COLUMNS = (
    "relevant_documents",
    "evidence",
    "type",
    "kind",
    "difficulty",
    "asked_difficulty",
    "style",
    "language",
    "ranks",
    "sources",
    "made",
)
"""The keys of a row that are no part of every dataset: its question's other columns."""


@dataclass(frozen=True)
class Origin:
    """How a test set was made.

    Attributes:
        documents: the documents by id.
        made: what every row says about it: the program, the models, the prompts, the seed.
    """

    documents: Mapping[str, Document]
    made: Mapping[str, Any]


def write_row(one: Candidate, origin: Origin) -> Row:
    """The row of an accepted question. Values that it cannot have are None."""
    is_answerable = one.slot.kind != "unanswerable"
    chunks = one.chunks if is_answerable else ()
    return {
        "query_id": one.query_id,
        "question": one.question,
        "reference": one.answer if is_answerable else None,
        "answerable": is_answerable,
        "relevant": [chunk.chunk_id for chunk in chunks],
        "relevant_documents": list(dict.fromkeys(chunk.doc_id for chunk in chunks)),
        "reference_contexts": [chunk.text for chunk in chunks],
        "evidence": list(_write_evidence(one)),
        "type": one.slot.type,
        "kind": one.slot.kind,
        "difficulty": one.difficulty,
        "asked_difficulty": one.slot.difficulty,
        "style": one.slot.style,
        "language": one.language or None,
        "ranks": dict(one.ranks),
        "sources": list(_write_sources(one.chunks, origin.documents)),
        "made": {**origin.made, "slot": one.slot.number, "attempt": one.attempt + 1},
    }


def write_rejected(one: Candidate) -> Row:
    """The row of a rejected question: why, and what is known of it."""
    draft = one.draft
    return {
        "reason": one.reason,
        "detail": one.detail,
        "question": one.question or None,
        "reference": one.answer or None,
        "quotes": [quote for _, quote in draft.quotes] if draft else [],
        "chunks": [chunk.chunk_id for chunk in one.chunks],
        "type": one.slot.type,
        "kind": one.slot.kind,
        "asked_difficulty": one.slot.difficulty,
        "style": one.slot.style,
        "language": one.language or None,
        "ranks": dict(one.ranks),
        "slot": one.slot.number,
        "attempt": one.attempt + 1,
        "reply": one.raw,
    }


def write_chunk(chunk: Chunk, document: Document) -> Row:
    """A chunk as a row of a corpus, with its place in its document."""
    return {
        "doc_id": chunk.chunk_id,
        "title": write_title(chunk, document),
        "text": chunk.text,
        "document": chunk.doc_id,
        "start": chunk.start,
        "end": chunk.end,
    } | ({} if chunk.page is None else {"page": chunk.page})


def write_title(chunk: Chunk, document: Document) -> str:
    """The title of a chunk: that of its document, with the headings that it stands under."""
    return " > ".join(dict.fromkeys(line for line in (document.title, *chunk.headings) if line.strip()))


def _write_evidence(one: Candidate) -> Iterator[Row]:
    """Each quote with its offsets in the chunk and in the document: `text[start:end] == quote`."""
    for place, start, end in one.spans:
        chunk = one.chunks[place]
        yield {
            "quote": chunk.text[start:end],
            "chunk": chunk.chunk_id,
            "start": start,
            "end": end,
            "document": chunk.doc_id,
            "document_start": chunk.start + start,
            "document_end": chunk.start + end,
        }


def _write_sources(chunks: Sequence[Chunk], documents: Mapping[str, Document]) -> Iterator[Row]:
    for doc_id in dict.fromkeys(chunk.doc_id for chunk in chunks):
        document = documents[doc_id]
        yield {"document": doc_id, "title": document.title, "version": document.version}
