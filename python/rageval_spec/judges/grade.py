"""`grade`: a chat model grades from 1 to 5 or from 1 to 10, or on a criterion's own scale, by a guide.

A grade is the expected value over the probabilities of the grades, as in G-Eval (Liu et al., EMNLP 2023,
arXiv:2303.16634), where the endpoint gives them and `probabilities` is not false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from pydantic import Field

from rageval_spec.endpoints.asking import Question
from rageval_spec.judges.shared.chat_judge import ask_grade
from rageval_spec.judges.shared.piecewise import Matter, PiecewiseJudge, PiecewiseNode
from rageval_spec.judging.grading import Opinion, Scale
from rageval_spec.judging.prompts import PromptFiles

_SCALES: Mapping[str, Scale] = {"1-5": Scale(1, 5), "1-10": Scale(1, 10)}


class GradePrompts(PromptFiles):
    """Files of prompts in the place of the judge's own."""

    grade: str | None = Field(default=None, min_length=1, description="The template that asks for a grade.")


class GradeNode(PiecewiseNode):
    """A grade from a chat model; the expected grade where the endpoint gives token probabilities."""

    prompts: GradePrompts = Field(
        default=GradePrompts(), description="Files of prompts, relative to the spec, in the place of the judge's own."
    )
    scale: Literal["1-5", "1-10"] = Field(
        default="1-5", description="Lowest and highest grade, where a metric does not say its own."
    )
    guide: dict[str, str] = Field(
        default={}, description='What some grades mean, where a metric does not say it: `"1": nothing is supported`.'
    )
    probabilities: bool = Field(
        default=True,
        description="Score the expected value over the probabilities of the reply's tokens (G-Eval); false: the "
        "reply's word alone counts, as it does where the endpoint gives no probabilities.",
    )


class GradeJudge(PiecewiseJudge[GradeNode]):
    """A reason and a grade."""

    node_type = GradeNode
    known_as = ("geval", "g_eval", "likert", "rating", "score")
    prompt_names = ("system", "grade")

    def put(self, matter: Matter) -> Question[Opinion]:
        """How far it is so."""
        criterion = matter.criterion
        scale = _SCALES[self.node.scale]
        if criterion.kind == "grade":
            scale = Scale.of(criterion, scale)
        if not criterion.guide:
            criterion = replace(criterion, guide=self.node.guide)
        return ask_grade(self, criterion, matter.material, scale, probabilities=self.node.probabilities)


PLUGIN = GradeJudge
