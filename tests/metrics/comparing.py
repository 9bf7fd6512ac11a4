"""Computes metrics that look at one sample at a time, on samples made for a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rageval_spec.data.samples import Sample
from rageval_spec.plugin import AnswerMetric, Measurement
from tests.metrics.scoring import plugin


def answer_metric(word: str, **keys: Any) -> AnswerMetric[Any]:
    """The metric of a YAML block `{use: word, ...}`."""
    metric = plugin(word, **keys)
    assert isinstance(metric, AnswerMetric)
    return metric


def compare(word: str, answer: str, *references: str, **keys: Any) -> Measurement:
    """The measurement of an answer with its references."""
    return measure(word, [Sample("q1", "?", answer=answer, references=references)], **keys)[0]


def value_of(word: str, answer: str, *references: str, **keys: Any) -> float:
    """The value of an answer; fails if it has none."""
    measurement = compare(word, answer, *references, **keys)
    assert measurement.status == "scored"
    assert measurement.value is not None
    return measurement.value


def measure(word: str, samples: Sequence[Sample], **keys: Any) -> list[Measurement]:
    """The measurements, one per sample."""
    measured = answer_metric(word, **keys).compute(samples)
    assert not measured.notes
    return list(measured.measurements)
