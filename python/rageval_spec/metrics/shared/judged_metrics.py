"""Base classes of answer metrics with a judge: name the judge, ask it, and turn its findings into measurements.

A metric that asks a judge one thing about each sample declares the criteria, and which samples need no judge:

    class Completeness(JudgedMetric[CompletenessNode]):
        asked = (REFERENCE_IN_ANSWER,)
        blank = (WITHOUT_REFERENCE, ("answer", Measurement.scored(0.0, EMPTY_ANSWER)))

Metrics with the same question use the same criterion, so that no judge is asked twice.

For a `RefusalAwareMetric`, an answer that only refuses claims nothing and needs no judge. `judge_each` asks whether
each context, or each claim, is useful; the judge never sees empty ones.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from rageval_spec import registry
from rageval_spec.data.evidence.nuggets import Assignment
from rageval_spec.data.findings import (
    Ability,
    Assessment,
    Claim,
    Criterion,
    Estimate,
    Failed,
    Finding,
    Questions,
    TextPart,
    is_supported,
    read_part,
    replace_texts,
)
from rageval_spec.data.outcomes import AnyNote, name_topics
from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.judging.refusals import PHRASES_TEXT, REFUSES, find_bare_refusal
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER, EMPTY_REFERENCE, NO_CONTEXTS, UNDECIDED, is_blank
from rageval_spec.plugin import AnswerMetric, Judge, JudgeName, Measured, Measurement, MetricNode
from rageval_spec.plugin.metric import DataPart
from rageval_spec.wording import count_noun, list_choices, list_names


class JudgeMetricNode(MetricNode):
    """The keys of a metric with a judge."""

    judge: JudgeName = Field(
        description="The judge that decides: a name under `judges:`, or a judge without required keys, such as overlap."
    )


class OptionallyJudgedNode(MetricNode):
    """The keys of a metric with a judge or a rule, as `by` says."""

    judge: JudgeName | None = Field(
        default=None,
        description="The judge that decides if `by` asks for one: a name under `judges:`, or a judge's word.",
    )


J = TypeVar("J", bound=JudgeMetricNode | OptionallyJudgedNode)

TASKS: Mapping[Ability, str] = {
    "support": "decide which claims of a text are supported",
    "usefulness": "decide which of several texts are useful",
    "grade": "grade a sample as a whole",
    "claims": "split a text into claims",
    "questions": "write questions that an answer would answer",
    "entities": "list the named entities in a text",
}
"""The abilities in words."""


class JudgedMetric(AnswerMetric[J]):
    """A metric that asks a judge about all samples at once, except those that need no judge.

    With one criterion the judge's score is the value. A metric that asks more, or computes its value differently,
    overrides `measure` or `ask`.
    """

    always: ClassVar[Sequence[str]] = (
        "failure: the judge failed, or its reply could not be read: status error with the reason and the reply, no "
        "value",
    )
    able: ClassVar[Sequence[frozenset[Ability]]] = (frozenset({"support"}),)
    """The abilities that the judge needs if it is asked: all of one of these sets."""
    asked: ClassVar[Sequence[Criterion]] = ()
    """The criteria, where they do not depend on the node or the judge."""
    ways: ClassVar[Sequence[Sequence[Criterion]]] = ()
    """The criteria for each set of `able`, where they depend on the judge: the first set that it has counts."""
    blank: ClassVar[Sequence[tuple[TextPart, Measurement]]] = ()
    """What a sample gets without a judge if a part of it is blank; the first such part decides."""

    @property
    def asks_judge(self) -> bool:
        """Whether the node's keys leave the decision to a judge."""
        return True

    @property
    def judge(self) -> Judge[Any]:
        """The judge that the metric asks; an error if the node names none, or one that does not exist."""
        if self.node.judge is None:
            raise UsageError(f"{self.context.name}: this metric needs a judge; name one with 'judge:'")
        return self.context.judge(self.node.judge)

    def judges(self) -> Sequence[Judge[Any]]:
        return (self.judge,) if self.needed_abilities() else ()

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """The abilities that the judge needs: all of one of these sets. Empty if the metric asks no judge."""
        return self.able if self.asks_judge else ()

    def criteria(self) -> Sequence[Criterion]:
        if not self.asks_judge or not self.ways:
            return self.asked if self.asks_judge else ()
        return next((way for able, way in zip(self.able, self.ways, strict=True) if self.can(*able)), self.ways[-1])

    def check(self) -> str | None:
        needed = self.needed_abilities()
        if not needed and self.node.judge is None:
            return None
        if not needed:
            return f"these keys need no judge; remove 'judge: {self.node.judge}'"
        try:
            judge = self.judge
        except UsageError as error:
            return str(error)
        if not any(one <= judge.abilities for one in needed):
            return explain_inability(judge, needed)
        return self._explain_value(judge)

    def _explain_value(self, judge: Judge[Any]) -> str | None:
        """Why a judge that gives several values has none for the metric; None if it has one."""
        name, values = judge.context.name, judge.values
        chosen = getattr(self.node, "value", None)
        if not values:
            return f"the judge '{name}' gives one value; remove 'value: {chosen}'" if chosen else None
        lacking = next((one.name for one in self.criteria() if one.name not in values), None)
        if lacking is None:
            return None
        hint = suggest(lacking, [*values]) or f"write {{use: rubric, judge: {name}, value: {next(iter(values))}}}"
        wanted = "" if chosen is None and hasattr(self.node, "value") else f", and no '{lacking}'"
        return f"the judge '{name}' gives {list_names([*values])}{wanted}; {hint}"

    @property
    def reads(self) -> frozenset[DataPart]:
        """The data that holds what the metric needs, and the references if the judge's own question shows them."""
        judge = self.context.judges.get(self.node.judge or "")
        return super().reads | ({"references"} if judge is not None and judge.shows_references else set())

    def can(self, *abilities: Ability) -> bool:
        """Whether the judge has all of these abilities."""
        return {*abilities} <= self.judge.abilities

    def settle(self, sample: Sample) -> Measurement | None:
        """The measurement of a sample that needs no judge; None if the judge must be asked."""
        return self.settle_blank(sample)

    def settle_blank(self, sample: Sample) -> Measurement | None:
        """What `blank` gives the sample."""
        return next((found for part, found in self.blank if is_blank(getattr(sample, part))), None)

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Settle the samples that need no judge, and ask the judge about the others at once."""
        settled = [self.settle(sample) for sample in samples]
        waiting = [sample for sample, known in zip(samples, settled, strict=True) if known is None]
        asked = self.ask(waiting) if waiting else Measured(())
        rest = iter(self._sign(asked.measurements))
        return Measured([next(rest) if known is None else known for known in settled], asked.notes)

    def _sign(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """The measurements, with the judge and the judged parts in their details, so that each claim has its place."""
        if self.node.judge is None:
            return measurements
        criterion, judge = next(iter(self.criteria()), None), self.judge.context.name
        return [sign_details(measurement, criterion, judge) for measurement in measurements]

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        return self.estimate_asking([sample for sample in samples if self.settle(sample) is None])

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Have the judge assess every criterion, and measure each sample by its findings."""
        found, notes = self.assess(samples)
        measured = [
            measure_failure(failed)
            if (failed := first_failure(findings))
            else self.measure([one for one in findings if isinstance(one, Finding)])
            for findings in found
        ]
        return Measured(measured, notes)

    def assess(self, samples: Sequence[Sample]) -> tuple[list[tuple[Finding | Failed, ...]], tuple[AnyNote, ...]]:
        """For each sample the judge's findings, one per criterion; and the notes on them."""
        criteria = self.criteria()
        assessments = [self.judge.assess(criterion, samples) for criterion in criteria]
        found = zip(*(assessment.findings for assessment in assessments), strict=True)
        return [*found], collect_notes(criteria, assessments)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `ask` would make and whose replies are not stored yet. Makes no call."""
        return super().estimate(samples)

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        """The measurement of a sample from the judge's findings, one per criterion."""
        return measure_finding(findings[0])

    def write_questions(self, samples: Sequence[Sample], count: int) -> list[Questions | Failed]:
        """The questions that the judge writes for each sample's answer; about equal answers it is asked once."""
        answers = _list_answers(samples)
        written = dict(zip(answers, self.judge.questions(answers, count), strict=True))
        return [written[sample.answer or ""] for sample in samples]

    def estimate_questions(self, samples: Sequence[Sample], count: int) -> Estimate:
        """The calls of `write_questions`."""
        return self.judge.estimate_writing("questions", [("", answer) for answer in _list_answers(samples)], count)


