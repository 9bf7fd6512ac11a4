"""Digests of what decides whether two numbers can be compared: the data, the metric's definition, and its judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec import registry
from rageval_spec.history.recorded_spec import RecordedSpec, read_recorded_spec
from rageval_spec.plugin import RankingMetric
from rageval_spec.plugin.names import list_references

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.fingerprints import Fingerprint
    from rageval_spec.plugin import Node
    from rageval_spec.spec.nodes import RankingNode, Spec

PARTS = ("question", "reference", "judgements")
"""The parts of a query that `Fingerprint` holds."""
WEIGHTS = "weights"
"""What a dataset's weights are called among its parts; a dataset without them does not have it."""
_DIGEST_LENGTH = 16


def take_meaning(evaluation: Evaluation, spec: Spec | None) -> dict[str, Any]:
    """The digests of an evaluation: `data`, by dataset and part, and `metrics`, by metric: "definition" and "judge".

    What is not known is absent: the parts that no system or metric uses, and all metrics of an evaluation without a
    `spec` that did not record its own. A metric's "judge" covers the judges, models and prompts that it uses; a metric
    that uses none has no such digest.
    """
    fingerprints = evaluation.fingerprints.datasets
    data = {dataset: dict(_digest_data(of)) for dataset, of in fingerprints.items()}
    for dataset, design in evaluation.question_designs.items():
        if design.weights is not None:
            data.setdefault(dataset, {})[WEIGHTS] = _digest(dict(design.weights))
    blocks = _read_recorded(evaluation) if spec is None else _read_spec(spec)
    metrics = {name: _digest_metric(node, evaluation, blocks) for name, node in blocks.metrics.items()}
    return {"data": data, "metrics": metrics}


class _Blocks(NamedTuple):
    """The blocks of a spec that give metrics their meaning, by name, and how rankings are read."""

    metrics: Mapping[str, Node]
    judges: Mapping[str, Node]
    models: Mapping[str, Node]
    ranking: RankingNode


def _read_spec(spec: Spec) -> _Blocks:
    return _Blocks({one.name: one.node for one in spec.metrics}, spec.judges, spec.models, spec.ranking)


def _read_recorded(evaluation: Evaluation) -> _Blocks:
    recorded = read_recorded_spec(evaluation) or RecordedSpec()
    sections = (recorded.metrics, recorded.judges, recorded.models)
    metrics, judges, models = ({name: one.node for name, one in of.items()} for of in sections)
    return _Blocks(metrics, judges, models, recorded.ranking)


def _digest_data(fingerprints: Mapping[str, Fingerprint]) -> Iterator[tuple[str, str]]:
    for part in PARTS:
        found = [(query_id, getattr(of, part)) for query_id, of in sorted(fingerprints.items())]
        if any(digest is not None for _, digest in found):
            yield part, _digest(found)


def _digest_metric(node: Any, evaluation: Evaluation, blocks: _Blocks) -> dict[str, str]:
    content = node.model_dump(mode="json", exclude={"as_"})
    if issubclass(registry.load("metrics", node.use), RankingMetric):
        content = [content, blocks.ranking.model_dump(mode="json", exclude={"tie_range"})]
    digests = {"definition": _digest(content)}
    if used := list(_list_used(node, evaluation, blocks, set())):
        digests["judge"] = _digest(used)
    return digests


def _list_used(node: BaseModel, evaluation: Evaluation, blocks: _Blocks, seen: set[tuple[str, str]]) -> Iterator[Any]:
    """The content of the judges and models that a node refers to, and of those that these refer to."""
    for section, name, *_ in list_references(node):
        if section in ("systems", "labels") or (section, name) in seen:
            continue
        seen.add((section, name))
        inner = (blocks.judges if section == "judges" else blocks.models).get(name)
        if section == "models":
            described = evaluation.models.get(name)
            yield [section, described or (inner and inner.model_dump(mode="json")) or name]
        elif inner is not None:
            prompts = {key: of for key, of in evaluation.prompts.items() if key.startswith(f"{name}.")}
            yield [section, inner.model_dump(mode="json"), prompts]
        if inner is not None:
            yield from _list_used(inner, evaluation, blocks, seen)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
