"""The stages of a waterfall: what becomes of a sample by its value at each of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec.plugin import JudgeName, ModelName


class Stage(BaseModel):
    """What becomes of a sample by its value at a stage, in [0, 1]; null disables that outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reject: float | None = Field(
        default=None, ge=0, le=1, description="Below this value the answer is rejected: its score is 0."
    )
    person: float | None = Field(
        default=None, ge=0, le=1, description="Below this value a person must decide: there is no score."
    )
    accept: float | None = Field(
        default=None, ge=0, le=1, description="From this value on it is accepted, and no later stage sees it."
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
        """What to write where one of two bounds is a default that the other does not fit; "" where both are given."""
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
    """How near the nearest context is to the question."""

    reject: float | None = Field(default=0.15, ge=0, le=1, description="Below this value the answer is rejected.")
    person: float | None = Field(default=0.35, ge=0, le=1, description="Below this value a person must decide.")
    model: ModelName = Field(default="minilm", description="An embedding model or a reranker: a name under `models:`.")
    by: Literal["similarity", "reranker"] = Field(
        default="similarity",
        description="similarity: the highest cosine, 0 where it is negative; reranker: the highest probability of a "
        "model that reads pairs and has one label (the logistic function of its logit).",
    )


class AnswerabilityStage(Stage):
    """Whether the contexts hold the answer."""

    person: float | None = Field(default=0.2, ge=0, le=1, description="Below this value a person must decide.")
    judge: JudgeName = Field(
        default="overlap",
        description="A judge that grades says whether the question can be answered from the contexts; another one "
        "whether they speak of what the question names.",
    )


class FaithfulnessStage(Stage):
    """The judge of the metric's own criterion."""

    reject: float | None = Field(default=0.27, ge=0, le=1, description="Below this value the answer is rejected.")
    person: float | None = Field(default=0.63, ge=0, le=1, description="Below this value a person must decide.")
    judge: JudgeName = Field(default="overlap", description="Who judges what the metric asks for.")


class RelevanceStage(Stage):
    """Whether the answer addresses the question."""

    person: float | None = Field(default=0.3, ge=0, le=1, description="Below this value a person must decide.")
    judge: JudgeName = Field(
        default="embedding",
        description="A judge that grades, or else one that can say whether a text is useful; the latter is not asked "
        "about answers of a few words, which look like no question.",
    )
