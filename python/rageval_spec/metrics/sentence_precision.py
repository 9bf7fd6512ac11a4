from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.data.evidence.citations import Statement
from rageval_spec.metrics.shared import cited_statements
from rageval_spec.metrics.shared.cited_statements import FULL, Found, Pair
from rageval_spec.metrics.shared.judged_metrics import JudgeMetricNode
from rageval_spec.plugin import Measurement, MetricInfo


class SentencePrecisionNode(JudgeMetricNode):
    uncited: Literal["count", "skip"] = Field(
        default="count",
        description="What becomes of statements without a citation. count: they are not supported; skip: they do not "
        "count, as if none needed a citation.",
    )


class SentencePrecision(cited_statements.CitedMetric[SentencePrecisionNode]):
    known_as = ("argue", "auto_argue", "sentence_support")
    info = MetricInfo(
        summary="The share of a report's sentences that every passage they cite supports, as in ARGUE.",
        formula="sentence_precision = statements supported in full by each passage that they cite / statements",
        edge_cases=(
            "statement without a citation: not supported; in ARGUE it does not count if it needs none, which a person "
            "decides; `uncited: skip` counts no such statement",
            "citation that names no context: the statement is not supported",
            "no statement that counts: no value",
        ),
        source="Mayfield et al., On the evaluation of machine-generated reports, SIGIR 2024 (arXiv:2405.00982); Walden "
        "et al., Auto-ARGUE: LLM-based report generation evaluation, 2025 (arXiv:2509.26184)",
    )

    def measure_pairs(self, statements: Sequence[Statement], found: Found) -> Measurement:
        claims, right, counted = [], 0, 0
        for number, one in enumerate(statements):
            of = [cited_statements.describe_citation(one, cited, found, number) for cited in one.citations]
            right += bool(of) and all(claim["score"] == FULL for claim in of)
            counted += bool(of) or self.node.uncited == "count"
            claims += of
        if not counted:
            return Measurement.unscorable(cited_statements.CITES_NOTHING)
        reason = None if claims else cited_statements.CITES_NOTHING
        return Measurement.scored(right / counted, reason, {"statements": counted, "claims": claims})

    def list_pairs(self, statements: Sequence[Statement]) -> Iterator[Pair]:
        for number, one in enumerate(statements):
            yield from (Pair(number, (cited.context,)) for cited in one.citations if cited.context is not None)


PLUGIN = SentencePrecision
