"""Metrics of answers: which samples a metric gets, and what happens to those that cannot have a value.

Notes on what the numbers exclude or do not cover.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.samples import Part, Sample
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.values.answer_values import (
    Computed,
    aggregate_notes,
    compute,
    context_notes,
    difference_notes,
    join,
    lacks_most,
    limit_notes,
    list_usable,
    measure_all,
    ranking_notes,
)
from rageval_spec.plugin import AnswerMetric, Context, Measured, Measurement, MetricInfo, MetricNode
from rageval_spec.spec.blocks.spec_node import RankingNode

RIGHT = Sample("q1", "Why?", answer="Because.", references=("Because.",), contexts=("So.",))
FAILED = Sample("q2", "How?", error="timed out after 30 s", references=("Thus.",))
BARE = Sample("q3", "When?", answer="")


class Stub(AnswerMetric[MetricNode]):
    """Returns the measurements that a test sets."""

    info = MetricInfo("Stub.", "", (), "")

    def __init__(self, *given: Measurement | Exception, needs: frozenset[Part] = frozenset({"answer"})) -> None:
        super().__init__(MetricNode(use="stub"), Context("stub"))
        self.given = given
        self.needs = needs
        self.seen: list[str] = []

    @property
    def name(self) -> str:
        return "stub"

    def compute(self, samples: Sequence[Sample]) -> Measured:
        self.seen = [sample.query_id for sample in samples]
        for given in self.given:
            if isinstance(given, Exception):
                raise given
        return Measured([given for given in self.given if isinstance(given, Measurement)])


def rows(computed: Computed) -> list[dict[str, Any]]:
    return computed.values.to_dicts()


def test_a_failed_query_is_an_error_and_one_that_lacks_a_part_unscorable() -> None:
    metric = Stub(Measurement.scored(0.5, details={"claims": ["Because."]}), needs=frozenset({"answer", "contexts"}))
    computed = compute("stub", metric, [RIGHT, FAILED, BARE])
    assert metric.seen == ["q1"]
    assert rows(computed) == [
        {"query_id": "q1", "value": 0.5, "status": "scored", "reason": None, "details": '{"claims":["Because."]}'},
        {"query_id": "q2", "value": None, "status": "error", "reason": "timed out after 30 s", "details": None},
        {
            "query_id": "q3",
            "value": None,
            "status": "unscorable",
            "reason": "the query has no contexts",
            "details": None,
        },
    ]
    assert [sample.query_id for sample in list_usable(metric, [RIGHT, FAILED, BARE])] == ["q1"]


def test_a_reply_with_sources_that_are_no_contexts_is_told_so() -> None:
    metric = Stub(needs=frozenset({"contexts"}))
    sample = replace(BARE, answer_columns={"sources": '["a.pdf"]'})
    (row,) = rows(compute("stub", metric, [sample]))
    assert row["reason"] == "the query has no contexts: 'sources' has no texts that can be read as contexts"


def test_a_metric_may_count_failures() -> None:
    metric = Stub(Measurement.scored(0), Measurement.scored(1))
    metric.counts_failures = True  # type: ignore[misc]
    assert [row["value"] for row in rows(compute("stub", metric, [RIGHT, FAILED]))] == [0, 1]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_a_number_is_an_error(value: float) -> None:
    (row,) = rows(compute("stub", Stub(Measurement.scored(value)), [RIGHT]))
    assert (row["value"], row["status"], row["reason"]) == (None, "error", "the value is not a finite number")


def test_errors_of_the_metric_are_counted_in_a_note_and_those_of_the_system_are_not() -> None:
    computed = compute("stub", Stub(Measurement.error("no JSON"), Measurement.scored(1)), [RIGHT, FAILED, BARE])
    (note,) = computed.notes
    assert (note.code, note.count) == ("failed_queries", 1)
    assert note.message == "stub: 1 of 3 queries failed; the first: no JSON"


def test_a_metric_that_fails_as_a_whole_leaves_no_query_without_a_reason() -> None:
    computed = compute("stub", Stub(ConnectionError("nobody")), [RIGHT, FAILED])
    assert [row["reason"] for row in rows(computed)] == ["ConnectionError: nobody", "timed out after 30 s"]
    assert isinstance(computed.error, ConnectionError)


def test_a_metric_must_give_a_value_for_each_query() -> None:
    computed = compute("stub", Stub(), [RIGHT])
    assert isinstance(computed.error, DataError)
    assert [row["status"] for row in rows(computed)] == ["error"]


def test_a_lone_surrogate_does_not_lose_the_table() -> None:
    (row,) = rows(compute("stub", Stub(Measurement.error("\ud800", {"raw": "\ud800"})), [RIGHT]))
    assert (row["reason"], json.loads(row["details"].replace("\\", ""))) == ("\\ud800", {"raw": "ud800"})


def compute_all(metrics: Mapping[str, AnswerMetric[Any]], samples: Sequence[Sample]) -> list[Computed]:
    measured = measure_all(metrics, samples)
    return [join(name, metrics[name], [part], part.table) for name, part in measured.items()]


def test_all_metrics_come_in_their_order() -> None:
    metrics = {name: Stub(Measurement.scored(place)) for place, name in enumerate("zyx")}
    assert [(c.metric, c.values["value"][0]) for c in compute_all(metrics, [RIGHT])] == [("z", 0), ("y", 1), ("x", 2)]


def test_metrics_prepare_in_the_main_thread_before_any_of_them_computes() -> None:
    events: list[tuple[str, bool]] = []

    class Noting(Stub):
        def prepare(self) -> None:
            events.append(("prepare", threading.current_thread() is threading.main_thread()))

        def compute(self, samples: Sequence[Sample]) -> Measured:
            events.append(("compute", threading.current_thread() is threading.main_thread()))
            return super().compute(samples)

    measure_all({name: Noting(Measurement.scored(1)) for name in "ab"}, [RIGHT])
    assert events == [("prepare", True)] * 2 + [("compute", False)] * 2


def test_an_exception_in_prepare_is_the_error_of_every_query() -> None:
    class Broken(Stub):
        def prepare(self) -> None:
            raise UsageError("install rapidfuzz")

    broken, whole = compute_all({"broken": Broken(), "whole": Stub(Measurement.scored(1))}, [RIGHT])
    assert [(row["status"], row["reason"]) for row in rows(broken)] == [("error", "install rapidfuzz")]
    assert isinstance(broken.error, UsageError) and not whole.error


WATCHED_IMPORTS = """
import sys, threading
from rageval_spec.data.samples import Sample
from rageval_spec.pipeline.values.answer_values import measure_all
from rageval_spec.plugin import Context
from rageval_spec.registry import load

