from typing import Literal

from pydantic import Field

from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Measurement, MetricInfo


class ContextRecallNode(judged_metrics.OptionallyJudgedNode):
    by: Literal["claims", "ids"] = Field(
        default="claims",
        description="claims: a judge attributes the reference's claims to the contexts; ids: without a judge, the "
        "document ids of the contexts are compared with the relevant documents.",
    )
    rel: int = Field(default=1, ge=1, description="With `by: ids`: the lowest relevance of a relevant document.")


class ContextRecall(judged_metrics.ConditionalJudge[ContextRecallNode]):
    known_as = ("llm_context_recall", "contextual_coverage")
    by_judge = "claims"
    asked = (judged_metrics.REFERENCE_IN_CONTEXTS,)
    blank = (
        judged_metrics.WITHOUT_REFERENCE,
        ("contexts", Measurement.scored(0.0, answer_metrics.NO_CONTEXTS, {"score": 0.0, "claims": []})),
    )
    info = MetricInfo(
        summary="How much of what is needed to answer the contexts contain: claims of the reference, or documents.",
        formula="context_recall = claims of the reference that can be attributed to the contexts / claims of the "
        "reference; by=ids: relevant documents among the contexts / relevant documents",
        edge_cases=(
            "no contexts, or empty ones: 0 with a reason",
            "empty reference, or one without a claim: no value",
            "by=ids, no relevant document: no value",
            "by=ids, several contexts of one document: it counts once",
            "several references: only the first one counts",
        ),
        source="RAGAS: Es, James, Espinosa-Anke and Schockaert, EACL 2024, and its documentation (context recall, ID "
        "based context recall)",
        aliases=("contextual_recall",),
    )

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return frozenset({"context_ids", "relevant"} if self.node.by == "ids" else {"contexts", "reference"})

    def settle(self, sample: Sample) -> Measurement | None:
        return super().settle(sample) if self.asks_judge else self._compare_ids(sample)

    def _compare_ids(self, sample: Sample) -> Measurement:
        relevant = {doc for doc, relevance in (sample.relevant or {}).items() if relevance >= self.node.rel}
        if not relevant:
            return Measurement.unscorable("no relevant document")
        found = relevant & {*(sample.context_ids or ())}
        reason = None if sample.context_ids else answer_metrics.NO_CONTEXTS
        details = {"relevant": sorted(relevant), "found": sorted(found)}
        return Measurement.scored(len(found) / len(relevant), reason, details)


PLUGIN = ContextRecall
