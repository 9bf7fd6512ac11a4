from typing import Any, Literal

from pydantic import Field

from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.plugin import Measurement, MetricInfo


class ContainsNode(answer_metrics.ContainmentNode):
    require: Literal["all", "any"] = Field(
        default="all", description="Of several texts, whether the answer must contain all, or any one."
    )


class Contains(answer_metrics.ContainmentMetric[ContainsNode]):
    known_as = ("icontains", "contains_all", "contains_any", "contains_string", "string_presence", "includes")
    info = MetricInfo(
        summary="Whether the answer contains a text that it must contain; its mean is the share of such answers.",
        formula="contains = 1 if the answer contains all of the texts (`require: any`: one of them), else 0",
        edge_cases=(
            "words: a text is found inside of words too; for whole words use `matches` with `\\b`",
            "characters: composed and decomposed forms of a character are the same; case counts unless `ignore_case`",
            "empty answer: 0",
        ),
        source="rageval-spec: a literal search, since 2026",
    )

    def judge(self, answer: str, expected: Any) -> Measurement:
        found, absent = self.split(answer, expected)
        holds = bool(found) if self.node.require == "any" else not absent
        reason = None if holds else f"the answer lacks {', '.join(map(repr, absent))}"
        return Measurement.scored(holds, reason, {"found": found, "absent": absent})


PLUGIN = Contains
