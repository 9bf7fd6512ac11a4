from collections.abc import Sequence

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.metrics.shared.cited_statements import CITES_NOTHING, citations_of
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricInfo, MetricNode

UNKNOWN = "it is not known which contexts the answer had"


class CitationValidity(AnswerMetric[MetricNode]):
    always = (answer_metrics.FAILED_SYSTEM,)
    known_as = ("citation_format", "citation_existence", "citation_accuracy", "hallucinated_citations")
    info = MetricInfo(
        summary="The share of an answer's citations that name a context which the answer had: none is made up.",
        formula="citation_validity = citations that name a context / citations",
        edge_cases=(
            "`[1, 3]`: two citations",
            "answer without a citation: no value; see citation_recall for answers that should have some",
            "contexts and their ids unknown: no value",
            "no contexts: every citation is invalid",
            "numbers: they count from 1, or from 0 if `citations_from` of the system says so or the answer cites 0",
        ),
        source="Gao, Yen, Yu and Chen, Enabling large language models to generate text with citations, EMNLP 2023 "
        "(arXiv:2305.14627), whose code counts a sentence with such a citation as not supported",
    )

    def compute(self, samples: Sequence[Sample]) -> Measured:
        return Measured([_measure(sample) for sample in samples])


def _measure(sample: Sample) -> Measurement:
    if answer_metrics.is_blank(sample.answer):
        return Measurement.unscorable(answer_metrics.EMPTY_ANSWER)
    citations = citations_of(sample)
    if not citations:
        return Measurement.unscorable(CITES_NOTHING)
    if sample.contexts is None and sample.context_ids is None:
        return Measurement.unscorable(UNKNOWN)
    unknown = [one.document for one in citations if one.context is None]
    reason = f"no context is named {', '.join(map(repr, dict.fromkeys(unknown)))}" if unknown else None
    details = {"citations": len(citations), "unknown": unknown}
    return Measurement.scored((len(citations) - len(unknown)) / len(citations), reason, details)


PLUGIN = CitationValidity
