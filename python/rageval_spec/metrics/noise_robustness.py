from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.data.findings import Estimate
from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared.paired_metrics import PairedMetric, PairedNode
from rageval_spec.plugin import Measured, Measurement, MetricInfo


class NoiseRobustnessNode(PairedNode):
    mode: Literal["retained", "accuracy"] = Field(
        default="retained",
        description="retained: the share of the rightness without noise that is left with noise, for each group; "
        "accuracy: how right the answers are with noise, for each query.",
    )
    clean: str = Field(default="clean", min_length=1, description="The `condition` of queries without noise.")
    noisy: str = Field(default="noisy", min_length=1, description="The `condition` of queries with noise.")


class NoiseRobustness(PairedMetric[NoiseRobustnessNode]):
    info = MetricInfo(
        summary="Whether a system that answers a question correctly still does so when noise is mixed into its "
        "contexts.",
        formula="noise_robustness = min(1, rightness under `noisy` / rightness under `clean`), of queries of one "
        "group; mode=accuracy: rightness under `noisy`, of each query. Rightness is 1 or 0, with token_f1 and judge "
        "between",
        edge_cases=(
            "value of a group: at its first query; the others have no value, and their reason names that query",
            "not right without noise: no value, because noise has nothing to take away",
            "several queries of a group under one condition: the mean of their rightness",
            "group without an answer under one of the conditions: no value",
            "query under another condition: no value",
            "empty answer: not right",
            "RGB: measures the accuracy at a noise ratio, as mode=accuracy does; with mode=retained a note gives the "
            "accuracy under both conditions",
            "several references: right if the answer matches one of them; a judge compares with the first",
            "judge that fails on one answer of a group: no value for the group",
        ),
        source="Chen, Lin, Han and Sun, Benchmarking large language models in retrieval-augmented generation (RGB), "
        "AAAI 2024 (noise robustness)",
    )

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return super().needs - (frozenset({"group"}) if self.node.mode == "accuracy" else frozenset())

    def check(self) -> str | None:
        if self.node.clean == self.node.noisy:
            return f"'clean' and 'noisy' are both '{self.node.clean}'"
        return super().check()

    def compute(self, samples: Sequence[Sample]) -> Measured:
        if self.node.mode == "retained":
            return self.compare(samples, self.node.clean, self.node.noisy)
        rated = self.rate([sample for sample in samples if self._is_noisy(sample)])
        given = iter(rated.measurements)
        other = f"its condition is not '{self.node.noisy}'"
        return Measured(
            [next(given) if self._is_noisy(sample) else Measurement.unscorable(other) for sample in samples],
            rated.notes,
        )

    def measure_pair(self, first: float, second: float) -> Measurement:
        if first == 0:
            return Measurement.unscorable(f"the answer is not right under '{self.node.clean}' either")
        return Measurement.scored(min(1.0, second / first))

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        conditions = {self.node.noisy} | ({self.node.clean} if self.node.mode == "retained" else set())
        return super().estimate([sample for sample in samples if sample.condition in conditions])

    def _is_noisy(self, sample: Sample) -> bool:
        return sample.condition == self.node.noisy


PLUGIN = NoiseRobustness
