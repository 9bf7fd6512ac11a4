from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Criterion, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judging.refusals import find_refusal
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Measurement, MetricInfo


class FactualCorrectnessNode(judged_metrics.RefusalNode):
    mode: Literal["f1", "precision", "recall"] = Field(
        default="f1",
        description="precision: the answer's claims that the reference supports; recall: the reference's claims that "
        "the answer supports; f1: both.",
    )
    beta: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="With `mode: f1`: how many times more recall weighs than precision.",
    )


class FactualCorrectness(judged_metrics.RefusalAwareMetric[FactualCorrectnessNode]):
    known_as = ("factuality", "fact_check", "model_graded_factuality")
    needs = frozenset({"answer", "reference"})
    blank = (judged_metrics.WITHOUT_REFERENCE,)
    info = MetricInfo(
        summary="How far the answer makes the same claims as the reference: nothing wrong, and nothing missing.",
        formula="factual_correctness = (1 + beta^2) * P * R / (beta^2 * P + R); P (mode=precision) = claims of the "
        "answer supported by the reference / claims of the answer, R (mode=recall) = claims of the reference supported "
        "by the answer / claims of the reference; 0 if P and R are 0",
        edge_cases=(
            "empty answer, one without a claim, or a refusal that says nothing else ('I don't know'): 0 with a reason; "
            "no value with mode=precision; a refusal is judged if the reference refuses too",
            "empty reference, or one without a claim: no value",
            "answer or reference that the judge leaves undecided, such as one sent to a person: no value",
            "recall in RAGAS: supported claims of the answer / (these + missing claims of the reference), which mixes "
            "two ways of counting; here both counts are of the reference's claims, as in RAGChecker",
            "1e-8 in RAGAS's denominators and its rounding to two digits: left out",
            "several references: only the first one counts",
        ),
        source="RAGAS documentation, factual correctness (2024); Ru et al., RAGChecker: A fine-grained framework for "
        "diagnosing retrieval-augmented generation, NeurIPS 2024 (overall precision, recall and F1)",
    )

    def criteria(self) -> Sequence[Criterion]:
        both = {"precision": judged_metrics.ANSWER_IN_REFERENCE, "recall": judged_metrics.REFERENCE_IN_ANSWER}
        return tuple(criterion for mode, criterion in both.items() if self.node.mode in (mode, "f1"))

    def settle(self, sample: Sample) -> Measurement | None:
        if found := self.settle_blank(sample):
            return found
        reason: str | None = answer_metrics.EMPTY_ANSWER
        if not answer_metrics.is_blank(sample.answer):
            both_refuse = find_refusal(sample.reference or "", self.node.phrases)  # so the two can agree
            reason = None if both_refuse else self.explain_refusal(sample.answer)
        if reason is None:
            return None
        if self.node.mode == "precision":
            return Measurement.unscorable(reason)
        return Measurement.scored(0.0, reason, {"score": 0.0, "claims": []})

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        if self.node.mode != "f1":
            return judged_metrics.measure_finding(findings[0])
        answer, reference = findings
        details = {
            "answer": judged_metrics.describe_finding(answer),
            "reference": judged_metrics.describe_finding(reference),
        }
        if reference.score is None:
            return Measurement.unscorable(reference.reason or "the reference makes no claim", details)
        if answer.score is None:
            if answer.claimless:
                return Measurement.scored(0.0, answer.reason or "the answer makes no claim", details)
            return Measurement.unscorable(answer.reason or answer_metrics.UNDECIDED, details)
        value = arithmetic.f_measure(answer.score, reference.score, self.node.beta)
        return Measurement.scored(value, details={"precision": answer.score, "recall": reference.score, **details})


PLUGIN = FactualCorrectness