class ConditionalJudge(JudgedMetric[J]):
    """A metric whose key `by` says whether it asks a judge."""

    by_judge: ClassVar[str] = "judge"
    """The value of `by` that asks one."""

    @property
    def asks_judge(self) -> bool:
        return bool(self.node.by == self.by_judge)  # type: ignore[union-attr]


def _list_answers(samples: Sequence[Sample]) -> list[str]:
    return list(dict.fromkeys(sample.answer or "" for sample in samples))


def explain_inability(judge: Judge[Any], needed: Sequence[frozenset[Ability]]) -> str:
    """Which needed ability the judge lacks, and which judges have it; considers the first sufficient set."""
    task = TASKS[min(needed[0] - judge.abilities)]
    able = dict.fromkeys(word for abilities in needed for word in list_able_judges(abilities))
    return f"the judge '{judge.context.name}' (use: {judge.node.use}) cannot {task}; use {list_choices([*able])}"


def list_able_judges(abilities: frozenset[Ability]) -> list[str]:
    """The sorted words of installed judges that declare all of these abilities, without judges that fail to import."""
    able: list[str] = []
    for word in registry.words("judges"):
        with suppress(UsageError):
            if abilities <= registry.load("judges", word).declared:
                able.append(word)
    return able


SHOWN = 200
"""Characters of a context that details show; the answers have all of it, and every metric would store it again."""