class Watch:
    def find_spec(self, name, path=None, target=None):
        watched = name.startswith(("sacrebleu", "rapidfuzz"))
        if watched and threading.current_thread() is not threading.main_thread():
            print(name)

sys.meta_path.insert(0, Watch())
metrics = {word: load("metrics", word) for word in ("bleu", "chrf", "rouge_l")}
built = {word: metric(metric.node_type(use=word), Context(word)) for word, metric in metrics.items()}
samples = [Sample("q", "Why?", answer="So.", references=("So.",))]
assert [one.error for one in measure_all(built, samples).values()] == [None] * 3
"""


def test_packages_whose_modules_import_one_another_are_imported_before_threads_start() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED_IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_reasons_that_differ_only_in_numbers_are_counted_together() -> None:
    reasons = ("similarity 0.3 is below 0.35", "no answer", "similarity 0.12 is below 0.35", "similarity of p2")
    samples = [Sample(f"q{at}", "Why?", answer="So.") for at in range(len(reasons))]
    computed = compute("stub", Stub(*map(Measurement.unscorable, reasons)), samples)
    (note,) = (note for note in computed.notes if note.code == "unscorable_queries")
    assert note.message == (
        "stub: 4 of 4 queries could not be scored: 2 because similarity 0.12 to 0.3 is below 0.35 (q0, q2); "
        "1 because no answer (q1); 1 because similarity of p2 (q3)"
    )


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
    [note] = aggregate_notes(cells, METRICS)
    assert (note.level, note.dataset, note.system, note.count) == ("warning", "golden", "bot", 72)
    assert note.message == ("faithfulness: only 8 of 80 queries could be scored; the number does not cover the others")


def texts(*contexts: list[str] | None) -> pl.Series:
    return pl.Series(contexts, dtype=pl.List(pl.String))


def test_contexts_that_are_empty_in_every_answer_draw_one_warning() -> None:
    [note] = context_notes(METRICS.values(), texts([], []))
    assert (note.level, note.count) == ("warning", 2)
    assert note.message.startswith("the contexts of all 2 answers are empty, so metrics of contexts measure nothing")
    [note] = context_notes(METRICS.values(), texts([" ", ""]))
    assert note.message.startswith("its contexts are empty")


@pytest.mark.parametrize("contexts", [texts([], ["a text"]), texts(None, None), texts()])
def test_present_or_unknown_contexts_draw_no_warning(contexts: pl.Series) -> None:
    assert context_notes(METRICS.values(), contexts) == []


def test_empty_contexts_draw_no_warning_if_no_metric_reads_them() -> None:
    assert context_notes([METRICS["exact_match"]], texts([])) == []


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
