"""Base classes of judges that ask a chat model.

`PiecewiseJudge` is for those that ask about one thing at a time: a whole sample, a claim or a context.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from rageval_spec.data.chat import ChatRequest, Message
from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, read_part
from rageval_spec.data.outcomes import Note, Remark, add_counts, remark, writes_notes
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints import chat_questions
from rageval_spec.endpoints.chat_questions import ChatQuestion
from rageval_spec.judging import prompts
from rageval_spec.judging.grade_scores import GradeScale, PieceOpinion, read_grade, rescale, write_guide
from rageval_spec.judging.prompts import OWN_FILES, PromptFiles
from rageval_spec.judging.segments import Segment, list_pieces, list_statements, score_claims
from rageval_spec.plugin import ChatModel, InputFile, Judge, JudgeNode, ModelName
from rageval_spec.wording import count_noun

T = TypeVar("T")
R = TypeVar("R")


class ChatJudgeNode(JudgeNode):
    """The keys of a judge that asks a chat model."""

    model: ModelName = Field(description="The chat model to ask: the name of a block under `models:`.")
    prompts: Annotated[PromptFiles, OWN_FILES] = PromptFiles()
    max_context_characters: int | None = Field(
        default=None,
        ge=1,
        description="The most characters of contexts to send at once. A sample with more fails; nothing is cut.",
    )


CN = TypeVar("CN", bound=ChatJudgeNode)


class ChatJudge(Judge[CN]):
    """Asks a chat model about each sample, with as many calls in parallel as the model allows."""

    @property
    def model(self) -> ChatModel[Any]:
        """The chat model that the judge asks."""
        return self.context.model(self.node.model, ChatModel)  # type: ignore[type-abstract]

    @cached_property
    def prompts(self) -> prompts.Prompts:
        """The judge's prompts by name."""
        return prompts.Prompts(self.prompt_names, self.node.prompts, self.context, self.without_json)

    @property
    def prompt_names(self) -> Sequence[str]:
        """The names of the judge's prompts: those that a spec can replace."""
        return [*type(self.node.prompts).model_fields]

    @property
    def without_json(self) -> frozenset[str]:
        """The names of prompts that ask for a word instead of JSON."""
        is_word = getattr(self.node, "form", "json") == "word"
        return frozenset({"choice", "grade"}) if is_word else frozenset()

    def inputs(self) -> Sequence[InputFile]:
        return (*super().inputs(), *self.prompts.inputs())

    def check(self) -> str | None:
        return self.context.explain_model(self.node.model, ChatModel, "writes no replies; name a chat model")

    def check_files(self) -> Iterable[FileFault]:
        return self.prompts.check()

    def content(self) -> dict[str, Any]:
        return {**super().content(), "prompts": self.prompts.content(), "wording": chat_questions.WORDING_DIGEST}

    def prompt_digests(self) -> Mapping[str, str]:
        return self.prompts.digests()

    def ask_each(self, items: Sequence[T], find: Callable[[T], R]) -> list[R]:
        """Call `find`, which may ask the model, for each item in parallel; the results are in the items' order."""
        threads = chat_questions.threads_for(self.model, self.context)
        room = chat_questions.room_for(self.model, self.context)
        return chat_questions.run_all([partial(find, item) for item in items], threads, room)

    def ask(self, question: ChatQuestion[T]) -> T | Failed:
        """The parsed reply to one question, or its failure."""
        return chat_questions.ask(self.model, question, self.context)

    def request(
        self, prompt: str, schema: Mapping[str, Any] | None, *, logprobs: bool = False, **variables: str | int | float
    ) -> ChatRequest:
        """The request of one call: the rules, and a prompt rendered with its variables."""
        asked = self.prompts[prompt].render(**variables)
        return ChatRequest((Message("system", self._rules), Message("user", asked)), schema, logprobs=logprobs)

    @cached_property
    def _rules(self) -> str:
        return self.prompts["system"].render()

    def estimate_questions(self, questions: Iterable[ChatQuestion[Any]], output: int) -> Estimate:
        """The calls that these questions would take now, assuming `output` tokens per reply."""
        return chat_questions.estimate_questions(self.model, self.node.model, questions, self.context, output)

    def find_excess(self, criterion: Criterion, sample: Sample) -> Failed | None:
        """The failure of a sample whose contexts are too long to send; None if they are not."""
        most = self.node.max_context_characters
        parts = {criterion.text, criterion.against, *criterion.shown} & {"contexts", "reference_contexts", "steps"}
        characters = sum(len(text) for part in parts for text in read_part(sample, part))
        if most is None or characters <= most:
            return None
        return Failed(
            f"the contexts have {count_noun(characters, 'character')}, more than max_context_characters ({most})"
        )


