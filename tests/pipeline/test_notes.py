"""Notes on what the numbers exclude or do not cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.sample import Sample
from rageval_spec.data.tables import Collection
from rageval_spec.pipeline.notes import (
    context_notes,
    coverage_notes,
    difference_notes,
    lacks_most,
    limit_notes,
    ranking_notes,
)
from rageval_spec.spec.nodes import RankingNode

METRICS: Mapping[str, Any] = {
    "faithfulness": SimpleNamespace(is_partial=False, needs={"answer", "contexts"}),
    "exact_match": SimpleNamespace(is_partial=False, needs={"answer", "reference"}),
    "robustness": SimpleNamespace(is_partial=True, needs={"answer", "group"}),
}


def cell(scored: int, total: int, metric: str = "faithfulness") -> Aggregate:
    return Aggregate("golden", "bot", metric, 1.0, None, scored, total, excused=total - scored)


def test_questions_that_are_not_as_ordered_draw_notes() -> None:
    [note] = difference_notes(Collection("golden", differences=("1 question is missing: no chunk is left",)))
    assert (note.dataset, note.message) == (
        "golden",
        "the generated questions: 1 question is missing: no chunk is left",
    )
    assert difference_notes(Collection("golden")) == []


@pytest.mark.parametrize(
    ("scored", "total", "expected"), [(0, 80, False), (1, 80, True), (39, 80, True), (40, 80, False), (1, 2, False)]
)
def test_lacks_most_means_fewer_than_half(scored: int, total: int, expected: bool) -> None:
    assert lacks_most(cell(scored, total)) is expected


@pytest.mark.parametrize(("excused", "expected"), [(36, True), (35, False), (0, False)])
def test_errors_draw_no_warning_of_coverage(excused: int, expected: bool) -> None:
    assert lacks_most(replace(cell(8, 80), excused=excused)) is expected


def test_a_mean_of_few_queries_draws_a_warning() -> None:
    cells = [cell(8, 80), cell(70, 80, "exact_match"), cell(8, 80, "robustness")]
    [note] = coverage_notes(cells, METRICS)
    assert (note.level, note.dataset, note.system, note.count) == ("warning", "golden", "bot", 72)
    assert note.message == (
        "faithfulness: only 8 of 80 queries could be scored; the number says nothing about the others"
    )


def answer(*contexts: str | None, **changes: Any) -> Sample:
    return Sample(
        "q", "?", answer="yes", contexts=None if None in contexts else tuple(filter(None, contexts)), **changes
    )


def test_contexts_that_are_empty_in_every_answer_draw_one_warning() -> None:
    [note] = context_notes(METRICS.values(), [answer(), answer(), Sample("q", "?", error="timed out")])
    assert (note.level, note.count) == ("warning", 2)
    assert note.message.startswith("the contexts of all 2 answers are empty, so metrics of contexts measure nothing")
    [note] = context_notes(METRICS.values(), [Sample("q", "?", answer="yes", contexts=(" ", ""))])
    assert note.message.startswith("its contexts are empty")


@pytest.mark.parametrize(
    "samples",
    [
        [answer(), answer("a text")],
        [answer(None), answer(None)],
        [Sample("q", "?", error="timed out", contexts=())],
        [],
    ],
)
def test_present_or_unknown_contexts_draw_no_warning(samples: list[Sample]) -> None:
    assert context_notes(METRICS.values(), samples) == []


def test_empty_contexts_draw_no_warning_if_no_metric_reads_them() -> None:
    assert context_notes([METRICS["exact_match"]], [answer()]) == []


def collection(*query_ids: str) -> Collection:
    qrels = pl.DataFrame(
        {"query_id": query_ids, "doc_id": "d", "relevance": 1}, schema_overrides={"query_id": pl.String}
    )
    return Collection("golden", load_qrels=lambda: qrels)


def test_a_limit_is_noted_if_it_excludes_queries() -> None:
    [note] = limit_notes(collection("a", "b", "b", "c"), collection("a"))
    assert (note.message, note.count) == ("only the first 1 of 3 queries were evaluated", 1)
    assert limit_notes(collection("a", "b"), collection("a", "b")) == []


def ranked(missing: int, no_relevant: int, unjudged: int) -> Any:
    flags = {"missing": missing, "no_relevant": no_relevant}
    return SimpleNamespace(
        query_ids=[f"q{number}" for number in range(4)],
        unjudged_queries=unjudged,
        **{name: np.arange(4) < count for name, count in flags.items()},
    )


def test_queries_that_a_ranking_lacks() -> None:
    skip = RankingNode(missing="skip", no_relevant="skip")
    assert [note.message for note in ranking_notes(skip, ranked(2, 1, 3), "golden", "bm25")] == [
        "2 of 4 queries are not in the run and are left out",
        "1 of 4 queries has no relevant document and is left out",
        "3 queries of the run are not in the qrels and are ignored",
    ]
    assert [note.message for note in ranking_notes(RankingNode(), ranked(1, 2, 1), "golden", "bm25")] == [
        "1 of 4 queries is not in the run and scores 0",
        "2 of 4 queries have no relevant document and score 0",
        "1 query of the run is not in the qrels and is ignored",
    ]
    assert ranking_notes(RankingNode(), ranked(0, 0, 0), "golden", "bm25") == []
