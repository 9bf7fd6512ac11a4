"""Describes where the numbers of an evaluation come from: the spec, the data, and what each metric measures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.plugin.credentials import is_credential
from rageval_spec.spec.designing import KEYS

if TYPE_CHECKING:
    from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
    from rageval_spec.pipeline.plan import Plan
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.nodes import Spec

_HIDDEN = "***"
_SECTIONS = ("datasets", "systems", "models", "judges")
_BLOCKS = ("ranking", "statistics", "diagnosis", "limits")
_OF_MACHINE = ("threads", "concurrency")
"""Limits that fit an evaluation to a machine; equal input must give equal bytes with any of them."""
_PARTS: Mapping[str, str] = {"question": "questions", "reference": "references", "judgements": "qrels"}
"""The parts of a fingerprint, and what they are called in `Evaluation.digests`."""


def describe_spec(spec: Spec, metrics: Mapping[str, Metric[Any]] | None = None) -> dict[str, Any]:
    """The validated spec in JSON types, with its defaults. A secret appears as `${secret:NAME}`.

    Values that look like keys or tokens, although they were written in plain text, are hidden. With the plugins of the
    `metrics`, settings that metrics take from other blocks are written out.
    """
    content: dict[str, Any] = {"version": 1, "name": spec.name}
    for section in _SECTIONS:
        content[section] = {name: _dump(node) for name, node in getattr(spec, section).items()}
    if spec.labels:
        content["labels"] = {name: _dump(node) for name, node in spec.labels.items()}
    content["metrics"] = [_dump(one.node) for one in spec.metrics] if metrics is None else _record(metrics)
    content["gates"] = [gate.content() for gate in spec.gates]
    content |= {name: _dump(getattr(spec, name)) for name in _BLOCKS}
    content["limits"] = {key: value for key, value in content["limits"].items() if key not in _OF_MACHINE}
    content["slices"] = [_dump(entry) for entry in spec.slices]
    content |= {"samples": spec.samples, "redact": list(spec.redact)}
    content |= _describe_designs(spec)
    if spec.stopping is not None:
        content["stopping"] = _dump(spec.stopping)
    content["reports"] = [_dump(report) for report in spec.reports]
    hidden: dict[str, Any] = _hide(content, "")
    return hidden


def _describe_designs(spec: Spec) -> dict[str, dict[str, str]]:
    """The columns of clusters and weights and the files of production mixes, by key and dataset."""
    designs = {name: node for name, node in spec.designs.items() if name in spec.datasets}
    found = {key: {name: of for name, node in designs.items() if (of := getattr(node, key))} for key in KEYS}
    return {key: of for key, of in found.items() if of}


def _record(metrics: Mapping[str, Metric[Any]]) -> list[dict[str, Any]]:
    return [metric.recorded() for metric in metrics.values()]


def _dump(node: Any) -> Any:
    return node.model_dump(mode="json", by_alias=True)


def _hide(content: Any, key: str) -> Any:
    if isinstance(content, dict):
        return {name: _hide(value, name) for name, value in content.items()}
    if isinstance(content, list):
        return [_hide(value, key) for value in content]
    return _HIDDEN if isinstance(content, str) and is_credential(content, key) else content


def digest_data(fingerprints: Fingerprints, plan: Plan | None = None) -> dict[str, dict[str, str]]:
    """The sha256 of each dataset's evaluated questions, references and judgements, and of the files of its corpus.

    A part that no query has, or that was not read, is left out.
    """
    digests = {dataset: dict(_digest_parts(queries)) for dataset, queries in fingerprints.datasets.items()}
    for dataset, digest in _digest_corpora(plan):
        digests.setdefault(dataset, {})["corpus"] = digest
    return {dataset: dict(sorted(parts.items())) for dataset, parts in digests.items()}


def _digest_parts(queries: Mapping[str, Fingerprint]) -> Iterator[tuple[str, str]]:
    for field, part in _PARTS.items():
        known = {query_id: digest for query_id, one in queries.items() if (digest := getattr(one, field)) is not None}
        if known:
            yield part, _digest(sorted(known.items()))


def _digest_corpora(plan: Plan | None) -> Iterator[tuple[str, str]]:
    for step in () if plan is None else plan.steps:
        if step.kind == "open":
            files = [(file, digest) for file, digest in zip(step.inputs, step.digests, strict=True)]
            corpus = [digest for file, digest in files if "corpus" in (*file.key, file.path.stem)]
            if corpus:
                yield str(step.dataset), _digest(corpus)


def _digest(content: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(list(content), ensure_ascii=True).encode()).hexdigest()


def summarize_metrics(metrics: Mapping[str, Metric[Any]]) -> dict[str, str]:
    """What each metric measures, in a sentence, by its name."""
    return {name: metric.info.summary for name, metric in metrics.items()}


def digest_implementations(metrics: Mapping[str, Metric[Any]]) -> dict[str, str]:
    """The sha256 of each metric's version and of the content of its files, by name."""
    return {name: _digest(_list_implementation(metric)) for name, metric in metrics.items()}


def _list_implementation(metric: Metric[Any]) -> Iterator[Any]:
    content = metric.content()
    yield from (content.get("version"), content.get("files", []))
