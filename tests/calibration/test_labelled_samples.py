"""The samples of labelled items."""

from __future__ import annotations

from rageval_spec.calibration.joining import join_labels
from rageval_spec.calibration.labelled_samples import read_samples
from rageval_spec.data.labels import Label
from tests.answered_evaluation import answered, sample, value


def test_each_item_has_the_sample_of_its_system() -> None:
    values = [value("q1", "faithfulness", 0.5, system) for system in ("v1", "v2", "v3")]
    evaluation = answered(values, [sample("q1", system, answer=f"by {system}") for system in ("v1", "v2")])
    labels = [Label("q1", "faithfulness", 1.0, "ann", system=system) for system in ("v2", "v3")]
    found = read_samples(evaluation, join_labels(evaluation, labels, "faithfulness"))
    assert {item[1]: row.get("answer") for item, row in found.items()} == {"v2": "by v2", "v3": None}
