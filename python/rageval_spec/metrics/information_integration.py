from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Estimate
from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared.answer_metrics import EMPTY_REFERENCE, is_blank
from rageval_spec.metrics.shared.paired_metrics import PairedMetric, PairedNode
from rageval_spec.plugin import Measured, Measurement, MetricInfo


class InformationIntegrationNode(PairedNode):
    mode: Literal["pairs", "parts"] = Field(
        default="pairs",
        description="pairs: compare answers with all sources to answers without one of them; parts: each of the "
        "references is a part that the answer must contain.",
    )
    all_: str = Field(
        default="all", alias="all", min_length=1, description="The `condition` of queries with all sources."
    )
    without: str = Field(
        default="without", min_length=1, description="The `condition` of queries without one of the sources."
    )


class InformationIntegration(PairedMetric[InformationIntegrationNode]):
    info = MetricInfo(
        summary="Whether answers combine what several sources say, if no source is enough by itself.",
        formula="information_integration = rightness under `all` - rightness under `without`, of queries of one group; "
        "mode=parts: references that the answer contains / references. Rightness is 1 or 0, with token_f1 and judge "
        "between",
        edge_cases=(
            "value of a group: at its first query; the others have no value, and their reason names that query",
            "as right without a source as with all: 0, because nothing was combined; below 0: worse with all",
            "several queries of a group under one condition, for example without each source in turn: the mean",
            "group without an answer under one of the conditions: no value",
            "query under another condition: no value",
            "empty answer: not right, contains no part",
            "several references: with mode=pairs an answer is right if it matches one of them, and a judge compares "
            "with the first; with mode=parts each distinct reference counts once, empty ones do not",
            "RGB: counts an answer as right only with all parts; mode=parts gives the share of the parts",
            "judge that fails on one answer of a group, or on one part: no value for the whole",
        ),
        source="Chen, Lin, Han and Sun, Benchmarking large language models in retrieval-augmented generation (RGB), "
        "AAAI 2024 (information integration)",
        bounds=(-1.0, 1.0),
    )

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return frozenset[Part]({"answer", "reference"}) if self.node.mode == "parts" else super().needs

    def check(self) -> str | None:
        if self.node.mode == "pairs" and self.node.all_ == self.node.without:
            return f"'all' and 'without' are both '{self.node.without}'"
        if self.node.mode == "parts" and self.node.by in ("exact", "token_f1"):
            return (
                f"'by: {self.node.by}' compares whole answers; with 'mode: parts', write 'by: contains' or 'by: judge'"
            )
        return super().check()

    def compute(self, samples: Sequence[Sample]) -> Measured:
        if self.node.mode == "pairs":
            return self.compare(samples, self.node.all_, self.node.without)
        apart = [_take_apart(sample) for sample in samples]
        rated = self.rate([part for parts in apart for part in parts])
        given = iter(rated.measurements)
        return Measured([_measure_parts(parts, [next(given) for _ in parts]) for parts in apart], rated.notes)

    def measure_pair(self, first: float, second: float) -> Measurement:
        return Measurement.scored(first - second)

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        if self.node.mode == "parts":
            return super().estimate([part for sample in samples for part in _take_apart(sample)])
        conditions = (self.node.all_, self.node.without)
        return super().estimate([sample for sample in samples if sample.condition in conditions])


def _take_apart(sample: Sample) -> list[Sample]:
    """One sample per distinct reference, with only that reference."""
    parts = dict.fromkeys(reference for reference in sample.references if not is_blank(reference))
    return [replace(sample, references=(part,)) for part in parts]


def _measure_parts(parts: Sequence[Sample], ratings: Sequence[Measurement]) -> Measurement:
    if not parts:
        return Measurement.unscorable(EMPTY_REFERENCE)
    unknown = next((rating for rating in ratings if rating.value is None), None)
    if unknown is not None:
        return unknown
    held: list[dict[str, Any]] = [
        {"text": part.reference, **(rating.details or {}), "held": rating.value}
        for part, rating in zip(parts, ratings, strict=True)
    ]
    return Measurement.scored(arithmetic.average(rating.value or 0.0 for rating in ratings), None, {"parts": held})


PLUGIN = InformationIntegration