def ask_grade(
    judge: ChatJudge[Any],
    criterion: Criterion,
    material: str,
    scale: GradeScale,
    *,
    probabilities: bool = False,
    without_json: bool = False,
) -> ChatQuestion[PieceOpinion]:
    """The question for a grade, in the words of the prompt `grade`."""
    low, high = scale.bounds
    schema = prompts.make_schema(reason=prompts.REMARK, grade=scale.schema)
    word = f"one {'whole ' if scale.is_whole else ''}number from {low} to {high}"
    request = judge.request(
        "grade",
        None if without_json else schema,
        logprobs=probabilities and bool(scale.grades),
        instruction=criterion.instruction,
        material=material,
        low=low,
        high=high,
        guide=write_guide(criterion.guide),
    )
    read = partial(read_grade, scale, probabilities, key=None if without_json else "grade")
    return ChatQuestion(request, read, word if without_json else "", schema, word)


_CLAIM_INSTRUCTION = "Do the sources support the whole claim, which is part of an answer to the question?"


class PiecewiseNode(ChatJudgeNode):
    """The keys of a judge that asks about one thing at a time."""

    probabilities: bool = Field(
        default=False,
        description="Ask for token probabilities and use their expected value as the score (G-Eval). If the endpoint "
        "gives none, only the reply's word counts.",
    )


class WordFormNode(PiecewiseNode):
    """The keys of a judge whose model replies with JSON or with one word."""

    form: Literal["json", "word"] = Field(
        default="json",
        exclude_if=lambda form: form == "json",
        description="json: the model gives a reason first, then its verdict, as JSON. word: its verdict alone, for "
        "small models that write no JSON. A model that fails twice to write JSON is asked for the word in any case.",
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
    def put(self, matter: Matter) -> ChatQuestion[PieceOpinion]:
        """The question to ask about one matter."""

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        settled = [self._settle(criterion, sample) for sample in samples]
        pairs = zip(samples, settled, strict=True)
        matters = [[] if known else self._list_matters(criterion, sample) for sample, known in pairs]
        opinions = chat_questions.ask_all(
            self.model, [self.put(matter) for each in matters for matter in each], self.context
        )
        rest = iter(opinions)
        findings = [
            known or self._conclude(criterion, each, [*islice(rest, len(each))])
            for known, each in zip(settled, matters, strict=True)
        ]
        return Assessment(findings, self._remark(opinions))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        asked = [sample for sample in samples if self._settle(criterion, sample) is None]
        matters = (matter for sample in asked for matter in self._list_matters(criterion, sample))
        return self.estimate_questions((self.put(matter) for matter in matters), prompts.OUTPUT_TOKENS)

    def _settle(self, criterion: Criterion, sample: Sample) -> Finding | Failed | None:
        return self.find_excess(criterion, sample) or prompts.settle(criterion, sample)

    def _list_matters(self, criterion: Criterion, sample: Sample) -> list[Matter]:
        instruction = criterion.instruction
        if criterion.kind == "usefulness":
            beside = prompts.fence_parts(sample, {"question", criterion.against} - {criterion.text})
            return [
                Matter(criterion, instruction, f"{beside}\n{prompts.fence('context', piece.text)}", piece)
                for piece in list_pieces(criterion, sample)
            ]
        if criterion.kind == "grade" or (self.per == "answer" and criterion.text != "claims"):
            parts = () if criterion.kind == "grade" else (criterion.text, criterion.against)
            return [Matter(criterion, instruction, prompts.fence_parts(sample, {*criterion.shown, *parts}))]
        sources = (
            f"{prompts.fence_part(sample, 'question')}\n{prompts.fence_all('source', criterion.sources_of(sample))}"
        )
        return [
            Matter(criterion, _CLAIM_INSTRUCTION, f"{sources}\n{prompts.fence('claim', piece.text)}", piece)
            for piece in list_statements(criterion, sample)
        ]

    def _conclude(
        self, criterion: Criterion, matters: Sequence[Matter], opinions: Sequence[PieceOpinion | Failed]
    ) -> Finding | Failed:
        """The finding from one opinion on the sample, or from one per claim; a missing opinion is a failure."""
        if failed := next((opinion for opinion in opinions if isinstance(opinion, Failed)), None):
            return failed
        known = [opinion for opinion in opinions if isinstance(opinion, PieceOpinion)]
        if matters[0].piece is None:
            (only,) = known
            return Finding(rescale(criterion, only.score), (), only.reason, confidence=only.confidence)
        claims = tuple(
            Claim(piece.text, opinion.score, opinion.verdict, piece.start, piece.end, reason=opinion.reason)
            for piece, opinion in zip((matter.piece for matter in matters), known, strict=True)
            if piece is not None
        )
        return Finding(score_claims(claims), claims)

    def _remark(self, opinions: Sequence[PieceOpinion | Failed]) -> tuple[Remark, ...]:
        """A note on how many replies lack the probabilities that the spec asks for."""
        if not self.node.probabilities or "probabilities" not in self.node.model_fields_set:
            return ()
        lacking = sum(isinstance(opinion, PieceOpinion) and opinion.confidence is None for opinion in opinions)
        return (remark(_write_lacking, [(lacking, len(opinions))], self.node.model),)


@writes_notes
def _write_lacking(counts: Iterable[tuple[int, int]], model: str) -> Iterator[Note]:
    lacking, replies = add_counts(counts)
    if lacking:
        message = f"{lacking} of {count_noun(replies, 'reply', 'replies')} of '{model}' came without "
        yield Note("no_probabilities", f"{message}token probabilities: only their words count", count=lacking)
