"""Base class of judges that ask a chat model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from rageval_spec.data.assessment import Criterion, Estimate, Failed, read_part
from rageval_spec.data.chat import ChatRequest, Message
from rageval_spec.data.sample import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.asking import WORDING_DIGEST, Question, ask, estimate_questions, run_all, threads_for
from rageval_spec.judging.forms import REMARK, make_schema
from rageval_spec.judging.grading import Opinion, Scale, read_grade, write_guide
from rageval_spec.judging.prompts import PromptFiles, Prompts
from rageval_spec.plugin import ChatModel, InputFile, Judge, JudgeNode, ModelName
from rageval_spec.wording import count_noun

T = TypeVar("T")
R = TypeVar("R")


class ChatJudgeNode(JudgeNode):
    """A judge that asks a chat model."""

    model: ModelName = Field(description="The chat model that is asked: a block under `models:`.")
    prompts: PromptFiles = Field(
        default=PromptFiles(), description="Files of prompts, relative to the spec, in the place of the judge's own."
    )
    max_context_characters: int | None = Field(
        default=None,
        ge=1,
        description="The most characters of contexts that are sent at once; a sample with more fails, nothing is cut.",
    )


CN = TypeVar("CN", bound=ChatJudgeNode)


class ChatJudge(Judge[CN]):
    """Asks a chat model about each sample, as many samples at the same time as the model takes."""

    prompt_names: ClassVar[tuple[str, ...]] = ("system",)
    """The prompts that it says, `system` included."""

    @property
    def model(self) -> ChatModel[Any]:
        """Who is asked.

        Raises:
            UsageError: there is no such model, or it is no chat model.
        """
        return self.context.model(self.node.model, ChatModel)  # type: ignore[type-abstract]

    @cached_property
    def prompts(self) -> Prompts:
        """What it says."""
        return Prompts(self.prompt_names, self.node.prompts, self.context)

    def inputs(self) -> Sequence[InputFile]:
        """The prompts that the spec names."""
        return self.prompts.inputs()

    def check(self) -> str | None:
        """Whether the model is one that chats."""
        return self.context.explain_model(self.node.model, ChatModel, "writes no replies; name a chat model")

    def check_files(self) -> Iterable[FileFault]:
        """What is wrong with the prompts that the spec names."""
        return self.prompts.check()

    def content(self) -> dict[str, Any]:
        """Its node, what its prompts say, and in which words it asks again."""
        return {**super().content(), "prompts": self.prompts.content(), "wording": WORDING_DIGEST}

    def ask_each(self, items: Sequence[T], find: Callable[[T], R]) -> list[R]:
        """What `find`, which asks, returns for each item, in their order."""
        return run_all([partial(find, item) for item in items], threads_for(self.model, self.context))

    def ask(self, question: Question[T]) -> T | Failed:
        """What the reply to one question comes to."""
        return ask(self.model, question, self.context)

    def request(
        self, prompt: str, schema: Mapping[str, Any] | None, *, logprobs: bool = False, **variables: str | int | float
    ) -> ChatRequest:
        """A call: the rules, and a prompt with its variables."""
        asked = self.prompts[prompt].render(**variables)
        return ChatRequest((Message("system", self._rules), Message("user", asked)), schema, logprobs=logprobs)

    @cached_property
    def _rules(self) -> str:
        return self.prompts["system"].render()

    def estimate_questions(self, questions: Iterable[Question[Any]], output: int) -> Estimate:
        """The calls that these would take now, `output` tokens being guessed of each reply."""
        return estimate_questions(self.model, self.node.model, questions, self.context, output)

    def find_excess(self, criterion: Criterion, sample: Sample) -> Failed | None:
        """Why a sample's contexts are too long to be sent; None where they are not."""
        most = self.node.max_context_characters
        parts = {criterion.text, criterion.against, *criterion.shown} & {"contexts", "reference_contexts"}
        characters = sum(len(text) for part in parts for text in read_part(sample, part))
        if most is None or characters <= most:
            return None
        return Failed(f"the contexts have {count_noun(characters, 'character')}, and max_context_characters is {most}")


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
