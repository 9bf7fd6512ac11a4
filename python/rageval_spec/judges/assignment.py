"""`assignment`: a chat model says of up to ten statements at once whether a text has each in full, in part or not.

Pradeep et al., The great nugget recall: automating fact extraction and RAG evaluation with large language models, 2025
(arXiv:2504.15068): nuggets in their order, ten a call, and the labels `support`, `partial_support`, `not_support`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from rageval_spec.data.chat import ChatReply
from rageval_spec.data.evidence.nuggets import Assignment
from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, Verdict
from rageval_spec.data.samples import Sample
from rageval_spec.endpoints import chat_questions
from rageval_spec.endpoints.replies import put_in_order
from rageval_spec.judges.shared.chat_judge import ChatJudge, ChatJudgeNode
from rageval_spec.judging import prompts, segments
from rageval_spec.judging.prompts import OWN_FILES, PromptFile, PromptFiles

_LABELS: Mapping[Assignment, tuple[float, Verdict]] = {
    "support": (1.0, "supported"),
    "partial_support": (0.5, "not_enough_info"),
    "not_support": (0.0, "not_enough_info"),
}
_LABEL_TOKENS = 18
"""The tokens that an estimate assumes for one statement of a reply."""


class AssignmentPrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    assign: PromptFile = Field(default=None, description="The template that asks which statements the text has.")


class AssignmentNode(ChatJudgeNode):
    """Asks a chat model whether a text has each of several statements in full, in part or not."""

    prompts: Annotated[AssignmentPrompts, OWN_FILES] = AssignmentPrompts()
    batch: int = Field(default=10, ge=1, le=100, description="The most statements that one call is about.")


class AssignmentJudge(ChatJudge[AssignmentNode]):
    """Makes one call for every ten statements; nuggets are statements, and of other texts the sentences.

    A statement that the text has in part scores 0.5 and is not supported. If the reply to one call cannot be read, it
    is asked again; if that does not help, the sample has failed.
    """

    known_as = ("nuggetizer", "autonuggetizer", "autonuggets", "nugget_assignment")
    declared = frozenset[Ability]({"support"})

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        if criterion.kind != "support":
            raise self._cannot(criterion.kind, samples)
        settled = [self._settle(criterion, sample) for sample in samples]
        pairs = zip(samples, settled, strict=True)
        asked = [[] if known else self._list_questions(criterion, sample) for sample, known in pairs]
        batches = [question for questions in asked for question in questions]
        given = iter(chat_questions.ask_all(self.model, batches, self.context))
        replies = [[*islice(given, len(questions))] for questions in asked]
        return Assessment([known or _conclude(found) for known, found in zip(settled, replies, strict=True)])

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        asked = [sample for sample in samples if self._settle(criterion, sample) is None]
        questions = [question for sample in asked for question in self._list_questions(criterion, sample)]
        return self.estimate_questions(questions, _LABEL_TOKENS * self.node.batch)

    def _settle(self, criterion: Criterion, sample: Sample) -> Finding | Failed | None:
        if failed := self.find_excess(criterion, sample):
            return failed
        if criterion.text == "claims" and segments.is_blank(criterion.sources_of(sample)):
            return segments.find_without_sources(criterion, segments.list_pieces(criterion, sample))
        return prompts.settle(criterion, sample)

    def _list_questions(
        self, criterion: Criterion, sample: Sample
    ) -> list[chat_questions.ChatQuestion[tuple[Claim, ...]]]:
        statements, size = segments.list_statements(criterion, sample), self.node.batch
        sources = prompts.fence_all("text", criterion.sources_of(sample))
        question = prompts.fence_part(sample, "question")
        return [
            chat_questions.ChatQuestion(
                self.request(
                    "assign",
                    _make_schema(len(batch)),
                    question=question,
                    sources=sources,
                    claims=prompts.fence_all("fact", [one.text for one in batch]),
                    count=len(batch),
                ),
                partial(_read_labels, batch),
            )
            for batch in (statements[at : at + size] for at in range(0, len(statements), size))
        ]


def _conclude(batches: Sequence[tuple[Claim, ...] | Failed]) -> Finding | Failed:
    failed = next((one for one in batches if isinstance(one, Failed)), None)
    if failed is not None:
        return failed
    claims = tuple(claim for one in batches if not isinstance(one, Failed) for claim in one)
    return Finding(segments.score_claims(claims), claims)


@lru_cache
def _make_schema(count: int) -> dict[str, Any]:
    label = prompts.make_schema(
        fact={"type": "integer", "minimum": 1, "maximum": count}, label={"type": "string", "enum": [*_LABELS]}
    )
    return prompts.make_schema(assignments=prompts.make_list_schema(label, count))


def _read_labels(statements: Sequence[segments.Segment], value: Mapping[str, Any], _: ChatReply) -> tuple[Claim, ...]:
    said = put_in_order(value["assignments"], "fact", "label")
    return tuple(statement.as_claim(*_LABELS[one["label"]]) for statement, one in zip(statements, said, strict=True))


PLUGIN = AssignmentJudge
