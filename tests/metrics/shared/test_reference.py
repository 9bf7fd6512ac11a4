from __future__ import annotations

from collections.abc import Sequence

from rageval_spec.data.sample import Sample
from rageval_spec.metrics.shared.reference import Comparer, LexicalMetric
from rageval_spec.plugin import Context, MetricInfo, MetricNode


class Echo(LexicalMetric[MetricNode]):
    """1 if an answer equals one of its references, else 0."""

    node_type = MetricNode
    info = MetricInfo("Echo.", "", (), "")
    asked = 0

    def comparer(self) -> Comparer:
        self.asked += 1

        def compare(answer: str, references: Sequence[str]) -> float:
            return float(answer in references)

        return compare


def test_empty_references_are_left_out_and_without_any_there_is_no_value() -> None:
    metric = Echo(MetricNode(use="echo"), Context("echo"))
    samples = [
        Sample("q1", "?", answer="a", references=(" ", "a")),
        Sample("q2", "?", answer="", references=("", "\n")),
        Sample("q3", "?", answer="", references=("a",)),
    ]
    found = metric.compute(samples).measurements
    assert [(one.value, one.reason) for one in found] == [(1.0, None), (None, "the reference is empty"), (0.0, None)]
    assert metric.usable_references(samples[0]) == ["a"]
    assert metric.asked == 1


def test_preparing_builds_the_comparer_and_imports_its_libraries() -> None:
    metric = Echo(MetricNode(use="echo"), Context("echo"))
    metric.prepare()
    assert metric.asked == 1
