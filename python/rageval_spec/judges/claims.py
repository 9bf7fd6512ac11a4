"""`claims`: a chat model splits texts into claims and gives each a verdict with evidence, as RAGAS does.

Es et al., RAGAS: Automated Evaluation of Retrieval Augmented Generation, EACL 2024 (arXiv:2309.15217). RAGAS asks once
per context or per question; this judge asks everything about a sample at once, numbered. Its prompts depend only on the
texts, so all metrics share the same calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rageval_spec.data.chat import ChatReply, ChatRequest
from rageval_spec.data.findings import (
    Ability,
    Assessment,
    Claim,
    Criterion,
    Estimate,
    Failed,
    Finding,
    Questions,
    Tokens,
    Verdict,
)
from rageval_spec.data.samples import Sample
from rageval_spec.endpoints import chat_questions
from rageval_spec.endpoints.chat_questions import ChatQuestion
from rageval_spec.endpoints.replies import UnreadableReplyError, put_in_order
from rageval_spec.judges.shared.chat_judge import ChatJudge, ChatJudgeNode, ask_grade
from rageval_spec.judging import prompts, segments
from rageval_spec.judging.grade_scores import GradeScale, PieceOpinion, rescale
from rageval_spec.judging.prompts import OWN_FILES, PromptFile, PromptFiles
from rageval_spec.plugin import ChatModel, ModelName

CLAIM_TOKENS = 25
"""The tokens that an estimate assumes for a claim that a model writes."""
_USE: Mapping[str, tuple[float, Verdict]] = {"yes": (1.0, "supported"), "no": (0.0, "not_enough_info")}
_MOST_SCHEMAS = 256
GRADES = GradeScale(1, 5)
"""The scale of criteria without a scale of their own."""


class ClaimsPrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    split: PromptFile = Field(default=None, description="The template that asks for a text's claims.")
    verify: PromptFile = Field(default=None, description="The template that asks for verdicts on claims.")
    usefulness: PromptFile = Field(default=None, description="The template that asks which contexts are useful.")
    questions: PromptFile = Field(
        default=None, description="The template that asks for questions that an answer would answer."
    )
    entities: PromptFile = Field(default=None, description="The template that asks for named entities.")
    grade: PromptFile = Field(default=None, description="The template that asks for a grade.")


class ClaimsNode(ChatJudgeNode):
    """Asks a chat model to split a text into claims and to give each a verdict with evidence; two calls."""

    prompts: Annotated[ClaimsPrompts, OWN_FILES] = ClaimsPrompts()
    split: Literal["model", "sentences"] = Field(
        default="model", description="How to split an answer into claims: by the model, or by sentences."
    )
    split_reference: Literal["model", "sentences"] = Field(
        default="sentences", description="How to split reference answers and contexts into claims."
    )
    split_model: ModelName | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="The chat model that splits texts into claims, such as a smaller one; by default `model`, which "
        "gives the verdicts.",
    )

    @model_validator(mode="after")
    def _check_splitting(self) -> ClaimsNode:
        if self.split_model is not None and "model" not in (self.split, self.split_reference):
            raise ValueError("'split_model' has no effect with 'split: sentences'; remove one of the two")
        return self


class ClaimsJudge(ChatJudge[ClaimsNode]):
    """Makes one call that splits an answer into claims, and one that gives all of them verdicts."""

    known_as = ("ragas", "llm", "llm_judge", "llm_as_judge", "llm_as_a_judge", "decomposition")
    declared = frozenset[Ability]({"support", "usefulness", "grade", "claims", "questions", "entities"})

    @property
    def splitter(self) -> ChatModel[Any]:
        return self.context.model(self._splitter_name, ChatModel)  # type: ignore[type-abstract]

    @property
    def _splitter_name(self) -> str:
        return self.node.split_model or self.node.model

    def check(self) -> str | None:
        return super().check() or self.context.explain_model(
            self._splitter_name, ChatModel, "writes no replies; name a chat model"
        )

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        find = {"support": self._find_support, "usefulness": self._find_usefulness, "grade": self._find_grade}
        judge = partial(find[criterion.kind], criterion)
        return Assessment(self.ask_each(samples, lambda s: self.find_excess(criterion, s) or judge(s)))

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        split = partial(self._split, how=self.node.split)
        found = self.ask_each(texts, lambda pair: split(*pair))
        return [one if isinstance(one, Failed) else tuple(claim.text for claim in one) for one in found]

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        return self.ask_each(answers, lambda answer: self.ask(self._ask_questions(answer, count)))

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        return self.ask_each(texts, lambda text: self.ask(self._ask_entities(text)) if text.strip() else ())

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The calls of `assess`. Where the claims are not known yet, it assumes one claim per sentence."""
        sendable = (sample for sample in samples if self.find_excess(criterion, sample) is None)
        return chat_questions.join_estimates(
            part for sample in sendable for part in self._estimate_sample(criterion, sample)
        )

    def estimate_writing(
        self, ability: Literal["claims", "questions", "entities"], texts: Sequence[tuple[str, str]], count: int = 1
    ) -> Estimate:
        asked = [(question, text) for question, text in texts if ability == "questions" or text.strip()]
        if ability == "questions":
            return self.estimate_questions([self._ask_questions(t, count) for _, t in asked], CLAIM_TOKENS * count)
        if ability == "entities":
            return self.estimate_questions([self._ask_entities(text) for _, text in asked], prompts.OUTPUT_TOKENS)
        split = asked if self.node.split == "model" else []
        return chat_questions.join_estimates(self._estimate_splitting(question, text) for question, text in split)

    # --- Support -------------------------------------------------------------------------------------------

    def _find_support(self, criterion: Criterion, sample: Sample) -> Finding | Failed:
        claims = (
            segments.list_statements(criterion, sample)
            if criterion.text == "claims"
            else self._split(sample.question, criterion.text_of(sample), self._how(criterion))
        )
        if isinstance(claims, Failed):
            return claims
        what = prompts.name_part(criterion.text)
        if not claims:
            return Finding(None, reason=f"the {what} makes no claim", claimless=True)
        sources = criterion.sources_of(sample)
        if segments.is_blank(sources):
            unsupported = tuple(claim.as_claim(0.0, "not_enough_info") for claim in claims)
            return Finding(0.0, unsupported, prompts.explain_no_sources(criterion))
        return _conclude(self.ask(self._ask_verdicts(claims, criterion, sample)))

    def _how(self, criterion: Criterion) -> Literal["model", "sentences"]:
        return self.node.split if criterion.text == "answer" else self.node.split_reference

    def _split(self, question: str, text: str, how: Literal["model", "sentences"]) -> list[segments.Segment] | Failed:
        sentences = segments.split_segments(text)
        if how == "sentences" or not sentences:
            return sentences
        return chat_questions.ask(self.splitter, self._ask_claims(question, sentences), self.context)

    def _ask_claims(self, question: str, sentences: Sequence[segments.Segment]) -> ChatQuestion[list[segments.Segment]]:
        request = self.request(
            "split",
            _CLAIMS,
            question=prompts.fence("question", question) if question.strip() else "",
            sentences=prompts.fence_all("sentence", [sentence.text for sentence in sentences]),
        )
        return ChatQuestion(request, partial(_read_claims, sentences))

    def _ask_verdicts(
        self, claims: Sequence[segments.Segment], criterion: Criterion, sample: Sample
    ) -> ChatQuestion[tuple[Claim, ...]]:
        sources = criterion.sources_of(sample)
        request = self.request(
            "verify",
            _make_verdicts_schema(len(claims), len(sources)),
            question=prompts.fence_part(sample, "question"),
            sources=prompts.fence_all("source", sources),
            claims=prompts.fence_all("claim", [claim.text for claim in claims]),
            count=len(claims),
        )
        return ChatQuestion(request, partial(_read_verdicts, claims, sources))

    # --- Usefulness ----------------------------------------------------------------------------------------

    def _find_usefulness(self, criterion: Criterion, sample: Sample) -> Finding | Failed:
        return prompts.settle(criterion, sample) or _conclude(self.ask(self._ask_usefulness(criterion, sample)))

    def _ask_usefulness(self, criterion: Criterion, sample: Sample) -> ChatQuestion[tuple[Claim, ...]]:
        pieces = segments.list_pieces(criterion, sample)
        request = self.request(
            "usefulness",
            _make_usefulness_schema(len(pieces)),
            instruction=criterion.instruction,
            question=prompts.fence_part(sample, "question"),
            target="" if criterion.against == "question" else prompts.fence_part(sample, criterion.against),
            contexts=prompts.fence_all("context", [piece.text for piece in pieces]),
            count=len(pieces),
        )
        return ChatQuestion(request, partial(_read_usefulness, pieces))

    # --- Grades ---------------------------------------------------------------------------------------------

    def _find_grade(self, criterion: Criterion, sample: Sample) -> Finding | Failed:
        opinion = self.ask(self._ask_grade(criterion, sample))
        if isinstance(opinion, Failed):
            return opinion
        return Finding(rescale(criterion, opinion.score), reason=opinion.reason)

    def _ask_grade(self, criterion: Criterion, sample: Sample) -> ChatQuestion[PieceOpinion]:
        material = prompts.fence_parts(sample, criterion.shown)
        return ask_grade(self, criterion, material, GradeScale.of(criterion, GRADES))

    # --- Questions and entities ----------------------------------------------------------------------------

    def _ask_questions(self, answer: str, count: int) -> ChatQuestion[Questions]:
        schema = prompts.make_schema(
            questions=prompts.make_list_schema(prompts.TEXT, count), noncommittal={"type": "boolean"}
        )
        request = self.request("questions", schema, answer=prompts.fence("answer", answer), count=count)
        return ChatQuestion(request, _read_questions)

    def _ask_entities(self, text: str) -> ChatQuestion[tuple[str, ...]]:
        schema = prompts.make_schema(entities=prompts.make_list_schema(prompts.TEXT))
        return ChatQuestion(self.request("entities", schema, text=prompts.fence("text", text)), _read_entities)

    # --- Estimates -----------------------------------------------------------------------------------------

    def _estimate_sample(self, criterion: Criterion, sample: Sample) -> Iterator[Estimate]:
        text = criterion.text_of(sample)
        if criterion.kind == "grade":
            yield self.estimate_questions([self._ask_grade(criterion, sample)], prompts.OUTPUT_TOKENS)
        elif criterion.kind == "usefulness":
            if not segments.is_blank([text]):
                output = prompts.OUTPUT_TOKENS * len(segments.list_pieces(criterion, sample))
                yield self.estimate_questions([self._ask_usefulness(criterion, sample)], output)
        elif text.strip():
            yield from self._estimate_support(criterion, sample)

    def _estimate_support(self, criterion: Criterion, sample: Sample) -> Iterator[Estimate]:
        text = criterion.text_of(sample)
        sentences = claims = segments.list_statements(criterion, sample)
        has_sources = not segments.is_blank(criterion.sources_of(sample))
        if self._how(criterion) == "model" and criterion.text != "claims":
            splitting = self._ask_claims(sample.question, sentences)
            known = chat_questions.recall(self.splitter, splitting, self.context)
            if known.unanswered is not None:
                yield self._estimate_splitting(sample.question, text)
                if has_sources:
                    yield self._guess_verdicts(splitting.request, criterion, sample)
                return
            claims = [] if isinstance(known.found, Failed) else known.found or []
        if claims and has_sources:
            asked = self._ask_verdicts(claims, criterion, sample)
            yield self.estimate_questions([asked], prompts.OUTPUT_TOKENS * len(claims))

    def _estimate_splitting(self, question: str, text: str) -> Estimate:
        sentences = segments.split_segments(text)
        output = CLAIM_TOKENS * len(sentences)
        asked = [self._ask_claims(question, sentences)]
        return chat_questions.estimate_questions(self.splitter, self._splitter_name, asked, self.context, output)

    def _guess_verdicts(self, splitting: ChatRequest, criterion: Criterion, sample: Sample) -> Estimate:
        """The call for verdicts on claims that are not known yet, estimated as one claim per sentence."""
        sources = criterion.sources_of(sample)
        sentences = segments.split_segments(criterion.text_of(sample))
        asked = self._ask_verdicts(sentences, criterion, sample).request
        known = repr((sample.question, sources)).encode("utf-8", "backslashreplace")
        key = hashlib.sha256(splitting.digest + known).hexdigest()
        tokens = Tokens(chat_questions.count_tokens(asked.size), prompts.OUTPUT_TOKENS * len(sentences))
        return Estimate({self.node.model: {key: tokens}})


