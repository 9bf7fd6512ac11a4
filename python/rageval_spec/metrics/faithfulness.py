from collections.abc import Sequence

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import NO_CONTEXTS, is_blank
from rageval_spec.metrics.shared.judged_metrics import ANSWER_IN_CONTEXTS, RefusalAwareMetric, RefusalNode
from rageval_spec.plugin import Measured, Measurement, MetricInfo

UNSUPPORTED = f"{NO_CONTEXTS}: nothing can support the answer"


class Faithfulness(RefusalAwareMetric[RefusalNode]):
    known_as = (
        "hallucination", "hallucination_rate", "context_faithfulness", "answer_faithfulness", "grounding",
        "attribution",
    )  # fmt: skip
    needs = frozenset({"answer", "contexts"})
    asked = (ANSWER_IN_CONTEXTS,)
    info = MetricInfo(
        summary="The share of an answer's claims that the contexts support: how little of it is made up.",
        formula="faithfulness = claims of the answer supported by the contexts / claims of the answer",
        edge_cases=(
            "answer without a claim: no value, because there is nothing to support; a list of phrases in 16 "
            "languages, extended by `phrases`, finds refusals that say nothing else, such as 'I don't know' or 'Das "
            "weiß ich nicht'; of the judges, only waterfall sees them",
            "empty answer: no value",
            "no contexts, or empty ones: 0 with a reason, because nothing can support the claims; no value if the "
            "judge finds no claims",
            "judges that give scores: the mean of the claims' scores, or the share that reaches the judge's threshold",
        ),
        source="Es, James, Espinosa-Anke and Schockaert, RAGAS: Automated evaluation of retrieval augmented "
        "generation, EACL 2024 (arXiv 2309.15217, 2023)",
        aliases=("groundedness",),
    )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Ask the judge; without contexts, any support that it finds counts as 0."""
        asked = super().ask(samples)
        measured = [
            Measurement.scored(0.0, one.reason or UNSUPPORTED, one.details)
            if one.status == "scored" and is_blank(sample.contexts)
            else one
            for sample, one in zip(samples, asked.measurements, strict=True)
        ]
        return Measured(measured, asked.notes)


PLUGIN = Faithfulness
