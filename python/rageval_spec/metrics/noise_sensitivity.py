from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.findings import Assessment, Criterion, Estimate, Failed, Finding
from rageval_spec.data.samples import Part, Sample
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Measured, Measurement, MetricInfo
from rageval_spec.wording import count_noun

NO_VERDICTS = "the judge gives no verdicts on single claims"


class NoiseSensitivityNode(judged_metrics.RefusalNode):
    mode: Literal["relevant", "irrelevant"] = Field(
        default="relevant",
        description="Which contexts to look at: relevant ones, which support part of the reference, or the others.",
    )
    by: Literal["claims", "ids"] = Field(
        default="claims",
        description="How to find relevant contexts. claims: they support a claim of the reference; ids: they come from "
        "documents that the dataset judges relevant.",
    )
    rel: int = Field(default=1, ge=1, description="With `by: ids`: the lowest relevance of a relevant document.")


class NoiseSensitivity(judged_metrics.RefusalAwareMetric[NoiseSensitivityNode]):
    able = (frozenset({"support", "claims"}),)  # verdicts on whole texts are not enough
    blank = (judged_metrics.WITHOUT_REFERENCE,)
    info = MetricInfo(
        summary="The share of an answer's claims that are wrong and supported by a context: how far noise misleads.",
        formula="noise_sensitivity = claims of the answer that the reference does not support but a relevant context "
        "does / claims of the answer; mode=irrelevant: that an irrelevant context supports and no relevant one does",
        edge_cases=(
            "relevant context: one that supports a claim of the reference, each context looked at by itself",
            "no wrong claim, or no contexts: 0",
            "answer without a claim, empty, or a refusal that says nothing else ('I don't know'): no value",
            "reference empty or without a claim: no value",
            "answer, reference or context that the judge leaves undecided: no value",
            "wrong claim that no context supports: made up, and not counted here; see faithfulness",
            "the same context twice: it counts once",
            "judges that give scores without a verdict: supported from 0.5 up",
            "answers without a wrong claim: need no further calls, which costs less than RAGAS, where all do",
            "several references: only the first one counts",
            "judge that fails on one of the contexts: no value",
        ),
        source="Ru et al., RAGChecker: A fine-grained framework for diagnosing retrieval-augmented generation, NeurIPS "
        "2024 (noise sensitivity in relevant and irrelevant chunks); RAGAS documentation, noise sensitivity",
        higher_is_better=False,
    )

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        parts: frozenset[Part] = frozenset({"answer", "reference", "contexts"})
        return parts | frozenset[Part]({"context_ids", "relevant"}) if self.node.by == "ids" else parts

    def criteria(self) -> Sequence[Criterion]:
        return (
            judged_metrics.ANSWER_IN_REFERENCE,
            judged_metrics.ANSWER_IN_CONTEXTS,
            *((judged_metrics.REFERENCE_IN_CONTEXTS,) if self.node.by == "claims" else ()),
        )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Find the wrong claims; then which contexts are relevant; then which of these support the wrong claims."""
        correctness = self.judge.assess(judged_metrics.ANSWER_IN_REFERENCE, samples)
        cases = [_Case(sample, finding) for sample, finding in zip(samples, correctness.findings, strict=True)]
        relevance = self._find_relevant(cases)
        support = self._find_support(cases)
        found = [correctness, support] if relevance is None else [correctness, support, relevance]
        return Measured(
            [case.measure(self.node.mode) for case in cases], judged_metrics.collect_notes(self.criteria(), found)
        )

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """An upper bound on the calls: every answer has a wrong claim, and every context is looked at."""
        estimate = self.judge.estimate(judged_metrics.ANSWER_IN_REFERENCE, samples)
        alone = [one for sample in samples for one in _separate(sample)]
        for criterion in self.criteria()[1:]:
            estimate |= self.judge.estimate(criterion, alone)
        return estimate

    def _find_relevant(self, cases: Sequence[_Case]) -> Assessment | None:
        """Fill in which contexts are relevant, for samples with wrong claims; None if no judge decides that."""
        looked_at = [case for case in cases if case.wrong]
        if self.node.by == "ids":
            for case in looked_at:
                judged = case.sample.relevant or {}
                case.relevant = [
                    any(judged.get(doc, 0) >= self.node.rel for doc in one.context_ids or ()) for one in case.alone
                ]
            return None
        assessment = self._assess(
            judged_metrics.REFERENCE_IN_CONTEXTS, [one for case in looked_at for one in case.alone]
        )
        findings = iter(assessment.findings)
        for case in looked_at:
            case.take_relevance([next(findings) for _ in case.alone])
        return assessment

    def _find_support(self, cases: Sequence[_Case]) -> Assessment:
        """Fill in which claims each context supports; irrelevant contexts do not matter to `mode: relevant`."""
        wanted = [
            (case, place)
            for case in cases
            if case.wrong and case.failure is None
            for place, is_relevant in enumerate(case.relevant)
            if is_relevant or self.node.mode == "irrelevant"
        ]
        assessment = self._assess(judged_metrics.ANSWER_IN_CONTEXTS, [case.alone[place] for case, place in wanted])
        for (case, place), finding in zip(wanted, assessment.findings, strict=True):
            case.take_support(place, finding)
        return assessment

    def _assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        return self.judge.assess(criterion, samples) if samples else Assessment(())


def _separate(sample: Sample) -> tuple[Sample, ...]:
    """One sample per distinct context that is not empty, with only that context."""
    ids: dict[str, list[str]] = {}
    for place, context in enumerate(sample.contexts or ()):
        if context.strip():
            ids.setdefault(context, []).extend((sample.context_ids or ())[place : place + 1])
    return tuple(replace(sample, contexts=(context,), context_ids=tuple(docs)) for context, docs in ids.items())


class _Case:
    """The findings about one sample so far."""

    def __init__(self, sample: Sample, correctness: Finding | Failed) -> None:
        self.sample = sample
        self.failure = correctness if isinstance(correctness, Failed) else None
        self.correctness = Finding(None) if isinstance(correctness, Failed) else correctness
        self.wrong = [place for place, claim in enumerate(self.correctness.claims) if not judged_metrics.is_met(claim)]
        self.alone = _separate(sample)
        self.relevant: list[bool] = [False] * len(self.alone)
        self.support: dict[int, list[bool]] = {}
        self.undecided: Finding | None = None

    def take_relevance(self, findings: Sequence[Finding | Failed]) -> None:
        """Mark contexts as relevant if they support one of the reference's claims."""
        for place, finding in enumerate(findings):
            if found := self._take(finding):
                self.relevant[place] = any(map(judged_metrics.is_met, found.claims))

    def take_support(self, place: int, finding: Finding | Failed) -> None:
        """Take the verdicts of one context on the answer's claims, which must be the same claims each time."""
        if not (found := self._take(finding)):
            return
        claims = [claim.text for claim in self.correctness.claims]
        if not found.claims:
            self.failure = Failed(NO_VERDICTS)
        elif [claim.text for claim in found.claims] != claims:
            ways = f"{count_noun(len(claims), 'claim')}, {count_noun(len(found.claims), 'claim')}"
            self.failure = Failed(f"the judge split the answer in two ways: {ways}")
        else:
            self.support[place] = [judged_metrics.is_met(claim) for claim in found.claims]

    def _take(self, finding: Finding | Failed) -> Finding | None:
        """The finding if it decided something; otherwise the sample has failed, or stays undecided."""
        if isinstance(finding, Failed):
            self.failure = finding
        elif finding.score is None:
            self.undecided = finding
        else:
            return finding
        return None

    def measure(self, mode: Literal["relevant", "irrelevant"]) -> Measurement:
        """The share of wrong claims that come from contexts of a kind."""
        if self.failure is not None:
            return judged_metrics.measure_failure(self.failure)
        finding, details = self.correctness, judged_metrics.describe_finding(self.correctness)
        if finding.score is None:
            return Measurement.unscorable(finding.reason or "the answer makes no claim", details)
        if not finding.claims:
            return Measurement.error(NO_VERDICTS, details)
        if self.undecided is not None:
            return Measurement.unscorable(self.undecided.reason or answer_metrics.UNDECIDED)
        counted = [place for place in self.wrong if self._comes_from(place) == mode]
        value = len(counted) / len(finding.claims)
        reason = None if self.alone else "there are no contexts that a wrong claim could come from"
        reason = reason if self.wrong else "no claim of the answer is wrong"
        return Measurement.scored(value, reason, self._describe(value, counted))

    def _comes_from(self, claim: int) -> str | None:
        """The kind of contexts that support a claim: relevant if any relevant context does."""
        kinds = {self.relevant[place] for place, supported in self.support.items() if supported[claim]}
        return "relevant" if True in kinds else "irrelevant" if kinds else None

    def _describe(self, value: float, counted: Sequence[int]) -> dict[str, Any]:
        places = [(self.sample.contexts or ()).index(text) for one in self.alone for text in one.contexts or ()]
        claims = [
            {
                **claim,
                "wrong": number in self.wrong,
                "counted": number in counted,
                "contexts": [places[place] for place, supported in self.support.items() if supported[number]],
            }
            for number, claim in enumerate(judged_metrics.describe_claims(self.correctness.claims))
        ]
        relevant = [place for place, is_relevant in zip(places, self.relevant, strict=True) if is_relevant]
        return {"score": value, "claims": claims, **({"relevant_contexts": relevant} if self.wrong else {})}


PLUGIN = NoiseSensitivity
