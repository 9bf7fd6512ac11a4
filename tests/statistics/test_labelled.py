"""Rows with labels: which count, in which order, and when two systems are compared question by question."""

from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.data.design import Design, DesignSummary
from rageval_spec.statistics.labelled import LabelledPair, LabelledRows, place_rows, take_rows


def frame(system: str, labels: list[float | None], values: list[float | None]) -> pl.DataFrame:
    count = len(values)
    return pl.DataFrame(
        {
            "dataset": ["d"] * count, "system": [system] * count, "metric": ["f"] * count,
            "query_id": [f"q{at}" for at in range(count)],
            "status": ["error" if value is None else "scored" for value in values],
            "value": values, "label": labels, "label_weight": [None if one is None else 1.0 for one in labels],
        },
        schema_overrides={"label": pl.Float64, "label_weight": pl.Float64, "value": pl.Float64},
    )  # fmt: skip


def test_rows_without_labels_are_the_others() -> None:
    rows = LabelledRows.of(frame("a", [1.0, None, 0.0], [0.7, 0.8, 0.9]))
    assert (rows.judged.tolist(), rows.labels.tolist(), rows.others.tolist()) == ([0.7, 0.9], [1.0, 0.0], [0.8])
    assert (rows.count, rows.parts, rows.effective) == (2, 2, 2)


def test_questions_that_do_not_count_are_left_out_and_clusters_follow_the_order() -> None:
    values = frame("a", [1.0, None, 0.0, 1.0], [0.7, 0.8, 0.9, 0.6])
    clusters = {"q0": 0, "q1": 1, "q2": 1, "q3": 0}
    weights = {"q0": 1.0, "q1": 2.0, "q2": 1.0, "q3": 0.0}
    design = Design(clusters, weights, summary=DesignSummary(4, "source", weight="traffic"))
    rows = LabelledRows.of(values, place_rows(design, values, values))
    assert rows.labels.tolist() == [1.0, 0.0] and rows.others.tolist() == [0.8]
    assert rows.clusters is not None and rows.clusters[1] == rows.clusters[2] != rows.clusters[0]
    assert rows.shares is not None and rows.shares.tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_pairs_are_of_questions_that_are_scored_in_both() -> None:
    own = frame("a", [1.0, 1.0, None, 0.0], [0.7, None, 0.9, 0.6])
    base = frame("b", [0.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5])
    pair = LabelledPair(take_rows(own, ["f"]), take_rows(base, ["f"]), None)
    assert pair.differences.labels.tolist() == [1.0, -1.0]
    assert [side.count for side in pair.sides] == [2, 3]
    assert pair.is_apart  # only 2 of 3
    assert not LabelledPair(take_rows(own, ["f"]), take_rows(own, ["f"]), None).is_apart
