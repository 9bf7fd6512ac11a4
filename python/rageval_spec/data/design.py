"""How the questions of a dataset were chosen: which belong together, and what share of production each stands for.

The name is that of survey statistics: a sampling design. Means, intervals and tests take it into account.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

METADATA_KEY = "rageval-spec:designs"
"""The key of the designs in the metadata of a Parquet file of values."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Questions that one row of the production mix describes.

    Attributes:
        name: what they have in common: `difficulty=hard`, or `difficulty=hard, language=de`.
        share: its share in production; the shares of a dataset add up to 1.
        questions: the number of the dataset's questions that belong to it.
    """

    name: str
    share: float
    questions: int


@dataclass(frozen=True, slots=True)
class DesignSummary:
    """What reports say of a design.

    Attributes:
        questions: the number of the dataset's evaluated questions.
        cluster: the column whose values say which questions belong together; None if each is on its own.
        clusters: the number of clusters; a question without a value is one of its own.
        without_cluster: the number of questions without a value in that column.
        weights: the file of the production mix; None without one.
        weight: the column with the weight of each question; None without one.
        strata: the rows of the production mix.
        unlisted: the number of questions that the production mix does not list. They do not count in means.
    """

    questions: int
    cluster: str | None = None
    clusters: int | None = None
    without_cluster: int = 0
    weights: str | None = None
    weight: str | None = None
    strata: tuple[Stratum, ...] = ()
    unlisted: int = 0

    @property
    def is_weighted(self) -> bool:
        """Whether means are weighted."""
        return self.weights is not None or self.weight is not None

    @property
    def source(self) -> str:
        """Where the weights come from: the file, or the column."""
        return self.weights or self.weight or ""


@dataclass(frozen=True, slots=True)
class CellDesign:
    """What the design means for one aggregate or one comparison.

    Attributes:
        plain: the number if every question counted the same; None if means are not weighted.
        effective: how many questions of equal weight are worth as much (Kish: the square of the sum of the weights over
            the sum of their squares); None if means are not weighted.
        clusters: the number of clusters of its scored questions; None if each question is on its own.
        uncovered: the share of production whose questions all have no value. The mean is of the rest.
    """

    plain: float | None = None
    effective: float | None = None
    clusters: int | None = None
    uncovered: float = 0.0


@dataclass(frozen=True)
class Design:
    """The design of one dataset.

    Attributes:
        clusters: the number of each question's cluster, by query id. A question that is absent is on its own.
        weights: the weight of each question, by query id; None if all count the same. A question that is absent, or has
            the weight 0, does not count.
        strata: the number of each question's stratum, by query id. The weights of a stratum's questions are equal, and
            those of the scored ones stand for the others too. Absent questions are in stratum 0.
        summary: the design in numbers.
    """

    clusters: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] | None = None
    strata: Mapping[str, int] = field(default_factory=dict)
    summary: DesignSummary = field(default_factory=lambda: DesignSummary(0))

    @property
    def is_clustered(self) -> bool:
        """Whether the spec says which questions belong together."""
        return self.summary.cluster is not None

    def list_clusters(self, query_ids: Sequence[str]) -> list[int | str] | None:
        """The cluster of each question; a question without one has its own id. None if all are on their own."""
        return [self.clusters.get(query_id, query_id) for query_id in query_ids] if self.is_clustered else None

    def list_weights(self, query_ids: Sequence[str]) -> list[float] | None:
        """The weight of each question, not scaled; None if all count the same."""
        weights = self.weights
        return None if weights is None else [weights.get(query_id, 0.0) for query_id in query_ids]


def dump_designs(designs: Mapping[str, Design]) -> str:
    """The designs as JSON text, which `parse_designs` reads. Their summaries are kept elsewhere."""
    content = {name: [dict(of.clusters), of.weights, dict(of.strata)] for name, of in designs.items()}
    return json.dumps(content, separators=(",", ":"), ensure_ascii=True, sort_keys=True)


def parse_designs(text: str | None, summaries: Mapping[str, DesignSummary]) -> dict[str, Design]:
    """Read the text that `dump_designs` wrote. None, and any other text (from another version), give no designs."""
    try:
        content = json.loads(text or "{}")
        return {
            name: Design(clusters, weights, strata, summaries[name])
            for name, (clusters, weights, strata) in content.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError):
        return {}
