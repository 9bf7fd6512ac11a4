"""Metrics of answers: which samples a metric gets, and what happens to those that cannot have a value."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from rageval_spec.data.sample import Part, Sample
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.answer_values import Computed, compute, compute_all, list_usable
from rageval_spec.plugin import AnswerMetric, Context, Measured, Measurement, MetricInfo, MetricNode

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

    list(compute_all({name: Noting(Measurement.scored(1)) for name in "ab"}, [RIGHT]))
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
from rageval_spec.data.sample import Sample
from rageval_spec.pipeline.answer_values import compute_all
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
assert [one.error for one in compute_all(built, [Sample("q", "Why?", answer="So.", references=("So.",))])] == [None] * 3
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
