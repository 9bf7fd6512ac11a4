from typing import Any

from pydantic import Field

from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.metrics.shared.reference_metrics import split_squad_words
from rageval_spec.plugin import Measurement, MetricInfo
from rageval_spec.wording import count_noun


class MaxWordsNode(answer_metrics.ColumnNode):
    value: int | None = Field(default=None, ge=0, description="The most words that every answer may have.")


class MaxWords(answer_metrics.ExpectationMetric[MaxWordsNode]):
    known_as = ("word_count", "max_length", "length", "too_long", "word_limit")
    info = MetricInfo(
        summary="Whether the answer has at most so many words; its mean is the share of such answers.",
        formula="max_words = 1 if the answer has at most `value` words, else 0",
        edge_cases=(
            "words: what white space separates; each Han character and each kana counts as a word, because these "
            "scripts have no spaces",
            "empty answer: 1",
        ),
        source="rageval-spec: a count, since 2026",
    )

    def read(self, expected: Any) -> int:
        text = str(expected).strip()
        if isinstance(expected, bool) or not text.removesuffix(".0").isdecimal():
            raise ValueError(f"must hold a number of words, not {text[:40]!r}")
        return int(text.removesuffix(".0"))

    def judge(self, answer: str, expected: int) -> Measurement:
        words = len(split_squad_words(answer))
        reason = None if words <= expected else f"the answer has {count_noun(words, 'word')}, {expected} are allowed"
        return Measurement.scored(words <= expected, reason, {"words": words})


PLUGIN = MaxWords
