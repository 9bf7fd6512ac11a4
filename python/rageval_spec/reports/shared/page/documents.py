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
    places = _explode(rows).with_row_index("place")
    shown = places.with_columns(first=pl.col("place").first().over("doc_id", "text"))
    documents = shown.filter(pl.col("first") == pl.col("place")).with_row_index("document")
    numbers = documents.select("first", pl.col("document").cast(pl.Int64))
    numbered = shown.select("row", "first").join(numbers, on="first", how="left", maintain_order="left")
    lists = numbered.group_by("row", maintain_order=True).agg(pl.col("document").alias("shown"))
    referring = rows.drop("contexts", "context_ids").join(lists, on="row", how="left", maintain_order="left")
    found = documents.select("document", "doc_id", "text")
    return found, _refer_to_judged(referring, found).drop("row")


def _explode(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each context: `row, doc_id, text`; its id, or its text, can be null."""
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
