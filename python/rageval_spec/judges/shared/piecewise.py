"""Base class of judges that ask about one thing at a time: a whole sample, a claim or a context."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import Field

from rageval_spec.data.assessment import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding
from rageval_spec.data.note import Note
from rageval_spec.endpoints.asking import Question, ask_all
from rageval_spec.judges.shared.chat_judge import ChatJudge, ChatJudgeNode
from rageval_spec.judging.forms import OUTPUT_TOKENS
from rageval_spec.judging.grading import Opinion, rescale
from rageval_spec.judging.material import fence_part, fence_parts, settle
from rageval_spec.judging.prompts import fence, fence_all
from rageval_spec.judging.segments import Segment, list_pieces, split_segments
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

_CLAIM_INSTRUCTION = "Do the sources support the whole claim, which is part of an answer to the question?"


class PiecewiseNode(ChatJudgeNode):
    """The keys of a judge that asks about one thing at a time."""

    probabilities: bool = Field(
        default=False,
        description="Ask for token probabilities and use their expected value as the score (G-Eval). If the endpoint "
        "gives none, only the reply's word counts.",
    )


PN = TypeVar("PN", bound=PiecewiseNode)


@dataclass(frozen=True, slots=True)
class Matter:
    """The subject of one question.

    Attributes:
        piece: the claim or context; None if the sample is judged as a whole.
        material: the fenced texts that the judge sees.
    """

    criterion: Criterion
    instruction: str
    material: str
    piece: Segment | None = None


class PiecewiseJudge(ChatJudge[PN]):
    """Makes one call per context for usefulness, one per sample or per claim for support, one per sample for grades."""

    declared = frozenset[Ability]({"support", "usefulness", "grade"})
    per: Literal["claim", "answer"] = "answer"
    """What is judged by itself for support: each sentence, or the whole text."""

    @abstractmethod
    def put(self, matter: Matter) -> Question[Opinion]:
        """The question to ask about one matter."""

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample; the calls of all samples run in parallel, as far as the model allows."""
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
        """The calls that `assess` would make."""
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
        """The finding from one opinion on the sample, or from one per claim; a missing opinion is a failure."""
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
        """A note on how many replies lack the probabilities that the spec asks for."""
        lacking = sum(isinstance(opinion, Opinion) and opinion.confidence is None for opinion in opinions)
        if not lacking or not self.node.probabilities or "probabilities" not in self.node.model_fields_set:
            return ()
        message = f"{lacking} of {count_noun(len(opinions), 'reply', 'replies')} of '{self.node.model}' came without "
        return (Note("no_probabilities", f"{message}token probabilities: only their words count", count=lacking),)
