"""Measures answers whose questions have other columns."""

from __future__ import annotations

from typing import Any

from rageval_spec.data.samples import Sample
from rageval_spec.plugin import Measurement
from tests.metrics.comparing import answer_metric, measure


def check(word: str, answer: str, columns: dict[str, Any] | None = None, **keys: Any) -> Measurement:
    """The measurement of an answer; the node has passed its own check."""
    assert answer_metric(word, **keys).check() is None
    return measure(word, [Sample("q1", "?", answer=answer, references=("gold",), columns=columns)], **keys)[0]


def fault(word: str, **keys: Any) -> str | None:
    """What the metric has to say about its node."""
    return answer_metric(word, **keys).check()
