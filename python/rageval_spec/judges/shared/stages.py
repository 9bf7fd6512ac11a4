"""The stages of a waterfall, with the bounds at which each rejects, accepts or asks for a person."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec.plugin import JudgeName, ModelName


class Stage(BaseModel):
    """Bounds on a sample's value at a stage, in [0, 1]; null disables that outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reject: float | None = Field(
        default=None, ge=0, le=1, description="Reject answers below this value: their score is 0."
    )
    person: float | None = Field(
        default=None, ge=0, le=1, description="Leave answers below this value to a person: they get no score."
    )
    accept: float | None = Field(
        default=None, ge=0, le=1, description="Accept answers from this value up; no later stage sees them."
    )

    @model_validator(mode="after")
    def _check_order(self) -> Stage:
        bounds = {"reject": self.reject, "person": self.person, "accept": self.accept}
        given = [(name, bound) for name, bound in bounds.items() if bound is not None]
        for (lower, low), (upper, high) in pairwise(given):
            if low > high:
                raise ValueError(f"{lower} ({low:g}) is above {upper} ({high:g}){self._advise(lower, upper)}")
        return self

    def _advise(self, lower: str, upper: str) -> str:
        """What to write if one of two conflicting bounds is a default; "" if the spec gives both."""
        if upper not in self.model_fields_set:
            default, bound, side = upper, getattr(self, lower), "more"
        elif lower not in self.model_fields_set:
            default, bound, side = lower, getattr(self, upper), "less"
        else:
            return ""
        return (
            f": {getattr(self, default):g} is the default of '{default}'; write '{default}: {bound:g}' or {side}, "
            f"or '{default}: null' to disable it"
        )


class RetrievalStage(Stage):
    """Measures how similar the most similar context is to the question."""

    reject: float | None = Field(default=0.15, ge=0, le=1, description="Reject answers below this value.")
    person: float | None = Field(default=0.35, ge=0, le=1, description="Leave answers below this value to a person.")
    model: ModelName = Field(
        default="minilm", description="An embedding model or a reranker: the name of a block under `models:`."
    )
    by: Literal["similarity", "reranker"] = Field(
        default="similarity",
        description="similarity: the highest cosine, at least 0; reranker: the highest probability (the logistic "
        "function of the logit) of a model that reads pairs and has one label.",
    )


class AnswerabilityStage(Stage):
    """Measures whether the contexts contain the answer."""

    person: float | None = Field(default=0.2, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(
        default="overlap",
        description="A judge that can grade is asked whether the contexts answer the question; any other judge is "
        "asked whether they mention what the question names.",
    )


class FaithfulnessStage(Stage):
    """Asks a judge the metric's own criterion."""

    reject: float | None = Field(default=0.27, ge=0, le=1, description="Reject answers below this value.")
    person: float | None = Field(default=0.63, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(default="overlap", description="The judge of the metric's own criterion.")


class RelevanceStage(Stage):
    """Measures whether the answer addresses the question."""

    person: float | None = Field(default=0.3, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(
        default="embedding",
        description="A judge that can grade, or one that can assess usefulness. The latter is not asked about "
        "answers of a few words, which resemble no question.",
    )
