"""Reduces a spec to the datasets, systems and metrics that `--only`, or `only=` of `rageval_spec.run`, selects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, TypeVar

from rageval_spec import registry
from rageval_spec.data.outcomes import Note
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import AnswerMetric, Context, Node, System
from rageval_spec.plugin.block_names import ReferredSection, list_references, names_in
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.text.places import Places
from rageval_spec.wording import count_noun

T = TypeVar("T")


def select(spec: Spec, patterns: Sequence[str]) -> tuple[Spec, tuple[Note, ...]]:
    """Keep only the datasets, systems and metrics whose names match one of the patterns.

    A pattern is a name, or contains `*`, `?` or `[...]` like a shell pattern. A section in which no name matches any
    pattern stays whole, so `bm25` keeps every metric that it can have: if no selected system answers, metrics of
    answers are left out unless a pattern names them. Systems that the selected ones name move to `sources`. Models and
    judges that are no longer named are removed, even without a pattern. Gates whose metric, system, dataset or baseline
    was removed are removed too, with a note. Raises `UsageError` if a pattern matches nothing.
    """
    if not patterns:
        return _keep_needed(spec, spec), ()
    check_patterns(spec, patterns)
    metrics = {metric.name: metric for metric in spec.metrics}
    selected = replace(
        spec,
        datasets=_keep(spec.datasets, patterns),
        systems=_keep(spec.systems, patterns),
        metrics=tuple(_keep(metrics, patterns).values()),
    )
    if not _matching(metrics, patterns):
        selected = _drop_unanswered(selected, spec)
    return _drop_gates(_keep_needed(selected, spec), spec)


def check_patterns(spec: Spec, patterns: Sequence[str], option: str = "--only {}") -> None:
    """Refuse a pattern that matches no name; `option` is how the caller wrote it, with `{}` for the pattern."""
    names = (*spec.datasets, *spec.systems, *(metric.name for metric in spec.metrics))
    for pattern in patterns:
        if not _matching(names, [pattern]):
            hint = suggest(pattern, names) or f"there are {', '.join(names)}"
            if pattern in spec.models:
                users = [system for system, node in spec.systems.items() if pattern in names_in(node, "models")]
                hint = f"it is a model that {', '.join(users)} uses" if users else "it is a model"
            raise UsageError(f"{option.format(pattern)}: no dataset, system or metric has this name; {hint}")


def _drop_unanswered(selected: Spec, whole: Spec) -> Spec:
    """The selected spec without metrics of answers, if every system that answers was left out."""
    if _has_answers(selected) or not _has_answers(whole):
        return selected
    kept = tuple(
        metric for metric in selected.metrics if not issubclass(registry.load("metrics", metric.node.use), AnswerMetric)
    )
    return replace(selected, metrics=kept) if kept else selected


def _has_answers(spec: Spec) -> bool:
    return any(_answers(name, node, spec) for name, node in spec.systems.items())


def _answers(name: str, node: Node, spec: Spec) -> bool:
    """Whether a system answers on any dataset. A file can hold answers or a ranking, so its beginning is read."""
    plugin: type[System[Any]] = registry.load("systems", node.use)
    if not plugin.can_answer or plugin.answers_on is System.answers_on:
        return plugin.can_answer
    system = plugin(node, Context(name, spec.folder))
    try:
        return any(system.answers_on(dataset) for dataset in spec.datasets)
    except RagevalError:
        return True  # reading the file reports what is wrong with it


def _keep_needed(selected: Spec, whole: Spec) -> Spec:
    """The selected spec with only the sources, models and judges that it needs."""
    roots = (
        *selected.datasets.values(), *selected.systems.values(), *(metric.node for metric in selected.metrics)
    )  # fmt: skip
    needed = find_needed(roots, whole)
    sources = needed.pop("systems") - selected.systems.keys()
    others: dict[str, Any] = {section: _take(getattr(whole, section), names) for section, names in needed.items()}
    return replace(selected, sources=_take({**whole.sources, **whole.systems}, sources), **others)


def find_needed(roots: Iterable[Node], whole: Spec) -> dict[ReferredSection, set[str]]:
    """The names that nodes refer to, those that the nodes with these names refer to, and so on."""
    sections: dict[ReferredSection, Mapping[str, Node]] = {
        "systems": {**whole.sources, **whole.systems},
        "models": whole.models,
        "judges": whole.judges,
        "labels": whole.labels,
    }
    needed: dict[ReferredSection, set[str]] = {section: set() for section in sections}
    waiting = list(roots)
    while waiting:
        for found in list_references(waiting.pop()):
            if found.name in sections[found.section] and found.name not in needed[found.section]:
                needed[found.section].add(found.name)
                waiting.append(sections[found.section][found.name])
    return needed


def _take(section: Mapping[str, T], names: Collection[str]) -> Mapping[str, T]:
    """The blocks with these names, in the order of the spec."""
    return MappingProxyType({name: block for name, block in section.items() if name in names})


def _keep(section: Mapping[str, T], patterns: Sequence[str]) -> dict[str, T]:
    matching = _matching(section, patterns)
    return {name: section[name] for name in matching or section}


def _matching(names: Sequence[str] | Mapping[str, T], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)]


def _drop_gates(selected: Spec, whole: Spec) -> tuple[Spec, tuple[Note, ...]]:
    kept = tuple(gate for gate in selected.gates if _is_checkable(gate, selected, whole))
    dropped = len(whole.gates) - len(kept)
    if not dropped:
        return selected, ()
    are, whose = ("is", "its") if dropped == 1 else ("are", "their")
    gates = f"{dropped} of {count_noun(len(whole.gates), 'gate')} {are} not checked"
    note = Note("gates_left_out", f"{gates}: {whose} metric, system or dataset was left out", count=dropped)
    return replace(selected, gates=kept, places=_renumber_gates(selected, kept)), (note,)


def _renumber_gates(spec: Spec, kept: Sequence[GateNode]) -> Places:
    """The places of the spec, with those of the kept gates under the numbers that they have now."""
    numbers: dict[str | int, int] = {}
    for index, gate in enumerate(spec.gates):
        if len(numbers) < len(kept) and gate is kept[len(numbers)]:
            numbers[index] = len(numbers)
    others = {path: place for path, place in spec.places.items() if path[:1] != ("gates",) or len(path) == 1}
    gates = {
        ("gates", numbers[path[1]], *path[2:]): place
        for path, place in spec.places.items()
        if path[:1] == ("gates",) and len(path) > 1 and path[1] in numbers
    }
    return Places({**others, **gates})


def _is_checkable(gate: GateNode, selected: Spec, whole: Spec) -> bool:
    return (
        gate.metric in {metric.name for metric in selected.metrics}
        and (gate.system is None or gate.system in selected.systems)
        and (gate.dataset is None or gate.dataset in selected.datasets)
        and (gate.baseline not in whole.systems or gate.baseline in selected.systems)
    )
