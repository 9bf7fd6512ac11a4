from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.evidence.citations import Citation, Statement
from rageval_spec.metrics.shared import cited_statements
from rageval_spec.metrics.shared.cited_statements import Found, Pair
from rageval_spec.metrics.shared.judged_metrics import JudgeMetricNode
from rageval_spec.plugin import Measurement, MetricInfo


class CitationSupportNode(JudgeMetricNode):
    mode: Literal["f1", "precision", "recall"] = Field(
        default="f1",
        description="precision: the mean support over the statements that cite something; recall: over all; f1: both.",
    )
    citations: Literal["first", "all"] = Field(
        default="first",
        description="The citations of a statement that count: the first, as at TREC 2024, or all.",
    )


class CitationSupport(cited_statements.CitedMetric[CitationSupportNode]):
    known_as = ("support_evaluation", "weighted_precision", "weighted_recall", "attribution_support")
    info = MetricInfo(
        summary="How far the passages that an answer cites support what it says, as at TREC's RAG track.",
        formula="citation_support = 2 P R / (P + R), 0 if one is 0; P (mode=precision) = sum of support / statements "
        "that cite, R (mode=recall) = sum of support / statements; support = 1 in full, 0.5 in part, 0 not at all; "
        "citations=all: precision over citations, recall with the best support of each statement",
        edge_cases=(
            "statement without a citation: 0 in recall, not in precision",
            "citation that names no context: support 0, and no judge is asked",
            "answer without a citation: recall and f1 are 0 with a reason; precision has no value",
            "partial support: some of a statement's claims are supported, or its score is at least 0.5 although it is "
            "not supported, such as the partial support of `assignment`",
        ),
        source="Thakur et al., Support evaluation for the TREC 2024 RAG track: comparing human versus LLM judges, "
        "SIGIR 2025 (arXiv:2504.15205)",
    )

    def measure_pairs(self, statements: Sequence[Statement], found: Found) -> Measurement:
        claims, weights = [], dict[int, list[float]]()
        for number, statement in enumerate(statements):
            for citation in self._choose(statement):
                claims.append(cited_statements.describe_citation(statement, citation, found, number))
                weights.setdefault(number, []).append(claims[-1]["score"])
        every = [weight for of in weights.values() for weight in of]
        recall = sum(map(max, weights.values())) / len(statements)
        precision = sum(every) / len(every) if every else None
        details = {"precision": precision, "recall": recall, "statements": len(statements), "claims": claims}
        if precision is None and self.node.mode == "precision":
            return Measurement.unscorable(cited_statements.CITES_NOTHING, details)
        value = {"precision": precision, "recall": recall, "f1": arithmetic.f_measure(precision or 0.0, recall, 1.0)}
        reason = None if every else cited_statements.CITES_NOTHING
        return Measurement.scored(value[self.node.mode] or 0.0, reason, details)

    def list_pairs(self, statements: Sequence[Statement]) -> Iterator[Pair]:
        for number, statement in enumerate(statements):
            places = (one.context for one in self._choose(statement))
            yield from (Pair(number, (place,)) for place in places if place is not None)

    def _choose(self, statement: Statement) -> tuple[Citation, ...]:
        return statement.citations[:1] if self.node.citations == "first" else statement.citations


PLUGIN = CitationSupport
