"""`waterfall`: checks in the order of a production system; each can accept, reject or ask for a person."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec import kernels
from rageval_spec.data.findings import Ability, Assessment, Criterion, Estimate, Failed, Finding, Reader
from rageval_spec.data.outcomes import AnyNote, Note, remark, writes_notes
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judges.shared.composed_judge import KINDS, ComposedJudge
from rageval_spec.judging import cosine_scale
from rageval_spec.judging.composition import REJECTED, TO_A_PERSON
from rageval_spec.judging.grade_scores import scale_score, unscale_score
from rageval_spec.judging.refusals import PHRASES_TEXT, REFUSES, find_refusal
from rageval_spec.judging.segments import FRAGMENT, count_words
from rageval_spec.plugin import (
    EmbeddingModel,
    Judge,
    JudgeName,
    JudgeNode,
    ModelName,
    PairModel,
    note_truncated,
    note_truncated_texts,
)
from rageval_spec.plugin.judge_identity import digest_criterion
from rageval_spec.wording import count_noun, format_percent

ANSWERABLE = Criterion(
    "answerability", "grade", "Can the question be answered from the contexts alone?", shown=("question", "contexts")
)
"""Without a scale, so that the judge grades on its own, by its own guide."""
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
)
ANSWER_FOR_QUESTION = Criterion(
    "relevance", "usefulness", "Is the answer useful to somebody who asks the question?", "answer", "question"
)


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
                hint = "write both, or null for one to disable it"
                raise ValueError(f"{lower} ({low:g}) is above {upper} ({high:g}); {hint}")
        return self

    def reads(self, sample: Sample, criterion: Criterion) -> bool:  # noqa: ARG002 - for stages that read anything
        """Whether the sample has the parts that the stage reads to assess a criterion."""
        return True


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
        description="similarity: the highest cosine, at least 0, on the scale of minilm; reranker: the highest "
        "probability (the logistic function of the logit) of a model that reads pairs and has one label; scores: the "
        "highest score that the retriever gave a context, as recorded with the answer, from 0 to 1; answers without "
        "scores go on to the next stage.",
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

    def reads(self, sample: Sample, criterion: Criterion) -> bool:  # noqa: ARG002 - asks nothing
        """Whether there are contexts and a question to compare."""
        return _has_contexts(sample)


class JudgedStage(Stage):
    """A stage that asks a judge: a criterion of its own, another one if the judge cannot grade, or the metric's."""

    graded: ClassVar[Criterion | None] = None
    compared: ClassVar[Criterion | None] = None
    judge: JudgeName

    def choose(self, judge: Judge[Any], criterion: Criterion) -> Criterion:
        """What the stage asks its judge for the metric's criterion."""
        return (self.graded if "grade" in judge.abilities else self.compared) or criterion


