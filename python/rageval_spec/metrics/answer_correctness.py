from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Failed, Finding
from rageval_spec.data.outcomes import AnyNote
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared import answer_metrics, judged_metrics, reference_metrics
from rageval_spec.plugin import EmbeddingModel, Measured, Measurement, MetricInfo, ModelName


class AnswerCorrectnessNode(judged_metrics.RefusalNode):
    weights: tuple[float, ...] = Field(
        default=(0.75, 0.25),
        min_length=2,
        max_length=2,
        description="The weights of the claims and of similarity in meaning; only their ratio matters.",
    )
    beta: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="How many times more the recall of claims weighs than their precision.",
    )
    model: ModelName = Field(default="minilm", description="The embedding model that measures similarity of meaning.")

    @field_validator("weights")
    @classmethod
    def _check_weights(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if not 0 < weights[0] < float("inf") or not 0 <= weights[1] < float("inf"):
            raise ValueError(
                "the first weight must be above 0, the second at least 0; for similarity only, use semantic_similarity"
            )
        return weights


class AnswerCorrectness(judged_metrics.RefusalAwareMetric[AnswerCorrectnessNode]):
    known_as = ("correctness", "answer_accuracy", "ground_truth_agreement", "qa_correctness", "response_correctness")
    needs = frozenset({"answer", "reference"})
    asked = (judged_metrics.ANSWER_IN_REFERENCE, judged_metrics.REFERENCE_IN_ANSWER)
    settle = judged_metrics.JudgedMetric.settle  # a refusal is judged
    blank = (
        judged_metrics.WITHOUT_REFERENCE,
        ("answer", Measurement.scored(0.0, answer_metrics.EMPTY_ANSWER, {"claims": 0.0, "similarity": 0.0})),
    )
    info = MetricInfo(
        summary="How far an answer agrees with the reference: in its claims, and in its meaning as a whole.",
        formula="answer_correctness = (w1 * F + w2 * S) / (w1 + w2); F = (1 + beta^2) * P * R / (beta^2 * P + R), P = "
        "claims of the answer supported by the reference / claims of the answer, R = claims of the reference supported "
        "by the answer / claims of the reference; S = cosine of the embeddings of answer and reference",
        edge_cases=(
            "empty answer: 0 with a reason",
            "empty reference: no value",
            "answer without a claim: F = 0 (RAGAS: 1); the same for a refusal that says nothing else, if the judge "
            "finds nothing to judge in it",
            "reference without a claim: no value (RAGAS: F = 1)",
            "answer or reference that the judge leaves undecided, such as one sent to a person: no value",
            "second weight 0: no embedding is computed",
            "S below 0: is not raised to 0",
            "similarity by minilm and similar models: seldom below 0.3, even between unrelated texts on a topic, so "
            "values are comparable only with the same model; with another local one, a note says what texts without "
            "anything in common get",
            "several references: only the first one counts",
        ),
        source="RAGAS documentation, answer correctness (2023); claims both ways: Ru et al., RAGChecker, NeurIPS 2024",
        bounds=(-1.0, 1.0),
    )

    def asked_models(self) -> Sequence[str]:
        return super().asked_models() if self.node.weights[1] else ()

    def check(self) -> str | None:
        if (fault := super().check()) or not self.node.weights[1]:
            return fault
        return self.context.explain_model(self.node.model, EmbeddingModel, "gives no embeddings")

    def ask(self, samples: Sequence[Sample]) -> Measured:
        found, notes = self.assess(samples)
        cosines, notes_on_cosines = self._compare(samples)
        pairs = zip(samples, found, cosines, strict=True)
        measurements = [self._weigh(sample, findings, cosine) for sample, findings, cosine in pairs]
        return Measured(measurements, (*notes, *notes_on_cosines))

    def _compare(self, samples: Sequence[Sample]) -> tuple[list[float | Failed], tuple[AnyNote, ...]]:
        if not self.node.weights[1]:
            return [0.0] * len(samples), ()
        pairs = [(sample.answer or "", sample.reference or "") for sample in samples]
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        return reference_metrics.compare_meanings(model, pairs, "document")

    def _weigh(self, sample: Sample, findings: Sequence[Finding | Failed], cosine: float | Failed) -> Measurement:
        if failed := judged_metrics.first_failure((*findings, cosine)):
            return judged_metrics.measure_failure(failed)
        answer, reference = findings
        assert isinstance(answer, Finding) and isinstance(reference, Finding) and isinstance(cosine, float)
        weights = self.node.weights
        details: dict[str, Any] = {
            "answer": judged_metrics.describe_finding(answer),
            "reference": judged_metrics.describe_finding(reference),
        }
        if weights[1]:
            details["similarity"] = cosine
        if reference.score is None:
            return Measurement.unscorable(reference.reason or "the reference makes no claim", details)
        reason = None
        if answer.score is None:
            reason = (
                answer.reason or "the answer makes no claim"
                if answer.claimless
                else self.explain_refusal(sample.answer)
            )
            if reason is None:
                return Measurement.unscorable(answer.reason or answer_metrics.UNDECIDED, details)
        claims = arithmetic.f_measure(answer.score or 0.0, reference.score, self.node.beta)
        value = (weights[0] * claims + weights[1] * cosine) / sum(weights)
        return Measurement.scored(value, reason, {"f": claims, **details})


PLUGIN = AnswerCorrectness
