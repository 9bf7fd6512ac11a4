"""Finds the queries of a dataset that were edited since an earlier evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.fingerprints import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

_Queries = frozenset[str]


@dataclass(frozen=True)
class Edits:
    """The differences between a dataset's queries and their state in an earlier evaluation, by query id.

    Attributes:
        same: the queries that are in both with the same question.
        changed: the queries that are in both with another question.
        added, removed: the queries that are only in this evaluation, or only in the earlier one.
        references, judgements: the queries of `same` whose references or relevance judgements are others.
        is_known: whether the earlier evaluation recorded fingerprints. If not, edits cannot be detected.
    """

    same: _Queries
    changed: _Queries = frozenset()
    added: _Queries = frozenset()
    removed: _Queries = frozenset()
    references: _Queries = frozenset()
    judgements: _Queries = frozenset()
    is_known: bool = True


def find_edits(evaluation: Evaluation, earlier: Evaluation) -> dict[str, Edits]:
    """The edits of each dataset that is in both evaluations.

    Queries are matched by id. A part that one of the evaluations did not use is not compared. A query that an
    evaluation did not ask, because it stopped early, has a fingerprint there and no value: it is neither added nor
    removed.
    """
    ids, ids_before = _list_queries(evaluation.values), _list_queries(earlier.values)
    shared = [dataset for dataset in ids if dataset in ids_before]
    now, before = (evaluation.fingerprints.datasets, earlier.fingerprints.datasets) if shared else ({}, {})
    return {
        dataset: _compare(ids[dataset], ids_before[dataset], now.get(dataset, {}), before.get(dataset))
        for dataset in shared
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
    changed = _find_edited("question", both, now, before or {})
    same = frozenset(both - changed)
    return Edits(
        same,
        changed,
        frozenset(ids - ids_before - (before or {}).keys()),
        frozenset(ids_before - ids - now.keys()),
        _find_edited("reference", same, now, before or {}),
        _find_edited("judgements", same, now, before or {}),
        before is not None,
    )


def _find_edited(
    part: str, queries: set[str] | _Queries, now: Mapping[str, Fingerprint], before: Mapping[str, Fingerprint]
) -> _Queries:
    digests = {
        query: (getattr(now.get(query, Fingerprint()), part), getattr(before.get(query, Fingerprint()), part))
        for query in queries
    }
    if any(all(pair[side] is None for pair in digests.values()) for side in (0, 1)):
        return frozenset()
    return frozenset(query for query, (new, old) in digests.items() if new != old)
