"""Numbers the documents of an evaluation, so that the page holds each text once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_CHARACTERS_EACH = 1_000_000
"""About how much text one part of the documents holds."""


def number_documents(samples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The distinct documents of the contexts, and the samples that refer to them.

    Returns:
        documents: `document` (its number), `doc_id`, `text`, in the order in which the samples show them.
        samples: the given ones, with `shown`, the numbers of the contexts, instead of `contexts` and `context_ids`.
            A context without a text and an id has no number. In `relevant`, `document` is the number of the judged
            document; None if no system retrieved it, because its text is then not known.
    """
    import polars as pl

    rows = samples.with_row_index("row")
    shown = _explode(rows)
    documents = shown.select("doc_id", "text").unique(maintain_order=True).with_row_index("document")
    numbered = shown.join(documents, on=["doc_id", "text"], how="left", nulls_equal=True, maintain_order="left")
    lists = numbered.group_by("row", maintain_order=True).agg(pl.col("document").alias("shown"))
    referring = rows.drop("contexts", "context_ids").join(lists, on="row", how="left", maintain_order="left")
    return documents, _refer_to_judged(referring, documents).drop("row")


def _explode(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each context: `row, doc_id, text`. Either of the two can be absent from a sample."""
    import polars as pl

    ids, texts = pl.col("context_ids"), pl.col("contexts")
    count = pl.max_horizontal(ids.list.len(), texts.list.len()).fill_null(0)
    places = rows.select("row", "contexts", "context_ids", place=pl.int_ranges(0, count)).filter(
        pl.col("place").list.len() > 0
    )
    return places.explode("place").select(
        "row",
        doc_id=pl.col("context_ids").list.get(pl.col("place"), null_on_oob=True),
        text=pl.col("contexts").list.get(pl.col("place"), null_on_oob=True),
    )


def _refer_to_judged(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The rows with the number of each judged document in `relevant`, a list of `{doc_id, relevance, document}`."""
    import polars as pl

    known = documents.filter(pl.col("doc_id").is_not_null()).unique("doc_id", keep="first").select("doc_id", "document")
    judged = rows.select("row", "relevant").filter(pl.col("relevant").list.len() > 0).explode("relevant")
    fields = judged.select("row", pl.col("relevant").struct.unnest())
    found = fields.join(known, on="doc_id", how="left", maintain_order="left")
    structs = found.select("row", relevant=pl.struct(pl.exclude("row")))
    lists = structs.group_by("row", maintain_order=True).agg("relevant")
    return rows.drop("relevant").join(lists, on="row", how="left", maintain_order="left")


def split_documents(documents: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The documents in parts of about a million characters, in their order."""
    import polars as pl

    if not documents.height:
        return
    lengths = documents.select(pl.col("text").str.len_chars().fill_null(0).cum_sum() // _CHARACTERS_EACH).to_series()
    starts = [0, *(lengths.diff().fill_null(0) > 0).arg_true().to_list(), documents.height]
    for start, end in pairwise(starts):
        yield documents.slice(start, end - start)