_PARTIAL_FROM = 0.5


def first_failure(findings: Sequence[object]) -> Failed | None:
    """The first failure; None if there is none."""
    return next((finding for finding in findings if isinstance(finding, Failed)), None)


def collect_notes(criteria: Sequence[Criterion], assessments: Sequence[Assessment]) -> tuple[AnyNote, ...]:
    """The distinct notes of one assessment per criterion; a note that not all have names its criterion's texts."""
    topics = [f"{one.text} against {one.against}".replace("_", " ") for one in criteria]
    return name_topics([(topic, one.notes) for topic, one in zip(topics, assessments, strict=True)])


def is_met(claim: Claim) -> bool:
    """Whether a claim is supported, or a context useful: by its verdict, or by its score if it has none."""
    return is_supported(claim.verdict, claim.score)


def label_support(claims: Sequence[Claim]) -> Assignment:
    """How far a statement is supported, by its claims: in full if all are, in part if some are.

    A claim that is not supported counts as in part too if its score is at least 0.5, unless it is contradicted.
    """
    met = [is_met(claim) for claim in claims]
    if met and all(met):
        return "support"
    has_part = any(claim.score >= _PARTIAL_FROM and claim.verdict != "contradicted" for claim in claims)
    return "partial_support" if any(met) or has_part else "not_support"


def measure_finding(finding: Finding | Failed, **more: Any) -> Measurement:
    """The judge's score as the value; unscorable without a score, and an error if the judge failed.

    The details begin with `more`.
    """
    if isinstance(finding, Failed):
        return measure_failure(finding)
    details = {**more, **describe_finding(finding)}
    if finding.score is None:
        return Measurement.unscorable(finding.reason or UNDECIDED, details)
    return Measurement.scored(finding.score, finding.reason, details)


def measure_failure(failed: Failed) -> Measurement:
    """An error with its reason, and the judge's raw reply if there is one."""
    if failed.is_unfinished:
        return Measurement.unfinished(failed.reason)
    return Measurement.error(failed.reason, None if failed.raw is None else {"raw": failed.raw})


def describe_finding(finding: Finding) -> dict[str, Any]:
    """The details of a value: `score`, `claims`, `decided_by`, `confidence`, `apart`; unknown ones are left out."""
    claims = {"claims": describe_claims(finding.claims)}
    return {**_known(finding, "score"), **claims, **_known(finding, "decided_by", "confidence", "apart")}


def sign_details(measurement: Measurement, criterion: Criterion | None, judge: str) -> Measurement:
    """The measurement with the judge in its details, and with the `part` that was judged and what it was judged
    `against` where the details hold claims. Details without findings stay as they are.
    """
    details = measurement.details
    if details is None:
        return measurement
    ways = [details.get(key) for key in ("answer", "reference")]
    if not (_holds_claims(details) or any(isinstance(way, dict) and way.get("claims") for way in ways)):
        return measurement
    parts = {"part": criterion.text, "against": criterion.against} if criterion and _holds_claims(details) else {}
    return replace(measurement, details={**details, **parts, "judge": judge})


def _holds_claims(details: Mapping[str, Any]) -> bool:
    return any(isinstance(found := details.get(key), list) and found for key in ("claims", "contexts"))


