from collections.abc import Iterator, Sequence

from pydantic import Field

from rageval_spec.data.evidence.citations import Statement
from rageval_spec.metrics.shared import cited_statements
from rageval_spec.metrics.shared.cited_statements import Found, Pair
from rageval_spec.metrics.shared.judged_metrics import JudgeMetricNode
from rageval_spec.plugin import Measurement, MetricInfo


class CitationRecallNode(JudgeMetricNode):
    most: int = Field(default=3, ge=1, description="How many citations of a statement count, the first ones.")


class CitationRecall(cited_statements.CitedMetric[CitationRecallNode]):
    known_as = ("citation_rec", "autoais", "alce_recall")
    info = MetricInfo(
        summary="The share of an answer's statements that all they cite supports together, as in ALCE.",
        formula="citation_recall = statements that the passages cited for them support when joined / statements",
        edge_cases=(
            "statement without a citation: not supported",
            "statement with a citation that names no context: not supported, whatever else it cites, as in ALCE's code",
            "support in part: not supported",
            "answer without a citation: 0 with a reason",
            "`[1, 3]`: two citations; ALCE's code reads only the first number of a bracket",
        ),
        source="Gao, Yen, Yu and Chen, Enabling large language models to generate text with citations, EMNLP 2023 "
        "(arXiv:2305.14627); eval.py of princeton-nlp/ALCE, compute_autoais",
    )

    def measure_pairs(self, statements: Sequence[Statement], found: Found) -> Measurement:
        claims = []
        for number, one in enumerate(statements):
            places = cited_statements.list_places(one.citations) or ()
            finding = found.get(Pair(number, places[: self.node.most]))
            reason = None if finding else "it cites nothing" if not one.citations else cited_statements.NAMES_NOTHING
            weight = 0.0 if finding is None else cited_statements.weigh(finding)
            claims.append(cited_statements.describe_claim(one, None, finding, weight, reason))
        supported = sum(claim["score"] == cited_statements.FULL for claim in claims)
        reason = None if any(one.citations for one in statements) else cited_statements.CITES_NOTHING
        return Measurement.scored(supported / len(statements), reason, {"claims": claims})

    def list_pairs(self, statements: Sequence[Statement]) -> Iterator[Pair]:
        for number, one in enumerate(statements):
            if places := cited_statements.list_places(one.citations):
                yield Pair(number, places[: self.node.most])


PLUGIN = CitationRecall
