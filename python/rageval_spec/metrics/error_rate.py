from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import OperationalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class ErrorRate(OperationalMetric[MetricNode]):
    known_as = ("errors", "failure_rate", "success_rate")
    counts_failures = True
    always = ()
    info = MetricInfo(
        summary="How often the system fails to answer: timeouts, refused calls, replies that cannot be read.",
        formula="error_rate = 1 if the system failed after all its tries, else 0; its mean is the share of failures",
        edge_cases=(
            "question without an answer in the system's file: a failure",
            "question that was not asked, because a limit stopped the evaluation or 10 calls in a row failed: no value",
            "only failures: 1, and the evaluation of the system counts as broken",
            "empty answer, or a refusal such as `I don't know`: not a failure",
            "failure of a judge: not a failure of the system; the judge's metric reports it",
        ),
        source="rageval-spec: a share, since 2026",
        higher_is_better=False,
    )

    def read(self, sample: Sample) -> float | str:
        return float(sample.error is not None)


PLUGIN = ErrorRate
