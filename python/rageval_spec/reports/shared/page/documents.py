"""Numbers the documents of an evaluation, so that the page holds each text once.

The samples come in blocks and are read twice: once to number their documents, and once to write the texts. Between the
two, hashes stand for the texts, because the texts of all contexts at once would fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.documents import explode_contexts

if TYPE_CHECKING:
    import polars as pl

_CHARACTERS_EACH = 1_000_000
"""About how much text one part of the documents holds."""
_SEEDS = {"hash": 1, "other_hash": 2}
"""Together, the hashes have 128 bits, so that no two texts share both."""


@dataclass(frozen=True)
class Documents:
    """The distinct documents of the contexts, without their texts.

    Attributes:
        known: `document` (its number), `doc_id`, `part` (the number of the part that it is in), in the order in which
            the samples show them.
        is_first: for each context of each sample, whether it is the first one with its document.
    """

    known: pl.DataFrame
    is_first: pl.Series

    @property
    def count(self) -> int:
        """The number of documents."""
        return self.known.height

    def list_starts(self) -> list[int]:
        """The number of the first document of each part."""
        import polars as pl

        starts: list[int] = self.known.filter(pl.col("part").is_first_distinct()).get_column("document").to_list()
        return starts

    def split(self, blocks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The documents in parts of about a million characters: `document, doc_id, text`, in their order.

        Args:
            blocks: the samples that the documents were numbered from.
        """
        import polars as pl

        waiting: list[pl.DataFrame] = []
        place = number = 0
        for block in blocks:
            shown = explode_contexts(block.with_row_index("row"))
            texts = shown.get_column("text").filter(self.is_first.slice(place, shown.height))
            rows = self.known.slice(number, texts.len()).with_columns(texts)
            place, number = place + shown.height, number + texts.len()
            for part in rows.partition_by("part", maintain_order=True):
                if waiting and waiting[0].item(0, "part") != part.item(0, "part"):
                    yield pl.concat(waiting).drop("part")
                    waiting.clear()
                waiting.append(part)
        if waiting:
            yield pl.concat(waiting).drop("part")


def number_documents(blocks: Iterable[pl.DataFrame]) -> tuple[Documents, pl.DataFrame]:
    """The distinct documents of the contexts, and the samples that refer to them.

    Args:
        blocks: the samples, at least one block.

    Returns:
        documents: the documents.
        samples: the given ones, with `shown`, the numbers of the contexts, instead of `contexts` and `context_ids`.
            A context without a text and an id has no number. In `relevant`, `document` is the number of the judged
            document; None if no system retrieved it, because its text is then not known.
    """
    import polars as pl

    contexts, others, count = [], [], 0
    for block in blocks:
        rows = block.with_row_index("row", count)
        text = pl.col("text")
        hashes = {name: text.hash(seed) for name, seed in _SEEDS.items()}
        contexts.append(
            explode_contexts(rows).select("row", "doc_id", length=text.str.len_chars().fill_null(0), **hashes)
        )
        others.append(block.drop("contexts", "context_ids"))
        count += block.height
    shown = pl.concat(contexts).with_row_index("place")
    contexts.clear()
    first = shown.select(pl.col("place").first().over("doc_id", "length", *_SEEDS)).to_series()
    is_first = first == shown.get_column("place")
    document = (is_first.cast(pl.UInt32).cum_sum() - 1).gather(first).alias("shown")
    part = (pl.col("length").cum_sum() // _CHARACTERS_EACH).rle_id().alias("part")
    known = shown.filter(is_first).select("doc_id", part).with_row_index("document")
    lists = shown.select("row", document).group_by("row", maintain_order=True).agg("shown")
    del shown, first, document
    referring = pl.concat(others)
    others.clear()
    referring = referring.with_columns(align_rows(lists, referring.height))
    return Documents(known, is_first), _refer_to_judged(referring, known)


def align_rows(lists: pl.DataFrame, height: int) -> pl.Series:
    """The second column of `lists` for rows 0 to `height`, null for those that `row`, the first, does not have.

    The column can then stand beside those of a large table, which a join would copy.
    """
    import polars as pl

    rows = pl.select(row=pl.int_range(height, dtype=pl.UInt32))
    return rows.join(lists, on="row", how="left", maintain_order="left").to_series(1)


def _refer_to_judged(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The rows with the number of each judged document in `relevant`, a list of `{doc_id, relevance, document}`."""
    import polars as pl

    known = documents.filter(pl.col("doc_id").is_not_null()).unique("doc_id", keep="first").select("doc_id", "document")
    numbered = rows.select("relevant").with_row_index("row")
    judged = numbered.filter(pl.col("relevant").list.len() > 0).explode("relevant")
    fields = judged.select("row", pl.col("relevant").struct.unnest())
    found = fields.join(known, on="doc_id", how="left", maintain_order="left")
    structs = found.select("row", relevant=pl.struct(pl.exclude("row")))
    lists = structs.group_by("row", maintain_order=True).agg("relevant")
    return rows.with_columns(align_rows(lists, rows.height))
