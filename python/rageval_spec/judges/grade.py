"""`grade`: a chat model grades from 1 to 5 or from 1 to 10, or on a criterion's own scale, by a guide.

As in G-Eval (Liu et al., EMNLP 2023, arXiv:2303.16634), the model can first write the steps by which it judges, and the
score is the expected grade if the endpoint gives token probabilities.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from rageval_spec.data.chat import ChatReply
from rageval_spec.data.findings import Assessment, Criterion, Estimate, Failed
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.endpoints.chat_questions import ChatQuestion, ask, defuse, estimate_questions, recall
from rageval_spec.endpoints.replies import UnreadableReplyError
from rageval_spec.judges.shared.chat_judge import Matter, PiecewiseJudge, WordFormNode, ask_grade
from rageval_spec.judging import prompts
from rageval_spec.judging.composition import RepeatedModel
from rageval_spec.judging.grade_scores import GradeScale, PieceOpinion, write_guide
from rageval_spec.judging.prompts import OWN_FILES, PromptFile, PromptFiles
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import ChatModel, Context

_SCALES: Mapping[str, GradeScale] = {"1-5": GradeScale(1, 5), "1-10": GradeScale(1, 10)}
_MOST_STEPS = 12
_LONGEST_STEP = 600
_STEP_TOKENS = 150
_DEMAND = "Go through these steps before you grade:"
_UNKNOWN = ("(a step that is not written yet)",)
"""Stands for the steps in an estimate, so that no stored reply to the question without steps is mistaken for one."""
_LIST_NUMBER = compile_later(r"^(?:step )?\d{1,2}[.):] *", re.IGNORECASE)
Step: TypeAlias = Annotated[str, Field(min_length=1)]
"""A step of the user's own."""


class GradePrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    grade: PromptFile = Field(default=None, description="The template that asks for a grade.")
    steps: PromptFile = Field(
        default=None,
        exclude_if=lambda path: path is None,
        description="The template that asks for the steps by which to grade, with `steps: true`.",
    )


class GradeNode(WordFormNode):
    """Asks a chat model for a grade; the score is the expected grade if the endpoint gives token probabilities."""

    prompts: Annotated[GradePrompts, OWN_FILES] = GradePrompts()
    scale: Literal["1-5", "1-10"] = Field(
        default="1-5", description="The lowest and highest grade, for metrics without a scale of their own."
    )
    guide: dict[str, str] = Field(
        default={},
        description='What grades mean, for metrics without a guide of their own: `"1": nothing is supported`.',
    )
    steps: bool | tuple[Step, ...] = Field(
        default=False,
        exclude_if=lambda steps: not steps,
        description="The steps that the judge goes through before it grades. true: the model writes them once for each "
        "criterion, and every sample is judged by the same steps (G-Eval); they are stored, and reports show them. A "
        "list: your own steps.",
    )
    probabilities: bool = Field(
        default=True,
        description="Use the expected value over the token probabilities as the score (G-Eval). If false, or if the "
        "endpoint gives no probabilities, only the reply's word counts.",
    )


class GradeJudge(PiecewiseJudge[GradeNode]):
    """Asks for a reason and a grade, or for the grade alone."""

    known_as = ("geval", "g_eval", "likert", "rating", "score")

    def __init__(self, node: GradeNode, context: Context) -> None:
        """Keep the node and the context; no steps are written yet."""
        super().__init__(node, context)
        self._lock = Lock()
        self._steps: dict[str, tuple[str, ...]] = {}

    @property
    def prompt_names(self) -> Sequence[str]:
        return [name for name in super().prompt_names if name != "steps" or self._writes_steps]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample. If the model writes the steps, it does so before the first sample is judged."""
        steps = self._write_steps(criterion) if self._writes_steps and samples else None
        if isinstance(steps, Failed):
            failed = replace(steps, reason=f"the steps by which to judge could not be written: {steps.reason}")
            return Assessment([failed] * len(samples))
        found = super().assess(criterion, samples)
        if steps is None:
            return found
        table = (("step", "what the judge does"), *((str(number), step) for number, step in enumerate(steps, 1)))
        message = f"'{criterion.name}' is graded by {len(steps)} steps that the model wrote"
        return replace(found, notes=(*found.notes, Note("steps", message, count=len(steps), table=table)))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        if not self._writes_steps or not samples:
            return super().estimate(criterion, samples)
        asked = self._ask_steps(criterion)
        known = recall(self._writer, asked, self.context)
        if known.unanswered is None and not isinstance(known.found, Failed) and known.found:
            self._steps.setdefault(_name(criterion), known.found)
            return super().estimate(criterion, samples)
        writing = estimate_questions(self._writer, self.node.model, [asked], self.context, _STEP_TOKENS)
        return writing | super().estimate(criterion, samples)

    def put(self, matter: Matter) -> ChatQuestion[PieceOpinion]:
        criterion = replace(matter.criterion, guide=matter.criterion.guide or self.node.guide)
        steps = self.node.steps if isinstance(self.node.steps, tuple) else ()
        if self._writes_steps:
            steps = self._steps.get(_name(matter.criterion), _UNKNOWN)
        if steps:
            numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
            criterion = replace(criterion, instruction=f"{criterion.instruction}\n\n{_DEMAND}\n{numbered}")
        scale = self._find_scale(criterion)
        return ask_grade(
            self,
            criterion,
            matter.material,
            scale,
            probabilities=self.node.probabilities,
            without_json=self.node.form == "word",
        )

    @property
    def _writes_steps(self) -> bool:
        return self.node.steps is True

    @property
    def _writer(self) -> ChatModel[Any]:
        """The model that writes the steps: they are the same for all repeats of a panel."""
        return self.model.original if isinstance(self.model, RepeatedModel) else self.model

    def _find_scale(self, criterion: Criterion) -> GradeScale:
        scale = _SCALES[self.node.scale]
        return GradeScale.of(criterion, scale) if criterion.kind == "grade" else scale

    def _write_steps(self, criterion: Criterion) -> tuple[str, ...] | Failed:
        """The steps for a criterion. They are written once, even if nothing is stored."""
        with self._lock:
            known = self._steps.get(_name(criterion))
            found = ask(self._writer, self._ask_steps(criterion), self.context) if known is None else known
            if not isinstance(found, Failed):
                self._steps[_name(criterion)] = found
            return found

    def _ask_steps(self, criterion: Criterion) -> ChatQuestion[tuple[str, ...]]:
        low, high = self._find_scale(criterion).bounds
        parts = criterion.shown if criterion.kind == "grade" else ("question", criterion.against, criterion.text)
        request = self.request(
            "steps",
            prompts.make_schema(
                steps={**prompts.make_list_schema(prompts.TEXT), "minItems": 2, "maxItems": _MOST_STEPS}
            ),
            instruction=criterion.instruction,
            shown=", ".join(f"the {prompts.name_part(part)}" for part in dict.fromkeys(parts)),
            low=low,
            high=high,
            guide=write_guide(criterion.guide or self.node.guide),
        )
        return ChatQuestion(request, _read_steps)


def _name(criterion: Criterion) -> str:
    """What tells criteria apart; they cannot be keys themselves, because guides are mappings."""
    return repr(criterion)


def _read_steps(value: Mapping[str, Any], _: ChatReply) -> tuple[str, ...]:
    steps = tuple(_LIST_NUMBER.sub("", " ".join(defuse(step).split())) for step in value["steps"])
    if not all(steps) or max(map(len, steps)) > _LONGEST_STEP:
        raise UnreadableReplyError(f"every step must be a sentence of at most {_LONGEST_STEP} characters")
    return steps


PLUGIN = GradeJudge
