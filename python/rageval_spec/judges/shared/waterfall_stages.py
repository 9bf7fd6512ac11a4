"""The stages of a waterfall, and the routing that decides where they send samples.

Each stage has bounds at which it rejects, accepts or asks for a person. A summary describes the decisions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.judging.grade_scores import scale_score, unscale_score
from rageval_spec.judging.refusals import find_refusal
from rageval_spec.judging.segments import count_words
from rageval_spec.plugin import JudgeName, ModelName
from rageval_spec.wording import count_noun, format_percent


def accept(
    criterion: Criterion, judged: Finding | None, stage: str, reason: str | None, value: float = 1.0
) -> StageDecision:
    """Accept a sample with the score of the faithfulness stage; with 1 if that stage was not reached."""
    if judged is None or judged.score is None:
        found = Finding(unscale_score(1.0, criterion), reason=reason, decided_by=stage)
        return StageDecision("accepted", stage, found, value)
    confidence = scale_score(judged.score, criterion) if judged.confidence is None else judged.confidence
    found = replace(judged, reason=reason or judged.reason, decided_by=stage if reason else "faithfulness")
    return StageDecision("accepted", stage, found, confidence)


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
        for default, other, side in ((upper, lower, "more"), (lower, upper, "less")):
            if default not in self.model_fields_set:
                return (
                    f": {getattr(self, default):g} is the default of '{default}'; write '{default}: "
                    f"{getattr(self, other):g}' or {side}, or '{default}: null' to disable it"
                )
        return ""


class RetrievalStage(Stage):
    """Measures how similar the most similar context is to the question, or reads the retriever's scores."""

    reject: float | None = Field(default=0.15, ge=0, le=1, description="Reject answers below this value.")
    person: float | None = Field(default=0.35, ge=0, le=1, description="Leave answers below this value to a person.")
    model: ModelName | None = Field(
        default="minilm",
        description="An embedding model or a reranker: the name of a block under `models:`. `by: scores` needs none.",
    )
    by: Literal["similarity", "reranker", "scores"] = Field(
        default="similarity",
        description="similarity: the highest cosine, at least 0; reranker: the highest probability (the logistic "
        "function of the logit) of a model that reads pairs and has one label; scores: the highest score that the "
        "retriever gave a context, as recorded with the answer, from 0 to 1; answers without scores go on to the next "
        "stage.",
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_model(cls, content: Any) -> Any:
        """Scores are recorded, so that no model is asked for them."""
        by_scores = isinstance(content, dict) and content.get("by") == "scores"
        return {"model": None, **content} if by_scores else content

    @model_validator(mode="after")
    def _check_model(self) -> RetrievalStage:
        if self.by == "scores" and self.model is not None:
            raise ValueError("'by: scores' reads the retriever's scores and asks no model; remove 'model'")
        if self.by != "scores" and self.model is None:
            raise ValueError(f"'by: {self.by}' needs a model; name one with 'model'")
        return self


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
        description="A judge that can grade, or one that can assess usefulness. The latter is not asked about answers "
        "of a few words, which resemble no question.",
    )


