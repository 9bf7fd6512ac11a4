from collections.abc import Sequence

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.evidence.citations import hide_markers
from rageval_spec.data.findings import Estimate, Failed, Finding
from rageval_spec.data.outcomes import AnyNote
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import replace
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.metrics.shared.cited_statements import citations_of
from rageval_spec.plugin import Measurement, MetricInfo
from rageval_spec.plugin.metric import name_metric

_NOTHING = "the answer makes no claim"


class VerifiedF1Node(judged_metrics.JudgeMetricNode):
    cutoff: int = Field(
        ge=1,
        description="How many supported claims are enough: k. VeriScore takes the median number of claims of the "
        "answers in a domain.",
    )


class VerifiedF1(judged_metrics.JudgedMetric[VerifiedF1Node]):
    known_as = ("veriscore", "f1_at_k", "safe", "longfact")
    needs = frozenset({"answer", "contexts"})
    asked = (judged_metrics.ANSWER_IN_CONTEXTS,)
    info = MetricInfo(
        summary="How far an answer makes enough claims, and only claims that the contexts support (F1@k of VeriScore).",
        formula="verified_f1 = 2 P R / (P + R); P = supported claims / claims, R = min(supported claims / k, 1); 0 "
        "if no claim is supported",
        edge_cases=(
            "empty answer, or one without a claim: 0 with a reason, because it has none of k claims",
            "claim: what the judge takes as one; VeriScore counts only those that can be verified, as `claims` does",
            "contexts: all of them, whatever the answer cites",
            "markers of citations: not read; without any, the judge is asked once for this and faithfulness",
            "judges that give scores without verdicts: supported from 0.5 up",
        ),
        source="Song, Kim and Iyyer, VeriScore: Evaluating the factuality of verifiable claims in long-form text "
        "generation, Findings of EMNLP 2024 (arXiv:2406.19276)",
    )

    @property
    def name(self) -> str:
        return name_metric(self.node, behind_at=("cutoff",))

    def settle(self, sample: Sample) -> Measurement | None:
        if answer_metrics.is_blank(sample.answer):
            return Measurement.scored(0.0, answer_metrics.EMPTY_ANSWER, {"score": 0.0, "claims": []})
        return None

    def assess(self, samples: Sequence[Sample]) -> tuple[list[tuple[Finding | Failed, ...]], tuple[AnyNote, ...]]:
        return super().assess([_without_markers(sample) for sample in samples])

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        return super().estimate_asking([_without_markers(sample) for sample in samples])

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        (finding,) = findings
        details = judged_metrics.describe_finding(finding)
        if not finding.claims:
            if finding.claimless:
                return Measurement.scored(0.0, finding.reason or _NOTHING, details)
            return Measurement.unscorable(finding.reason or answer_metrics.UNDECIDED, details)
        supported = sum(map(judged_metrics.is_met, finding.claims))
        precision, recall = supported / len(finding.claims), min(supported / self.node.cutoff, 1.0)
        value = arithmetic.f_measure(precision, recall)
        return Measurement.scored(value, None, {"precision": precision, "recall": recall, **details})


def _without_markers(sample: Sample) -> Sample:
    """The sample as the judge reads it: the same object if its answer cites nothing."""
    plain = hide_markers(sample.answer or "", citations_of(sample))
    return sample if plain == sample.answer else replace(sample, answer=plain)


PLUGIN = VerifiedF1
