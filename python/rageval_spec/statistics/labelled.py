"""The judge's values of a cell, or of two that are compared, beside what people say of some of the answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from rageval_spec.data.cell import CELL
from rageval_spec.data.correction import LABEL, LABEL_WEIGHT
from rageval_spec.statistics.corrected import CorrectedMean, correct_mean, count_effective
from rageval_spec.statistics.layout import Layout, add_up, lay_out
from rageval_spec.statistics.resampling import number_clusters
from rageval_spec.statistics.unpaired import CorrectedDifference, Side, correct_difference

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.statistics.resampling import Floats

_MOSTLY = 0.75
"""From this share on, enough labelled answers have a counterpart for differences question by question."""


def place_rows(design: Design | None, scored: pl.DataFrame, asked: pl.DataFrame) -> Layout | None:
    """The layout of the scored questions of a cell; None without a design."""
    if design is None:
        return None
    return lay_out(design, scored["query_id"].to_list(), asked["query_id"].to_list())


class LabelledRows:
    """The judge's values of some answers or questions, and what people say of those with labels.

    `clusters` and `shares` are what `correct_mean` takes, of the labelled rows and then the others; None without a
    design.
    """

    def __init__(self, judged: Floats, labels: Floats, weights: Floats, *, layout: Layout | None = None) -> None:
        import numpy as np

        if layout is not None:
            judged, labels, weights = (of[layout.rows] for of in (judged, labels, weights))
        is_labelled = ~np.isnan(labels)
        self.judged, self.others = judged[is_labelled], judged[~is_labelled]
        self.labels, self.weights = labels[is_labelled], weights[is_labelled]
        self.is_labelled = is_labelled
        self.clusters: list[int] | None = None
        self.shares: Floats | None = None
        if layout is not None:
            self.clusters = np.concatenate([layout.members[is_labelled], layout.members[~is_labelled]]).tolist()
            if layout.is_weighted:
                self.shares = np.concatenate([layout.weights[is_labelled], layout.weights[~is_labelled]])

    @classmethod
    def of(cls, frame: pl.DataFrame, layout: Layout | None = None) -> LabelledRows:
        columns = ("value", LABEL, LABEL_WEIGHT)
        return cls(*(frame[name].cast(float).fill_null(math.nan).to_numpy() for name in columns), layout=layout)

    def correct(self, confidence: float, *, uses_others: bool = True) -> CorrectedMean:
        """The corrected mean; that of the labels alone without the others."""
        count, others = self.count, self.others if uses_others else self.others[:0]
        clusters, shares = self.clusters, self.shares
        if shares is not None and not uses_others:
            shares = shares[:count] / shares[:count].sum()
        return correct_mean(
            self.judged,
            self.labels,
            others,
            weights=self.weights,
            clusters=None if clusters is None else clusters[:count],
            other_clusters=None if clusters is None else clusters[count:][: len(others)],
            shares=shares,
            confidence=confidence,
        )

    @property
    def parts(self) -> int:
        """How many independent parts the labelled rows have: their clusters."""
        return self.count if self.clusters is None else len(set(self.clusters[: self.count]))

    @property
    def effective(self) -> int:
        """How many labels of equal weight, each on its own, tell as much."""
        members = number_clusters(None if self.clusters is None else self.clusters[: self.count], self.count)
        return count_effective(
            self.weights if self.shares is None else self.weights * self.shares[: self.count], members
        )

    @property
    def count(self) -> int:
        """How many have labels."""
        return len(self.labels)


class LabelledPair:
    """The scored rows of a cell and of its baseline, on the queries that are scored in both."""

    def __init__(self, own: pl.DataFrame, base: pl.DataFrame, design: Design | None) -> None:
        scored = (of.filter(of["status"] == "scored") for of in (own, base))
        both = next(scored).join(next(scored), on="query_id", how="inner", suffix="_of_base").sort("query_id")
        self._layout = place_rows(design, both, own)
        columns = ("value", LABEL, LABEL_WEIGHT)
        self._own, self._base = (
            [both[f"{name}{suffix}"].cast(float).fill_null(math.nan).to_numpy() for name in columns]
            for suffix in ("", "_of_base")
        )

    def add_up(self, parts: Floats) -> Floats:
        """What each cluster moves a number by, from what each question does; without a design, the same."""
        return parts if self._layout is None else add_up(self._layout.members, parts, self._layout.clusters)

    def drop_design(self) -> LabelledPair:
        """The same if all questions count the same and on their own."""
        plain = copy(self)
        plain._layout = None
        return plain

    @property
    def sides(self) -> tuple[LabelledRows, LabelledRows]:
        """The rows of the cell, and those of its baseline."""
        return LabelledRows(*self._own, layout=self._layout), LabelledRows(*self._base, layout=self._layout)

    @property
    def is_apart(self) -> bool:
        """Whether many labelled answers are to questions of which the other system's answer has no label."""
        return self.differences.count < _MOSTLY * max(side.count for side in self.sides)

    def correct_apart(self, confidence: float) -> CorrectedDifference:
        """The difference of the two corrected means."""
        layout = self._layout
        place = slice(None) if layout is None else layout.rows
        own, base = (Side(*(column[place] for column in columns)) for columns in (self._own, self._base))
        clusters = None if layout is None else layout.members.tolist()
        shares = layout.weights if layout is not None and layout.is_weighted else None
        return correct_difference(own, base, clusters=clusters, shares=shares, confidence=confidence)

    @property
    def differences(self) -> LabelledRows:
        """The difference of each query. Its label counts as the rarer of the two would."""
        import numpy as np

        (value, label, weight), (base, base_label, base_weight) = self._own, self._base
        return LabelledRows(value - base, label - base_label, np.maximum(weight, base_weight), layout=self._layout)


def take_rows(values: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The rows of some metrics, in the order of their queries."""
    import polars as pl

    wanted = values.filter(pl.col("metric").is_in(metrics))
    columns = (*CELL, "query_id", "status", "value", LABEL, LABEL_WEIGHT)
    return wanted.select(*columns).sort(*CELL, "query_id", maintain_order=True)
