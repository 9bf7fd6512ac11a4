"""`waterfall`: checks in the order of production, each of which may accept, reject or ask for a person."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec import kernels
from rageval_spec.data.assessment import Ability, Assessment, Criterion, Estimate, Failed, Finding
from rageval_spec.data.evaluation import Note
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judging.delegation import KINDS, ComposedJudge, scale_score, unscale_score
from rageval_spec.judging.refusals import find_refusal
from rageval_spec.judging.segments import FRAGMENT, count_words
from rageval_spec.plugin import EmbeddingModel, Judge, JudgeName, JudgeNode, ModelName, PairModel, note_truncated
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the accepted samples, the surest first, at which a note says the risk."""
LONGEST_REFUSAL = 40
"""An answer of more words says something beside that it does not know."""

ANSWERABLE = Criterion(
    "answerability",
    "grade",
    "Can the question be answered from the contexts alone?",
    shown=("question", "contexts"),
    scale=(1, 5),
)
QUESTION_IN_CONTEXTS = Criterion(
    "answerability",
    "support",
    "Do the contexts speak of everything that the question names?",
    text="question",
    against="contexts",
)
RELEVANT = Criterion(
    "relevance",
    "grade",
    "Does the answer address the question, completely and without straying from it?",
    shown=("question", "answer"),
    scale=(1, 5),
)
ANSWER_FOR_QUESTION = Criterion(
    "relevance", "usefulness", "Is the answer useful to somebody who asks the question?", "answer", "question"
)


class Stage(BaseModel):
    """What becomes of a sample by its value at a stage, in [0, 1]; what is null happens to nobody."""

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
                raise ValueError(f"{lower} ({low:g}) is above {upper} ({high:g})")
        return self


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


class WaterfallNode(JudgeNode):
    """Four checks in the order in which production makes them; what is null is left out."""

    retrieval: RetrievalStage | None = Field(
        default=RetrievalStage(), description="Whether anything near the question was found."
    )
    answerability: AnswerabilityStage | None = Field(
        default=AnswerabilityStage(), description="Whether the contexts hold the answer."
    )
    faithfulness: FaithfulnessStage = Field(
        default=FaithfulnessStage(), description="What the metric asks for, such as faithfulness."
    )
    relevance: RelevanceStage | None = Field(
        default=RelevanceStage(), description="Whether the answer addresses the question."
    )


Outcome = Literal["accepted", "rejected", "person", "nothing", "failed"]


