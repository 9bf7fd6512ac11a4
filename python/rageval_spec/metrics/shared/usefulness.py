"""Asks a judge whether each context, or each claim, is useful; the judge never sees empty ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data.assessment import Assessment, Claim, Criterion, Failed, Finding, read_part, replace_texts
from rageval_spec.metrics.shared.reasons import NO_CONTEXTS, is_blank
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample
    from rageval_spec.plugin import Judge


def judge_each(judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
    """Ask a judge which texts (`criterion.text`) are useful; each finding has a claim per text, in their order.

    Empty texts are not useful, and the judge does not see them. A sample whose texts did not all get a verdict has
    failed. Without texts, or if the judge has nothing to compare with, a finding has no score and says why.
    """
    texts = [read_part(sample, criterion.text) for sample in samples]
    asked = [index for index, found in enumerate(texts) if not is_blank(found)]
    shown = [_without_empty(samples[index], criterion) for index in asked]
    assessment = judge.assess(criterion, shown) if asked else Assessment(())
    found = dict(zip(asked, assessment.findings, strict=True))
    findings = [_align(one, found.get(index)) for index, one in enumerate(texts)]
    return Assessment(findings, assessment.notes)


def _without_empty(sample: Sample, criterion: Criterion) -> Sample:
    """The sample without its empty texts; the same object if it has none."""
    texts = read_part(sample, criterion.text)
    kept = tuple(text for text in texts if text.strip())
    return sample if len(kept) == len(texts) else replace_texts(sample, criterion, kept)


def _align(texts: Sequence[str], finding: Finding | Failed | None) -> Finding | Failed:
    """The finding with a claim for each text, including empty ones, which count as 0 in the score."""
    if isinstance(finding, Failed):
        return finding
    if finding is None:
        finding = Finding(0.0 if texts else None, reason=NO_CONTEXTS)
    if finding.score is None:
        return finding
    wanted = sum(1 for text in texts if text.strip())
    if len(finding.claims) != wanted:
        return Failed(f"the judge gave {count_noun(len(finding.claims), 'verdict')} on {count_noun(wanted, 'text')}")
    given = iter(finding.claims)
    empty = Claim("", 0.0, "not_enough_info", reason="the text is empty")
    claims = tuple(next(given) if text.strip() else empty for text in texts)
    return replace(finding, score=finding.score * wanted / len(texts), claims=claims)
