"""Finds citations that came beside an answer's text, and answers whose sentences list what they cite.

Known are the blocks of Anthropic, OpenAI, Cohere, Google and Bedrock, and the objects of TREC's RAG, RAGTIME and
NeuCLIR tracks. A record of our own is a list under `citations` of objects with `start`, `end`, `document_ids` and, if
it is known, `confidence` and `marker`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.data.evidence.citations import Citation, dump_citations, hide
from rageval_spec.libraries import compile_later
from rageval_spec.recorded import citations, values
from rageval_spec.recorded.answers_and_steps import UnusableReplyError

_DEEPEST, _DEEPEST_ITEM = 10, 4
_MARKS = compile_later(r"\s*(?:\(\s*)?[\[【<].*[\]】)>]\s*", 16)  # re.DOTALL
_HUMP = compile_later(r"(?<=[a-z])(?=[A-Z])")
_SIDES = ("start", "end")
_LISTS = ("citations", "annotations")
_SENTENCES = ("answer", "responses", "sentences")
_NAMES = (
    *("document", "url", "uri", "source", "document_id", "doc_id", "docid", "id", "file_id", "filename"),
    *("document_title", "document_name", "title"),
)
_OF_CONVERSE = {"source_content", "document_char", "document_page", "document_chunk", "search_result_location"}
"""Keys of what Bedrock's Converse cites."""
_HOLDERS = {
    *("url_citation", "file_citation", "document", "file_path", "location", *_OF_CONVERSE),
    *("generated_response_part", "text_response_part", "span"),
}
"""Keys of objects that hold parts of a citation. Others, such as metadata, can have offsets of the document."""


class _Item(NamedTuple):
    """What one citation says: where in its text, and by which names, rank and quote it knows the document.

    `said` are the characters that it stands for: they count if the offsets, in bytes or UTF-16, are not those of text.
    """

    start: int | None
    end: int | None
    names: tuple[str, ...]
    rank: int | None = None
    quote: str | None = None
    confidence: float | None = None
    marker: tuple[int, int] | None = None
    part: int = 0
    said: str | None = None


def read_citations(
    content: Any, answer: str | None, contexts: Sequence[str] | None, ids: Sequence[str] | None
) -> str | None:
    """The citations of an answer, as `dump_citations` writes them: in its text and in the record that it came in.

    None without any. The record also says whether numbers begin at 0 (`citations_from`). Plain strings under
    `citations`, as Perplexity lists them, are the documents that the answer's numbers mean.

    Raises:
        UnusableReplyError: `citations_from` is neither 0 nor 1.
    """
    if not answer:
        return None
    record = content if isinstance(content, Mapping) else {}
    first = _read_first(record.get("citations_from"))
    blocks = find_blocks(content, answer, contexts, ids)
    listed = _list(values.open_text(record.get("citations")))
    names = listed if all(isinstance(one, str) and one.strip() for one in listed) else ()
    found = citations.find_citations(answer, contexts, ids, blocks, first, names)
    return dump_citations(found) if found or first is not None else None


def _read_first(found: Any) -> int | None:
    if found is None or found == "":
        return None
    if str(found) not in ("0", "1"):
        raise UnusableReplyError(f"'citations_from' must be 0 or 1, the number of the first context, not {found!r}")
    return int(found)


def find_blocks(
    content: Any, answer: str, contexts: Sequence[str] | None = None, ids: Sequence[str] | None = None
) -> tuple[Citation, ...]:
    """The citations beside the text, with their places in the answer. What cites another text is left out."""
    sources = citations.Sources(ids, contexts)
    placed: list[tuple[_Item, int, int]] = []
    cursor = 0
    for text, items in _list_cited(values.open_text(content), answer, 0):
        place = answer.find(text, cursor)
        place = answer.find(text) if place < 0 else place
        if place < 0:
            continue
        cursor = place + len(text)
        placed += [(_shift(item, answer, place, cursor), place, cursor) for item in items]
    plain = hide(answer, [item.marker for item, _, _ in placed if item.marker is not None])
    sentences = kernels.split_sentences(plain) if placed else []
    return tuple(dict.fromkeys(_place(*one, plain, sentences, sources) for one in placed))


def _list_cited(content: Any, answer: str, depth: int) -> Iterator[tuple[str, list[_Item]]]:
    """Texts with the citations beside them, in the order of the record."""
    if depth > _DEEPEST:
        return
    if isinstance(content, (list, tuple)):
        for item in content:
            yield from _list_cited(item, answer, depth + 1)
    if not isinstance(content, Mapping):
        return
    texts = _list_texts(content) or [answer]
    listed = [one for key in _LISTS for one in _list(content.get(key))]
    read = [item for one in (*listed, *_list_grounded(content, texts)) for item in _read_item(one)]
    for part, text in enumerate(texts):
        if of_part := [one for one in read if one.part == part]:
            yield text, of_part
    for key, inner in content.items():
        if key not in (*_LISTS, "citationMetadata") and isinstance(inner, (Mapping, list, tuple)):
            yield from _list_cited(inner, answer, depth + 1)


