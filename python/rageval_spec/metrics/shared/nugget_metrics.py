"""Base class of metrics that have a judge look for nuggets in an answer, and count them as TREC does."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.evidence.nuggets import Assignment, Nugget
from rageval_spec.data.findings import Claim, Criterion, Estimate, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import replace
from rageval_spec.errors import DataError
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Measured, Measurement
from rageval_spec.wording import count_noun, list_some

NUGGETS_IN_ANSWER = Criterion(
    "nuggets",
    "support",
    "Does the answer state the whole fact?",
    text="claims",
    against="answer",
    shown=("question", "claims", "answer"),
)
_OKAY_WEIGHT = 0.5
_MOST_SHOWN = 5
_SEPARATOR = "\n\n"


class NuggetsNode(judged_metrics.JudgeMetricNode):
    count: Literal["vital", "all", "weighted"] = Field(
        default="vital",
        description="The nuggets that count. vital: those alone; all: okay ones as much; weighted: okay ones half as "
        "much.",
    )
    partial: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="What a nugget counts that the answer has in part: 0, as in TREC's strict scores, or 0.5.",
    )


class _Assigned(NamedTuple):
    """A nugget, how far the answer has it, and what the judge said of each of its statements."""

    nugget: Nugget
    label: Assignment
    claims: tuple[Claim, ...]


class NuggetMetric(judged_metrics.JudgedMetric[NuggetsNode]):
    """A metric of the nuggets that an answer states: they are put to the judge as claims, against the answer."""

    needs = frozenset({"answer", "nuggets"})
    asked: ClassVar[Sequence[Criterion]] = (NUGGETS_IN_ANSWER,)

    def settle(self, sample: Sample) -> Measurement | None:
        try:
            nuggets = sample.nuggets or ()
        except DataError as error:
            return Measurement.error(str(error))
        if not any(self._weigh(nugget) for nugget in nuggets):
            none = (
                f"none of {count_noun(len(nuggets), 'nugget')} is vital" if nuggets else "the question has no nuggets"
            )
            return Measurement.unscorable(none)
        if not answer_metrics.is_blank(sample.answer):
            return None
        return self.measure_without(sample, answer_metrics.EMPTY_ANSWER)

    def measure_without(self, sample: Sample, reason: str) -> Measurement:
        """The measurement of a sample of whose nuggets the answer has none, for a reason that is known."""
        found = [_Assigned(nugget, "not_support", ()) for nugget in sample.nuggets or ()]
        return self._measure(found, reason)

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Ask about all nuggets, so that metrics with other counts share the judge's calls."""
        assessment = self.judge.assess(NUGGETS_IN_ANSWER, [set_claims(sample) for sample in samples])
        pairs = zip(samples, assessment.findings, strict=True)
        return Measured([self._read(sample, finding) for sample, finding in pairs], assessment.notes)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        return self.judge.estimate(NUGGETS_IN_ANSWER, [set_claims(sample) for sample in samples])

    def _read(self, sample: Sample, finding: Finding | Failed) -> Measurement:
        if isinstance(finding, Failed):
            return judged_metrics.measure_failure(finding)
        if finding.score is None:
            return Measurement.unscorable(finding.reason or answer_metrics.UNDECIDED)
        nuggets = sample.nuggets or ()
        statements = [text for nugget in nuggets for text in nugget.statements]
        told = iter(_align(statements, finding.claims))
        found = []
        for nugget in nuggets:
            claims = [next(told) for _ in nugget.statements]
            if not all(claims):
                if not self._weigh(nugget):
                    continue
                return Measurement.error(f"the judge gave no verdict on the nugget {nugget.id}: '{nugget.text}'")
            label = nugget.combine([judged_metrics.label_support(one) for one in claims])
            found.append(_Assigned(nugget, label, tuple(claim for one in claims for claim in one)))
        return self._measure(found, None, finding)

    def _weigh(self, nugget: Nugget) -> float:
        if self.node.count == "all" or nugget.importance == "vital":
            return 1.0
        return _OKAY_WEIGHT if self.node.count == "weighted" else 0.0

    def _measure(self, found: Sequence[_Assigned], reason: str | None, finding: Finding | None = None) -> Measurement:
        credit = {"support": 1.0, "partial_support": self.node.partial, "not_support": 0.0}
        weights = [self._weigh(one.nugget) for one in found]
        sums = sum(weight * credit[one.label] for weight, one in zip(weights, found, strict=True))
        value = sums / sum(weights)
        more = {} if finding is None else judged_metrics.describe_finding(finding)
        claims = [_describe(one) for one in found]
        lacking = [one for weight, one in zip(weights, found, strict=True) if weight and credit[one.label] < 1]
        if lacking and reason is None:
            reason = _tell_lacking(lacking, sum(weight > 0 for weight in weights))
        return Measurement.scored(value, reason, {**more, "score": value, "claims": claims})


def _tell_lacking(lacking: Sequence[_Assigned], counted: int) -> str:
    part = sum(one.label == "partial_support" for one in lacking)
    missing, every = len(lacking) - part, count_noun(counted, "nugget")
    told = f"lacks {missing} of {every}" if missing else f"has {part} of {every} only in part"
    if missing and part:
        told += f" and has {part} only in part"
    return f"{told}: {list_some([one.nugget.text for one in lacking], _MOST_SHOWN)}"


def set_claims(sample: Sample) -> Sample:
    """The sample, whose claims are the statements of its nuggets."""
    return replace(sample, claims=tuple(text for nugget in sample.nuggets or () for text in nugget.statements))


def _align(statements: Sequence[str], claims: Sequence[Claim]) -> list[list[Claim]]:
    """The judge's claims for each statement, by their places: a judge can read one statement in several sentences."""
    found: list[list[Claim]] = [[] for _ in statements]
    if any(claim.start is None for claim in claims):
        return [[claim] for claim in claims] if len(claims) == len(statements) else found
    start, ends = 0, list[int]()
    for text in statements:
        start += len(text) + len(_SEPARATOR)
        ends.append(start)
    at = 0
    for claim in sorted(claims, key=lambda one: one.start or 0):
        while (claim.start or 0) >= ends[at]:
            at += 1
        found[at].append(claim)
    return found


def _describe(one: _Assigned) -> dict[str, Any]:
    """The nugget as a claim: what the judge said of its best statement, with its importance and its label."""
    best = max(one.claims, key=lambda claim: claim.score, default=Claim("", 0.0, "not_enough_info"))
    score = arithmetic.average(claim.score for claim in one.claims) if one.claims else 0.0
    verdict = "supported" if one.label == "support" else best.verdict if len(one.claims) < 2 else "not_enough_info"
    (said,) = judged_metrics.describe_claims([replace(best, text=one.nugget.text, score=score, start=None, end=None)])
    return {**said, "verdict": verdict, "importance": one.nugget.importance, "assignment": one.label}
