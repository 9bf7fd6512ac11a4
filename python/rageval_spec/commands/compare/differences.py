"""Says what else differs between two evaluations, because it can explain a change as well as the systems can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rageval_spec.commands.compare.corrected import describe_unlike
from rageval_spec.data.fingerprints import Fingerprint
from rageval_spec.history.comparability import describe_changes, describe_overlap, describe_unknown
from rageval_spec.history.folder import list_setting_changes
from rageval_spec.reports.shared.changes import match_systems
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.history.comparability import Comparability

_PARTS = {"question": "question", "reference": "reference", "judgements": "relevance judgements"}


def list_differences(evaluation: Evaluation, earlier: Evaluation, known: Comparability) -> list[str]:
    """One sentence for each difference: other questions, what is not comparable, settings, models, prompts, versions.

    Args:
        evaluation: the later evaluation.
        earlier: the earlier one.
        known: what `find_comparability` found.
    """
    return [
        *_list_data(evaluation, known),
        *_list_versions(evaluation, earlier),
        *describe_unlike(evaluation, earlier),
        *_list_systems(evaluation, earlier),
        *_list_absent("metric", evaluation.metrics, earlier.metrics),
        *_list_absent("dataset", evaluation.datasets, earlier.datasets),
        *(f"{key}: {old} before, {new} after" for key, new, old in list_setting_changes(evaluation, earlier)),
        *(f"the model {name} is not the same" for name in _find_changed(evaluation.models, earlier.models)),
        *(f"the prompt {name} was edited" for name in _find_changed(evaluation.prompts, earlier.prompts)),
        *(
            f"{name} {earlier.versions[name]} before, {evaluation.versions[name]} after"
            for name in _find_changed(evaluation.versions, earlier.versions)
        ),
    ]


def _list_data(evaluation: Evaluation, known: Comparability) -> Iterator[str]:
    """What differs in the data, and the metrics that are not comparable; metrics with the same changes share a line."""
    several = len(evaluation.datasets) > 1
    for overlap in known.overlaps:
        where = f"{overlap.dataset}: " if several else ""
        if told := describe_overlap(overlap, "question", "questions"):
            yield f"{where}{told}"
        metrics: dict[str, list[str]] = {}
        for metric in evaluation.metrics:
            if changes := known.list_changes(metric, overlap.dataset):
                metrics.setdefault(describe_changes(changes), []).append(metric)
        for told, names in metrics.items():
            yield f"{where}not comparable: {list_names(names)}, because {told}"
        if overlap.dataset in known.corpora:
            yield f"{where}the corpus is not the same"
        if weights := known.reweighted.get(overlap.dataset):
            yield f"{where}means were weighted in another way ({weights}); differences weight both sides alike"
    if unknown := describe_unknown(known, "the earlier evaluation"):
        yield unknown


def _list_versions(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    """Versions of datasets that changed, and those that did not although the data did, or the other way round."""
    for dataset in evaluation.datasets:
        now, before = _find_version(evaluation, dataset), _find_version(earlier, dataset)
        if now is None and before is None:
            continue
        parts = [*_find_edited(evaluation, earlier, dataset)]
        if now != before:
            same = "" if parts or not evaluation.digests.get(dataset) else "; its content is the same"
            yield f"the dataset {dataset} had version {before or 'unknown'} before and has {now or 'unknown'} now{same}"
        elif parts:
            yield f"the dataset {dataset} has version {now} before and after, but its {list_names(parts)} changed"


def _find_version(evaluation: Evaluation, dataset: str) -> str | None:
    origin = evaluation.origins.get(dataset)
    return None if origin is None else origin.version


def _find_edited(evaluation: Evaluation, earlier: Evaluation, dataset: str) -> Iterator[str]:
    """The parts whose digests differ; the same questions are needed, because digests are of the evaluated ones."""
    now, before = evaluation.digests.get(dataset, {}), earlier.digests.get(dataset, {})
    yield from (part for part, digest in now.items() if before.get(part, digest) != digest)


def _list_systems(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    matched = match_systems(evaluation.systems, earlier.systems)
    for now, before in matched.items():
        if now != before:
            yield f"the system {now} is compared with {before}"
    yield from _list_absent(
        "system",
        [name for name in evaluation.systems if name not in matched],
        [name for name in earlier.systems if name not in matched.values()],
    )


def _list_absent(noun: str, now: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    for side, here, there in (("before", before, now), ("after", now, before)):
        names = [name for name in here if name not in there]
        if names:
            yield f"only {side}: the {noun}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _find_changed(now: Mapping[str, object], before: Mapping[str, object]) -> list[str]:
    return sorted(name for name in now if name in before and now[name] != before[name])


def list_edited_parts(evaluation: Evaluation, earlier: Evaluation, dataset: str, query_id: str) -> list[str]:
    """The parts of one question that were edited: `question`, `reference`, `relevance judgements`."""
    now, before = (
        one.fingerprints.datasets.get(dataset, {}).get(query_id, Fingerprint()) for one in (evaluation, earlier)
    )
    pairs = {part: (getattr(now, part), getattr(before, part)) for part in _PARTS}
    return [_PARTS[part] for part, (new, old) in pairs.items() if new is not None and old is not None and new != old]