@dataclass(frozen=True, slots=True)
class _Decision:
    """What became of a sample, and where; `confidence` is that of the accepted ones."""

    outcome: Outcome
    stage: str
    finding: Finding | Failed
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a stage found of a sample: a value in [0, 1] and its name; None where it has nothing to say."""

    value: float | None
    what: str = ""
    finding: Finding | Failed | None = None


_SILENT = _Reading(None)
_Read = Callable[["Sequence[Sample]", list[Note]], Sequence[_Reading]]


class Waterfall(ComposedJudge[WaterfallNode]):
    """Puts each sample through the stages until one decides.

    At each stage a sample has a value in [0, 1]: below `reject` it is rejected (score 0, or the scale's lowest grade),
    below `person` sent to a person (no score, and the reason says where and why), from `accept` on accepted at once.
    Whoever passes all stages is accepted with the score of the faithfulness stage, whose judge is asked the metric's
    own criterion; who is accepted before that has the score 1. A short answer that says that it does not know is sent
    to a person where the contexts seem to hold the answer, and otherwise has nothing to judge. Without contexts that
    are known, the first two stages have nothing to say. A note has what each stage decided, and the risk (1 - mean
    confidence) of the surest accepted samples at several coverages; confidence is the faithfulness judge's own or else
    its score.
    """

    node_type = WaterfallNode

    @property
    def names(self) -> Sequence[str]:
        """The judges of its stages."""
        stages = (self.node.answerability, self.node.faithfulness, self.node.relevance)
        return tuple(dict.fromkeys(stage.judge for stage in stages if stage is not None))

    @property
    def abilities(self) -> frozenset[Ability]:
        """Of the faithfulness stage's judge: support and grades, and what it can write."""
        able = self.context.judge(self.node.faithfulness.judge).abilities
        return able - {"usefulness"}

    @property
    def decides_refusals(self) -> bool:
        """Where its first two stages look at the contexts."""
        return self.node.retrieval is not None or self.node.answerability is not None

    def check(self) -> str | None:
        """Whether models and judges are of the right kinds."""
        if (retrieval := self.node.retrieval) is not None:
            kind: Any = EmbeddingModel if retrieval.by == "similarity" else PairModel
            self.context.model(retrieval.model, kind)
        stages = self._judges()
        if not KINDS & self.abilities:
            return f"faithfulness.judge: '{self.node.faithfulness.judge}' can neither assess support nor grade"
        needed: Mapping[str, Ability] = {"answerability": "support", "relevance": "usefulness"}
        for name, ability in needed.items():
            if (judge := stages.get(name)) and not {"grade", ability} & judge.abilities:
                return f"{name}.judge: '{judge.context.name}' can neither grade nor assess {ability}"
        return None

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Tell the stages' judges what each will be asked."""
        self.expected = criteria
        asked: dict[str, list[Criterion]] = {name: [] for name in self.names}
        asked[self.node.faithfulness.judge] += criteria
        for name, judge in self._judges().items():
            if name != "faithfulness":
                asked[judge.context.name].append(_stage_criterion(name, judge))
        for name, wanted in asked.items():
            self.context.judge(name).expect(wanted)

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample, `decided_by` the stage that decided.

        Raises:
            LimitError: the spec's limits allow no further call.
            UsageError: the criterion is usefulness; a model or judge is of the wrong kind.
            RagevalError: a stage can assess nothing at all.
        """
        if criterion.kind == "usefulness":
            raise self._cannot("assess usefulness", samples)
        decisions: dict[int, _Decision] = {}
        judged: dict[int, Finding] = {}
        notes: list[Note] = []
        for name, stage, read in self._stages(criterion):
            waiting = [place for place in range(len(samples)) if place not in decisions]
            readings = read([samples[place] for place in waiting], notes) if waiting else ()
            for place, reading in zip(waiting, readings, strict=True):
                if name == "faithfulness" and isinstance(reading.finding, Finding):
                    judged[place] = reading.finding
                route = _Route(name, stage, criterion, judged.get(place))
                if decision := route.decide(samples[place], reading):
                    decisions[place] = decision
        for place in range(len(samples)):
            if place not in decisions:
                decisions[place] = _accept(criterion, judged.get(place), "the last stage", None)
        if samples:
            notes.append(_remark([decisions[place] for place in range(len(samples))]))
        return Assessment([decisions[place].finding for place in range(len(samples))], tuple(dict.fromkeys(notes)))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The calls of all stages where all samples pass: at most what is yet to be asked."""
        estimate = Estimate()
        for name, judge in self._judges().items():
            asked = criterion if name == "faithfulness" else _stage_criterion(name, judge)
            estimate |= judge.estimate(asked, [sample for sample in samples if _speaks_of(name, sample, asked)])
        return estimate

    def _stages(self, criterion: Criterion) -> Iterator[tuple[str, Stage, _Read]]:
        if self.node.retrieval is not None:
            yield "retrieval", self.node.retrieval, self._read_retrieval
        for name, judge in self._judges().items():
            asked = criterion if name == "faithfulness" else _stage_criterion(name, judge)
            yield name, getattr(self.node, name), partial(_read_judge, name, judge, asked)

    def _judges(self) -> dict[str, Judge[Any]]:
        """The judges of the stages that have one, in order."""
        stages = {
            "answerability": self.node.answerability,
            "faithfulness": self.node.faithfulness,
            "relevance": self.node.relevance,
        }
        return {name: self.context.judge(stage.judge) for name, stage in stages.items() if stage is not None}

    def _read_retrieval(self, samples: Sequence[Sample], notes: list[Note]) -> Sequence[_Reading]:
        """The nearest context's similarity, or the reranker's highest probability."""
        stage = self.node.retrieval
        assert stage is not None, "its stage is asked"
        readable = [sample for sample in samples if _speaks_of("retrieval", sample)]
        pairs = [(s.question, context) for s in readable for context in s.contexts or () if context.strip()]
        measure = self._compare if stage.by == "similarity" else self._rerank
        values = iter(measure(stage.model, pairs, notes) if pairs else ())
        what = "top similarity" if stage.by == "similarity" else "top probability"
        return [
            _Reading(max((next(values) for c in s.contexts or () if c.strip()), default=0.0), what)
            if _speaks_of("retrieval", s)
            else _SILENT
            for s in samples
        ]

    def _compare(self, name: str, pairs: Sequence[tuple[str, str]], notes: list[Note]) -> Sequence[float]:
        """The cosine of each question and context."""
        model = self.context.model(name, EmbeddingModel)  # type: ignore[type-abstract]
        rows, columns = ({text: at for at, text in enumerate(dict.fromkeys(side))} for side in zip(*pairs, strict=True))
        questions, contexts = model.embed(list(rows), "query"), model.embed(list(columns), "document")
        asked = questions.vectors[[rows[question] for question, _ in pairs]]
        found = contexts.vectors[[columns[context] for _, context in pairs]]
        notes += note_truncated(int(contexts.truncated.sum()), len(columns), name, "context")
        try:
            cosines = kernels.cosine_rows(asked, found, threads=self.context.threads)
        except ValueError as error:
            raise DataError(f"models.{name}: {error}") from error
        return [max(0.0, cosine) for cosine in cosines.tolist()]

    def _rerank(self, name: str, pairs: Sequence[tuple[str, str]], notes: list[Note]) -> Sequence[float]:
        """The logistic function of each pair's logit."""
        model = self.context.model(name, PairModel)  # type: ignore[type-abstract]
        if len(model.labels) != 1:
            where, labels = f"judges.{self.context.name}.retrieval.model", ", ".join(model.labels) or "none"
            raise UsageError(f"{where}: a reranker has one label, and the model '{name}' has {labels}")
        answer = model.score(pairs)
        notes += note_truncated(int(answer.truncated.sum()), len(pairs), name, "pair")
        return [0.5 * (1 + math.tanh(0.5 * logit)) for logit in answer.logits[:, 0].tolist()]


def _stage_criterion(name: str, judge: Judge[Any]) -> Criterion:
    """What a stage asks its judge, who grades where it can."""
    grades = "grade" in judge.abilities
    if name == "answerability":
        return ANSWERABLE if grades else QUESTION_IN_CONTEXTS
    return RELEVANT if grades else ANSWER_FOR_QUESTION


def _speaks_of(name: str, sample: Sample, criterion: Criterion | None = None) -> bool:
    """Whether a stage has what it reads."""
    if name in ("retrieval", "answerability"):
        return sample.contexts is not None and bool(sample.question.strip())
    if name != "relevance":
        return True
    answer = (sample.answer or "").strip()
    is_short = criterion == ANSWER_FOR_QUESTION and count_words(answer) < FRAGMENT
    return bool(answer and sample.question.strip()) and not is_short


def _read_judge(
    name: str, judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], notes: list[Note]
) -> Sequence[_Reading]:
    readable = [_speaks_of(name, sample, criterion) for sample in samples]
    asked = [sample for sample, is_read in zip(samples, readable, strict=True) if is_read]
    assessment = judge.assess(criterion, asked) if asked else Assessment(())
    notes += assessment.notes
    found = iter(assessment.findings)
    return [_read_finding(name, criterion, next(found)) if is_read else _SILENT for is_read in readable]


