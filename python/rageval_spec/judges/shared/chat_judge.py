"""Base class of judges that ask a chat model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field

from rageval_spec.data.assessment import Criterion, Estimate, Failed, read_part
from rageval_spec.data.chat import ChatRequest, Message
from rageval_spec.endpoints.asking import WORDING_DIGEST, Question, ask, estimate_questions, run_all, threads_for
from rageval_spec.judging.forms import REMARK, make_schema
from rageval_spec.judging.grading import Opinion, Scale, read_grade, write_guide
from rageval_spec.judging.prompts import PromptFiles, Prompts
from rageval_spec.plugin import ChatModel, InputFile, Judge, JudgeNode, ModelName
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample
    from rageval_spec.diagnostics import FileFault

T = TypeVar("T")
R = TypeVar("R")


class ChatJudgeNode(JudgeNode):
    """The keys of a judge that asks a chat model."""

    model: ModelName = Field(description="The chat model to ask: the name of a block under `models:`.")
    prompts: PromptFiles = Field(
        default=PromptFiles(), description="Prompt files that replace the judge's own, relative to the spec."
    )
    max_context_characters: int | None = Field(
        default=None,
        ge=1,
        description="The most characters of contexts to send at once. A sample with more fails; nothing is cut.",
    )


CN = TypeVar("CN", bound=ChatJudgeNode)


class ChatJudge(Judge[CN]):
    """Asks a chat model about each sample, with as many calls in parallel as the model allows."""

    prompt_names: ClassVar[tuple[str, ...]] = ("system",)
    """The names of the judge's prompts, including `system`."""

    @property
    def model(self) -> ChatModel[Any]:
        """The chat model that the judge asks.

        Raises:
            UsageError: there is no such model, or it is not a chat model.
        """
        return self.context.model(self.node.model, ChatModel)  # type: ignore[type-abstract]

    @cached_property
    def prompts(self) -> Prompts:
        """The judge's prompts by name."""
        return Prompts(self.prompt_names, self.node.prompts, self.context)

    def inputs(self) -> Sequence[InputFile]:
        """The calibration and the prompt files that the spec names."""
        return (*super().inputs(), *self.prompts.inputs())

    def check(self) -> str | None:
        """Whether the model is one that chats."""
        return self.context.explain_model(self.node.model, ChatModel, "writes no replies; name a chat model")

    def check_files(self) -> Iterable[FileFault]:
        """The faults of the prompts that the spec names."""
        return self.prompts.check()

    def content(self) -> dict[str, Any]:
        """The node, the digests of its prompts, and the wording with which the judge retries."""
        return {**super().content(), "prompts": self.prompts.content(), "wording": WORDING_DIGEST}

    def prompt_digests(self) -> Mapping[str, str]:
        """The sha256 of each of its prompts, by name."""
        return self.prompts.digests()

    def ask_each(self, items: Sequence[T], find: Callable[[T], R]) -> list[R]:
        """Call `find`, which may ask the model, for each item in parallel; the results are in the items' order."""
        return run_all([partial(find, item) for item in items], threads_for(self.model, self.context))

    def ask(self, question: Question[T]) -> T | Failed:
        """The parsed reply to one question, or its failure."""
        return ask(self.model, question, self.context)

    def request(
        self, prompt: str, schema: Mapping[str, Any] | None, *, logprobs: bool = False, **variables: str | int | float
    ) -> ChatRequest:
        """The request of one call: the rules, and a prompt rendered with its variables."""
        asked = self.prompts[prompt].render(**variables)
        return ChatRequest((Message("system", self._rules), Message("user", asked)), schema, logprobs=logprobs)

    @cached_property
    def _rules(self) -> str:
        return self.prompts["system"].render()

    def estimate_questions(self, questions: Iterable[Question[Any]], output: int) -> Estimate:
        """The calls that these questions would take now, assuming `output` tokens per reply."""
        return estimate_questions(self.model, self.node.model, questions, self.context, output)

    def find_excess(self, criterion: Criterion, sample: Sample) -> Failed | None:
        """The failure of a sample whose contexts are too long to send; None if they are not."""
        most = self.node.max_context_characters
        parts = {criterion.text, criterion.against, *criterion.shown} & {"contexts", "reference_contexts"}
        characters = sum(len(text) for part in parts for text in read_part(sample, part))
        if most is None or characters <= most:
            return None
        return Failed(
            f"the contexts have {count_noun(characters, 'character')}, more than max_context_characters ({most})"
        )


def ask_grade(
    judge: ChatJudge[Any], criterion: Criterion, material: str, scale: Scale, *, probabilities: bool = False
) -> Question[Opinion]:
    """The question for a grade, in the words of the prompt `grade`."""
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
