"""Digests of what decides whether two numbers can be compared: the data, the metric's definition, and its judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.plugin import RankingMetric
from rageval_spec.plugin.names import list_references

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.fingerprints import Fingerprint
    from rageval_spec.spec.nodes import Spec

PARTS = ("question", "reference", "judgements")
"""The parts of a query that `Fingerprint` holds."""
_DIGEST_LENGTH = 16


def take_meaning(evaluation: Evaluation, spec: Spec | None) -> dict[str, Any]:
    """The digests of an evaluation: `data`, by dataset and part, and `metrics`, by metric: "definition" and "judge".

    What is not known is absent: the parts that no system or metric uses, and all metrics if there is no spec. A
    metric's "judge" covers the judges, models and prompts that it uses; a metric that uses none has no such digest.
    """
    fingerprints = evaluation.fingerprints.datasets
    data = {dataset: dict(_digest_data(of)) for dataset, of in fingerprints.items()}
    metrics = {} if spec is None else {one.name: _digest_metric(one.node, evaluation, spec) for one in spec.metrics}
    return {"data": data, "metrics": metrics}


def _digest_data(fingerprints: Mapping[str, Fingerprint]) -> Iterator[tuple[str, str]]:
    for part in PARTS:
        found = [(query_id, getattr(of, part)) for query_id, of in sorted(fingerprints.items())]
        if any(digest is not None for _, digest in found):
            yield part, _digest(found)


def _digest_metric(node: Any, evaluation: Evaluation, spec: Spec) -> dict[str, str]:
    content = node.model_dump(mode="json", exclude={"as_"})
    if issubclass(registry.load("metrics", node.use), RankingMetric):
        content = [content, spec.ranking.model_dump(mode="json", exclude={"tie_range"})]
    digests = {"definition": _digest(content)}
    if used := list(_list_used(node, evaluation, spec, set())):
        digests["judge"] = _digest(used)
    return digests


def _list_used(node: BaseModel, evaluation: Evaluation, spec: Spec, seen: set[tuple[str, str]]) -> Iterator[Any]:
    """The content of the judges and models that a node refers to, and of those that these refer to."""
    for section, name, *_ in list_references(node):
        if section == "systems" or (section, name) in seen:
            continue
        seen.add((section, name))
        inner = (spec.judges if section == "judges" else spec.models).get(name)
        if section == "models":
            described = evaluation.models.get(name)
            yield [section, described or (inner and inner.model_dump(mode="json")) or name]
        elif inner is not None:
            prompts = {key: of for key, of in evaluation.prompts.items() if key.startswith(f"{name}.")}
            yield [section, inner.model_dump(mode="json"), prompts]
        if inner is not None:
            yield from _list_used(inner, evaluation, spec, seen)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
