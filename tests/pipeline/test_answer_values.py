"""Metrics of answers: who is asked of what, and what becomes of those that cannot have a value."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from rageval_spec.data.sample import Part, Sample
from rageval_spec.errors import DataError
from rageval_spec.pipeline.answer_values import Computed, compute, compute_all, list_usable
from rageval_spec.plugin import AnswerMetric, Context, Measured, Measurement, MetricInfo, MetricNode

RIGHT = Sample("q1", "Why?", answer="Because.", references=("Because.",), contexts=("So.",))
FAILED = Sample("q2", "How?", error="timed out after 30 s", references=("Thus.",))
BARE = Sample("q3", "When?", answer="")


class Stub(AnswerMetric[MetricNode]):
    """Gives what it is told to."""

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
def test_what_is_no_number_is_an_error_and_not_a_value(value: float) -> None:
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


def test_half_a_character_does_not_lose_the_table() -> None:
    (row,) = rows(compute("stub", Stub(Measurement.error("\ud800", {"raw": "\ud800"})), [RIGHT]))
    assert (row["reason"], json.loads(row["details"].replace("\\", ""))) == ("\\ud800", {"raw": "ud800"})


def test_all_metrics_come_in_their_order() -> None:
    metrics = {name: Stub(Measurement.scored(place)) for place, name in enumerate("zyx")}
    assert [(c.metric, c.values["value"][0]) for c in compute_all(metrics, [RIGHT])] == [("z", 0), ("y", 1), ("x", 2)]
