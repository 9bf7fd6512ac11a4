"""Finds out where datasets come from: from their blocks in the spec, the tops of their files and their rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data.origin import MOST_DOCUMENTS, Origin
from rageval_spec.wording import count_noun, make_visible

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin import DatasetNode

_VERSION = ("version", "dataset_version", "revision")
_CREATED = ("created", "created_at", "creation_date", "date")
_MADE = ("made", "made_by", "generated_by", "generator", "method")
_AUDITED = ("audited", "audited_at")
_REVIEWED = ("reviewed", "reviewed_by", "human_reviewed", "reviewed_at")
_DOCUMENTS = ("documents", "source_documents", "sources", "corpus_version")
_OF_ROWS = (*_MADE[:3], *_REVIEWED, "sources")
_OF_ONE_QUESTION = frozenset({"slot", "attempt", "overlap"})
"""Keys of a row's `made` that differ from question to question."""
_NO = frozenset({"", "false", "no", "0", "none", "null"})
_IDS = ("document", "doc_id", "id", "_id", "name", "path")
_LONGEST = 300


def find_origin(node: DatasetNode, collection: Collection) -> Origin | None:
    """What is known about a dataset's origin; None if nothing is.

    What the spec says wins over the file, and counts of rows win over what the file says about them.
    """
    about = _list_remarks(node, collection)
    rows = _read_rows(collection)
    documents = {**_read_documents(_first(about, _DOCUMENTS)), **_list_sources(rows)}
    made, reviewed = _count_made(rows), _count_reviewed(rows)
    count = len(rows) if rows else _count_questions(collection)
    if reviewed is None:
        reviewed = _read_reviewed(_first(about, _REVIEWED), count)
    found = Origin(
        version=_as_text(_first(about, _VERSION)),
        created=_as_text(_first(about, _CREATED)),
        made=made or _as_text(_first(about, _MADE)),
        audited=_as_text(_first(about, _AUDITED)),
        reviewed=reviewed,
        documents=dict(list(documents.items())[:MOST_DOCUMENTS]),
        documents_digest=_digest(documents) if documents else None,
    )
    return None if found == Origin() else replace(found, questions=count)


def _list_remarks(node: DatasetNode, collection: Collection) -> list[Mapping[str, Any]]:
    """The remarks by key, the most important ones first: of the spec, of the top of the file, of its `metadata`."""
    inner = collection.about.get("metadata")
    return [{"version": node.version}, node.about or {}, collection.about, inner if isinstance(inner, Mapping) else {}]


def _read_rows(collection: Collection) -> list[dict[str, Any]]:
    """The other columns of each question, if any tells about its origin; else none."""
    import polars as pl

    table = collection.columns
    if table is None or not table.height:
        return []
    named = pl.any_horizontal(pl.col("columns").str.contains(f'"{name}":', literal=True) for name in _OF_ROWS)
    if not table.select(named.any()).item():
        return []
    return [json.loads(text) for text in table["columns"]]


def _count_questions(collection: Collection) -> int | None:
    """The number of all questions, also of those that a limit leaves out; None if no table has it."""
    table = collection.references if collection.columns is None else collection.columns
    return None if table is None else int(table.height)


def _first(remarks: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Any:
    """The first value under any of the names."""
    names = tuple(names)
    return next((one[name] for one in remarks for name in names if one.get(name) not in (None, "")), None)


def _count_made(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """How the questions were made, with counts if not all were made alike; None if no row says it."""
    counts = Counter(_as_text(_shorten(_first([row], _MADE[:3]))) for row in rows)
    if not any(how is not None for how in counts):
        return None
    if len(counts) == 1:
        return next(iter(counts))
    known = sorted(((how or "not known", count) for how, count in counts.items()), key=lambda one: (-one[1], one[0]))
    return " and ".join(f"{how} ({count_noun(count, 'question')})" for how, count in known)


def _shorten(made: Any) -> Any:
    if isinstance(made, Mapping):
        return {key: value for key, value in made.items() if key not in _OF_ONE_QUESTION}
    return made


def _count_reviewed(rows: Iterable[Mapping[str, Any]]) -> int | None:
    said = [found for row in rows if (found := [row[name] for name in _REVIEWED if name in row])]
    return sum(any(_is_true(value) for value in found) for found in said) if said else None


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() not in _NO and value not in (None, [], {})


def _read_reviewed(value: Any, count: int | None) -> int | None:
    if isinstance(value, bool):
        return count if value else 0
    if isinstance(value, Mapping):
        return _read_reviewed(_first([value], ("count", "questions", "rows")), count)
    if isinstance(value, (int, float)):
        return int(value)
    text = str(value).strip() if value is not None else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _read_documents(value: Any) -> dict[str, str]:
    """Versions by document: from a map, from a list of objects, or one version of them all."""
    if isinstance(value, Mapping):
        return {str(name): text for name, one in sorted(value.items()) if (text := _read_version(one)) is not None}
    if isinstance(value, list):
        return dict(sorted(pair for one in value if (pair := _read_source(one)) is not None))
    return {} if value is None else {"all": make_visible(str(value))[:_LONGEST]}


def _read_version(value: Any) -> str | None:
    return _as_text(_first([value], _VERSION) if isinstance(value, Mapping) else value)


def _read_source(one: Any) -> tuple[str, str] | None:
    name = _first([one], _IDS) if isinstance(one, Mapping) else None
    version = _read_version(one) if name is not None else None
    return None if version is None else (str(name), version)


def _list_sources(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The versions of the documents in the columns `sources`."""
    found: dict[str, str] = {}
    for row in rows:
        sources = row.get("sources")
        found.update(pair for one in (sources if isinstance(sources, list) else ()) if (pair := _read_source(one)))
    return dict(sorted(found.items()))


def _digest(documents: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(documents.items()), ensure_ascii=True).encode()).hexdigest()


def _as_text(value: Any) -> str | None:
    """A remark on one line: an object as `model gpt-4o, seed 1`."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_write(inner)}" for key, inner in value.items() if inner is not None)
    text = make_visible(_write(value).strip())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
