"""Says what differs between an evaluation and a baseline besides the systems, before numbers are compared.

Queries that were changed, added or removed are left out of comparisons. Where the references, relevance judgements,
judge, prompt, model or definition behind a metric changed, its numbers are of another kind and the comparison is
marked as not comparable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from rageval_spec.data.datasets import DesignSummary, Fingerprint
from rageval_spec.data.outcomes import BaselineChange, ChangedPart, Note, Overlap
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.history.metric_definitions import list_changes, read_definitions
from rageval_spec.libraries import pl
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Comparison, Evaluation


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


_NOUNS: Mapping[ChangedPart, tuple[str, str]] = {
    "references": ("the reference of 1 query", "the references of {} queries"),
    "qrels": ("the relevance judgements of 1 query", "the relevance judgements of {} queries"),
}


@dataclass(frozen=True)
class Comparability:
    """What differs between an evaluation and a baseline besides the systems.

    Attributes:
        edits: how the queries of each dataset that both have differ.
        corpora, nuggets: the datasets whose corpus, or whose file of nuggets, is not the same.
        changes: for each metric that both have, what changed in its meaning.
        reads: the data that each metric reads; a metric that is not known can read everything.
        is_spec_known: whether the baseline recorded its spec; if not, changes of metrics and judges are not known.
        reweighted: the datasets whose questions are weighted in another way than in the baseline, with both ways in
            words. Comparisons weight both sides alike, so only the baseline's own means are of another kind.
        accepted: the parts whose changes do not prevent a comparison.
    """

    baseline: str
    edits: Mapping[str, Edits] = field(default_factory=dict)
    corpora: tuple[str, ...] = ()
    nuggets: tuple[str, ...] = ()
    changes: Mapping[str, tuple[BaselineChange, ...]] = field(default_factory=dict)
    reads: Mapping[str, Collection[str]] = field(default_factory=dict)
    is_spec_known: bool = True
    reweighted: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """How many queries of each dataset can be compared."""
        return tuple(
            Overlap(dataset, self.baseline, *map(len, (found.same, found.changed, found.added, found.removed)))
            for dataset, found in self.edits.items()
        )

    def find_overlap(self, dataset: str) -> Overlap | None:
        """How many queries of a dataset can be compared; None if the baseline does not have the dataset."""
        return next((overlap for overlap in self.overlaps if overlap.dataset == dataset), None)

    def keep_same(self, values: pl.DataFrame) -> pl.DataFrame:
        """The values without those of queries whose question changed."""
        changed = [(dataset, query) for dataset, found in self.edits.items() for query in sorted(found.changed)]
        if not changed:
            return values
        keys = pl.DataFrame(changed, schema={"dataset": pl.String, "query_id": pl.String}, orient="row")
        return values.join(keys, on=["dataset", "query_id"], how="anti", maintain_order="left")

    def accept(self, parts: Collection[str]) -> Comparability:
        """The same, but changes of these parts, such as "references", do not prevent a comparison."""
        return replace(self, accepted=frozenset(parts))

    def list_changes(
        self, metric: str, dataset: str, query_ids: Collection[str] | None = None
    ) -> tuple[BaselineChange, ...]:
        """What makes a metric's numbers on a dataset, or on some of its queries, not comparable with the baseline's."""
        found = (*self._list_edited(metric, dataset, query_ids), *self.changes.get(metric, ()))
        return tuple(change for change in found if change.part not in self.accepted)

    def mark(self, found: Iterable[Comparison], query_ids: Collection[str] | None = None) -> tuple[Comparison, ...]:
        """The comparisons with the baseline, each with what makes it not comparable; see `list_changes`."""
        return tuple(replace(one, changes=self.list_changes(one.metric, one.dataset, query_ids)) for one in found)

    def _list_edited(self, metric: str, dataset: str, query_ids: Collection[str] | None) -> Iterator[BaselineChange]:
        edits = self.edits.get(dataset)
        if edits is None:
            return
        edited: Mapping[ChangedPart, frozenset[str]] = {"references": edits.references, "qrels": edits.judgements}
        for part, queries in edited.items():
            count = len(queries) if query_ids is None else len(queries.intersection(query_ids))
            if count and part in self.reads.get(metric, _NOUNS):
                one, many = _NOUNS[part]
                yield BaselineChange(part, f"{one if count == 1 else many.format(count)} changed")


def find_comparability(evaluation: Evaluation, earlier: Evaluation, baseline: str) -> Comparability:
    """Find what differs between an evaluation and an earlier one. What one of them did not record is not compared."""
    now, before = read_definitions(evaluation), read_definitions(earlier)
    changes = {
        name: tuple(list_changes(definition, before[name]))
        for name, definition in (now or {}).items()
        if before is not None and name in before
    }
    return Comparability(
        baseline,
        find_edits(evaluation, earlier),
        tuple(_find_changed_files(evaluation, earlier, "corpus")),
        tuple(_find_changed_files(evaluation, earlier, "nuggets")),
        changes,
        {name: definition.reads for name, definition in {**(before or {}), **(now or {})}.items()},
        before is not None,
        dict(_find_reweighted(evaluation, earlier)),
    )


def _find_reweighted(evaluation: Evaluation, earlier: Evaluation) -> Iterator[tuple[str, str]]:
    for dataset in evaluation.datasets:
        now, before = evaluation.designs.get(dataset), earlier.designs.get(dataset)
        if dataset in earlier.datasets and _list_weighting(now) != _list_weighting(before):
            told = [of.source if of is not None and of.is_weighted else "no weights" for of in (before, now)]
            same = "the content of its weights changed" if told[0] == told[1] else f"{told[0]}, now {told[1]}"
            yield dataset, same


def _list_weighting(summary: DesignSummary | None) -> object:
    """What decides about weights; the weights of a column are known by the column alone."""
    if summary is None or not summary.is_weighted:
        return None
    return summary.weight, {one.name: one.share for one in summary.strata}


def _find_changed_files(now: Evaluation, before: Evaluation, part: str) -> Iterator[str]:
    for dataset, digests in now.provenance.digests.items():
        pair = digests.get(part), before.provenance.digests.get(dataset, {}).get(part)
        if None not in pair and pair[0] != pair[1]:
            yield dataset


def describe_overlap(overlap: Overlap, noun: str = "query", plural: str = "queries") -> str:
    """`compared with main on 37 of 40 queries: 2 changed, 1 is new`; "" if both have the same queries."""
    if overlap.is_complete:
        return ""
    counts = [
        (overlap.changed, "changed", "changed"),
        (overlap.added, "is new", "are new"),
        (overlap.removed, "was removed", "were removed"),
    ]
    told = ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)
    shown = f"{overlap.same} of {count_noun(overlap.total, noun, plural)}"
    return f"compared with {overlap.baseline} on {shown}: {told}"


def describe_changes(changes: Iterable[BaselineChange]) -> str:
    """`the references of 3 queries changed; the judge's prompt changed: strict.verify`."""
    return "; ".join(change.told for change in changes)


def list_notes(comparability: Comparability, metrics: Mapping[str, Collection[str]]) -> Iterator[Note]:
    """What a reader of comparisons must know: what was left out, what changed, and what is not known.

    `metrics` are those that are compared, each with the parts whose changes the spec accepts.
    """
    baseline = comparability.baseline
    for overlap in comparability.overlaps:
        if told := describe_overlap(overlap):
            left_out = overlap.changed + overlap.added + overlap.removed
            yield Note("other_queries", told, overlap.dataset, count=left_out, level="warning")
        for metric, accepted in metrics.items():
            changes = comparability.list_changes(metric, overlap.dataset)
            if any(change.part not in accepted for change in changes):
                message = f"{metric}: not comparable with {baseline}: {describe_changes(changes)}"
                yield Note("not_comparable", message, overlap.dataset, level="warning")
            elif changes:
                message = f"{metric}: compared with {baseline} although {describe_changes(changes)}"
                yield Note("accepted_changes", message, overlap.dataset)
    for dataset in comparability.corpora:
        message = f"the corpus is not the one of {baseline}; differences can come from it as well as from the systems"
        yield Note("other_corpus", message, dataset, level="warning")
    for dataset in comparability.nuggets:
        message = f"the nuggets are not those of {baseline}; differences can come from them as well as from the systems"
        yield Note("other_nuggets", message, dataset, level="warning")
    for dataset, told in comparability.reweighted.items():
        message = (
            f"{baseline} was weighted in another way ({told}); comparisons weight both sides as this evaluation does"
        )
        yield Note("other_weights", message, dataset)
    if unknown := describe_unknown(comparability, f"the baseline {baseline}"):
        yield Note("unknown_changes", unknown)


def describe_unknown(comparability: Comparability, subject: str) -> str:
    """What the earlier evaluation did not record, so that changes cannot be seen; "" if it recorded everything.

    `subject` names it in the sentence.
    """
    unknown = [] if comparability.is_spec_known else ["metrics, judges, prompts and models"]
    if any(not found.is_known for found in comparability.edits.values()):
        unknown.insert(0, "questions, references and relevance judgements")
    if not unknown:
        return ""
    return (
        f"{subject} did not record its {', or its '.join(unknown)}, so it is not known whether they changed; "
        "to have them checked, record it again with this version"
    )
