"""Samples of labelled answers are read back as judges read them."""

from __future__ import annotations

import pytest

from rageval_spec.calibration.samples import read_samples
from rageval_spec.errors import DataError
from tests.answered_evaluation import ANSWER, answered, sample, value

EVALUATION = answered(
    [value("q1", "faithfulness", 1.0)],
    [
        sample("q1", contexts=["A.", "B."], context_ids=["a", "b"], references=["R."], columns='{"topic": "x"}'),
        sample("q2", references=[]),
        sample("q3", answer=None, error="HTTP 500"),
    ],
)


def test_every_part_that_a_judge_can_read_is_there() -> None:
    found = read_samples(EVALUATION, [("golden", "v1", "q1"), ("golden", "v1", "q2")])
    first, second = found["golden", "v1", "q1"], found["golden", "v1", "q2"]
    assert (first.query_id, first.question, first.answer) == ("q1", "Question q1?", ANSWER)
    assert (first.contexts, first.context_ids, first.references) == (("A.", "B."), ("a", "b"), ("R.",))
    assert first.columns == {"topic": "x"}
    assert (second.contexts, second.references, second.columns) == (None, (), None)


def test_answers_without_texts_are_counted() -> None:
    wanted = [("golden", "v1", "q1"), ("golden", "v1", "q3"), ("golden", "v2", "q1")]
    with pytest.raises(DataError, match="the results lack the texts of 2 of 3 answers, so no judge can read them"):
        read_samples(EVALUATION, wanted)
