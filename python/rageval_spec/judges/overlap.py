"""`overlap`: the share of a text's words, numbers and names that its sources contain. No model; a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data import findings
from rageval_spec.data.samples import Sample
from rageval_spec.judging import segments
from rageval_spec.kernels import WordShare
from rageval_spec.plugin import Judge, JudgeNode, count_roughly, digest_text

if TYPE_CHECKING:
    from rageval_spec.judging.mentions import Mentions


SUPPORTED_FROM = 0.65
"""Without a threshold, a claim with at least this score is supported."""
WORST_SUPPORTED_FROM = (SUPPORTED_FROM + 1) / 2
"""The same with `combine: worst`: a claim that lacks no number or name gets the same verdict either way."""
USEFUL_FROM = 0.45
"""Without a threshold, a text with at least this score is useful."""


class OverlapNode(JudgeNode):
    """Scores each sentence by the share of its words, numbers and names that the contexts contain; no model."""

    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The share of its words from which a claim counts as supported; the score is then the share of "
        "supported claims. By default the score is the mean of the claims' shares.",
    )
    combine: Literal["mean", "worst"] = Field(
        default="mean",
        description="How an answer gets its score from its sentences. mean: the mean of their scores. worst: the "
        "lowest one, where half of a sentence's score is the share of its numbers and names that the contexts contain. "
        "Use worst to find answers with one made-up statement. It does not apply to metrics that score contexts.",
    )


class _LookedUp(NamedTuple):
    """A claim, its sources, and what of it they contain."""

    claim: segments.Segment
    sources: Sequence[str]
    shares: Sequence[WordShare]
    mentions: Mentions


class OverlapJudge(Judge[OverlapNode]):
    """Looks words up. It takes a denial, or the same words in another order, for support.

    Support: a claim is a sentence. Its score is the mean of two shares of its points (`kernels.WordShare`): the share
    that the best source contains, and the share that all sources together contain. The evidence is the best sentence of
    the best source, and the reason names the numbers and names that no source contains. A claim with one of these stays
    just below the score of a supported claim. A sentence without a content word claims nothing. With `combine: worst`,
    a claim's score is the mean of that score and the share of its numbers and names that the sources contain, and the
    lowest score counts.

    Usefulness: the text that the contexts are meant to be useful for has points; the score of a context is the share of
    them that it contains.
    """

    version = "3"
    later_keys = frozenset({"combine"})
    known_as = ("lexical", "keyword", "ngram", "rouge", "words")
    declared = frozenset[findings.Ability]({"support", "usefulness", "claims", "entities"})

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | findings.Failed]:
        return [tuple(segment.text for segment in segments.split_segments(text)) for _, text in texts]

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | findings.Failed]:
        return [tuple(kernels.names(text)) for text in texts]

    def assess(self, criterion: findings.Criterion, samples: Sequence[Sample]) -> findings.Assessment:
        if criterion.kind == "grade":
            raise self._cannot("grade", samples)
        find = self._find_support if criterion.kind == "support" else self._find_usefulness
        return findings.Assessment(find(criterion, samples))

    def estimate(self, criterion: findings.Criterion, samples: Sequence[Sample]) -> findings.Estimate:
        """The samples with what is looked up for each; nothing is stored, because looking up is as fast."""
        if criterion.kind == "grade":
            return findings.Estimate()
        reads: dict[str, int] = {}
        for sample in samples:
            texts = ("\n".join(findings.read_part(sample, criterion.text)), "\n".join(criterion.sources_of(sample)))
            reads[digest_text(criterion.name, texts)] = count_roughly(texts)
        return findings.Estimate(reads={findings.Reader(self.context.name, "sample"): reads})

    # --- Support ---

    def _find_support(self, criterion: findings.Criterion, samples: Sequence[Sample]) -> list[findings.Finding]:
        from rageval_spec.judging.mentions import find_mentions

        claims = [segments.split_segments(criterion.text_of(sample)) for sample in samples]
        sources = [criterion.sources_of(sample) for sample in samples]
        pairs = [(claim, texts) for group, texts in zip(claims, sources, strict=True) for claim in group]
        wanted = [(claim.text, texts) for claim, texts in pairs]
        found = zip(self._look_up(wanted), find_mentions(wanted, threads=self.context.threads), strict=True)
        looked_up = [_LookedUp(*pair, *told) for pair, told in zip(pairs, found, strict=True)]
        judged = iter(zip(looked_up, self._judge_claims(looked_up, _name_part(criterion.against)), strict=True))
        return [
            self._conclude(criterion, [next(judged) for _ in group], texts)
            for group, texts in zip(claims, sources, strict=True)
        ]

    def _look_up(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[list[WordShare]]:
        texts = [text for text, _ in pairs]
        return kernels.word_support(texts, [sources for _, sources in pairs], threads=self.context.threads)

    def _judge_claims(self, looked_up: Sequence[_LookedUp], part: str) -> list[findings.Claim | None]:
        """The claims with scores and evidence; None for those without a content word. `part` names the sources."""
        best = [segments.find_best(one.shares) for one in looked_up]
        wanted = [
            (one.claim.text, segments.split_segments(one.sources[source], source))
            for one, source in zip(looked_up, best, strict=True)
            if source is not None
        ]
        evidence = segments.find_closest(wanted, self.context.threads)
        return [
            self._judge(one, None if source is None else next(evidence), part)
            for one, source in zip(looked_up, best, strict=True)
        ]

    def _judge(self, one: _LookedUp, evidence: segments.Segment | None, part: str) -> findings.Claim | None:
        together = one.shares[-1].share
        if together is None:
            return None
        alone = max((share.share or 0.0 for share in one.shares[:-1]), default=0.0)
        score, least = (alone + together) / 2, SUPPORTED_FROM
        if self.node.combine == "worst":
            score, least = (score + one.mentions.share) / 2, WORST_SUPPORTED_FROM
        least = least if self.node.threshold is None else self.node.threshold
        score = one.mentions.hold_back(score, least)
        is_supported = score >= least and not one.mentions.missing
        verdict: findings.Verdict = "supported" if is_supported else "not_enough_info"
        return one.claim.as_claim(score, verdict, evidence, one.mentions.describe(part))

    def _conclude(
        self,
        criterion: findings.Criterion,
        judged: Sequence[tuple[_LookedUp, findings.Claim | None]],
        sources: Sequence[str],
    ) -> findings.Finding:
        from rageval_spec.judging.mentions import merge_mentions

        claims = [claim for _, claim in judged if claim is not None]
        looked_up = [one for one, claim in judged if claim is not None]
        if not judged:
            return findings.Finding(None, reason=segments.describe_blank(criterion.text))
        if not claims:
            return findings.Finding(None, reason=f"the {_name_part(criterion.text)} has no content word")
        if segments.is_blank(sources):
            return segments.find_without_sources(criterion, [one.claim for one in looked_up])
        score = segments.score_claims(claims, self.node.threshold)
        if self.node.combine == "worst":
            score = min(segments.score_claims([claim], self.node.threshold) for claim in claims)
        mentions = merge_mentions([one.mentions for one in looked_up])
        return findings.Finding(score, tuple(claims), mentions.describe(_name_part(criterion.against)))

    # --- Usefulness ---

    def _find_usefulness(self, criterion: findings.Criterion, samples: Sequence[Sample]) -> list[findings.Finding]:
        pieces = [segments.list_pieces(criterion, sample) for sample in samples]
        pairs = [
            (target, [piece.text for piece in group])
            for group, sample in zip(pieces, samples, strict=True)
            for target in criterion.sources_of(sample)
        ]
        shares = iter(self._look_up(pairs))
        return [
            self._find_useful(criterion, group, [next(shares) for _ in criterion.sources_of(sample)])
            for group, sample in zip(pieces, samples, strict=True)
        ]

    def _find_useful(
        self, criterion: findings.Criterion, pieces: list[segments.Segment], shares: list[list[WordShare]]
    ) -> findings.Finding:
        """Judge one sample's texts by `shares`: one list for each text that they are meant to be useful for."""
        if segments.is_blank([piece.text for piece in pieces]):
            return findings.Finding(None, reason=segments.describe_blank(criterion.text))
        told = [share for share in shares if share[-1].total]
        if not told:
            return findings.Finding(None, reason=f"the {_name_part(criterion.against)} has no content word")
        least = USEFUL_FROM if self.node.threshold is None else self.node.threshold
        claims = []
        for number, piece in enumerate(pieces):
            score = max(share[number].share or 0.0 for share in told)
            reason = None if piece.text.strip() else "it has no text"
            claims.append(piece.as_claim(score, "supported" if score >= least else "not_enough_info", reason=reason))
        return findings.Finding(segments.score_claims(claims, self.node.threshold), tuple(claims))


def _name_part(part: findings.TextPart) -> str:
    return part.replace("_", " ")


PLUGIN = OverlapJudge
