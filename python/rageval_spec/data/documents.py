"""Documents: the texts of all contexts, each once, so that files need not repeat them.

Columns: `document: i64` (the document's number, from 0), `doc_id: str or null, text: str`. A text under two ids, or two
texts under one id, are two documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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

        rows = samples.select("contexts", "context_ids").with_row_index("row")
        texts = pl.col("contexts").list.len()
        inside = rows.with_columns(pl.col("context_ids").list.head(texts)).filter(texts > 0)
        shown = explode_contexts(inside)
        distinct = shown.select("doc_id", "text").unique(maintain_order=True)
        numbered, new = self._number(distinct)
        found = shown.join(numbered, on=["doc_id", "text"], how="left", nulls_equal=True, maintain_order="left")
        lists = found.group_by("row", maintain_order=True).agg(pl.col("document").alias(NUMBERS))
        none = pl.when(pl.col("contexts").is_not_null()).then(pl.lit([], pl.List(pl.Int64)))
        column = rows.select("row", none=none).join(lists, on="row", how="left", maintain_order="left")
        return column.select(pl.coalesce(NUMBERS, "none")).to_series(), new

    def _number(self, distinct: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Different documents with their numbers, and those of them that are new."""
        import polars as pl

        before, known = len(self._numbers), self._numbers
        numbers = [known.setdefault(_digest(doc_id, text), len(known)) for doc_id, text in distinct.iter_rows()]
        numbered = distinct.select(pl.Series("document", numbers, dtype=pl.Int64), "doc_id", "text")
        return numbered, numbered.filter(pl.col("document") >= before)


def explode_contexts(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each context of samples: `row, doc_id, text`; its id, or its text, can be null."""
    import polars as pl

    lists = rows.select("row", doc_id="context_ids", text="contexts")
    ids, texts = (pl.col(name).list.len().fill_null(0) for name in ("doc_id", "text"))
    lacking = pl.max_horizontal(ids, texts)
    padded = lists.with_columns(
        pl.when(length == lacking)
        .then(name)
        .otherwise(pl.concat_list(pl.col(name).fill_null([]), pl.lit(None, pl.String).repeat_by(lacking - length)))
        .alias(name)
        for name, length in (("doc_id", ids), ("text", texts))
    )
    return padded.filter(lacking > 0).explode("doc_id", "text")


def restore_contexts(samples: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Samples of a file with the column `contexts` instead of the numbers of documents."""
    import polars as pl

    texts: Mapping[int, Any] = dict(documents.select("document", "text").iter_rows())
    contexts = [None if found is None else [texts[number] for number in found] for found in samples[NUMBERS]]
    return samples.with_columns(pl.Series("contexts", contexts, dtype=pl.List(pl.String))).drop(NUMBERS)


def _digest(doc_id: str | None, text: str) -> bytes:
    content = f"{'' if doc_id is None else len(doc_id)}:{doc_id or ''}:{text}"
    return hashlib.blake2b(content.encode("utf-8", "backslashreplace"), digest_size=_DIGEST_SIZE).digest()
