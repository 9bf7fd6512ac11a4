"""Has a judge say which contexts are useful, empty ones apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data.assessment import Assessment, Claim, Criterion, Failed, Finding
from rageval_spec.metrics.shared.reasons import NO_CONTEXTS
from rageval_spec.plugin import Judge
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample


def judge_contexts(judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
    """Have a judge say which contexts are useful: findings with a claim for each context, in their order.

    Empty contexts are not useful, and the judge does not see them. A sample whose contexts did not all get a verdict
    has failed; without contexts, or where the judge has nothing to go by, a finding has no score and says why.
    """
    shown = [_without_empty_contexts(sample) for sample in samples]
    asked = [index for index, sample in enumerate(shown) if sample.contexts]
    assessment = judge.assess(criterion, [shown[index] for index in asked]) if asked else Assessment(())
    found = dict(zip(asked, assessment.findings, strict=True))
    findings = [_align(sample.contexts or (), found.get(index)) for index, sample in enumerate(samples)]
    return Assessment(findings, assessment.notes)


def _without_empty_contexts(sample: Sample) -> Sample:
    """The very sample where it has none."""
    contexts = sample.contexts or ()
    kept = tuple(context for context in contexts if context.strip())
    return sample if len(kept) == len(contexts) else replace(sample, contexts=kept)


def _align(contexts: Sequence[str], finding: Finding | Failed | None) -> Finding | Failed:
    """The finding with a claim for each context, empty ones included, which count 0 in the score."""
    if isinstance(finding, Failed):
        return finding
    if finding is None:
        finding = Finding(0.0 if contexts else None, reason=NO_CONTEXTS)
    if finding.score is None:
        return finding
    wanted = sum(1 for context in contexts if context.strip())
    if len(finding.claims) != wanted:
        return Failed(f"the judge gave {count_noun(len(finding.claims), 'verdict')} on {count_noun(wanted, 'text')}")
    given = iter(finding.claims)
    empty = Claim("", 0.0, "not_enough_info", reason="the text is empty")
    claims = tuple(next(given) if context.strip() else empty for context in contexts)
    return replace(finding, score=finding.score * wanted / len(contexts), claims=claims)
