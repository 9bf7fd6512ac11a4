"""Judges that put one question at a time: of a whole sample, of each claim, of each context."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeVar

from pydantic import Field

from rageval_spec.data.assessment import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding
from rageval_spec.data.evaluation import Note
from rageval_spec.data.sample import Sample
from rageval_spec.endpoints.asking import Question, ask_all
from rageval_spec.judging.chat_judge import (
    OUTPUT_TOKENS,
    REMARK,
    ChatJudge,
    ChatJudgeNode,
    fence_part,
    fence_parts,
    make_schema,
    name_part,
)
from rageval_spec.judging.grading import Opinion, Scale, read_grade, write_guide
from rageval_spec.judging.prompts import fence, fence_all
from rageval_spec.judging.segments import Segment, is_blank, list_pieces, split_segments
from rageval_spec.wording import count_noun

_CLAIM_INSTRUCTION = "Do the sources support the whole claim, which is part of an answer to the question?"


class PiecewiseNode(ChatJudgeNode):
    """A judge that asks about one thing at a time."""

    probabilities: bool = Field(
        default=False,
        description="Ask for the probabilities of the reply's tokens, and score their expected value (G-Eval); "
        "the reply's word alone counts where the endpoint gives none.",
    )


PN = TypeVar("PN", bound=PiecewiseNode)


@dataclass(frozen=True, slots=True)
class Matter:
    """What one question is about.

    Attributes:
        piece: the claim or context; None where the sample is judged as a whole.
        material: the fenced texts that the judge sees.
    """

    criterion: Criterion
    instruction: str
    material: str
    piece: Segment | None = None


class PiecewiseJudge(ChatJudge[PN]):
    """One call a context for usefulness; one a sample, or one a claim, for support; one a sample for grades."""

    declared = frozenset[Ability]({"support", "usefulness", "grade"})
    per: Literal["claim", "answer"] = "answer"
    """What is judged by itself where support is asked for: each sentence, or the whole text."""

    @abstractmethod
    def put(self, matter: Matter) -> Question[Opinion]:
        """The question about one matter."""

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample; the calls of all samples are made at the same time, as far as the model takes them."""
        settled = [self.find_excess(criterion, sample) or settle(criterion, sample) for sample in samples]
        matters = [
            [] if known else self._list_matters(criterion, sample)
            for sample, known in zip(samples, settled, strict=True)
        ]
        questions = [self.put(matter) for each in matters for matter in each]
        opinions = ask_all(self.model, questions, self.context)
        rest = iter(opinions)
        findings = [
            known or self._conclude(criterion, each, [*islice(rest, len(each))])
            for known, each in zip(settled, matters, strict=True)
        ]
        return Assessment(findings, self._remark(opinions))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The calls of `assess`."""
        matters = [
            matter
            for sample in samples
            if not (self.find_excess(criterion, sample) or settle(criterion, sample))
            for matter in self._list_matters(criterion, sample)
        ]
        return self.estimate_questions([self.put(matter) for matter in matters], OUTPUT_TOKENS)

    def _list_matters(self, criterion: Criterion, sample: Sample) -> list[Matter]:
        instruction = criterion.instruction
        if criterion.kind == "usefulness":
            beside = fence_parts(sample, {"question", criterion.against} - {criterion.text})
            return [
                Matter(criterion, instruction, f"{beside}\n{fence('context', piece.text)}", piece)
                for piece in list_pieces(criterion, sample)
            ]
        if criterion.kind == "grade" or self.per == "answer":
            parts = () if criterion.kind == "grade" else (criterion.text, criterion.against)
            return [Matter(criterion, instruction, fence_parts(sample, {*criterion.shown, *parts}))]
        sources = f"{fence_part(sample, 'question')}\n{fence_all('source', criterion.sources_of(sample))}"
        return [
            Matter(criterion, _CLAIM_INSTRUCTION, f"{sources}\n{fence('claim', piece.text)}", piece)
            for piece in split_segments(criterion.text_of(sample))
        ]

    def _conclude(
        self, criterion: Criterion, matters: Sequence[Matter], opinions: Sequence[Opinion | Failed]
    ) -> Finding | Failed:
        """One opinion is the finding; of several, each is a claim's, and one that is missing is a failure."""
        if failed := next((opinion for opinion in opinions if isinstance(opinion, Failed)), None):
            return failed
        known = [opinion for opinion in opinions if isinstance(opinion, Opinion)]
        if matters[0].piece is None:
            (only,) = known
            return Finding(rescale(criterion, only.score), (), only.reason, confidence=only.confidence)
        claims = tuple(
            Claim(piece.text, opinion.score, opinion.verdict, piece.start, piece.end, reason=opinion.reason)
            for piece, opinion in zip((matter.piece for matter in matters), known, strict=True)
            if piece is not None
        )
        return Finding(sum(claim.score for claim in claims) / len(claims), claims)

    def _remark(self, opinions: Sequence[Opinion | Failed]) -> tuple[Note, ...]:
        """Say how many replies came without the probabilities that the spec asks for."""
        lacking = sum(isinstance(opinion, Opinion) and opinion.confidence is None for opinion in opinions)
        if not lacking or not self.node.probabilities or "probabilities" not in self.node.model_fields_set:
            return ()
        message = f"{lacking} of {count_noun(len(opinions), 'reply', 'replies')} of '{self.node.model}' came without "
        return (Note("no_probabilities", f"{message}token probabilities: their words alone count", count=lacking),)


def settle(criterion: Criterion, sample: Sample) -> Finding | None:
    """The finding that needs no model: nothing to judge, or nothing that could support it."""
    if criterion.kind == "grade":
        return None
    what = name_part(criterion.text)
    if is_blank([criterion.text_of(sample)]):
        reason = f"there are no {what}" if criterion.kind == "usefulness" else f"the {what} makes no claim"
        return Finding(None, reason=reason)
    if criterion.kind == "support" and is_blank(criterion.sources_of(sample)):
        return Finding(0.0, reason=explain_no_sources(criterion))
    return None


def explain_no_sources(criterion: Criterion) -> str:
    """Why no claim can be supported where the texts that it is judged against are empty."""
    what, beside = name_part(criterion.text), name_part(criterion.against)
    return f"nothing can support the {what}: there is no text in the {beside}"


def rescale(criterion: Criterion, score: float) -> float:
    """A score in [0, 1] on the scale of a criterion that asks for a grade and has one; else as it is."""
    return Scale(*criterion.scale).grade(score) if criterion.kind == "grade" and criterion.scale else score


def ask_grade(
    judge: ChatJudge[Any], criterion: Criterion, material: str, scale: Scale, *, probabilities: bool = False
) -> Question[Opinion]:
    """The question for a grade, with the prompt `grade`."""
    low, high = scale.bounds
    request = judge.request(
        "grade",
        make_schema(reason=REMARK, grade=scale.schema),
        logprobs=probabilities and bool(scale.grades),
        instruction=criterion.instruction,
        material=material,
        low=low,
        high=high,
        guide=write_guide(criterion),
    )
    return Question(request, partial(read_grade, scale, probabilities))
