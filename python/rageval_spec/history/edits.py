"""Finds edits of a dataset since an earlier evaluation, because they can explain a drop as well as the system can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.data.note import Note
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

_NOUNS: Mapping[str, tuple[str, str]] = {
    "question": ("question", "questions"),
    "reference": ("reference", "references"),
    "judgements": ("query's relevance judgements", "queries' relevance judgements"),
}


@dataclass(frozen=True)
class Edits:
    """The differences between a dataset and its state in an earlier evaluation.

    Attributes:
        shared: the number of queries that are in both.
        edited: how many of these differ, for each part of `Fingerprint` that differs in any query.
        added, removed: the number of queries that are only in this evaluation, or only in the earlier one.
        is_known: whether the earlier evaluation recorded fingerprints. If not, edits cannot be detected.
    """

    shared: int
    edited: Mapping[str, int]
    added: int
    removed: int
    is_known: bool = True

    def __bool__(self) -> bool:
        return bool(self.edited or self.added or self.removed)

    def __str__(self) -> str:
        """`3 references edited, 1 query added`."""
        parts = [f"{count_noun(count, *_NOUNS[part])} edited" for part, count in self.edited.items()]
        for count, what in ((self.added, "added"), (self.removed, "removed")):
            if count:
                parts.append(f"{count_noun(count, 'query', 'queries')} {what}")
        return ", ".join(parts)


def find_edits(values: pl.DataFrame, fingerprints: Fingerprints, earlier: Evaluation) -> dict[str, Edits]:
    """The edits of each dataset that is in both evaluations; `values` and `fingerprints` are of the later one.

    Queries are matched by id. A part that one of the evaluations did not use is not compared.
    """
    ids, ids_before = _list_queries(values), _list_queries(earlier.values)
    before = earlier.fingerprints
    return {
        dataset: _compare(
            ids[dataset], ids_before[dataset], fingerprints.datasets.get(dataset, {}), before.datasets.get(dataset)
        )
        for dataset in ids
        if dataset in ids_before
    }


def _list_queries(values: pl.DataFrame) -> dict[str, set[str]]:
    queries: dict[str, set[str]] = {}
    for dataset, query_id in values.select("dataset", "query_id").unique(maintain_order=True).iter_rows():
        queries.setdefault(dataset, set()).add(query_id)
    return queries


def _compare(
    ids: set[str], ids_before: set[str], now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint] | None
) -> Edits:
    both = ids & ids_before
    edited = {part: count for part in _NOUNS if before and (count := _count_edited(part, both, now, before))}
    return Edits(len(both), edited, len(ids - ids_before), len(ids_before - ids), before is not None)


def _count_edited(part: str, both: set[str], now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint]) -> int:
    digests = [
        (getattr(now.get(query, Fingerprint()), part), getattr(before.get(query, Fingerprint()), part))
        for query in both
    ]
    if any(all(pair[side] is None for pair in digests) for side in (0, 1)):
        return 0
    return sum(new != old for new, old in digests)


def list_edit_notes(baseline: str, edits: Mapping[str, Edits]) -> Iterator[Note]:
    """A warning for each edited dataset, and a note if edits cannot be detected."""
    for dataset, found in edits.items():
        if found:
            message = (
                f"the data differ from those of the baseline {baseline}: {found} "
                f"({count_noun(found.shared, 'query', 'queries')} in both); differences from the baseline can come "
                "from these edits instead of the systems"
            )
            count = max((*found.edited.values(), found.added + found.removed))
            yield Note("edited_data", message, dataset, count=count, level="warning")
    if any(not found.is_known for found in edits.values()):
        message = (
            f"the baseline {baseline} was saved by a version that did not record its questions, references and "
            f"judgements, so edits to them cannot be detected; save the baseline again to have them checked"
        )
        yield Note("unknown_edits", message)
