"""Finds citations that came beside an answer's text, and answers whose sentences list what they cite.

Known are the blocks of Anthropic, OpenAI and Cohere, and the objects of TREC's RAG, RAGTIME and NeuCLIR tracks. A
record of our own is a list under `citations` of objects with `start`, `end`, `document_ids` and, if it is known,
`confidence` and `marker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.data.evidence.citations import Citation, dump_citations, hide
from rageval_spec.libraries import compile_later
from rageval_spec.recorded import citations, values

_DEEPEST = 10
_MARKS = compile_later(r"\s*(?:\(\s*)?[\[【<].*[\]】)>]\s*", 16)  # re.DOTALL
_LISTS = ("citations", "annotations")
_SENTENCES = ("answer", "responses", "sentences")
_NESTED = ("url_citation", "file_citation", "document", "file_path")
_NAMES = (
    "document",
    "url",
    "source",
    "document_id",
    "doc_id",
    "docid",
    "id",
    "file_id",
    "filename",
    "document_title",
    "title",
)
_INDICES = ("document_index", "search_result_index")


class _Item(NamedTuple):
    """What one citation says: where in its text, and by which names, rank and quote it knows the document."""

    start: int | None
    end: int | None
    names: tuple[str, ...]
    rank: int | None = None
    quote: str | None = None
    confidence: float | None = None
    marker: tuple[int, int] | None = None
    part: int = 0


def read_citations(
    content: Any, answer: str | None, contexts: Sequence[str] | None, ids: Sequence[str] | None
) -> str | None:
    """The citations of an answer, as `dump_citations` writes them: in its text and in the record that it came in.

    None without any. The record also says whether numbers begin at 0 (`citations_from`).
    """
    if not answer:
        return None
    first = citations.read_first(content)
    blocks = find_blocks(content, answer, contexts, ids)
    found = citations.find_citations(answer, contexts, ids, blocks, first)
    return dump_citations(found) if found or first is not None else None


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
    for key in _LISTS:
        listed = content.get(key)
        read = [item for one in listed for item in _read_item(one)] if isinstance(listed, (list, tuple)) else []
        for part, text in enumerate(_list_texts(content) or [answer]) if read else ():
            if of_part := [one for one in read if one.part == part]:
                yield text, of_part
    for key, inner in content.items():
        if key not in _LISTS and isinstance(inner, (Mapping, list, tuple)):
            yield from _list_cited(inner, answer, depth + 1)


def _list_texts(holder: Mapping[str, Any]) -> list[str]:
    """The texts that an object's citations can be of: its own, or those of its parts."""
    for key in ("text", "content", "output_text", "answer"):
        found = holder.get(key)
        if isinstance(found, Mapping) and isinstance(found.get("value"), str):
            return [found["value"]]
        if isinstance(found, str):
            return [found]
        if isinstance(found, list):
            return [one.get("text") or "" if isinstance(one, Mapping) else str(one) for one in found]
    return []


def _read_item(raw: Any) -> Iterator[_Item]:
    """A citation for each document that an item of a list names. A document of the context is no citation."""
    if not isinstance(raw, Mapping):
        return
    flat = dict(raw)
    for key in _NESTED:
        inner = raw.get(key)
        flat = {**flat, **inner} if isinstance(inner, Mapping) else flat
    start, end = (_number(flat, f"{side}_index", side) for side in ("start", "end"))
    if start is None and "document_index" not in flat and (place := _number(flat, "index")) is not None:
        start = end = place
    marker, several = raw.get("marker"), raw.get("document_ids", raw.get("sources"))
    is_cited = "cited_text" in flat or str(flat.get("type")).endswith("_location")
    if start is None and not is_cited and not isinstance(several, list):
        return
    placed: dict[str, Any] = {
        "part": _number(flat, "content_index") or 0,
        "confidence": flat["confidence"] if isinstance(flat.get("confidence"), (int, float)) else None,
        "marker": (marker[0], marker[1]) if isinstance(marker, (list, tuple)) else None,
    }
    if isinstance(several, list):
        for one in several:
            names = _names(_merge(one)) if isinstance(one, Mapping) else (str(one),)
            if names:
                yield _Item(start, end, names, **placed)
        return
    index = _number(flat, *_INDICES)
    quote = flat.get("cited_text") if isinstance(flat.get("cited_text"), str) else None
    names = _names(flat)
    if names or index is not None:
        yield _Item(start, end, names or (str(index),), index, quote, **placed)


def _merge(source: Mapping[str, Any]) -> dict[str, Any]:
    inner = source.get("document")
    return {**(inner if isinstance(inner, Mapping) else {}), **source}


def _names(item: Mapping[str, Any]) -> tuple[str, ...]:
    found = [item[key] for key in _NAMES if isinstance(item.get(key), (str, int))]
    inner = item.get("document")
    if isinstance(inner, Mapping):
        found += [inner[key] for key in _NAMES if isinstance(inner.get(key), str)]
    return tuple(dict.fromkeys(str(one) for one in found if str(one).strip()))


def _number(item: Mapping[str, Any], *keys: str) -> int | None:
    found = (item.get(key) for key in keys)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool) and one >= 0), None)


def _shift(item: _Item, answer: str, start: int, end: int) -> _Item:
    """The citation with its offsets in the answer, where those of its text are from `start` to `end`.

    If they enclose nothing but a marker, they are the marker.
    """
    first, last = (None if at is None else min(start + at, end) for at in (item.start, item.end))
    if first is None or last is None:
        return item._replace(start=None, end=None)
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
        holders = [place for place, text in enumerate(sources.texts) if item.quote.strip() in text]
        context = holders[0] if len(holders) == 1 else None
    return Citation(start, end, name, item.marker, context, item.confidence)


def unfold_sentences(record: Any) -> Any:
    """A record whose answer is a list of sentences with citations, as a record with a text; any other as it is.

    The sentences are joined by spaces. Numbers among their citations count the `references` of the record from 0; these
    are then its `context_ids`.
    """
    keys = [key for key in _SENTENCES if _are_sentences(record.get(key))] if isinstance(record, Mapping) else []
    if not keys:
        return record
    key = keys[0]
    references = record.get("references")
    listed = [str(one) for one in references] if isinstance(references, list) else None
    text, cited = "", []
    for sentence in record[key]:
        said = str(sentence.get("text") or "").strip()
        start = len(text) + (1 if text and said else 0)
        text = f"{text} {said}" if text and said else text + said
        for name, confidence in _list_names(sentence.get("citations"), listed):
            cited.append({"start": start, "end": len(text), "document_ids": [name], "confidence": confidence})
    others = {name: value for name, value in record.items() if name not in (key, "references")}
    ids = {} if listed is None else {"context_ids": listed}
    return {**ids, **others, "answer": text, "citations": cited}


def _are_sentences(found: Any) -> bool:
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(one, Mapping) and isinstance(one.get("text"), str) for one in found)
        and any("citations" in one for one in found)
        and not any("type" in one for one in found)  # blocks of a message
    )


def _list_names(found: Any, listed: Sequence[str] | None) -> Iterator[tuple[str, float | None]]:
    """The documents that a sentence cites, with the confidence where it is known."""
    if isinstance(found, Mapping):
        for name, confidence in found.items():
            is_number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
            yield str(name), float(confidence) if is_number else None
    for one in found if isinstance(found, list) else ():
        if isinstance(one, int) and listed is not None:
            yield (listed[one] if 0 <= one < len(listed) else str(one)), None
        elif isinstance(one, Mapping):
            names = _names(one)
            if names:
                yield names[0], one.get("confidence")
        elif isinstance(one, (str, int)):
            yield str(one), None