def _read_finding(name: str, criterion: Criterion, finding: Finding | Failed) -> _Reading:
    score = None if isinstance(finding, Failed) else finding.score
    return _Reading(None if score is None else scale_score(score, criterion), name, finding)


@dataclass(frozen=True, slots=True)
class _Route:
    """Where a stage sends a sample; `judged` is what the faithfulness stage found, if it has been asked."""

    name: str
    stage: Stage
    criterion: Criterion
    judged: Finding | None

    def decide(self, sample: Sample, reading: _Reading) -> _Decision | None:
        """None where the sample goes on."""
        if isinstance(reading.finding, Failed):
            failed = replace(reading.finding, reason=f"at {self.name}: {reading.finding.reason}")
            return _Decision("failed", self.name, failed)
        if reading.value is None:
            is_judged = self.name == "faithfulness" and reading.finding is not None
            return _Decision("nothing", self.name, self._sign(None)) if is_judged else None
        if self.name in ("retrieval", "answerability") and is_refusal(sample.answer or ""):
            return self._decide_refusal(reading.value)
        said = f"{reading.what} {reading.value:.2f}"
        if self.stage.reject is not None and reading.value < self.stage.reject:
            reason = f"rejected at {self.name}: {said} is below {self.stage.reject:.2f}"
            return _Decision("rejected", self.name, self._sign(unscale_score(0.0, self.criterion), reason))
        if self.stage.person is not None and reading.value < self.stage.person:
            reason = f"sent to a person at {self.name}: {said} is below {self.stage.person:.2f}"
            return _Decision("person", self.name, self._sign(None, reason))
        if self.stage.accept is not None and reading.value >= self.stage.accept:
            reason = f"accepted at {self.name}: {said} reaches {self.stage.accept:.2f}"
            return _accept(self.criterion, self.judged, self.name, reason, reading.value)
        return None

    def _decide_refusal(self, value: float) -> _Decision | None:
        """To refuse is right where the contexts do not hold the answer; where they seem to, a person must decide."""
        if value < max(self.stage.reject or 0.0, self.stage.person or 0.0):
            reason = (
                f"the answer is a refusal, and at {self.name} nothing says that it could be another: nothing to judge"
            )
            return _Decision("nothing", self.name, self._sign(None, reason))
        if self.name == "retrieval":
            return None
        reason = f"sent to a person at {self.name}: the answer is a refusal, and the contexts may hold the answer"
        return _Decision("person", self.name, self._sign(None, reason))

    def _sign(self, score: float | None, reason: str | None = None) -> Finding:
        found = self.judged or Finding(None)
        return replace(found, score=score, reason=reason or found.reason, decided_by=self.name)