class AnswerabilityStage(JudgedStage):
    """Measures whether the contexts contain the answer."""

    graded = ANSWERABLE
    compared = QUESTION_IN_CONTEXTS
    person: float | None = Field(default=0.2, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(
        default="overlap",
        description="A judge that can grade is asked whether the contexts answer the question; any other judge is "
        "asked whether they mention what the question names.",
    )

    def reads(self, sample: Sample, criterion: Criterion) -> bool:  # noqa: ARG002 - the same for all
        """Whether there are contexts and a question to look for in them."""
        return _has_contexts(sample)


class FaithfulnessStage(JudgedStage):
    """Asks a judge the metric's own criterion."""

    reject: float | None = Field(default=0.27, ge=0, le=1, description="Reject answers below this value.")
    person: float | None = Field(default=0.63, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(default="overlap", description="The judge of the metric's own criterion.")


class RelevanceStage(JudgedStage):
    """Measures whether the answer addresses the question."""

    graded = RELEVANT
    compared = ANSWER_FOR_QUESTION
    person: float | None = Field(default=0.3, ge=0, le=1, description="Leave answers below this value to a person.")
    judge: JudgeName = Field(
        default="embedding",
        description="A judge that can grade, or one that can assess usefulness. The latter is not asked about answers "
        "of a few words, which resemble no question.",
    )

    def reads(self, sample: Sample, criterion: Criterion) -> bool:
        """Whether there are a question and an answer, which is long enough to be compared with it."""
        answer = (sample.answer or "").strip()
        is_short = criterion == ANSWER_FOR_QUESTION and count_words(answer) < FRAGMENT
        return bool(answer and sample.question.strip()) and not is_short


def _has_contexts(sample: Sample) -> bool:
    return sample.contexts is not None and bool(sample.question.strip())


class WaterfallNode(JudgeNode):
    """Runs four checks in the order of a production system; each can accept or reject a sample or call for a person."""

    retrieval: RetrievalStage | None = Field(
        default=RetrievalStage(), description="Whether a context is similar to the question; null skips this check."
    )
    answerability: AnswerabilityStage | None = Field(
        default=AnswerabilityStage(), description="Whether the contexts contain the answer; null skips this check."
    )
    faithfulness: FaithfulnessStage = Field(
        default=FaithfulnessStage(), description="The metric's own criterion, such as faithfulness."
    )
    relevance: RelevanceStage | None = Field(
        default=RelevanceStage(), description="Whether the answer addresses the question; null skips this check."
    )
    phrases: tuple[str, ...] = Field(default=(), description=PHRASES_TEXT)


COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the accepted samples, most confident first, at which a note gives the risk."""
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
            reason = f"{REJECTED} {self.name}: {said} is below {self.stage.reject:.2f}"
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
            reason = f"{REFUSES}, and {shows}: nothing to judge"
            return StageDecision("nothing", self.name, self._sign(None, reason))
        if self.name == "retrieval":
            return None
        reason = f"{TO_A_PERSON} at {self.name}: the answer is a refusal, but the contexts may contain the answer"
        return StageDecision("person", self.name, self._sign(None, reason))

    def _sign(self, score: float | None, reason: str | None = None) -> Finding:
        found = self.judged or Finding(None)
        return replace(found, score=score, reason=reason or found.reason, decided_by=self.name)


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


_ROUNDING = 1e-6
"""How far rounding can move a cosine above 1."""
_SILENT = StageValue(None)
_Read = Callable[["Sequence[Sample]", list[AnyNote]], Sequence[StageValue]]


class Waterfall(ComposedJudge[WaterfallNode]):
    """Puts each sample through the stages until one decides.

    At each stage a sample has a value in [0, 1]. Below `reject` it is rejected: it scores 0, or the scale's lowest
    grade. Below `person` it goes to a person: it has no score, and the reason says at which stage and why. From
    `accept` up it is accepted at once. A sample that passes all stages is accepted with the score of the faithfulness
    stage, whose judge assesses the metric's own criterion; a sample that is accepted earlier scores 1.

    A short answer that says that it does not know goes to a person if the contexts seem to contain the answer;
    otherwise there is nothing to judge. If the contexts are unknown, the first two stages have no value. A note has
    what each stage decided, and the risk (1 - mean confidence) of the most confident accepted samples at several
    coverages. The confidence is the faithfulness judge's, or its score if it gives none.
    """

    known_as = ("stages", "stepwise", "pipeline")
    later_keys = frozenset({"phrases"})

    @property
    def version(self) -> str:  # type: ignore[override]
        return cosine_scale.name_version("3", self._find_compared())

    @property
    def names(self) -> Sequence[str]:
        return tuple(dict.fromkeys(stage.judge for _, stage in self._list_judged()))

    @property
    def scale(self) -> tuple[float, float] | None:
        judge = self.context.judges.get(self.node.faithfulness.judge)
        return None if judge is None else judge.scale

    @property
    def abilities(self) -> frozenset[Ability]:
        able = self.context.judge(self.node.faithfulness.judge).abilities
        return able - {"usefulness"}

    @property
    def decides_refusals(self) -> bool:
        """True if one of the first two stages is enabled, because these look at the contexts."""
        return self.node.retrieval is not None or self.node.answerability is not None

    @property
    def holds_back(self) -> bool:
        """True if a stage has a bound below which it rejects an answer or sends it to a person."""
        stages = [getattr(self.node, name) for name in STAGES]
        return any(one is not None and (one.reject is not None or one.person is not None) for one in stages)

    def check(self) -> str | None:
        if (retrieval := self.node.retrieval) is not None and retrieval.model is not None:
            kind: Any = EmbeddingModel if retrieval.by == "similarity" else PairModel
            self.context.model(retrieval.model, kind)
        given = {name: getattr(self.node, name) for name in STAGES}
        own = [name for name, stage in given.items() if stage is not None and "person" in stage.model_fields_set]
        if self.node.calibrated is not None and own:
            return f"{own[0]} has its own 'person', which the calibration would replace; remove one"
        if not KINDS & self.abilities:
            return f"faithfulness.judge: '{self.node.faithfulness.judge}' can neither assess support nor grade"
        for name, one in self._list_judged():
            able = self.context.judge(one.judge).abilities
            if one.compared is not None and not {"grade", one.compared.kind} & able:
                return f"{name}.judge: '{one.judge}' can neither grade nor assess {one.compared.kind}"
        return None

    def read_stages(self, criterion: Criterion, samples: Sequence[Sample]) -> Mapping[str, Sequence[float | None]]:
        """Every sample's value at every stage, as if no stage decided anything, by the stage.

        A value is None if the stage lets the sample pass without one. It is -1 where the sample could not be sent
        whatever the bounds for a person are: it failed, is a refusal, has nothing to judge, or is rejected. A sample
        that a stage accepts at once has no value at the stages after it.
        """
        values: dict[str, list[float | None]] = {name: [None] * len(samples) for name, _, _ in self._stages(criterion)}
        for name, place, reading, decision in self._pass(criterion, samples, [], sends=False):
            if name in values:
                is_over = decision is not None and decision.outcome != "accepted"
                values[name][place] = -1.0 if is_over else reading.value
        return values

    def _pass(
        self, criterion: Criterion, samples: Sequence[Sample], notes: list[AnyNote], *, sends: bool = True
    ) -> Iterator[tuple[str, int, StageValue, StageDecision | None]]:
        """Each stage with each sample that reaches it: the sample's place, its value and the decision.

        A sample that passes all stages is accepted at the last one. Without `sends` no stage asks for a person.
        """
        judged: dict[int, Finding] = {}
        waiting = [*range(len(samples))]
        for name, given, read in self._stages(criterion):
            stage = given if sends else given.model_copy(update={"person": None})
            asked, waiting = waiting, []
            readings = read([samples[place] for place in asked], notes) if asked else ()
            for place, reading in zip(asked, readings, strict=True):
                if name == "faithfulness" and isinstance(reading.finding, Finding):
                    judged[place] = reading.finding
                route = Route(name, stage, criterion, judged.get(place), self.node.phrases)
                decision = route.decide(samples[place], reading)
                if decision is None:
                    waiting.append(place)
                yield name, place, reading, decision
        for place in waiting:
            last = LAST
            yield last, place, _SILENT, accept(criterion, judged.get(place), last, None)

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Pass each stage's judge the criteria that it will get."""
        self.expected = criteria
        asked: dict[str, list[Criterion]] = {name: [] for name in self.names}
        for _, stage in self._list_judged():
            judge = self.context.judge(stage.judge)
            asked[stage.judge] += criteria if stage.graded is None else [stage.choose(judge, stage.graded)]
        for name, wanted in asked.items():
            self.context.judge(name).expect(wanted)

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample, `decided_by` the stage that decided."""
        if criterion.kind == "usefulness":
            raise self._cannot("assess usefulness", samples)
        notes: list[AnyNote] = []
        passed = self._pass(criterion, samples, notes)
        decisions = {place: decision for _, place, _, decision in passed if decision is not None}
        routed = [decisions[place] for place in range(len(samples))]
        if samples:
            facts = [(one.outcome, one.stage, one.confidence) for one in routed]
            stages = tuple(name for name, _, _ in self._stages(criterion))
            notes.append(remark(describe_routes, facts, stages, criterion.name))
        return Assessment([decision.finding for decision in routed], tuple(notes))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """An upper bound on the calls still to be made: the calls of all stages if every sample passes."""
        estimate = self._estimate_comparing(samples)
        for _, stage in self._list_judged():
            judge = self.context.judge(stage.judge)
            asked = stage.choose(judge, criterion)
            estimate |= judge.estimate(asked, [sample for sample in samples if stage.reads(sample, asked)])
        return estimate

    def _find_compared(self) -> EmbeddingModel[Any] | None:
        """The model that compares contexts with questions, if one does."""
        stage = self.node.retrieval
        found = self.context.models.get(stage.model or "") if stage is not None and stage.by == "similarity" else None
        return found if isinstance(found, EmbeddingModel) else None

    def _estimate_comparing(self, samples: Sequence[Sample]) -> Estimate:
        model, asked = self._find_compared(), [sample for sample in samples if _has_contexts(sample)]
        contexts = [context for sample in asked for context in sample.contexts or () if context.strip()]
        if model is None or not contexts:
            return Estimate()
        reads = model.foresee("embed", contexts), model.foresee("embed", [one.question for one in asked], "query")
        scale = cosine_scale.foresee_scale(model, "query", "document")
        return Estimate(reads={Reader(model.context.name, "text"): {**reads[0], **reads[1], **scale}})

    def _stages(self, criterion: Criterion) -> Iterator[tuple[str, Stage, _Read]]:
        if self.node.retrieval is not None:
            yield "retrieval", self._calibrate("retrieval", criterion), self._read_retrieval
        for name, stage in self._list_judged():
            judge = self.context.judge(stage.judge)
            reading = partial(_read_judge, name, stage, judge, stage.choose(judge, criterion))
            yield name, self._calibrate(name, criterion), reading

    def _calibrate(self, name: str, criterion: Criterion) -> Stage:
        """The stage, with the bound for a person that the calibration has for it."""
        stage: Stage = getattr(self.node, name)
        entry = self.calibrations.get(digest_criterion(criterion))
        bounds = {one.step: one for one in entry.steps} if entry is not None else {}
        return stage.model_copy(update={"person": bounds[name].person}) if name in bounds else stage

    def _list_judged(self) -> list[tuple[str, JudgedStage]]:
        """The stages that ask a judge, in their order; those that are disabled are missing."""
        return [(name, stage) for name in STAGES if isinstance(stage := getattr(self.node, name), JudgedStage)]

    def _read_retrieval(self, samples: Sequence[Sample], notes: list[AnyNote]) -> Sequence[StageValue]:
        """Each sample's highest similarity of a context, or the reranker's probability, or the retriever's score."""
        stage = self.node.retrieval
        assert stage is not None, "its stage is asked"
        if stage.model is None:
            has_scores = any(sample.scores for sample in samples)
            notes.append(remark(_write_lack_of_scores, [has_scores], self.context.name))
            return [self._read_scores(sample) for sample in samples]
        readable = [sample for sample in samples if _has_contexts(sample)]
        pairs = [(s.question, context) for s in readable for context in s.contexts or () if context.strip()]
        measure = self._compare if stage.by == "similarity" else self._rerank
        values = iter(measure(stage.model, pairs, notes) if pairs else ())
        what = "top similarity" if stage.by == "similarity" else "top probability"
        return [
            StageValue(max((next(values) for c in s.contexts or () if c.strip()), default=0.0), what)
            if _has_contexts(s)
            else _SILENT
            for s in samples
        ]

    def _read_scores(self, sample: Sample) -> StageValue:
        """The highest of the recorded scores of the contexts; no value without any."""
        if not (known := [score for score in sample.scores or () if score is not None]):
            return _SILENT
        top = max(known)
        if top > 1 + _ROUNDING:
            told = f"the retriever's scores are not between 0 and 1: {top:g} in {sample.query_id}"
            hint = "use 'by: similarity' or 'by: reranker'"
            raise UsageError(f"judges.{self.context.name}.retrieval: {told}; {hint}")
        return StageValue(min(max(top, 0.0), 1.0), "top score")

    def _compare(self, name: str, pairs: Sequence[tuple[str, str]], notes: list[AnyNote]) -> Sequence[float]:
        model = self.context.model(name, EmbeddingModel)  # type: ignore[type-abstract]
        rows, columns = ({text: at for at, text in enumerate(dict.fromkeys(side))} for side in zip(*pairs, strict=True))
        questions, contexts = model.embed(list(rows), "query"), model.embed(list(columns), "document")
        asked = questions.vectors[[rows[question] for question, _ in pairs]]
        found = contexts.vectors[[columns[context] for _, context in pairs]]
        notes += note_truncated_texts(list(columns), contexts.truncated.tolist(), name, "context")
        try:
            cosines = kernels.cosine_rows(asked, found, threads=self.context.threads)
        except ValueError as error:
            raise DataError(f"models.{name}: {error}") from error
        scale = cosine_scale.find_scale(model, "query", "document")
        notes += cosine_scale.explain_scale(model, scale)
        return [max(0.0, cosine) for cosine in scale.read(cosines).tolist()]

    def _rerank(self, name: str, pairs: Sequence[tuple[str, str]], notes: list[AnyNote]) -> Sequence[float]:
        model = self.context.model(name, PairModel)  # type: ignore[type-abstract]
        if len(model.labels) != 1:
            where, labels = f"judges.{self.context.name}.retrieval.model", ", ".join(model.labels) or "none"
            raise UsageError(f"{where}: a reranker has one label, but the model '{name}' has {labels}")
        answer = model.score(pairs)
        notes += note_truncated(int(answer.truncated.sum()), len(pairs), name, "pair")
        return [0.5 * (1 + math.tanh(0.5 * logit)) for logit in answer.logits[:, 0].tolist()]


def _read_judge(
    name: str,
    stage: JudgedStage,
    judge: Judge[Any],
    criterion: Criterion,
    samples: Sequence[Sample],
    notes: list[AnyNote],
) -> Sequence[StageValue]:
    readable = [stage.reads(sample, criterion) for sample in samples]
    asked = [sample for sample, is_read in zip(samples, readable, strict=True) if is_read]
    assessment = judge.assess(criterion, asked) if asked else Assessment(())
    notes += assessment.notes
    found = iter(assessment.findings)
    values = []
    for is_read in readable:
        finding = next(found) if is_read else None
        score = getattr(finding, "score", None)
        value = None if score is None else scale_score(score, criterion)
        values.append(StageValue(value, name, finding) if is_read else _SILENT)
    return values


def is_refusal(answer: str, phrases: Sequence[str] = ()) -> bool:
    """Whether an answer is short and refuses, by the built-in list or the user's own phrases."""
    return count_words(answer) <= LONGEST_REFUSAL and find_refusal(answer, phrases) is not None


@writes_notes
def _write_lack_of_scores(has_scores: Iterable[bool], name: str) -> Iterator[Note]:
    if not any(has_scores):
        message = (
            f"judges.{name}.retrieval: no answer has scores of its contexts, so 'by: scores' decides nothing; record a "
            "score for each context, or use 'by: similarity'"
        )
        yield Note("no_scores", message, level="warning")


Routed: TypeAlias = "tuple[Outcome, str, float]"
"""The outcome of a sample, the stage that decided it, and the confidence of an accepted one."""


@writes_notes
def describe_routes(routed: Sequence[Routed], stages: Sequence[str], _criterion: str = "") -> Iterator[Note]:
    """A note on how many samples were accepted, rejected and so on, and on the risk at several coverages.

    Its table has a row for each of the waterfall's stages, whether it decided something or not: the samples that
    reached it and what became of them.
    """
    total = len(routed)
    counts = Counter(outcome for outcome, _, _ in routed)
    parts = [
        f"{count} {words} ({format_percent(count / total)})"
        for outcome, words in _OUTCOMES.items()
        if (count := counts[outcome])
    ]
    accepted = sorted((confidence for outcome, _, confidence in routed if outcome == "accepted"), reverse=True)
    message = f"{count_noun(total, 'sample')}: {', '.join(parts)}"
    if accepted:
        message += f"; coverage against risk: {', '.join(_describe_risk(accepted, total))}"
    yield Note("waterfall", message, count=len(accepted), table=tuple(_tabulate_stages(routed, stages)))


_OUTCOMES: Mapping[Outcome, str] = {
    "accepted": "accepted",
    "rejected": "rejected",
    "person": TO_A_PERSON,
    "nothing": "without anything to judge",
    "failed": "failed",
}


def _tabulate_stages(routed: Sequence[Routed], stages: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A header, then for each stage the samples that reached it and their outcomes, in the order of the stages."""
    found = Counter((stage, outcome) for outcome, stage, _ in routed)
    outcomes = [outcome for outcome in _OUTCOMES if any(outcome == one for _, one in found)]
    yield "stage", "reached", *(_OUTCOMES[outcome] for outcome in outcomes)
    left = len(routed)
    ends = [LAST] if any(stage == LAST for stage, _ in found) else []
    for stage in (*stages, *ends):
        decided = [found[stage, outcome] for outcome in outcomes]
        yield stage, str(left), *map(str, decided)
        left -= sum(decided)


def _describe_risk(confidences: Sequence[float], total: int) -> Iterator[str]:
    """The risk (1 - mean confidence) of the most confident accepted samples at several coverages (shares of all)."""
    counts = dict.fromkeys(math.ceil(share * len(confidences)) for share in COVERAGES)
    for count in counts:
        yield f"{format_percent(count / total)} {1 - math.fsum(confidences[:count]) / count:.3f}"


PLUGIN = Waterfall
