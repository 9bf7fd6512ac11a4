"""Checks that the blocks of a spec fit together, which no block can check by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.diagnostics import Diagnostic, SpecError
from rageval_spec.errors import RagevalError
from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.plugin import AnswerMetric, Plugin
from rageval_spec.spec import load
from rageval_spec.spec.nodes import Spec
from rageval_spec.spec.places import KeyPath


def validate(path: Path, overrides: Sequence[str] = ()) -> Spec:
    """Load a spec and check that its blocks fit together. Reads no data except the names of columns.

    Raises:
        SpecError: the spec is wrong; it holds every diagnostic.
    """
    spec = load(path, overrides=overrides)
    check_wiring(spec, build_parts(spec, budget=spec.limits.budget()))
    return spec


def check_wiring(spec: Spec, parts: Parts) -> None:
    """Let every plugin check the blocks and files that it names. Reads only as much of a file as shows its columns.

    Raises:
        SpecError: a plugin found a fault; it holds a diagnostic for each, at its place.
    """
    diagnostics = sorted(_find_faults(spec, parts), key=lambda fault: (fault.path, fault.position, fault.message))
    if diagnostics:
        raise SpecError(diagnostics)


def _find_faults(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    for path, plugin in _list_plugins(parts):
        try:
            fault = plugin.check()
        except RagevalError as error:
            fault = str(error)
        if fault is not None:
            yield spec.diagnose(path, fault, "wiring")
        for found in plugin.check_files():
            yield spec.diagnose((*path, *found.key), found.message, found.code, found.hint)
    yield from _find_unanswered(spec, parts)


def _find_unanswered(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A diagnostic for each metric of answers, if every system of the spec only retrieves."""
    if any(system.can_answer for system in parts.systems.values()):
        return
    for index, (name, metric) in enumerate(parts.metrics.items()):
        if isinstance(metric, AnswerMetric):
            message = f"{name} is a metric of answers, but no system of this spec answers"
            hint = "add a system with answers: {use: file, path: answers.jsonl}, or use http, python or command"
            yield spec.diagnose(("metrics", index), message, "wiring", hint)


def _list_plugins(parts: Parts) -> Iterator[tuple[KeyPath, Plugin[Any]]]:
    named: Mapping[str, Mapping[str, Plugin[Any]]] = {
        "datasets": parts.datasets,
        "systems": {**parts.sources, **parts.systems},
        "models": parts.models,
        "judges": parts.judges,
    }
    for section, plugins in named.items():
        yield from (((section, name), plugin) for name, plugin in plugins.items())
    yield from ((("metrics", index), metric) for index, metric in enumerate(parts.metrics.values()))
