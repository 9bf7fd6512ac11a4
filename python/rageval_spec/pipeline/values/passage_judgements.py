"""Judgements of chunks that follow from the passages of a dataset: for a run, or for the contexts of answers.

Which chunks are relevant depends on the order in which a system gives them, because a passage counts once: at the first
chunk that has it. So each system has judgements of its own. They come to the same total.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from rageval_spec.data.evidence.passages import Chunk, Touches
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import CONTEXT_PLACES, Collection, only_queries
from rageval_spec.dataclass import replace
from rageval_spec.libraries import pl
from rageval_spec.store.stored_tables import AnyTable, load_table
from rageval_spec.wording import agree, count_noun

_ADVICE = "'rageval-spec audit' shows the place"


def judge_run(collection: Collection, run: pl.DataFrame | None) -> Collection:
    """The collection with the judgements for a run over its corpus; itself without a run or passages.

    Raises:
        DataError: none of the run's chunks is known.
    """
    passages, judged = collection.passages, collection.qrels
    if passages is None or judged is None or run is None:
        return collection
    found = only_queries(passages.judge_run(run), judged)
    return replace(collection, load_qrels=lambda: found)


def judge_contexts(asked: Collection, answers: AnyTable) -> tuple[Collection, AnyTable]:
    """The collection with the judgements for the contexts of answers, and the answers with an id for each chunk.

    A context without an id is `context 3` by its place, and one with the id of an earlier context that is another
    chunk, such as that of their document, has its place behind it. Without passages, both are as they were.
    """
    passages, judged = asked.passages, asked.qrels
    if passages is None or judged is None:
        return asked, answers
    table, known = load_table(answers), {*judged["query_id"]} & passages.passages.keys()
    touches, named = dict[str, Touches](), list[Sequence[str] | None]()
    names = ("query_id", "contexts", "context_ids", CONTEXT_PLACES)
    wanted = (pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in names)
    for query_id, texts, ids, places in table.select(wanted).iter_rows():
        chunks = [*_name_chunks(texts, ids, json.loads(places or "null"))] if query_id in known else []
        touches[query_id] = passages.find_touches(query_id, chunks)
        named.append([name for name, _ in chunks] or ids)
    column = pl.Series("context_ids", named, dtype=pl.List(pl.String))
    found = passages.judge(touches)
    return replace(asked, load_qrels=lambda: only_queries(found, judged)), table.with_columns(column)


def _name_chunks(
    texts: Sequence[str] | None, ids: Sequence[str] | None, places: Sequence[Any] | None
) -> Iterator[tuple[str, Chunk]]:
    """The contexts of an answer as chunks, each with an id of its own."""
    taken: dict[str, Chunk] = {}
    for number, (text, known) in enumerate(zip_longest(texts or (), ids or ())):
        document, start, end = (places[number] if places else None) or (None, None, None)
        chunk = Chunk(document, start, end, text)
        name = f"context {number + 1}" if known is None else known
        if taken.setdefault(name, chunk) != chunk:
            name = f"{name} ({number + 1})"
            taken[name] = chunk
        yield name, chunk


def passage_notes(collection: Collection) -> tuple[Note, ...]:
    """Notes on quotes that differ from their documents, or that stand there several times."""
    held = () if collection.passages is None else collection.passages.passages.values()
    quoted = [one for found in held for one in found if one.quote is not None]
    edited = sorted((one for one in quoted if one.similarity < 1), key=lambda one: one.similarity)
    repeated = [one for one in quoted if one.occurrences > 1]
    notes = list[Note]()
    if edited:
        one = f"the most different is that of {edited[0].place}, with a similarity of {edited[0].similarity:.2f}"
        message = (
            f"{count_noun(len(edited), 'quoted passage')} {agree(len(edited), 'differs')} from the document; {one}"
        )
        notes.append(Note("changed_quotes", f"{message}; {_ADVICE}", collection.name, count=len(edited)))
    if repeated:
        stand = f"{count_noun(len(repeated), 'quoted passage')} {agree(len(repeated), 'stands')} in the document"
        message = f"{stand} several times, and the first place counts: see {repeated[0].place}"
        notes.append(Note("repeated_quotes", f"{message}; {_ADVICE}", collection.name, count=len(repeated)))
    return tuple(notes)
