"""The keys `cluster:`, `weight:` and `weights:`: which questions belong together, and how much each counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rageval_spec.diagnostics import Diagnostic, Position, suggest
from rageval_spec.spec.blocks.input_files import check_file
from rageval_spec.spec.blocks.spec_node import QuestionWeightsNode, SpecNode
from rageval_spec.spec.text.places import KeyPath, Places, TextPlace, list_hint, quote
from rageval_spec.store.disk import InputFile

CLUSTER, WEIGHT, WEIGHTS = KEYS = ("cluster", "weight", "weights")


def resolve_weight_keys(node: SpecNode, datasets: Sequence[str]) -> dict[str, QuestionWeightsNode]:
    """The design of each dataset that has one. `repeat`, and a key whose value is one text, concern every dataset."""
    found = dict.fromkeys(datasets if node.repeat > 1 else (), QuestionWeightsNode())
    for key in KEYS:
        written: str | dict[str, str] | None = getattr(node, key)
        of = {} if written is None else dict.fromkeys(datasets, written) if isinstance(written, str) else written
        for dataset in datasets:
            if dataset in of:
                found[dataset] = replace(found.get(dataset, QuestionWeightsNode()), **{key: of[dataset]})
    return {dataset: found[dataset] for dataset in datasets if dataset in found}


def find_key(spec_places: Places, key: str, dataset: str) -> KeyPath:
    """The key path of what a spec says of a dataset: `("cluster", "golden")`, or `("cluster",)` for all."""
    return (key, dataset) if (key, dataset) in spec_places else (key,)


def check_weight_keys(
    node: SpecNode, datasets: Sequence[str] | None, places: Places, folder: Path, *, check_files: bool
) -> Iterator[Diagnostic]:
    """Diagnostics of unknown datasets, missing files, and keys that exclude one another.

    `datasets` are the names of the spec's datasets; None if they are not known.
    """
    known = node.model_dump(include={*KEYS})
    for path, message, hint in _find_faults(known, datasets):
        place = places.nearest(path)
        yield (_find_name(place, str(path[1])) if len(path) > 1 else place).diagnose(message, "wrong-weights", hint)
    mixes = known[WEIGHTS] or {}
    files: dict[KeyPath, str] = (
        {(WEIGHTS,): mixes} if isinstance(mixes, str) else {(WEIGHTS, name): mix for name, mix in mixes.items()}
    )
    for path, written in files.items() if check_files else ():
        if fault := check_file(InputFile(folder / written, path), folder):
            message, code, hint = fault
            yield places.diagnose(path, message, code, hint or f"for a column of weights, write 'weight: {written}'")
    if node.stopping is not None and (node.repeat > 1 or any(known.values())):
        key = next((key for key in KEYS if known[key]), "repeat")
        message = f"'stopping' cannot be combined with {quote(key)}"
        reason = "it decides by questions that are drawn one by one and all count the same; remove one of the two"
        yield places.diagnose(("stopping",), message, "wrong-weights", reason)


def _find_faults(known: Mapping[str, Any], datasets: Sequence[str] | None) -> Iterator[tuple[KeyPath, str, str | None]]:
    for key in KEYS:
        if not isinstance(known[key], dict):
            continue
        if not known[key]:
            yield (key,), f"{quote(key)} names no dataset", "write a dataset and its value, or one value for all"
        for name in known[key]:
            if datasets is not None and name not in datasets:
                hint = suggest(name, datasets) or list_hint(datasets)
                yield (key, name), f"the spec has no dataset {quote(name)}", hint
    every = [known[key] or () for key in (WEIGHT, WEIGHTS)]
    weighted, mixed = ({*(datasets or ())} if isinstance(written, str) else {*written} for written in every)
    both = weighted & mixed
    if both:
        message = f"the questions of {quote(min(both))} have 'weight' and 'weights'"
        path: KeyPath = (WEIGHTS, min(both)) if isinstance(known[WEIGHTS], dict) else (WEIGHTS,)
        yield path, message, "keep 'weight' for a column of weights, or 'weights' for the mix of production"


def _find_name(place: TextPlace, name: str) -> TextPlace:
    """The place of a dataset's name, before its value on the same line; that of the value if it is elsewhere."""
    found = place.source_line.rfind(name, 0, max(0, place.position.column - 1))
    position = Position(place.position.line, found + 1, len(name))
    return place if found < 0 else place._replace(position=position)
