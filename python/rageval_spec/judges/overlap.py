"""`overlap`: the share of a text's words, numbers and names that its sources contain. No model; a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data import findings
from rageval_spec.data.samples import Sample
from rageval_spec.judging import segments
from rageval_spec.kernels import SentenceSupport, WordShare
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

        sources = [criterion.sources_of(sample) for sample in samples]
        texts = [criterion.text_of(sample) for sample in samples]
        support = kernels.sentence_support(texts, sources, threads=self.context.threads)
        claims = [
            [segments.Segment(text[one.start : one.end], one.start, one.end) for one in group]
            for text, group in zip(texts, support, strict=True)
        ]
        wanted = [(one.text, found_in) for group, found_in in zip(claims, sources, strict=True) for one in group]
        mentions = iter(find_mentions(wanted, threads=self.context.threads))
        return [
            self._conclude(criterion, [(*one, next(mentions)) for one in zip(group, of, strict=True)], found_in)
            for group, of, found_in in zip(claims, support, sources, strict=True)
        ]

    def _judge(
        self,
        claim: segments.Segment,
        support: SentenceSupport,
        mentions: Mentions,
        criterion: findings.Criterion,
        sources: Sequence[str],
    ) -> findings.Claim | None:
        """The claim with its score and its evidence; None if it has no content word."""
        together = support.together.share
        if together is None:
            return None
        score, least = ((support.alone.share or 0.0) + together) / 2, SUPPORTED_FROM
        if self.node.combine == "worst":
            score, least = (score + mentions.share) / 2, WORST_SUPPORTED_FROM
        least = least if self.node.threshold is None else self.node.threshold
        score = mentions.hold_back(score, least)
        is_supported = score >= least and not mentions.missing
        verdict: findings.Verdict = "supported" if is_supported else "not_enough_info"
        evidence = None
        if support.source is not None and support.evidence is not None:
            start, end = support.evidence
            evidence = segments.Segment(sources[support.source][start:end], start, end, support.source)
        return claim.as_claim(score, verdict, evidence, mentions.describe(_name_part(criterion.against)))

    def _conclude(
        self,
        criterion: findings.Criterion,
        looked_up: Sequence[tuple[segments.Segment, SentenceSupport, Mentions]],
        sources: Sequence[str],
    ) -> findings.Finding:
        from rageval_spec.judging.mentions import merge_mentions

        judged = [(one, self._judge(*one, criterion, sources)) for one in looked_up]
        claims = [claim for _, claim in judged if claim is not None]
        kept = [one for one, claim in judged if claim is not None]
        if not judged:
            return findings.Finding(None, reason=segments.describe_blank(criterion.text))
        if not claims:
            return findings.Finding(None, reason=f"the {_name_part(criterion.text)} has no content word")
        if segments.is_blank(sources):
            return segments.find_without_sources(criterion, [claim for claim, _, _ in kept])
        score = segments.score_claims(claims, self.node.threshold)
        if self.node.combine == "worst":
            score = min(segments.score_claims([claim], self.node.threshold) for claim in claims)
        mentions = merge_mentions([mentions for _, _, mentions in kept])
        return findings.Finding(score, tuple(claims), mentions.describe(_name_part(criterion.against)))

    # --- Usefulness ---

    def _find_usefulness(self, criterion: findings.Criterion, samples: Sequence[Sample]) -> list[findings.Finding]:
        pieces = [segments.list_pieces(criterion, sample) for sample in samples]
        pairs = [
            (target, [piece.text for piece in group])
            for group, sample in zip(pieces, samples, strict=True)
            for target in criterion.sources_of(sample)
        ]
        texts, wanted = [text for text, _ in pairs], [found_in for _, found_in in pairs]
        shares = iter(kernels.word_support(texts, wanted, threads=self.context.threads))
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