JudgedStage = AnswerabilityStage | FaithfulnessStage | RelevanceStage
COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the accepted samples, most confident first, at which a note gives the risk."""
TO_A_PERSON = "sent to a person"
"""How the reason of a sample begins that a person must decide."""
LONGEST_REFUSAL = 40
"""An answer of more words says more than that it does not know."""

STAGES = ("retrieval", "answerability", "faithfulness", "relevance")
"""The names of the stages, in their order."""
LAST = "the last stage"
"""Where a sample is decided that passes all of them."""

Outcome = Literal["accepted", "rejected", "person", "nothing", "failed"]


@dataclass(frozen=True, slots=True)
class StageDecision:
    """The outcome of a sample and the stage that decided it; only accepted samples have a `confidence`."""

    outcome: Outcome
    stage: str
    finding: Finding | Failed
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class StageValue:
    """A stage's value of a sample, in [0, 1], with the value's name; None if the stage has no value."""

    value: float | None
    what: str = ""
    finding: Finding | Failed | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Sends a sample on from a stage.

    Attributes:
        judged: the finding of the faithfulness stage, if it was asked.
        phrases: the user's own phrases of refusals, besides the built-in list.
    """

    name: str
    stage: Stage
    criterion: Criterion
    judged: Finding | None
    phrases: Sequence[str] = ()

    def decide(self, sample: Sample, reading: StageValue) -> StageDecision | None:
        """The stage's decision; None if the sample goes on to the next stage."""
        if isinstance(reading.finding, Failed):
            failed = replace(reading.finding, reason=f"at {self.name}: {reading.finding.reason}")
            return StageDecision("failed", self.name, failed)
        if reading.value is None:
            is_judged = self.name == "faithfulness" and reading.finding is not None
            return StageDecision("nothing", self.name, self._sign(None)) if is_judged else None
        if self.name in ("retrieval", "answerability") and is_refusal(sample.answer or "", self.phrases):
            return self._decide_refusal(reading.value)
        said = f"{reading.what} {reading.value:.2f}"
        if self.stage.reject is not None and reading.value < self.stage.reject:
            reason = f"rejected at {self.name}: {said} is below {self.stage.reject:.2f}"
            return StageDecision("rejected", self.name, self._sign(unscale_score(0.0, self.criterion), reason))
        if self.stage.person is not None and reading.value < self.stage.person:
            reason = f"{TO_A_PERSON} at {self.name}: {said} is below {self.stage.person:.2f}"
            return StageDecision("person", self.name, self._sign(None, reason))
        if self.stage.accept is not None and reading.value >= self.stage.accept:
            reason = f"accepted at {self.name}: {said} reaches {self.stage.accept:.2f}"
            return accept(self.criterion, self.judged, self.name, reason, reading.value)
        return None

    def _decide_refusal(self, value: float) -> StageDecision | None:
        """Decide on a refusal: right if the contexts lack the answer; if they seem to have it, a person decides."""
        if value < max(self.stage.reject or 0.0, self.stage.person or 0.0):
            shows = f"{self.name} does not show that the contexts contain an answer"
            reason = f"the answer is a refusal, and {shows}: nothing to judge"
            return StageDecision("nothing", self.name, self._sign(None, reason))
        if self.name == "retrieval":
            return None
        reason = f"{TO_A_PERSON} at {self.name}: the answer is a refusal, but the contexts may contain the answer"
        return StageDecision("person", self.name, self._sign(None, reason))

    def _sign(self, score: float | None, reason: str | None = None) -> Finding:
        found = self.judged or Finding(None)
        return replace(found, score=score, reason=reason or found.reason, decided_by=self.name)


def is_refusal(answer: str, phrases: Sequence[str] = ()) -> bool:
    """Whether an answer is short and refuses, by the built-in list or the user's own phrases."""
    return count_words(answer) <= LONGEST_REFUSAL and find_refusal(answer, phrases) is not None


def describe_routes(decisions: Sequence[StageDecision], stages: Sequence[str]) -> Note:
    """A note on how many samples were accepted, rejected and so on, and on the risk at several coverages.

    Its table has a row for each of the waterfall's stages, whether it decided something or not: the samples that
    reached it and what became of them.
    """
    total = len(decisions)
    counts = Counter(decision.outcome for decision in decisions)
    parts = [
        f"{count} {words} ({format_percent(count / total)})"
        for outcome, words in _OUTCOMES.items()
        if (count := counts[outcome])
    ]
    accepted = sorted((d.confidence for d in decisions if d.outcome == "accepted"), reverse=True)
    message = f"{count_noun(total, 'sample')}: {', '.join(parts)}"
    if accepted:
        message += f"; coverage against risk: {', '.join(_describe_risk(accepted, total))}"
    return Note("waterfall", message, count=len(accepted), table=tuple(_tabulate_stages(decisions, stages)))


_OUTCOMES: Mapping[Outcome, str] = {
    "accepted": "accepted",
    "rejected": "rejected",
    "person": TO_A_PERSON,
    "nothing": "without anything to judge",
    "failed": "failed",
}


def _tabulate_stages(decisions: Sequence[StageDecision], stages: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A header, then for each stage the samples that reached it and their outcomes, in the order of the stages."""
    outcomes = [outcome for outcome in _OUTCOMES if any(decision.outcome == outcome for decision in decisions)]
    found = Counter((decision.stage, decision.outcome) for decision in decisions)
    yield "stage", "reached", *(_OUTCOMES[outcome] for outcome in outcomes)
    left = len(decisions)
    ends = [LAST] if any(decision.stage == LAST for decision in decisions) else []
    for stage in (*stages, *ends):
        decided = [found[stage, outcome] for outcome in outcomes]
        yield stage, str(left), *map(str, decided)
        left -= sum(decided)


def _describe_risk(confidences: Sequence[float], total: int) -> Iterator[str]:
    """The risk (1 - mean confidence) of the most confident accepted samples at several coverages (shares of all)."""
    counts = dict.fromkeys(math.ceil(share * len(confidences)) for share in COVERAGES)
    for count in counts:
        yield f"{format_percent(count / total)} {1 - math.fsum(confidences[:count]) / count:.3f}"
