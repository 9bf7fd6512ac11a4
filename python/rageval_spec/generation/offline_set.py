"""A test set made without a model, as rows of files: questions, the corpus to search, and what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec import __version__
from rageval_spec.generation import offline_questions
from rageval_spec.generation.chunks import WORDS, Chunk, cut_documents, name_question
from rageval_spec.generation.documents import DocumentSet, SourceDocument
from rageval_spec.generation.question_sets import SplitUnit, divide_rows, read_shares, write_quote, write_sources
from rageval_spec.judging.language import find_language
from rageval_spec.wording import count_noun

Row = dict[str, Any]
MADE_BY = "no-model"
EASY, HARD = 0.6, 0.3
"""The share of a question's telling words in the rest of its source from which on it is easy, and below which hard."""
_ASKED = frozenset({"paragraph", "list"})


class OfflineSet(NamedTuple):
    """A test set: its questions, as the dataset `jsonl` reads them, the corpus without what they were made from, the
    questions that were dropped, and sentences about what could not be as wanted.
    """

    rows: list[Row]
    corpus: list[Row]
    rejected: list[Row]
    remarks: tuple[str, ...]


class _Part(NamedTuple):
    """A unit, the document that it belongs to, and its place in it."""

    unit: offline_questions.Unit
    document: SourceDocument
    chunk: Chunk


def make_offline_set(
    documents: DocumentSet,
    count: int,
    *,
    seed: int = 13,
    shares: Mapping[offline_questions.Form, float] = offline_questions.SHARES,
    split: str | None = None,
    split_by: SplitUnit = "document",
    size: int = WORDS,
) -> OfflineSet:
    """Make a test set of at most `count` questions over documents without any model.

    Documents of a corpus are what its retrievers find, so they stay whole and keep their ids. Files are cut into chunks
    of at most `size` words. `split` is the shares of validation and test, such as `30:70`.
    """
    if split is not None:
        read_shares(split)
    parts = _list_parts(documents, size)
    made = offline_questions.make_questions([part.unit for part in parts], count, seed=seed, shares=shares)
    rows = [_write_row(question, parts, seed) for question in made.questions]
    remarks = [*_remark_on_count(len(rows), count, made)]
    if split is not None:
        rows, unmet = divide_rows(rows, split, split_by)
        remarks += unmet
    return OfflineSet(rows, list(_write_corpus(parts, made)), list(_write_rejected(parts, made)), tuple(remarks))


def _list_parts(documents: DocumentSet, size: int) -> list[_Part]:
    if documents.kind == "corpus":
        whole = ((one, Chunk(one.doc_id, one.doc_id, 0, len(one.text), one.text)) for one in documents.documents)
        return [_Part(_make_unit(document, chunk), document, chunk) for document, chunk in whole]
    named = {document.doc_id: document for document in documents.documents}
    chunks = cut_documents(documents.documents, size)
    return [_Part(_make_unit(named[chunk.doc_id], chunk), named[chunk.doc_id], chunk) for chunk in chunks]


def _make_unit(document: SourceDocument, chunk: Chunk) -> offline_questions.Unit:
    inside = [
        (block, max(block.start, chunk.start) - chunk.start, min(block.end, chunk.end) - chunk.start)
        for block in document.blocks
        if block.start < chunk.end and block.end > chunk.start
    ]
    spans = tuple((start, end) for block, start, end in inside if block.kind in _ASKED)
    headings = tuple((start, end, block.words) for block, start, end in inside if block.kind == "heading")
    return offline_questions.Unit(
        chunk.chunk_id, chunk.doc_id, document.title, chunk.text, spans, headings, chunk.headings
    )


def _write_row(question: offline_questions.OfflineQuestion, parts: Sequence[_Part], seed: int) -> Row:
    units = [parts[place].unit for place in question.units]
    sources = {parts[place].document.doc_id: parts[place].document for place in question.units}
    first = parts[question.units[0]].chunk
    return {
        "query_id": name_question(question.text, (unit.unit_id for unit in units)),
        "question": question.text,
        "relevant": [unit.unit_id for unit in units],
        "relevant_documents": list(sources),
        # A title is no part of its text.
        "evidence": [write_quote(first, question.start, question.end)] if question.end else [],
        "type": question.form,
        "difficulty": "easy" if question.overlap >= EASY else "hard" if question.overlap < HARD else "medium",
        "language": find_language(units[0].text),
        **({"gap": question.answer} if question.answer else {}),
        "sources": write_sources(sources.values()),
        "made_by": MADE_BY,
        "made": {
            "by": f"rageval-spec {__version__}",
            "model": "none",
            "seed": seed,
            "overlap": round(question.overlap, 3),
        },
    }


def _write_corpus(parts: Sequence[_Part], made: offline_questions.OfflineQuestions) -> Iterator[Row]:
    """The corpus without what questions were made from. Offsets are those of the whole chunk."""
    for place, (unit, document, chunk) in enumerate(parts):
        title = "" if place in made.untitled else document.title
        row: Row = {
            "doc_id": unit.unit_id,
            "title": title,
            "text": offline_questions.hide(unit.text, made.held_out.get(place, ())),
        }
        if unit.unit_id != document.doc_id:
            row |= {"document": document.doc_id, "start": chunk.start, "end": chunk.end}
        yield row if chunk.page is None else {**row, "page": chunk.page}


def _write_rejected(parts: Sequence[_Part], made: offline_questions.OfflineQuestions) -> Iterator[Row]:
    for question, reason, detail in made.dropped:
        yield {
            "reason": reason,
            "why": offline_questions.REASONS[reason],
            "detail": detail,
            "question": question.text,
            "type": question.form,
            "chunks": [parts[place].unit.unit_id for place in question.units],
            "made_by": MADE_BY,
        }


def _remark_on_count(found: int, count: int, made: offline_questions.OfflineQuestions) -> Iterator[str]:
    if found < count:
        reasons = Counter(one.reason for one in made.dropped).most_common(1)
        most = f" (most often dropped because {offline_questions.REASONS[reasons[0][0]]})" if reasons else ""
        yield f"the corpus gives only {found:,} of {count_noun(count, 'question')}{most}"
