from collections.abc import Sequence

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import FAILED_SYSTEM, read_json
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricInfo, MetricNode


class IsJsonNode(MetricNode):
    fences: bool = Field(default=True, description="Whether a Markdown code fence around the whole answer is allowed.")


class IsJson(AnswerMetric[IsJsonNode]):
    group = "text"
    needs = frozenset({"answer"})
    known_as = ("json", "valid_json", "is_valid_json", "json_validity", "contains_json")
    info = MetricInfo(
        summary="Whether the answer is valid JSON; its mean is the share of such answers.",
        formula="is_json = 1 if the whole answer can be read as JSON, else 0",
        edge_cases=(
            "scalars: a number, a text in quotes, true, false and null are JSON too; for an object use `json_schema`",
            "code fence: ignored if it surrounds the whole answer, unless `fences: false`",
            "NaN and Infinity: 0, because they are not JSON",
            "text around the JSON: 0",
            "empty answer: 0",
            FAILED_SYSTEM,
        ),
        source="RFC 8259, The JavaScript Object Notation (JSON) Data Interchange Format, 2017",
    )

    def compute(self, samples: Sequence[Sample]) -> Measured:
        return Measured([self._check(sample.answer or "") for sample in samples])

    def _check(self, answer: str) -> Measurement:
        try:
            read_json(answer, unfence=self.node.fences)
        except ValueError as error:
            return Measurement.scored(0.0, str(error))
        return Measurement.scored(1.0)


PLUGIN = IsJson
