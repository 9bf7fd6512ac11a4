"""Labelled answers are frozen with what the judge said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.calibration.freezing import freeze_anchors
from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.measuring import measure_judge
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.plugin.identity import digest_criterion
from tests.answered_evaluation import ANSWER, CLAIMS, answered, sample, value
from tests.history.recorded import METRICS, PROMPTS, evaluate
from tests.judges.fakes import FAITHFULNESS

SPEC = evaluate({"faithfulness": METRICS["faithfulness"]}).spec


def test_texts_values_and_labels_are_kept() -> None:
    values = [value(f"q{n}", "faithfulness", n / 10, details={"score": n / 10}) for n in range(10)]
    samples = [sample(f"q{n}", contexts=["A."]) for n in range(10)]
    evaluation = replace(answered(values, samples), spec=SPEC, prompts=PROMPTS)
    labels = [Label(f"q{n}", "faithfulness", float(n >= 5), "ann") for n in range(10)]
    joined = join_labels(evaluation, labels, "faithfulness")
    found = freeze_anchors(evaluation, joined, measure_judge(joined, resamples=50))
    assert (found.judge, found.metric, found.criterion) == ("strict", "faithfulness", digest_criterion(FAITHFULNESS))
    assert found.threshold == pytest.approx(0.45)
    assert [anchor.value for anchor in found.anchors] == [n / 10 for n in range(10)]
    assert [anchor.label for anchor in found.anchors] == [0.0] * 5 + [1.0] * 5
    assert (found.anchors[0].answer, found.anchors[0].contexts) == (ANSWER, ("A.",))


def test_labels_of_claims_are_refused() -> None:
    values = [value("q1", "faithfulness", 0.5, details={"claims": list(CLAIMS)})]
    evaluation = replace(answered(values, [sample("q1")]), spec=SPEC, prompts=PROMPTS)
    labels = [Label("q1", "faithfulness", "supported", "ann", claim=0)]
    joined = join_labels(evaluation, labels, "faithfulness")
    with pytest.raises(UsageError, match="labels of claims cannot be frozen; label whole answers"):
        freeze_anchors(evaluation, joined, measure_judge(joined, resamples=50))
