from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Measurement, MetricInfo


class Completeness(judged_metrics.JudgedMetric[judged_metrics.JudgeMetricNode]):
    known_as = ("answer_completeness", "answer_coverage")
    needs = frozenset({"answer", "reference"})
    asked = (judged_metrics.REFERENCE_IN_ANSWER,)
    blank = (
        judged_metrics.WITHOUT_REFERENCE,
        ("answer", Measurement.scored(0.0, answer_metrics.EMPTY_ANSWER, {"score": 0.0, "claims": []})),
    )
    info = MetricInfo(
        summary="The share of the reference's claims that the answer covers: how little the answer leaves out.",
        formula="completeness = claims of the reference supported by the answer / claims of the reference",
        edge_cases=(
            "empty answer: 0 with a reason",
            "empty reference, or one without a claim: no value",
            "several references: only the first one counts",
            "factual_correctness(mode=recall): equal to this, and the judge is asked once for both",
        ),
        source="Ru et al., RAGChecker: A fine-grained framework for diagnosing retrieval-augmented generation, NeurIPS "
        "2024 (claim recall); summary content units: Nenkova and Passonneau, Evaluating content selection in "
        "summarization: the Pyramid method, HLT-NAACL 2004",
        aliases=("claim_recall",),
    )


PLUGIN = Completeness