def _accept(
    criterion: Criterion, judged: Finding | None, stage: str, reason: str | None, value: float = 1.0
) -> _Decision:
    """With the score that the faithfulness stage gave; 1 where it was not asked any more."""
    if judged is None or judged.score is None:
        found = Finding(unscale_score(1.0, criterion), reason=reason, decided_by=stage)
        return _Decision("accepted", stage, found, value)
    confidence = scale_score(judged.score, criterion) if judged.confidence is None else judged.confidence
    found = replace(judged, reason=reason or judged.reason, decided_by=stage if reason else "faithfulness")
    return _Decision("accepted", stage, found, confidence)


def is_refusal(answer: str) -> bool:
    """Whether a short answer says that it does not know, or cannot say."""
    return count_words(answer) <= LONGEST_REFUSAL and find_refusal(answer) is not None


def _remark(decisions: Sequence[_Decision]) -> Note:
    total = len(decisions)
    parts = [_describe(decisions, outcome, words) for outcome, words in _OUTCOMES.items()]
    accepted = sorted((d.confidence for d in decisions if d.outcome == "accepted"), reverse=True)
    message = f"of {count_noun(total, 'sample')} {'; '.join(part for part in parts if part)}"
    if accepted:
        message += f"; coverage against risk: {', '.join(_describe_risk(accepted, total))}"
    return Note("waterfall", message, count=len(accepted))


_OUTCOMES: Mapping[Outcome, str] = MappingProxyType(
    {
        "accepted": "accepted",
        "rejected": "rejected",
        "person": "sent to a person",
        "nothing": "had nothing to judge",
        "failed": "failed",
    }
)


def _describe(decisions: Sequence[_Decision], outcome: Outcome, words: str) -> str:
    """`12 (24%) were rejected: 3 at retrieval, 9 at faithfulness`; empty for none."""
    stages = Counter(decision.stage for decision in decisions if decision.outcome == outcome)
    if not stages:
        return ""
    places = ", ".join(f"{count} at {stage}" for stage, count in stages.items())
    return f"{words} {stages.total()} ({format_percent(stages.total() / len(decisions))}): {places}"


def _describe_risk(confidences: Sequence[float], total: int) -> Iterator[str]:
    """The risk of the surest accepted samples: 1 less their mean confidence; coverage is their share of all."""
    counts = dict.fromkeys(math.ceil(share * len(confidences)) for share in COVERAGES)
    for count in counts:
        yield f"{format_percent(count / total)} {1 - math.fsum(confidences[:count]) / count:.3f}"


PLUGIN = Waterfall
