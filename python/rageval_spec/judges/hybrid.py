"""`hybrid`: a cheap judge filters out what is plainly unsupported, so that an expensive judge need not see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from pydantic import Field, model_validator

from rageval_spec.data.findings import (
    Ability,
    Assessment,
    Claim,
    Criterion,
    Estimate,
    Failed,
    Finding,
    read_part,
    replace_texts,
)
from rageval_spec.data.outcomes import Note, Remark, remark, writes_notes
from rageval_spec.data.samples import Sample
from rageval_spec.judges.shared.composed_judge import ComposedJudge
from rageval_spec.judging.composition import (
    Saving,
    assess_or_fail,
    describe_savings,
    is_free,
    list_prices,
    list_savings,
)
from rageval_spec.judging.segments import list_pieces
from rageval_spec.plugin import JudgeName, JudgeNode
from rageval_spec.wording import count_noun, format_percent


class HybridJudgeNode(JudgeNode):
    """Asks a cheap filter, such as embedding, first, and a judge only about samples that pass it."""

    filter: JudgeName = Field(
        default="embedding", description="The judge that is asked first: a name under `judges:`, or a judge's word."
    )
    threshold: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="A sample is not supported if the filter scores all of its claims below this; a context is not "
        "useful if the filter scores it below this. The judge does not see them.",
    )
    judge: JudgeName = Field(description="The judge of everything that passes the filter: a name under `judges:`.")

    @model_validator(mode="after")
    def _check_distinct(self) -> HybridJudgeNode:
        if self.filter == self.judge:
            raise ValueError(f"'{self.judge}' is its own filter; name two judges")
        return self


class HybridJudge(ComposedJudge[HybridJudgeNode]):
    """Rejects by the filter what has no support at all, and leaves everything else to the judge.

    Support: if the filter scores every claim below the threshold, the sample's score is 0 and the judge does not see
    it.
    Usefulness: the judge sees the contexts that reach the threshold; the others are not useful. Samples that the filter
    failed on, or found nothing to judge in, go to the judge. The filter can only reject, so support that it cannot see
    (in another wording or another language) is lost: a low threshold is the safe choice.
    """

    known_as = ("filter", "prefilter")

    @property
    def names(self) -> Sequence[str]:
        return (self.node.filter, self.node.judge)

    @property
    def abilities(self) -> frozenset[Ability]:
        """As for all composed judges, but without grades, which have no claims to filter by."""
        return super().abilities - {"grade"}

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of texts, split by the judge if it can, else by the filter."""
        _, judge = self.members
        return judge.claims(texts) if "claims" in judge.abilities else super().claims(texts)

    def check(self) -> str | None:
        if {"support", "usefulness"} & self.abilities:
            return None
        able = f"'{self.node.filter}' and '{self.node.judge}' must both be able to assess support, or both usefulness"
        return f"{able}; name other judges"

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample; a note says how many samples the judge did not have to see."""
        if criterion.kind == "grade":
            raise self._cannot("grade", samples)
        filtering, judge = self.members
        first = assess_or_fail(filtering, criterion, samples)
        passed = self._filter(criterion, samples, first)
        asked = [sample for sample in passed if sample is not None]
        found = judge.assess(criterion, asked) if asked else Assessment(())
        rest = iter(found.findings)
        findings = [
            self._reject(one) if sample is None else self._merge(criterion, original, one, next(rest))
            for original, sample, one in zip(samples, passed, first.findings, strict=True)
        ]
        remark = (self._remark(criterion, samples, passed),) if samples else ()
        return Assessment(findings, (*first.notes, *found.notes, *remark))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """An upper bound on the calls still to be made: a filter without a model is run; others may reject nothing."""
        filtering, judge = self.members
        waiting = list(samples)
        if is_free(filtering):
            passed = self._filter(criterion, samples, assess_or_fail(filtering, criterion, samples))
            waiting = [sample for sample in passed if sample is not None]
        return filtering.estimate(criterion, samples) | judge.estimate(criterion, waiting)

    def _filter(self, criterion: Criterion, samples: Sequence[Sample], first: Assessment) -> list[Sample | None]:
        return [self._pass(criterion, *pair) for pair in zip(samples, first.findings, strict=True)]

    def _pass(self, criterion: Criterion, sample: Sample, found: Finding | Failed) -> Sample | None:
        """The part of a sample that the judge gets; None if the filter rejects all of it."""
        if isinstance(found, Failed) or found.score is None:
            return sample
        if _filters_contexts(criterion, sample, found):
            pairs = zip(read_part(sample, criterion.text), found.claims, strict=True)
            kept = tuple(text for text, claim in pairs if claim.score >= self.node.threshold)
            return replace_texts(sample, criterion, kept) if kept else None
        scores = [claim.score for claim in found.claims] or [found.score]
        return sample if max(scores) >= self.node.threshold else None

    def _reject(self, found: Finding | Failed) -> Finding:
        claims = () if isinstance(found, Failed) else found.claims
        best = max((claim.score for claim in claims), default=None)
        seen = "" if best is None else f": its highest score, {best:.2f}, is below {self.node.threshold:g}"
        rejected = tuple(_reject_claim(claim) for claim in claims)
        return Finding(0.0, rejected, f"rejected by {self.node.filter}{seen}", decided_by=self.node.filter)

    def _merge(
        self, criterion: Criterion, sample: Sample, filtered: Finding | Failed, found: Finding | Failed
    ) -> Finding | Failed:
        """The judge's finding; the contexts that it did not see are added as claims that are not supported."""
        if isinstance(found, Failed):
            return found
        found = replace(found, decided_by=found.decided_by or self.node.judge)
        if isinstance(filtered, Failed) or not _filters_contexts(criterion, sample, filtered) or found.score is None:
            return found
        seen = [claim.score >= self.node.threshold for claim in filtered.claims]
        if all(seen) or len(found.claims) != sum(seen):
            return found
        judged = iter(found.claims)
        claims = tuple(
            replace(next(judged), start=piece.start, end=piece.end) if was_seen else _reject_claim(claim)
            for piece, claim, was_seen in zip(list_pieces(criterion, sample), filtered.claims, seen, strict=True)
        )
        return replace(found, claims=claims, score=found.score * sum(seen) / len(seen))

    def _remark(self, criterion: Criterion, samples: Sequence[Sample], passed: Sequence[Sample | None]) -> Remark:
        _, judge = self.members
        rejected = [sample for sample, seen in zip(samples, passed, strict=True) if seen is None]
        unseen = sum(
            len(read_part(sample, criterion.text)) - len(read_part(seen, criterion.text))
            for sample, seen in zip(samples, passed, strict=True)
            if seen is not None
        )
        savings = list_savings(judge, criterion, rejected, self.expected)
        facts = [(len(rejected), len(samples), unseen, savings)]
        return remark(_write_rejections, facts, criterion.name, self.node.filter, list_prices(judge))


