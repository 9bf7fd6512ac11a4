"""The keys `cluster:`, `weight:` and `weights:`: which questions belong together, and how much each counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rageval_spec.diagnostics import Diagnostic, Position, suggest
from rageval_spec.spec.blocks.input_files import check_file
from rageval_spec.spec.blocks.spec_node import QuestionWeightsNode, SpecNode
from rageval_spec.spec.text.places import KeyPath, TextPlace, list_hint, nearest_place, quote
from rageval_spec.store.disk import InputFile

CLUSTER, WEIGHT, WEIGHTS = KEYS = ("cluster", "weight", "weights")


def resolve_weight_keys(node: SpecNode, datasets: Sequence[str]) -> dict[str, QuestionWeightsNode]:
    """The design of each dataset that has one. A key whose value is one text concerns every dataset."""
    found: dict[str, QuestionWeightsNode] = {}
    for key in KEYS:
        written: str | dict[str, str] | None = getattr(node, key)
        of = {} if written is None else dict.fromkeys(datasets, written) if isinstance(written, str) else written
        for dataset in datasets:
            if dataset in of:
                found[dataset] = replace(found.get(dataset, QuestionWeightsNode()), **{key: of[dataset]})
    return {dataset: found[dataset] for dataset in datasets if dataset in found}


def find_key(spec_places: Mapping[KeyPath, TextPlace], key: str, dataset: str) -> KeyPath:
    """The key path of what a spec says of a dataset: `("cluster", "golden")`, or `("cluster",)` for all."""
    return (key, dataset) if (key, dataset) in spec_places else (key,)


def check_weight_keys(
    node: SpecNode,
    datasets: Sequence[str] | None,
    places: Mapping[KeyPath, TextPlace],
    folder: Path,
    *,
    check_files: bool,
) -> Iterator[Diagnostic]:
    """Diagnostics of unknown datasets, missing files, and keys that exclude one another.

    `datasets` are the names of the spec's datasets; None if they are not known.
    """
    known = node.model_dump(include={*KEYS})
    for path, message, hint in _find_faults(known, datasets):
        place = _place(places, path)
        yield (_find_name(place, str(path[1])) if len(path) > 1 else place).diagnose(message, "design", hint)
    for path in _list_files(known[WEIGHTS]) if check_files else ():
        written = known[WEIGHTS] if len(path) == 1 else known[WEIGHTS][path[1]]
        if fault := check_file(InputFile(folder / written, path), folder):
            message, code, hint = fault
            yield _place(places, path).diagnose(
                message, code, hint or f"for a column of weights, write 'weight: {written}'"
            )
    if node.stopping is not None and any(known.values()):
        key = next(key for key in KEYS if known[key])
        message = f"'stopping' cannot be combined with {quote(key)}"
        reason = "it decides by questions that are drawn one by one and all count the same; remove one of the two"
        yield _place(places, ("stopping",)).diagnose(message, "design", reason)


def _find_faults(known: Mapping[str, Any], datasets: Sequence[str] | None) -> Iterator[tuple[KeyPath, str, str | None]]:
    for key in KEYS:
        if not isinstance(known[key], dict):
            continue
        if not known[key]:
            yield (key,), f"{quote(key)} names no dataset", "write a dataset and its value, or one value for all"
        for name in known[key] if datasets is not None else ():
            if name not in (datasets or ()):
                hint = suggest(name, [*(datasets or ())]) or list_hint([*(datasets or ())])
                yield (key, name), f"the spec has no dataset {quote(name)}", hint
    both = _list_datasets(known[WEIGHT], datasets) & _list_datasets(known[WEIGHTS], datasets)
    if both:
        message = f"the questions of {quote(min(both))} have 'weight' and 'weights'"
        path: KeyPath = (WEIGHTS, min(both)) if isinstance(known[WEIGHTS], dict) else (WEIGHTS,)
        yield path, message, "keep 'weight' for a column of weights, or 'weights' for the mix of production"


def _list_datasets(written: str | Mapping[str, str] | None, datasets: Sequence[str] | None) -> set[str]:
    return set() if written is None else {*(datasets or ())} if isinstance(written, str) else {*written}


def _list_files(written: str | Mapping[str, str] | None) -> list[KeyPath]:
    return (
        [] if written is None else [(WEIGHTS,)] if isinstance(written, str) else [(WEIGHTS, name) for name in written]
    )


def _find_name(place: TextPlace, name: str) -> TextPlace:
    """The place of a dataset's name, before its value on the same line; that of the value if it is elsewhere."""
    found = place.source_line.rfind(name, 0, max(0, place.position.column - 1))
    position = Position(place.position.line, found + 1, len(name))
    return place if found < 0 else place._replace(position=position)


def _place(places: Mapping[KeyPath, TextPlace], path: KeyPath) -> TextPlace:
    place = nearest_place(places, path)
    assert place is not None, "every key of a spec that was read has a place"
    return place
