from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import OperationalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class LatencyNode(MetricNode):
    percentile: int | None = Field(
        default=None,
        ge=1,
        le=99,
        description="Aggregate as this percentile over the questions, such as 50, 95 or 99; by default as the mean.",
    )


class Latency(OperationalMetric[LatencyNode]):
    known_as = ("response_time", "duration")
    info = MetricInfo(
        summary="How many seconds the system takes to answer a question; the mean, or a percentile such as "
        "latency@p95.",
        formula="latency = seconds from question to answer, as the system's block or its file reports them; latency@pN "
        "= the value below which N % of the questions are, with linear interpolation between the two nearest",
        edge_cases=(
            "percentile: its interval lies between two order statistics, which is valid for any distribution; it needs "
            "enough questions (at 95 %: 6 for p50, 72 for p95, 368 for p99) and is left out with fewer",
            "comparison: means are compared between systems, percentiles are not",
            "seconds unknown: unscorable; answers made elsewhere have seconds only if their file does",
        ),
        source="Hyndman and Fan, Sample quantiles in statistical packages, The American Statistician 50(4), 1996, "
        "definition 7; interval: David and Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1",
        higher_is_better=False,
        bounds=(0.0, None),
        unit="seconds",
    )

    @property
    def name(self) -> str:
        return self.node.use if self.node.percentile is None else f"{self.node.use}@p{self.node.percentile}"

    @property
    def statistic(self) -> str:
        return self.info.statistic if self.node.percentile is None else f"p{self.node.percentile}"

    def read(self, sample: Sample) -> float | str:
        return "the system does not report how long it took" if sample.seconds is None else sample.seconds


PLUGIN = Latency
