"""Documents: the texts of all contexts, each once, so that files need not repeat them.

Columns: `document: i64` (the document's number, from 0), `doc_id: str or null, text: str`. A text under two ids, or two
texts under one id, are two documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

DOCUMENTS = ("document", "doc_id", "text")
NUMBERS = "documents"
"""The column of a file of samples that holds the numbers of the contexts, in place of their texts."""
_DIGEST_SIZE = 16


def empty_documents() -> pl.DataFrame:
    """A documents table without rows, with all columns of `DOCUMENTS` and their types."""
    import polars as pl

    return pl.DataFrame(schema={"document": pl.Int64, "doc_id": pl.String, "text": pl.String})


class DocumentNumbers:
    """Numbers the documents of samples, in the order in which they first appear. It keeps digests, not texts."""

    def __init__(self) -> None:
        """Start with no documents."""
        self._numbers: dict[bytes, int] = {}

    def take(self, samples: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
        """The numbers of each sample's contexts (null if it has none), and the documents that are new."""
        import polars as pl

        numbers: list[list[int] | None] = []
        new: list[tuple[int, str | None, str]] = []
        for contexts, ids in samples.select("contexts", "context_ids").iter_rows():
            found = _pair(contexts, ids)
            numbers.append(None if contexts is None else [self._number(doc_id, text, new) for doc_id, text in found])
        documents = pl.DataFrame(new, schema=empty_documents().schema, orient="row")
        return pl.Series(NUMBERS, numbers, dtype=pl.List(pl.Int64)), documents

    def _number(self, doc_id: str | None, text: str, new: list[tuple[int, str | None, str]]) -> int:
        key = _digest(doc_id, text)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            new.append((number, doc_id, text))
        return number


def restore_contexts(samples: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Samples of a file with the column `contexts` instead of the numbers of documents."""
    import polars as pl

    texts: Mapping[int, Any] = dict(documents.select("document", "text").iter_rows())
    contexts = [None if found is None else [texts[number] for number in found] for found in samples[NUMBERS]]
    return samples.with_columns(pl.Series("contexts", contexts, dtype=pl.List(pl.String))).drop(NUMBERS)


def _pair(contexts: Sequence[str] | None, ids: Sequence[str] | None) -> Iterator[tuple[str | None, str]]:
    for place, text in enumerate(contexts or ()):
        yield (ids[place] if ids is not None and place < len(ids) else None), text


def _digest(doc_id: str | None, text: str) -> bytes:
    content = f"{'' if doc_id is None else len(doc_id)}:{doc_id or ''}:{text}"
    return hashlib.blake2b(content.encode("utf-8", "backslashreplace"), digest_size=_DIGEST_SIZE).digest()
