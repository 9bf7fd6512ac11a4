from typing import Any

from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.plugin import Measurement, MetricInfo


class NotContains(answer_metrics.ContainmentMetric[answer_metrics.ContainmentNode]):
    known_as = ("not_icontains", "excludes", "forbidden", "banned_words")
    info = MetricInfo(
        summary="Whether the answer contains none of the texts that it must not contain; its mean is the share of such "
        "answers.",
        formula="not_contains = 0 if the answer contains any of the texts, else 1",
        edge_cases=(
            "words: a text is found inside of words too; for whole words use `matches` with `\\b`",
            "characters: composed and decomposed forms of a character are the same; case counts unless `ignore_case`",
            "empty answer: 1",
        ),
        source="rageval-spec: a literal search, since 2026",
    )

    def judge(self, answer: str, expected: Any) -> Measurement:
        found, absent = self.split(answer, expected)
        reason = f"the answer contains {', '.join(map(repr, found))}" if found else None
        return Measurement.scored(not found, reason, {"found": found, "absent": absent})


PLUGIN = NotContains