_CLAIMS = prompts.make_schema(
    claims=prompts.make_list_schema(prompts.make_schema(sentence={"type": ["integer", "null"]}, claim=prompts.TEXT))
)


@lru_cache(_MOST_SCHEMAS)
def _make_verdicts_schema(claims: int, sources: int) -> dict[str, Any]:
    verdict = prompts.make_schema(
        claim={"type": "integer", "minimum": 1, "maximum": claims},
        source={"type": "integer", "minimum": 0, "maximum": sources},
        evidence=prompts.REMARK,
        reason=prompts.REMARK,
        verdict={"type": "string", "enum": ["supported", "contradicted", "not_enough_info"]},
    )
    return prompts.make_schema(verdicts=prompts.make_list_schema(verdict, claims))


@lru_cache(_MOST_SCHEMAS)
def _make_usefulness_schema(contexts: int) -> dict[str, Any]:
    verdict = prompts.make_schema(
        context={"type": "integer", "minimum": 1, "maximum": contexts},
        reason=prompts.REMARK,
        verdict={"type": "string", "enum": ["yes", "no"]},
    )
    return prompts.make_schema(verdicts=prompts.make_list_schema(verdict, contexts))


def _conclude(claims: tuple[Claim, ...] | Failed) -> Finding | Failed:
    return claims if isinstance(claims, Failed) else Finding(segments.score_claims(claims), claims)