def describe_claims(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Claims in JSON types, without what is unknown."""
    return [
        _known(claim, "text", "verdict", "score", "start", "end", "source", "evidence", "reason") for claim in claims
    ]


def _known(found: Finding | Claim, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(found, name)) is not None}


def describe_contexts(finding: Finding) -> dict[str, Any]:
    """As `describe_finding`, for a finding on contexts: `contexts` in their order, with long texts cut."""
    details = describe_finding(finding)
    contexts = [{**claim, "text": _cut(claim["text"])} for claim in details.pop("claims")]
    return {**details, "contexts": [{key: one[key] for key in one if key not in ("start", "end")} for one in contexts]}


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"


class RefusalNode(JudgeMetricNode):
    """The keys of a metric for which an answer that only refuses claims nothing."""

    phrases: tuple[str, ...] = Field(
        default=(), description=f"{PHRASES_TEXT} Write them whole: any other words beside a phrase count as a claim."
    )


R = TypeVar("R", bound=RefusalNode)


class RefusalAwareMetric(JudgedMetric[R]):
    """A metric that settles answers that only refuse, by the built-in list and the node's own phrases."""

    version = "2"
    hidden = ("phrases",)
    later_keys = frozenset({"phrases"})

    def explain_refusal(self, answer: str | None) -> str | None:
        """Why an answer claims nothing, if it only refuses; else None."""
        phrase = find_bare_refusal(answer or "", self.node.phrases)
        return None if phrase is None else f"{REFUSES}: '{phrase}'"

    def settle(self, sample: Sample) -> Measurement | None:
        """No value for an empty answer, or for one that only refuses, unless the judge decides refusals itself."""
        if found := self.settle_blank(sample):
            return found
        if is_blank(sample.answer):
            return Measurement.unscorable(EMPTY_ANSWER)
        reason = None if self.judge.decides_refusals else self.explain_refusal(sample.answer)
        return None if reason is None else Measurement.unscorable(reason)


def judge_each(judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
    """Ask a judge which texts (`criterion.text`) are useful; each finding has a claim per text, in their order.

    Empty texts are not useful, and the judge does not see them. A sample whose texts did not all get a verdict has
    failed. Without texts, or if the judge has nothing to compare with, a finding has no score and says why.
    """
    texts = [read_part(sample, criterion.text) for sample in samples]
    asked = [index for index, found in enumerate(texts) if not is_blank(found)]
    shown = [_without_empty(samples[index], criterion) for index in asked]
    assessment = judge.assess(criterion, shown) if asked else Assessment(())
    found = dict(zip(asked, assessment.findings, strict=True))
    findings = [_align(one, found.get(index)) for index, one in enumerate(texts)]
    return Assessment(findings, assessment.notes)


def _without_empty(sample: Sample, criterion: Criterion) -> Sample:
    """The sample without its empty texts; the same object if it has none."""
    texts = read_part(sample, criterion.text)
    kept = tuple(text for text in texts if text.strip())
    return sample if len(kept) == len(texts) else replace_texts(sample, criterion, kept)


def _align(texts: Sequence[str], finding: Finding | Failed | None) -> Finding | Failed:
    """The finding with a claim for each text, including empty ones, which count as 0 in the score."""
    if isinstance(finding, Failed):
        return finding
    if finding is None:
        finding = Finding(0.0 if texts else None, reason=NO_CONTEXTS)
    if finding.score is None:
        return finding
    wanted = sum(1 for text in texts if text.strip())
    if len(finding.claims) != wanted:
        return Failed(f"the judge gave {count_noun(len(finding.claims), 'verdict')} on {count_noun(wanted, 'text')}")
    given = iter(finding.claims)
    empty = Claim("", 0.0, "not_enough_info", reason="the text is empty")
    claims = tuple(next(given) if text.strip() else empty for text in texts)
    return replace(finding, score=finding.score * wanted / len(texts), claims=claims)


QUESTIONS = 3
"""How many questions a judge writes for an answer, as in RAGAS. Metrics with the same number share the calls."""


def ask_about(
    name: str, kind: Literal["usefulness", "grade"], instruction: str, text: TextPart, against: TextPart = "question"
) -> Criterion:
    """A criterion whose judge sees the question and the parts that it is about."""
    return Criterion(name, kind, instruction, text, against, (*dict.fromkeys(("question", text, against)),))


def _ask_support(name: str, instruction: str, text: TextPart, against: TextPart) -> Criterion:
    return Criterion(name, "support", instruction, text, against, ("question", text, against))


ANSWER_IN_CONTEXTS = _ask_support(
    "faithfulness", "Is everything that the answer says supported by the contexts?", "answer", "contexts"
)
REFERENCE_IN_CONTEXTS = _ask_support(
    "context_recall", "Is everything that the reference answer says supported by the contexts?", "reference", "contexts"
)
ANSWER_IN_REFERENCE = _ask_support(
    "correctness", "Is everything that the answer says supported by the reference answer?", "answer", "reference"
)
REFERENCE_IN_ANSWER = _ask_support(
    "completeness", "Does the answer say everything that the reference answer says?", "reference", "answer"
)

WITHOUT_REFERENCE: tuple[TextPart, Measurement] = ("reference", Measurement.unscorable(EMPTY_REFERENCE))