def _list_grounded(holder: Mapping[str, Any], texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Google's `groundingSupports` as records of our own. Their offsets count bytes, and 0 is left out."""
    grounding = _open(_open(holder).get("grounding_metadata"))
    chunks = _list(grounding.get("grounding_chunks"))
    for support in map(_open, _list(grounding.get("grounding_supports"))):
        segment = _open(support.get("segment"))
        part = _number(segment, "part_index") or 0
        said = texts[part].encode() if part < len(texts) else b""
        start, end = (len(said[: _number(segment, f"{side}_index") or 0].decode(errors="ignore")) for side in _SIDES)
        placed = {"start": start, "end": end, "text": segment.get("text"), "content_index": part}
        scores = _list(support.get("confidence_scores"))
        for index, score in zip_longest(_list(support.get("grounding_chunk_indices")), scores):
            if isinstance(index, int) and 0 <= index < len(chunks):
                yield {**placed, "sources": [chunks[index]], "confidence": score}


def _list(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (list, tuple)) else ()


def _open(found: Any) -> dict[str, Any]:
    """An object with its names in snake case; empty for anything else."""
    held = found.items() if isinstance(found, Mapping) else ()
    return {_HUMP.sub("_", str(key)).lower(): value for key, value in held}


def _list_texts(holder: Mapping[str, Any]) -> list[str]:
    """The texts that an object's citations can be of: its own, or those of its parts."""
    for key in ("text", "content", "output_text", "answer"):
        found = holder.get(key)
        if isinstance(found, Mapping) and isinstance(found.get("value"), str):
            return [found["value"]]
        found = found.get("parts") if isinstance(found, Mapping) else found
        if isinstance(found, str):
            return [found]
        if isinstance(found, list):
            return [one.get("text") or "" if isinstance(one, Mapping) else str(one) for one in found]
    return []


def _read_item(raw: Any) -> Iterator[_Item]:
    """A citation for each document that an item of a list names. A document of the context is no citation."""
    flat: dict[str, Any] = {}
    for level in _list_levels(raw, _HOLDERS):
        flat = {**level, **flat}
    if flat.keys() & _OF_CONVERSE:  # then offsets are of the document
        flat = {**flat, "start": None, "end": None}
    start, end = (_number(flat, f"{side}_index", side) for side in _SIDES)
    if start is None and "document_index" not in flat and (place := _number(flat, "index")) is not None:
        start = end = place
    several = next((flat[key] for key in ("document_ids", "sources", "retrieved_references") if key in flat), None)
    is_cited = str(flat.get("type")).endswith("_location") or flat.keys() & {"cited_text", *_OF_CONVERSE}
    if start is None and not is_cited and not isinstance(several, list):
        return
    marker, said, index = flat.get("marker"), flat.get("text"), _number(flat, "document_index", "search_result_index")
    told = [_open(one).get("text") for one in _list(flat.get("source_content"))] or [flat.get("cited_text")]
    placed: dict[str, Any] = {
        "part": _number(flat, "content_index") or 0,
        "confidence": flat["confidence"] if isinstance(flat.get("confidence"), (int, float)) else None,
        "marker": (marker[0], marker[1]) if isinstance(marker, (list, tuple)) else None,
        "said": said if isinstance(said, str) else None,
    }
    for source in several if isinstance(several, list) else [raw]:
        texts = told if source is raw else [level.get("text") for level in _list_levels(source)]
        quote = next((one for one in texts if isinstance(one, str)), None)
        if names := _names(source) or tuple(str(one) for one in (index, quote) if one is not None)[:1]:
            yield _Item(start, end, names, index, quote, **placed)


def _list_levels(item: Any, within: Collection[str] | None = None, depth: int = 0) -> Iterator[dict[str, Any]]:
    """An object, and those that it holds under some names, or under any."""
    if opened := _open(item):
        yield opened
        for key, inner in opened.items() if depth < _DEEPEST_ITEM else ():
            if within is None or key in within:
                yield from _list_levels(inner, within, depth + 1)


def _names(source: Any) -> tuple[str, ...]:
    """What may name a document: it, or what is under such keys in an object."""
    levels = [*_list_levels(source)]
    found = [level[key] for level in levels for key in _NAMES if isinstance(level.get(key), (str, int))]
    named = found if isinstance(source, Mapping) else [source]
    return tuple(dict.fromkeys(name for name in map(str, named) if name.strip()))


def _number(item: Mapping[str, Any], *keys: str) -> int | None:
    found = (item.get(key) for key in keys)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool) and one >= 0), None)