def _read_claims(
    sentences: Sequence[segments.Segment], value: Mapping[str, Any], _: ChatReply
) -> list[segments.Segment]:
    said: dict[str, int | None] = {}
    for one in value["claims"]:
        said.setdefault(one["claim"].strip(), one["sentence"])
    return [segments.place_claim(text, cited, sentences) for text, cited in said.items() if text]


def _read_verdicts(
    claims: Sequence[segments.Segment], sources: Sequence[str], value: Mapping[str, Any], _: ChatReply
) -> tuple[Claim, ...]:
    verdicts = put_in_order(value["verdicts"], "claim", "verdict")
    return tuple(_make_claim(claim, said, sources) for claim, said in zip(claims, verdicts, strict=True))


def _make_claim(claim: segments.Segment, said: Mapping[str, Any], sources: Sequence[str]) -> Claim:
    """The claim with its verdict. Evidence that no source contains is dropped."""
    named, evidence = said["source"] - 1, (said["evidence"] or "").strip()
    found = segments.find_evidence(evidence, named, sources)
    source = found if found is not None else named if named >= 0 else None
    return Claim(
        claim.text,
        1.0 if said["verdict"] == "supported" else 0.0,
        said["verdict"],
        claim.start,
        claim.end,
        source,
        None if found is None else evidence,
        said["reason"] or None,
    )


def _read_usefulness(pieces: Sequence[segments.Segment], value: Mapping[str, Any], _: ChatReply) -> tuple[Claim, ...]:
    verdicts = put_in_order(value["verdicts"], "context", "verdict")
    pairs = zip(pieces, verdicts, strict=True)
    return tuple(piece.as_claim(*_USE[said["verdict"]], reason=said["reason"] or None) for piece, said in pairs)


def _read_questions(value: Mapping[str, Any], _: ChatReply) -> Questions:
    questions = tuple(question.strip() for question in value["questions"])
    if not all(questions):
        raise UnreadableReplyError("a question is empty")
    return Questions(questions, value["noncommittal"])


def _read_entities(value: Mapping[str, Any], _: ChatReply) -> tuple[str, ...]:
    entities: dict[str, str] = {}
    for said in value["entities"]:
        entities.setdefault(said.strip().casefold(), said.strip())
    return tuple(filter(None, entities.values()))


PLUGIN = ClaimsJudge
