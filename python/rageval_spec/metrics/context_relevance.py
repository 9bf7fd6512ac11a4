from collections.abc import Sequence
from dataclasses import replace

from rageval_spec.data.findings import Finding
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared import judged_metrics
from rageval_spec.metrics.shared.answer_metrics import NO_CONTEXTS
from rageval_spec.plugin import Measured, Measurement, MetricInfo

USEFUL = judged_metrics.ask_about(
    "context_relevance", "usefulness", "Is the context useful for answering the question?", "contexts"
)
USEFUL_TOGETHER = judged_metrics.ask_about(
    "context_relevance", "grade", "How useful are the contexts for answering the question?", "contexts"
)


class ContextRelevance(judged_metrics.JudgedMetric[judged_metrics.JudgeMetricNode]):
    known_as = ("context_relevancy", "qs_relevance", "retrieval_relevance")
    needs = frozenset({"contexts"})
    able = (frozenset({"usefulness"}), frozenset({"grade"}))
    ways = ((USEFUL,), (USEFUL_TOGETHER,))
    blank = (("contexts", Measurement.scored(0.0, NO_CONTEXTS, {"score": 0.0, "contexts": []})),)
    info = MetricInfo(
        summary="How useful the contexts are for the question, on average: how little of them is noise.",
        formula="context_relevance = mean over the contexts of how useful the judge finds each for the question, in "
        "[0, 1], or the share that it calls useful; with a judge that only grades: its grade of all contexts together, "
        "in [0, 1]",
        edge_cases=(
            "no contexts, or empty ones: 0 with a reason",
            "empty context among others: 0 for it, and the judge does not see it",
            "judges that say yes or no, or have a threshold: the share of useful contexts",
            "question in which the judge finds nothing to compare with: no value",
            "RAGAS: its first version counts sentences of the contexts; a later one averages two grades of all "
            "contexts together, as a judge that grades does here",
        ),
        source="Es, James, Espinosa-Anke and Schockaert, RAGAS, EACL 2024 (context relevance); per context as in "
        "Saad-Falcon, Khattab, Potts and Zaharia, ARES, NAACL 2024",
        aliases=("contextual_relevancy",),
    )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        if not self.can("usefulness"):
            return super().ask(samples)
        assessment = judged_metrics.judge_each(self.judge, USEFUL, samples)
        measured = [
            replace(judged_metrics.measure_finding(one), details=judged_metrics.describe_contexts(one))
            if isinstance(one, Finding)
            else judged_metrics.measure_failure(one)
            for one in assessment.findings
        ]
        return Measured(measured, assessment.notes)


PLUGIN = ContextRelevance
