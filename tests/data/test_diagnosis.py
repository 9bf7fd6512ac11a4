"""Tests of diagnoses as data."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.diagnosis import Advice, CauseCount, Diagnosis
from rageval_spec.data.evaluation import Interval
from rageval_spec.data.results import Results
from tests.sample_evaluation import make_evaluation


def test_a_diagnosis_is_the_same_after_it_was_written_and_read() -> None:
    count = CauseCount(
        "golden", "bm25", "retrieval", 3, 40, 0.075, Interval(0.02, 0.2, 0.95, "wilson"), "difficulty=hard"
    )
    diagnosis = Diagnosis("recall@20", "token_f1", None, 0.5, 0.7, (count,), (Advice("golden", "bm25", "Look."),))
    evaluation = replace(make_evaluation(), diagnosis=diagnosis)

    read = Results.parse(Results.of(evaluation).dump(), "results.json")

    assert read.diagnosis == diagnosis
