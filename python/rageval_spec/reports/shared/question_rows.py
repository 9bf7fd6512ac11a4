"""One row for each question: its sample, and a column for each metric's value and reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rageval_spec.data.tables import empty_samples
from rageval_spec.diagnostics import make_visible
from rageval_spec.reports.shared.escaping import IN_LINES, escape_column
from rageval_spec.wording import protect_cell

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

COLUMNS = (
    "dataset",
    "system",
    "query_id",
    "question",
    "answer",
    "references",
    "contexts",
    "context_ids",
    "status",
    "error",
    "cause",
    "slices",
    "columns",
)
_KEYS = ("dataset", "system", "query_id")
_BLOCK = 4096


def list_systems(evaluation: Evaluation) -> list[str]:
    """The systems that have values, in the order of the spec."""
    there = set(evaluation.values["system"].unique())
    return [system for system in evaluation.systems if system in there]


def list_blocks(evaluation: Evaluation, system: str | None = None) -> Iterator[pl.DataFrame]:
    """The rows of one system's questions, or of all, in blocks: `COLUMNS`, then the metrics. At least one block.

    A metric has a column with its name, and one with its reasons if there are any. Questions without a sample come
    last.
    """
    import polars as pl

    values = _spread(evaluation, system)
    columns = empty_samples().select(COLUMNS)
    seen = []
    for block in evaluation.iterate_samples():
        rows = block.select(COLUMNS) if system is None else block.select(COLUMNS).filter(pl.col("system") == system)
        if rows.height:
            seen.append(rows.select(_KEYS))
            beside = rows.select(_KEYS).join(values, on=_KEYS, how="left", maintain_order="left").drop(_KEYS)
            yield pl.concat([rows, beside], how="horizontal")
    alone = values.join(pl.concat(seen), on=_KEYS, how="anti", maintain_order="left") if seen else values
    for rest in alone.iter_slices(_BLOCK):
        yield pl.concat([columns, rest], how="diagonal")
    if not seen and alone.is_empty():
        yield columns.join(values, on=_KEYS, how="left")


def gather(blocks: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """One table of all blocks."""
    import polars as pl

    return pl.concat(list(blocks))


def flatten(block: pl.DataFrame) -> pl.DataFrame:
    """Rows for a spreadsheet: lists become texts with an item a paragraph, and no text can be a formula."""
    import polars as pl

    texts = [name for name, kind in block.schema.items() if kind in (pl.String, pl.List(pl.String))]
    needing = block.select(_needs_escaping(block, name).alias(name) for name in texts)
    joined = block.with_columns(pl.col(pl.List(pl.String)).list.join("\n\n"))
    escaped = [escape_column(joined[name], protect_lines, IN_LINES) for name in texts if needing.item(0, name)]
    return joined.with_columns(escaped).rename(protect_cell)


def _needs_escaping(block: pl.DataFrame, name: str) -> pl.Expr:
    """Whether a text of the column does. Texts of lists come again in other rows, so each is searched once."""
    import polars as pl

    column = pl.col(name)
    column = column if block.schema[name] == pl.String else column.explode(empty_as_null=True).unique()
    return column.str.contains(IN_LINES).any()


def protect_lines(text: str) -> str:
    """`text` for a cell of a spreadsheet, as `protect_cell` makes it, except that it keeps its lines."""
    mark = "'" if protect_cell(text[:1]).startswith("'") and text[:1] != "'" else ""
    return mark + make_visible(text, keep="\n")


def _spread(evaluation: Evaluation, system: str | None) -> pl.DataFrame:
    """A row for each question with the values and reasons of all metrics."""
    import polars as pl

    values = evaluation.values if system is None else evaluation.values.filter(pl.col("system") == system)
    spread = values.select(_KEYS).unique(maintain_order=True)
    for metric in evaluation.metrics:
        name = f"{metric} value" if metric in COLUMNS else metric
        found = values.filter(pl.col("metric") == metric).select(*_KEYS, "value", "reason")
        if found.height:
            reasons = [] if found["reason"].null_count() == found.height else [pl.col("reason").alias(f"{name} reason")]
            column = found.select(*_KEYS, pl.col("value").alias(name), *reasons)
            spread = spread.join(column, on=_KEYS, how="left", maintain_order="left")
    return spread