def _shift(item: _Item, answer: str, start: int, end: int) -> _Item:
    """The citation with its offsets in the answer, where those of its text are from `start` to `end`.

    Of several places with the words that they stand for, the nearest counts. If they enclose nothing but a marker, they
    are the marker.
    """
    first, last = (None if at is None else min(start + at, end) for at in (item.start, item.end))
    if first is None or last is None:
        return item._replace(start=None, end=None)
    said = re.compile(re.escape(item.said)).finditer(answer, start, end) if item.said else ()
    if found := min(said, key=lambda one: abs(one.start() - first), default=None):
        first, last = found.span()
    is_marker = item.marker is None and first < last and _MARKS.fullmatch(answer, first, last)
    return item._replace(start=first, end=last, marker=(first, last) if is_marker else item.marker)


def _place(
    item: _Item, start: int, end: int, plain: str, sentences: Sequence[tuple[int, int]], sources: citations.Sources
) -> Citation:
    """The citation; without offsets of its own, it is of all its text, from `start` to `end`."""
    if item.start is not None and item.end is not None:
        start, end = item.start, item.end
        if start >= end or item.marker == (start, end):
            start, end = citations.find_statement(plain, sentences, start)
    name = next((name for name in item.names if sources.find(name) is not None), item.names[0])
    context = sources.find(name)
    if context is None and item.rank is not None and item.rank < (sources.count or 0):
        context = item.rank
    if context is None and item.quote:
        holders = {text: place for place, text in reversed([*enumerate(sources.texts)]) if item.quote.strip() in text}
        context = next(iter(holders.values())) if len(holders) == 1 else None
    return Citation(start, end, name, item.marker, context, item.confidence)


def unfold_sentences(record: Any) -> Any:
    """A record whose answer is a list of sentences with citations, as a record with a text; any other as it is.

    The sentences are joined by spaces. Numbers among their citations count the `references` of the record from 0; these
    are then its `context_ids`. In a run's `responses` and `sentences`, or without references, so are the documents that
    they cite by id. The `contexts` are the record's `documents`, if all of these are among them. What the `metadata` of
    a run's record says becomes columns: `run_id`, `topic_id`.
    """
    if not isinstance(record, Mapping):
        return record
    inner = record.get("metadata")
    metadata = inner if isinstance(inner, Mapping) and "run_id" in inner else {}
    is_run = "run_id" in record or bool(metadata)
    key = next((key for key in _SENTENCES if _are_sentences(record.get(key), is_run=is_run)), None)
    if key is None:
        return record
    references = record.get("references")
    listed = [str(one) for one in references] if isinstance(references, list) else None
    text, cited = "", list[dict[str, Any]]()
    for sentence in record[key]:
        said = str(sentence.get("text") or "").strip()
        start = len(text) + (1 if text and said else 0)
        text = f"{text} {said}" if text and said else text + said
        for name, confidence in _list_names(sentence.get("citations"), listed):
            cited.append({"start": start, "end": len(text), "document_ids": [name], "confidence": confidence})
    read = {key, "references", *_SENTENCES[:2], *(["metadata"] if metadata else ())}
    others = {name: value for name, value in record.items() if name not in read}
    if is_run and (listed is None or key != "answer"):
        listed = [*dict.fromkeys([*(listed or ()), *(name for one in cited for name in one["document_ids"])])]
    found: dict[str, Any] = {} if listed is None else {"context_ids": listed}
    documents = others.get("documents")
    if listed is not None and isinstance(documents, Mapping) and documents.keys() >= {*listed}:
        found = {"contexts": [{"id": name, "text": _join_text(documents[name])} for name in listed]}
        del others["documents"]
    return {**metadata, **found, **others, "answer": text, "citations": cited}


def _join_text(document: Any) -> str:
    held = document if isinstance(document, Mapping) else {"text": document}
    return "\n".join(str(held[name]) for name in ("title", "text") if held.get(name))


def _are_sentences(found: Any, *, is_run: bool) -> bool:
    """Whether it is a list of sentences. In a record of a run, they may all cite nothing, and there may be none."""
    return (
        isinstance(found, list)
        and (bool(found) or is_run)
        and all(isinstance(one, Mapping) and isinstance(one.get("text"), str) for one in found)
        and (is_run or any("citations" in one for one in found))
        and not any("type" in one for one in found)  # blocks of a message
    )


def _list_names(found: Any, listed: Sequence[str] | None) -> Iterator[tuple[str, float | None]]:
    """The documents that a sentence cites, with the confidence where it is known."""
    if isinstance(found, Mapping):
        found = [{"id": str(name), "confidence": confidence} for name, confidence in found.items()]
    for raw in found if isinstance(found, (list, tuple)) else [found]:
        one = int(raw) if isinstance(raw, float) and raw.is_integer() else raw  # as data frames write indices
        if type(one) is int and listed is not None:
            yield (listed[one] if 0 <= one < len(listed) else str(one)), None
            continue
        said = one.get("confidence") if isinstance(one, Mapping) else None
        confidence = None if isinstance(said, bool) or not isinstance(said, (int, float)) else said
        if one not in (None, ""):  # what names no document is a citation all the same: no context has its name
            named = _names(one) if isinstance(one, (Mapping, str)) else ()
            yield (named or (str(one),))[0], confidence
