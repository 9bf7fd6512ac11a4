"""Leaves columns of the samples out of the results, and what judges wrote about their texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.spec.nodes import RedactedColumn

_TEXTS = frozenset({"question", "answer", "contexts", "reference", "reference_contexts"})
"""The columns that judges read."""
_NAMES: Mapping[str, str] = {"reference": "references"}
_KEPT = frozenset({"verdict", "part", "against", "judge", "decided_by", "way", "by"})
"""The texts in details that are not about the sample."""


def redact_samples(blocks: Iterator[pl.DataFrame], columns: Collection[RedactedColumn]) -> Iterator[pl.DataFrame]:
    """The samples without these columns: null, or no references."""
    import polars as pl

    names = [_NAMES.get(column, column) for column in columns]
    for block in blocks:
        empty = [pl.lit(None, dtype=block.schema[name]).alias(name) for name in names]
        yield block.with_columns(empty).with_columns(
            pl.col("references").fill_null(pl.lit([], dtype=block.schema["references"]))
        )


def redact_values(values: pl.DataFrame, columns: Collection[RedactedColumn]) -> pl.DataFrame:
    """The values without what tells the contents of these columns.

    If judges read one of them, their texts are removed from the details, and the reasons of values with details. If
    `error` is one of them, the reasons of values with the status "error" are removed.
    """
    import polars as pl

    if _TEXTS.intersection(columns):
        is_judged = pl.col("details").is_not_null()
        details = pl.col("details").map_elements(_redact_details, return_dtype=pl.String)
        values = values.with_columns(_null_where(is_judged), details)
    return values.with_columns(_null_where(pl.col("status") == "error")) if "error" in columns else values


def _null_where(condition: pl.Expr) -> pl.Expr:
    import polars as pl

    return pl.when(~condition).then(pl.col("reason")).alias("reason")


def _redact_details(details: str) -> str:
    return json.dumps(_redact(json.loads(details), ""), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _redact(content: Any, key: str) -> Any:
    """Details without their texts, except those that are not about the sample."""
    if isinstance(content, dict):
        return {name: redacted for name, one in content.items() if (redacted := _redact(one, name)) is not None}
    if isinstance(content, list):
        return [redacted for one in content if (redacted := _redact(one, key)) is not None]
    return None if isinstance(content, str) and key not in _KEPT else content
