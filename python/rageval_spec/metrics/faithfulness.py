"""`faithfulness`: the share of the answer's claims that the contexts support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rageval_spec.answer_metric import (
    ANSWER_IN_CONTEXTS,
    EMPTY_ANSWER,
    FAILED_JUDGE,
    NO_CONTEXTS,
    JudgedMetric,
    JudgedNode,
    is_blank,
    measure_failure,
)
from rageval_spec.assessment import Criterion, Estimate, Failed
from rageval_spec.plugin import Measured, Measurement, MetricInfo
from rageval_spec.samples import Part

if TYPE_CHECKING:
    from rageval_spec.samples import Sample

UNSUPPORTED = f"{NO_CONTEXTS}: nothing can support the answer"


class FaithfulnessNode(JudgedNode):
    """Faithfulness of answers to their contexts."""


class Faithfulness(JudgedMetric[FaithfulnessNode]):
    """Faithfulness of answers to their contexts."""

    node_type = FaithfulnessNode
    needs = frozenset[Part]({"answer", "contexts"})
    info = MetricInfo(
        summary="The share of an answer's claims that the contexts support: how little of it is made up.",
        formula="faithfulness = claims of the answer supported by the contexts / claims of the answer",
        edge_cases=(
            "answer without a claim, such as 'I don't know': no value, because there is nothing to support",
            "empty answer: no value",
            "no contexts, or empty ones: 0 with a reason, because nothing can support the claims; no value where the "
            "judge finds none",
            "judges that give scores: the mean of the claims' scores, or the share that reaches the judge's threshold",
            f"failure: {FAILED_JUDGE}",
        ),
        source="Es, James, Espinosa-Anke and Schockaert, RAGAS: Automated evaluation of retrieval augmented "
        "generation, EACL 2024 (arXiv 2309.15217, 2023)",
        aliases=("groundedness",),
    )

    def criteria(self) -> Sequence[Criterion]:
        """Whether the contexts support the answer."""
        return (ANSWER_IN_CONTEXTS,)

    def settle(self, sample: Sample) -> Measurement | None:
        """Empty answers claim nothing; without contexts nothing is supported, if anything is claimed."""
        if is_blank(sample.answer):
            return Measurement.unscorable(EMPTY_ANSWER)
        if is_blank(sample.contexts) and not self.can("claims"):
            return Measurement.scored(0.0, UNSUPPORTED, {"score": 0.0, "claims": []})
        return None

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Ask for verdicts where there are contexts, and for the claims alone where there are none."""
        told = [sample for sample in samples if not is_blank(sample.contexts)]
        asked = super().ask(told) if told else Measured(())
        supported = iter(asked.measurements)
        bare = self._measure_unsupported([sample for sample in samples if is_blank(sample.contexts)])
        measurements = [next(bare) if is_blank(sample.contexts) else next(supported) for sample in samples]
        return Measured(measurements, asked.notes)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """As `ask`."""
        told = [sample for sample in samples if not is_blank(sample.contexts)]
        bare = [(sample.question, sample.answer or "") for sample in samples if is_blank(sample.contexts)]
        estimate = super().estimate_asking(told) if told else Estimate()
        return estimate | self.judge.estimate_writing("claims", bare) if bare else estimate

    def _measure_unsupported(self, samples: Sequence[Sample]) -> Iterator[Measurement]:
        if not samples:
            return
        for claims in self.judge.claims([(sample.question, sample.answer or "") for sample in samples]):
            if isinstance(claims, Failed):
                yield measure_failure(claims)
            elif not claims:
                yield Measurement.unscorable("the answer makes no claim")
            else:
                listed = [{"text": claim, "verdict": "not_enough_info", "score": 0.0} for claim in claims]
                yield Measurement.scored(0.0, UNSUPPORTED, {"score": 0.0, "claims": listed})


PLUGIN = Faithfulness
