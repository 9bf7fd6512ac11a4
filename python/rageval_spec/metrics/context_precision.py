from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared import judged_metrics
from rageval_spec.metrics.shared.answer_metrics import NO_CONTEXTS, is_blank
from rageval_spec.plugin import Measured, Measurement, MetricInfo


class ContextPrecisionNode(judged_metrics.OptionallyJudgedNode):
    by: Literal["judge", "ids"] = Field(
        default="judge",
        description="judge: a judge decides which contexts are useful; ids: without a judge, the contexts of relevant "
        "documents are.",
    )
    with_: Literal["reference", "answer"] = Field(
        default="reference",
        alias="with",
        description="With `by: judge`: whether a context must be useful for the reference or for the system's own "
        "answer.",
    )
    rel: int = Field(default=1, ge=1, description="With `by: ids`: the lowest relevance of a relevant document.")


class ContextPrecision(judged_metrics.ConditionalJudge[ContextPrecisionNode]):
    able = (frozenset({"usefulness"}),)
    known_as = (
        "context_utilization", "llm_context_precision_with_reference",
        "llm_context_precision_without_reference",
    )  # fmt: skip
    info = MetricInfo(
        summary="Whether the contexts that help to answer come first: the mean of precision at the useful ones.",
        formula="context_precision = mean over the positions k of useful contexts of precision@k, precision@k = useful "
        "contexts at positions <= k / k",
        edge_cases=(
            "no useful context: 0",
            "reference or answer in which the judge finds nothing to compare with: no value",
            "no contexts: 0 with a reason",
            "empty context: not useful, and the judge does not see it; it keeps its position",
            "1e-10 in RAGAS's denominator: left out, so that the value is exactly 1 if all contexts are useful",
            "with=reference, empty reference; with=answer, empty answer: no value",
            "by=ids, no relevant document: no value",
            "by=ids, several contexts of one relevant document: each is useful",
            "by=ids in RAGAS: relevant ids / ids in any order; here the order counts, as with a judge",
            "judges that give scores without a verdict: useful from 0.5 up",
            "several references: only the first one counts",
        ),
        source="RAGAS documentation, context precision with and without reference (context utilization); Es, James, "
        "Espinosa-Anke and Schockaert, EACL 2024",
        aliases=("contextual_precision",),
    )

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        if not self.asks_judge:
            return frozenset({"context_ids", "relevant"})
        return frozenset({"contexts", self.node.with_})

    def criteria(self) -> Sequence[Criterion]:
        if not self.asks_judge:
            return ()
        part = self.node.with_
        name, whose = (
            ("context_precision", "reference answer") if part == "reference" else ("context_utilization", part)
        )
        instruction = f"Is the context useful for arriving at the {whose} to the question?"
        return (Criterion(name, "usefulness", instruction, "contexts", part, ("question", part, "contexts")),)

    def settle(self, sample: Sample) -> Measurement | None:
        if not self.asks_judge:
            return self._compare_ids(sample)
        if is_blank(sample.reference if self.node.with_ == "reference" else sample.answer):
            return Measurement.unscorable(f"the {self.node.with_} is empty")
        if is_blank(sample.contexts):
            return Measurement.scored(0.0, NO_CONTEXTS, {"score": 0.0, "contexts": []})
        return None

    def ask(self, samples: Sequence[Sample]) -> Measured:
        assessment = judged_metrics.judge_each(self.judge, self.criteria()[0], samples)
        return Measured([*map(_measure, assessment.findings)], assessment.notes)

    def _compare_ids(self, sample: Sample) -> Measurement:
        ids, relevant = sample.context_ids or (), sample.relevant or {}
        if all(relevance < self.node.rel for relevance in relevant.values()):
            return Measurement.unscorable("no relevant document")
        useful = [relevant.get(doc, 0) >= self.node.rel for doc in ids]
        contexts = [{"id": doc, "useful": is_useful} for doc, is_useful in zip(ids, useful, strict=True)]
        return _score(useful, {"contexts": contexts})


def _measure(finding: Finding | Failed) -> Measurement:
    if isinstance(finding, Failed) or finding.score is None:
        return judged_metrics.measure_finding(finding)
    useful = [judged_metrics.is_met(claim) for claim in finding.claims]
    details = judged_metrics.describe_contexts(finding)
    described = zip(details["contexts"], useful, strict=True)
    contexts = [{**context, "useful": is_useful} for context, is_useful in described]
    return _score(useful, {**details, "contexts": contexts})


def _score(useful: Sequence[bool], details: Mapping[str, Any]) -> Measurement:
    places = [place for place, is_useful in enumerate(useful, 1) if is_useful]
    value = arithmetic.average(number / place for number, place in enumerate(places, 1)) if places else 0.0
    reason = None if places else "no context is useful" if useful else NO_CONTEXTS
    return Measurement.scored(value, reason, {**details, "score": value})


PLUGIN = ContextPrecision