@writes_notes
def _write_rejections(
    facts: Sequence[tuple[int, int, int, Sequence[Saving]]],
    _criterion: str,
    name: str,
    prices: Sequence[tuple[str, float, float]],
) -> Iterator[Note]:
    """A note on how much the filter rejected, and on the calls that the judge did not have to make."""
    rejected, total, unseen = (sum(fact[place] for fact in facts) for place in range(3))  # type: ignore[misc]
    message = f"{name} rejected {rejected} of {count_noun(total, 'sample')} ({format_percent(rejected / total)})"
    if unseen:
        message += f" and {count_noun(unseen, 'context')} of the others"
    saving = describe_savings(chain.from_iterable(fact[3] for fact in facts), prices)
    yield Note("hybrid", f"{message}; {saving}" if saving else message, count=rejected)


def _filters_contexts(criterion: Criterion, sample: Sample, found: Finding) -> bool:
    """Whether the contexts or claims are judged one by one and the filter scored each of them."""
    is_each = criterion.kind == "usefulness" and criterion.text in ("contexts", "claims")
    return is_each and len(found.claims) == len(read_part(sample, criterion.text))


def _reject_claim(claim: Claim) -> Claim:
    reason = f"the filter gives it {claim.score:.2f}"
    return replace(claim, score=0.0, verdict="not_enough_info", reason=reason)


PLUGIN = HybridJudge
