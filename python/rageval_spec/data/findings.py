"""Findings: what judges decided about each claim, as a table with one row for each claim.

| column | |
|---|---|
| `dataset, system, metric, query_id` | the value that the claim belongs to |
| `claim` | the claim's number within the value, from 0 |
| `part` | the text that was judged: `answer`, `reference`, `contexts` or `claims` (the answer's statements) |
| `text` | the claim, or the context |
| `start, end` | its characters in the judged text; null if they are not known |
| `verdict, score` | the judge's decision; null if it gives only the other |
| `source` | the number, from 0, of the context or reference that decided; the context itself if contexts are judged |
| `doc_id` | that context's document; null if it is not known, or if the source is not a context |
| `evidence, evidence_start` | the passage that decided, and its first character in the source |
| `reason` | the judge's explanation |
| `judge, step` | the judge that the metric asked, and the one that decided if that judge asks others |

They are read from the details of the values, so that evaluations that were saved have them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

FINDINGS = (
    "dataset",
    "system",
    "metric",
    "query_id",
    "claim",
    "part",
    "text",
    "start",
    "end",
    "verdict",
    "score",
    "source",
    "doc_id",
    "evidence",
    "evidence_start",
    "reason",
    "judge",
    "step",
)
_JUDGED: Mapping[str, tuple[str, str]] = {
    "context_recall": ("reference", "contexts"),
    "completeness": ("reference", "answer"),
    "conciseness": ("claims", "question"),
    "noise_sensitivity": ("answer", "reference"),
}
"""The judged part and its source in details that do not name them, by the metric; `_USUAL` for any other metric."""
_USUAL = ("answer", "contexts")
_BOTH_WAYS = (("answer", "reference"), ("reference", "answer"))
"""The parts of details that hold claims of the answer and of the reference, and what each is judged against."""
_KEYS = ("dataset", "system", "query_id")
_TEXTS = ("question", "answer", "references", "contexts", "reference_contexts")
_DECISION = frozenset({"score", "verdict"})
_BLOCK = 4096


class _Judged(NamedTuple):
    """Claims of one part of a sample. `details` is what the judge said about them as a whole."""

    claims: Sequence[Mapping[str, Any]]
    part: str
    against: str
    details: Mapping[str, Any]


def empty_findings() -> pl.DataFrame:
    """A findings table without rows, with all columns of `FINDINGS` and their types."""
    import polars as pl

    numbers = dict.fromkeys(("claim", "start", "end", "source", "evidence_start"), pl.Int64)
    kinds: dict[str, Any] = {**numbers, "score": pl.Float64}
    return pl.DataFrame(schema={name: kinds.get(name, pl.String) for name in FINDINGS})


def stream_findings(
    values: pl.DataFrame, metrics: Sequence[str], samples: Iterator[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """The findings in blocks, in the order of the samples, then of `metrics`, then of the claims.

    Values without a sample come last. Their findings have no `doc_id` and no `evidence_start`.
    """
    import polars as pl

    told = _find_claims(values, metrics)
    seen = []
    for block in samples if told.height else ():
        wanted = [*_KEYS, *_TEXTS, "context_ids"]
        found = block.select(wanted).join(told, on=_KEYS, how="inner", maintain_order="left_right")
        if found.height:
            seen.append(found["row"])
            yield _tabulate(found)
    alone = told.filter(~pl.col("row").is_in(pl.concat(seen).implode())) if seen else told
    for block in alone.iter_slices(_BLOCK):
        yield _tabulate(block)


def list_findings(value: Mapping[str, Any], sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The findings of one value, as rows with the columns `FINDINGS`.

    Args:
        value: a row of the values table.
        sample: the row of the samples table that it belongs to; without it, findings have no `doc_id` and no
            `evidence_start`.
    """
    if value.get("details") is None:
        return
    for row in _list_rows({**sample, **value}):
        finding = dict(zip(FINDINGS, row, strict=True))
        score = finding["score"]
        yield finding | {"score": None if score is None else float(score)}


def _find_claims(values: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The rows of values whose details hold claims, with their number as `row`, in the order of `metrics`."""
    import polars as pl

    if "details" not in values.columns:
        return values.select(*_KEYS, "metric").clear()
    details = pl.col("details")
    holds_claims = details.str.contains(r'"(claims|contexts)": ?\[\{')
    order = pl.col("metric").replace_strict(list(metrics), range(len(metrics)), default=len(metrics))
    told = values.lazy().filter(holds_claims).select(*_KEYS, "metric", "details").sort(order, maintain_order=True)
    return told.with_row_index("row").collect()


def _tabulate(values: pl.DataFrame) -> pl.DataFrame:
    """The findings of rows of values, each of which can have the texts of its sample."""
    import polars as pl

    rows = [row for value in values.iter_rows(named=True) for row in _list_rows(value)]
    empty = empty_findings()
    return pl.DataFrame(rows, schema=empty.schema, orient="row")


def _list_rows(value: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    number = 0
    details = json.loads(value["details"])
    for judged in _list_judged(details, value["metric"]) if isinstance(details, dict) else ():
        judge = details.get("judge")
        for place, claim in enumerate(judged.claims):
            source = place if judged.part == "contexts" else claim.get("source")
            in_contexts = "contexts" in (judged.part, judged.against)
            yield (
                *(value[key] for key in ("dataset", "system", "metric", "query_id")),
                number,
                judged.part,
                *(claim.get(key) for key in ("text", "start", "end", "verdict", "score")),
                source,
                _pick(value.get("context_ids"), source) if in_contexts else None,
                claim.get("evidence"),
                _find_evidence(claim.get("evidence"), _read_source(value, judged, source)),
                claim.get("reason"),
                judge,
                judged.details.get("decided_by"),
            )
            number += 1


def _list_judged(details: Mapping[str, Any], metric: str) -> Iterator[_Judged]:
    """The parts of a value's details that hold claims."""
    usual = _JUDGED.get(metric, _USUAL)
    part, against = details.get("part", usual[0]), details.get("against", usual[1])
    if _are_claims(details.get("claims")):
        yield _Judged(details["claims"], part, against, details)
    if _are_claims(details.get("contexts")):
        yield _Judged(details["contexts"], "contexts", details.get("against", "question"), details)
    for part, against in _BOTH_WAYS:
        found = details.get(part)
        if isinstance(found, dict) and _are_claims(found.get("claims")):
            yield _Judged(found["claims"], part, against, found)


def _are_claims(found: object) -> bool:
    """Whether these are claims, which have a verdict or a score. Compared documents have neither."""
    return isinstance(found, list) and all(isinstance(one, dict) and _DECISION & one.keys() for one in found)


def _read_source(value: Mapping[str, Any], judged: _Judged, source: int | None) -> str | None:
    """The text that a claim was judged against."""
    if judged.against in ("answer", "question"):
        text: str | None = value.get(judged.against)
        return text
    part = {"reference": "references"}.get(judged.against, judged.against)
    return _pick(value.get(part), source)


def _pick(texts: Sequence[str] | None, place: int | None) -> str | None:
    return texts[place] if texts is not None and place is not None and 0 <= place < len(texts) else None


def _find_evidence(evidence: str | None, source: str | None) -> int | None:
    start = source.find(evidence) if source and evidence else -1
    return None if start < 0 else start
