"""Reads the blocks of the spec that an evaluation recorded, so that two evaluations can be compared key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context, Judge, Metric, Model, Node
from rageval_spec.plugin.names import list_references
from rageval_spec.spec.nodes import RankingNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


@dataclass(frozen=True)
class RecordedSpec:
    """The blocks that give an evaluation's numbers their meaning.

    Blocks whose plugin is not installed, or that this version cannot read, are absent.

    Attributes:
        metrics: by their names in tables.
        ranking: how rankings were read.
    """

    metrics: Mapping[str, Metric[Any]] = field(default_factory=dict)
    judges: Mapping[str, Judge[Any]] = field(default_factory=dict)
    models: Mapping[str, Model[Any]] = field(default_factory=dict)
    ranking: RankingNode = field(default_factory=RankingNode)

    def list_used(self, node: Node) -> Iterator[tuple[str, str]]:
        """The section and the name of each judge and model behind a block, in the order of first use."""
        yield from dict.fromkeys(self._walk(node, set()))

    def _walk(self, node: Node, seen: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for section, name, *_ in list_references(node):
            if section in ("systems", "labels") or (section, name) in seen:
                continue
            seen.add((section, name))
            yield section, name
            inner = self.judges.get(name) if section == "judges" else self.models.get(name)
            if inner is not None:
                yield from self._walk(inner.node, seen)


def read_recorded_spec(evaluation: Evaluation) -> RecordedSpec | None:
    """The blocks of the spec that an evaluation recorded; None if it recorded none, as those of earlier versions."""
    recorded = evaluation.spec
    if not recorded or len(recorded.get("metrics", ())) != len(evaluation.metrics):
        return None
    ranking = RankingNode()
    with suppress(ValueError):
        ranking = RankingNode.model_validate(recorded.get("ranking", {}))
    return RecordedSpec(
        _build_all("metrics", dict(zip(evaluation.metrics, recorded["metrics"], strict=True))),
        _build_all("judges", recorded.get("judges", {})),
        _build_all("models", recorded.get("models", {})),
        ranking,
    )


def _build_all(section: registry.Section, blocks: Mapping[str, Any]) -> dict[str, Any]:
    built = {name: _build(section, name, content) for name, content in blocks.items()}
    return {name: plugin for name, plugin in built.items() if plugin is not None}


def _build(section: registry.Section, name: str, content: Any) -> Any:
    """The plugin of a block, or None. It opens nothing, and its secrets are not revealed."""
    with suppress(RagevalError, ValueError, TypeError, KeyError):
        plugin = registry.load(section, content["use"])
        return plugin(plugin.node_type.model_validate(content), Context(name, Path()))
    return None
