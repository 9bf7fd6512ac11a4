"""`grade`: a chat model grades from 1 to 5 or from 1 to 10, or on a criterion's own scale, by a guide.

If the endpoint gives token probabilities and `probabilities` is not false, the score is the expected grade, as in
G-Eval (Liu et al., EMNLP 2023, arXiv:2303.16634).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from rageval_spec.judges.shared.chat_judge import ask_grade
from rageval_spec.judges.shared.piecewise import Matter, PiecewiseJudge, PiecewiseNode
from rageval_spec.judging.grading import Opinion, Scale
from rageval_spec.judging.prompts import PromptFiles

if TYPE_CHECKING:
    from rageval_spec.endpoints.asking import Question

_SCALES: Mapping[str, Scale] = {"1-5": Scale(1, 5), "1-10": Scale(1, 10)}


class GradePrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    grade: str | None = Field(default=None, min_length=1, description="The template that asks for a grade.")


class GradeNode(PiecewiseNode):
    """Asks a chat model for a grade; the score is the expected grade if the endpoint gives token probabilities."""

    prompts: GradePrompts = Field(
        default=GradePrompts(), description="Prompt files that replace the judge's own, relative to the spec."
    )
    scale: Literal["1-5", "1-10"] = Field(
        default="1-5", description="The lowest and highest grade, for metrics without a scale of their own."
    )
    guide: dict[str, str] = Field(
        default={},
        description='What grades mean, for metrics without a guide of their own: `"1": nothing is supported`.',
    )
    probabilities: bool = Field(
        default=True,
        description="Use the expected value over the token probabilities as the score (G-Eval). If false, or if the "
        "endpoint gives no probabilities, only the reply's word counts.",
    )


class GradeJudge(PiecewiseJudge[GradeNode]):
    """Asks for a reason and a grade."""

    node_type = GradeNode
    known_as = ("geval", "g_eval", "likert", "rating", "score")
    prompt_names = ("system", "grade")

    def put(self, matter: Matter) -> Question[Opinion]:
        """The question for a grade."""
        criterion = matter.criterion
        scale = _SCALES[self.node.scale]
        if criterion.kind == "grade":
            scale = Scale.of(criterion, scale)
        if not criterion.guide:
            criterion = replace(criterion, guide=self.node.guide)
        return ask_grade(self, criterion, matter.material, scale, probabilities=self.node.probabilities)


PLUGIN = GradeJudge
