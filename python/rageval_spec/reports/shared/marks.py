"""Marks: the places in an answer that judges decided about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

SUPPORTED_FROM = 0.5
"""If a judge gives a score without a verdict, a claim with at least this score is supported."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A claim of an answer, and what a judge decided about it.

    Attributes:
        start, end: the characters of the answer that hold the claim, or that it was taken from; None if unknown.
        verdict: "supported", "contradicted" or "not_enough_info"; None if the judge gives only scores.
        score: how well the claim is supported, in [0, 1]; None if unknown.
        metric: the metric that asked.
        text: the claim as the judge read it.
        source: the index (from 0) of the context or reference that decided; None if unknown.
        doc_id: the document of that context; None if unknown.
        evidence: the passage that decided; None if there is none.
        reason: the judge's explanation; None if there is none.
    """

    start: int | None
    end: int | None
    verdict: str | None
    score: float | None
    metric: str
    text: str
    source: int | None = None
    doc_id: str | None = None
    evidence: str | None = None
    reason: str | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the claim is supported: by its verdict, or by its score if it has none."""
        return (self.score or 0.0) >= SUPPORTED_FROM if self.verdict is None else self.verdict == "supported"


def find_marks(evaluation: Evaluation, wanted: pl.DataFrame) -> dict[tuple[Any, ...], tuple[Mark, ...]]:
    """The marks on the answers of these questions, by dataset, system and query id, in the order of their places."""
    key = ["dataset", "system", "query_id"]
    if "details" not in evaluation.values.columns:
        return {}
    rows = evaluation.values.join(wanted, on=key, how="semi").drop_nulls("details")
    told = evaluation.samples.join(wanted, on=key, how="semi")
    samples = {tuple(row[name] for name in key): row for row in told.iter_rows(named=True)}
    found: dict[tuple[Any, ...], list[Mark]] = {}
    for row in rows.iter_rows(named=True):
        of = tuple(row[name] for name in key)
        if of in samples:
            found.setdefault(of, []).extend(_read(row["metric"], row["details"], samples[of]))
    return {of: tuple(sorted(marks, key=_place)) for of, marks in found.items()}


def _place(mark: Mark) -> tuple[bool, int, int]:
    return mark.start is None, mark.start or 0, mark.end or 0


def _read(metric: str, details: str, sample: Mapping[str, Any]) -> Iterator[Mark]:
    """The claims of the answer in the details of one value; claims of other texts are left out."""
    parsed = json.loads(details)
    told = parsed.get("claims")
    if told is None and isinstance(parsed.get("answer"), dict):
        told = parsed["answer"].get("claims")
    claims = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    answer, ids = sample.get("answer") or "", sample.get("context_ids") or ()
    if not all(_is_in(claim, answer) for claim in claims):
        return
    for claim in claims:
        source = claim.get("source")
        yield Mark(
            **{name: claim.get(name) for name in ("start", "end", "verdict", "score")},
            metric=metric,
            text=str(claim.get("text", "")),
            source=source,
            doc_id=_find_document(source, ids),
            evidence=claim.get("evidence"),
            reason=claim.get("reason"),
        )


def _is_in(claim: Mapping[str, Any], answer: str) -> bool:
    """Whether the claim can come from the answer: its words are there, or its place is inside."""
    return claim.get("text", "").rstrip(".") in answer


def _find_document(source: int | None, ids: Sequence[str]) -> str | None:
    return ids[source] if source is not None and 0 <= source < len(ids) else None
