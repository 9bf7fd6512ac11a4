"""What the metrics of answers share: naming a judge, asking it, and turning what it finds into measurements.

A file of `metrics/` that asks a judge one thing of each sample says what it asks, and which samples need no judge:

    class Faithfulness(JudgedMetric[FaithfulnessNode]):
        def criteria(self) -> Sequence[Criterion]:
            return (ANSWER_IN_CONTEXTS,)

Metrics that ask the same use the same criterion, so that no judge is asked twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from rageval_spec.data.assessment import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding
from rageval_spec.data.evaluation import Note
from rageval_spec.errors import UsageError
from rageval_spec.judging.refusals import find_bare_refusal
from rageval_spec.plugin import (
    AnswerMetric,
    Context,
    EmbeddingModel,
    Judge,
    JudgeName,
    Measured,
    Measurement,
    MetricNode,
    Role,
)
from rageval_spec.plugin.names import list_references
from rageval_spec.wording import count_noun, list_choices

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

QUESTIONS = 3
"""How many questions are made up of an answer: RAGAS's number. Metrics that take the same number share the calls."""
SHOWN = 200
"""How many characters of a context details have: all of it is among the answers, and would be kept for each metric."""
SUPPORTED_FROM = 0.5
"""From which score on a claim counts as supported where a judge gives scores without verdicts."""

ANSWER_IN_CONTEXTS = Criterion(
    "faithfulness",
    "support",
    "Is everything that the answer says supported by the contexts?",
    text="answer",
    against="contexts",
    shown=("question", "answer", "contexts"),
)
REFERENCE_IN_CONTEXTS = Criterion(
    "context_recall",
    "support",
    "Is everything that the reference answer says supported by the contexts?",
    text="reference",
    against="contexts",
    shown=("question", "reference", "contexts"),
)
ANSWER_IN_REFERENCE = Criterion(
    "correctness",
    "support",
    "Is everything that the answer says supported by the reference answer?",
    text="answer",
    against="reference",
    shown=("question", "answer", "reference"),
)
REFERENCE_IN_ANSWER = Criterion(
    "completeness",
    "support",
    "Does the answer say everything that the reference answer says?",
    text="reference",
    against="answer",
    shown=("question", "reference", "answer"),
)

EMPTY_ANSWER = "the answer is empty"
EMPTY_REFERENCE = "the reference is empty"
UNDECIDED = "the judge found nothing to judge"
NO_CONTEXTS = "there are no contexts, or only empty ones"

FAILED_JUDGE = "the judge failed, or its reply cannot be read: status error with the reason and the reply, no value"
FIRST_REFERENCE = "the first one is compared with"


class JudgedNode(MetricNode):
    """A node of a metric that a judge decides."""

    judge: JudgeName = Field(
        description="Who decides: a block under `judges:`, or a judge that needs no keys, such as overlap."
    )


class OptionallyJudgedNode(MetricNode):
    """A node of a metric that a judge decides, or a rule (`by`)."""

    judge: JudgeName | None = Field(
        default=None, description="Who decides where `by` leaves it to a judge: a block under `judges:`, or its word."
    )


J = TypeVar("J", bound=JudgedNode | OptionallyJudgedNode)

_ABLE: Mapping[Ability, tuple[str, tuple[str, ...]]] = {
    "support": ("say which claims of a text are supported", ("claims", "overlap", "embedding", "nli")),
    "usefulness": ("say which of several texts are useful", ("claims", "overlap", "embedding")),
    "grade": ("grade a sample as a whole", ("grade", "choice", "binary", "scores")),
    "claims": ("split a text into claims", ("claims", "overlap", "embedding", "nli")),
    "questions": ("make up questions that an answer would answer", ("claims",)),
    "entities": ("list the named things in a text", ("claims", "overlap")),
}
"""What an ability is in words, and the judges that have it."""


def name_metric(node: MetricNode, hidden: Sequence[str] = ()) -> str:
    """A node as a metric's name: its word, and the keys that are not at their default: `factual_correctness(mode=f1)`.

    Names of judges and models are left out, as are `hidden` keys.
    """
    left_out = {"use", "as", *hidden, *(found.path[0] for found in list_references(node))}
    fields = node.model_dump(exclude_defaults=True, by_alias=True)
    parameters = ",".join(f"{key}={_show(value)}" for key, value in sorted(fields.items()) if key not in left_out)
    return node.use + (f"({parameters})" if parameters else "")


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "+".join(map(_show, value))
    return str(value)


class JudgedMetric(AnswerMetric[J]):
    """A metric that asks a judge of all samples at once, those excepted that need none.

    With one criterion the judge's score is the value; a metric that asks more, or counts otherwise, has its own
    `measure` or `ask`.
    """

    hidden: Sequence[str] = ()
    """Keys that are not part of its name."""

    @property
    def name(self) -> str:
        """Its word, and the keys that are not at their default."""
        return name_metric(self.node, self.hidden)

    @property
    def judge(self) -> Judge[Any]:
        """Whom it asks.

        Raises:
            UsageError: its node names none, or one that is not there.
        """
        if self.node.judge is None:
            raise UsageError(f"{self.context.name}: it needs a judge; name one with 'judge:'")
        return self.context.judge(self.node.judge)

    def judges(self) -> Sequence[Judge[Any]]:
        """The judge that its node names, if a judge is asked at all."""
        return (self.judge,) if self.needed_abilities() else ()

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """What its judge must be able to do: all of one of these sets; nothing where no judge is asked."""
        return (frozenset[Ability]({"support"}),)

    def check(self) -> str | None:
        """Whether the judge is there where one is asked, and able to do what is asked of it."""
        needed = self.needed_abilities()
        if not needed and self.node.judge is None:
            return None
        if not needed:
            return f"no judge is asked with these keys; leave out 'judge: {self.node.judge}'"
        try:
            judge = self.judge
        except UsageError as error:
            return str(error)
        return None if any(one <= judge.abilities for one in needed) else explain_inability(judge, needed)

    def can(self, *abilities: Ability) -> bool:
        """Whether the judge has all of these abilities."""
        return {*abilities} <= self.judge.abilities

    def settle(self, sample: Sample) -> Measurement | None:  # noqa: ARG002 - for metrics that know such samples
        """What is known without asking anybody; None where the judge must be asked."""
        return None

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Settle what needs no judge, and ask of the rest at once."""
        settled = [self.settle(sample) for sample in samples]
        waiting = [sample for sample, known in zip(samples, settled, strict=True) if known is None]
        asked = self.ask(waiting) if waiting else Measured(())
        rest = iter(asked.measurements)
        return Measured([next(rest) if known is None else known for known in settled], asked.notes)

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls for the samples that are not settled."""
        return self.estimate_asking([sample for sample in samples if self.settle(sample) is None])

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Have every criterion assessed, and measure each sample by its findings."""
        criteria = self.criteria()
        assessments = [self.judge.assess(criterion, samples) for criterion in criteria]
        found = zip(*(assessment.findings for assessment in assessments), strict=True)
        measurements = [
            measure_failure(failed) if (failed := first_failure(findings)) else self.measure(_only(findings))
            for findings in found
        ]
        return Measured(measurements, collect_notes(criteria, assessments))

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `ask` would make and that are not answered yet; makes none."""
        return super().estimate(samples)

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        """The measurement of a sample of which a judge found this, one finding a criterion."""
        return measure_finding(findings[0])


class ConditionalJudge(JudgedMetric[J]):
    """A metric that asks a judge only where its keys say so (`by: judge`)."""

    @property
    @abstractmethod
    def asks_judge(self) -> bool:
        """Whether its keys leave the decision to a judge."""

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """As `able_to`, where a judge is asked."""
        return self.able_to() if self.asks_judge else ()

    def able_to(self) -> Sequence[frozenset[Ability]]:
        """What the judge must be able to do where it is asked: all of one of these sets."""
        return super().needed_abilities()


def explain_inability(judge: Judge[Any], needed: Sequence[frozenset[Ability]]) -> str:
    """What the judge lacks of the first thing that would do, and which judges have any that would."""
    task, _ = _ABLE[min(needed[0] - judge.abilities)]
    able = dict.fromkeys(
        word
        for abilities in needed
        for word in _ABLE[min(abilities)][1]
        if all(word in _ABLE[ability][1] for ability in abilities)
    )
    return f"the judge '{judge.context.name}' (use: {judge.node.use}) cannot {task}; use {list_choices([*able])}"


def _only(findings: Sequence[Finding | Failed]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if isinstance(finding, Finding))


def explain_refusal(answer: str | None) -> str | None:
    """Why an answer claims nothing, where all that it does is refuse; None elsewhere."""
    phrase = find_bare_refusal(answer or "")
    return None if phrase is None else f"the answer refuses: '{phrase}'"


def settle_refusal(sample: Sample, judge: Judge[Any]) -> Measurement | None:
    """No value where an answer is empty, or only refuses and the judge does not want to see that: it claims nothing."""
    if is_blank(sample.answer):
        return Measurement.unscorable(EMPTY_ANSWER)
    reason = None if judge.decides_refusals else explain_refusal(sample.answer)
    return None if reason is None else Measurement.unscorable(reason)


def first_failure(findings: Sequence[object]) -> Failed | None:
    """The first that failed, if any did."""
    return next((finding for finding in findings if isinstance(finding, Failed)), None)


def collect_notes(criteria: Sequence[Criterion], assessments: Sequence[Assessment]) -> tuple[Note, ...]:
    """The notes of one assessment a criterion, each once; those that not all have say of which they are."""
    shared = set(assessments[0].notes).intersection(*(one.notes for one in assessments)) if assessments else set()
    return tuple(
        dict.fromkeys(
            note if note in shared else replace(note, message=f"{_name_texts(criterion)}: {note.message}")
            for criterion, assessment in zip(criteria, assessments, strict=True)
            for note in assessment.notes
        )
    )


def _name_texts(criterion: Criterion) -> str:
    return f"{criterion.text} against {criterion.against}".replace("_", " ")


def is_met(claim: Claim) -> bool:
    """Whether a claim counts as supported (or a context as useful): by its verdict, or by its score without one."""
    return claim.score >= SUPPORTED_FROM if claim.verdict is None else claim.verdict == "supported"


def measure_findings(assessment: Assessment) -> Measured:
    """A judge's answers as measurements: score, nothing to judge, or failure."""
    return Measured([measure_finding(finding) for finding in assessment.findings], assessment.notes)


def measure_finding(finding: Finding | Failed) -> Measurement:
    """The judge's score as the value; without one the query is unscorable, and where the judge failed an error."""
    if isinstance(finding, Failed):
        return measure_failure(finding)
    details = describe_finding(finding)
    if finding.score is None:
        return Measurement.unscorable(finding.reason or UNDECIDED, details)
    return Measurement.scored(finding.score, finding.reason, details)


def measure_failure(failed: Failed) -> Measurement:
    """An error with its reason, and the reply as it came where there was one."""
    return Measurement.error(failed.reason, None if failed.raw is None else {"raw": failed.raw})


def describe_finding(finding: Finding) -> dict[str, Any]:
    """What a value was computed from: `score`, `claims`, `decided_by`, `confidence`; what is not known is left out."""
    return without_unknown(
        score=finding.score,
        claims=describe_claims(finding.claims),
        decided_by=finding.decided_by,
        confidence=finding.confidence,
    )


def describe_claims(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Claims in JSON's types: `text, verdict, score, start, end, source, evidence, reason`, as far as known."""
    return [
        without_unknown(
            text=claim.text,
            verdict=claim.verdict,
            score=claim.score,
            start=claim.start,
            end=claim.end,
            source=claim.source,
            evidence=claim.evidence,
            reason=claim.reason,
        )
        for claim in claims
    ]


def describe_contexts(finding: Finding) -> dict[str, Any]:
    """As `describe_finding` of what a judge says of contexts: `contexts` in their order, long texts cut."""
    details = describe_finding(finding)
    contexts = [{**claim, "text": _cut(claim["text"])} for claim in details.pop("claims")]
    return {**details, "contexts": [{key: one[key] for key in one if key not in ("start", "end")} for one in contexts]}


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1].rstrip() + "…"


def without_unknown(**details: Any) -> dict[str, Any]:
    """The details that are not None."""
    return {key: value for key, value in details.items() if value is not None}


def is_blank(texts: Sequence[str] | str | None) -> bool:
    """Whether there is no text, or nothing but white space in each."""
    return not texts or not any(text.strip() for text in ((texts,) if isinstance(texts, str) else texts))


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall); 0 where both are 0."""
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def judge_contexts(judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
    """Have a judge say which contexts are useful: findings with a claim for each context, in their order.

    Empty contexts are not useful, and the judge does not see them. A sample whose contexts did not all get a verdict
    has failed; without contexts, or where the judge has nothing to go by, a finding has no score and says why.
    """
    shown = [_without_empty_contexts(sample) for sample in samples]
    asked = [index for index, sample in enumerate(shown) if sample.contexts]
    assessment = judge.assess(criterion, [shown[index] for index in asked]) if asked else Assessment(())
    found = dict(zip(asked, assessment.findings, strict=True))
    findings = [_align(sample.contexts or (), found.get(index)) for index, sample in enumerate(samples)]
    return Assessment(findings, assessment.notes)


def _without_empty_contexts(sample: Sample) -> Sample:
    """The very sample where it has none."""
    contexts = sample.contexts or ()
    kept = tuple(context for context in contexts if context.strip())
    return sample if len(kept) == len(contexts) else replace(sample, contexts=kept)


def _align(contexts: Sequence[str], finding: Finding | Failed | None) -> Finding | Failed:
    """The finding with a claim for each context, empty ones included, which count 0 in the score."""
    if isinstance(finding, Failed):
        return finding
    if finding is None:
        finding = Finding(0.0 if contexts else None, reason=NO_CONTEXTS)
    if finding.score is None:
        return finding
    wanted = sum(1 for context in contexts if context.strip())
    if len(finding.claims) != wanted:
        return Failed(f"the judge gave {count_noun(len(finding.claims), 'verdict')} on {count_noun(wanted, 'text')}")
    given = iter(finding.claims)
    empty = Claim("", 0.0, "not_enough_info", reason="the text is empty")
    claims = tuple(next(given) if context.strip() else empty for context in contexts)
    return replace(finding, score=finding.score * wanted / len(contexts), claims=claims)


def find_embedding_model(context: Context, name: str) -> EmbeddingModel[Any]:
    """The embedding model of that name.

    Raises:
        UsageError: there is none, or it is of another kind.
    """
    return context.model(name, EmbeddingModel)  # type: ignore[type-abstract]


def check_embedding_model(context: Context, name: str) -> str | None:
    """Why there is no embedding model of that name; None where there is one."""
    try:
        find_embedding_model(context, name)
    except UsageError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines of pairs of texts, in their order; `Failed` where a text has no direction."""

    values: Sequence[float | Failed]
    notes: tuple[Note, ...] = ()


def compare_meanings(model: EmbeddingModel[Any], pairs: Sequence[tuple[str, str]], role: Role) -> Cosines:
    """The cosine of the embeddings of both texts of each pair, in [-1, 1]; every text is embedded once, all at once."""
    import numpy as np

    from rageval_spec import kernels

    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not texts:
        return Cosines(())
    embeddings = model.embed(texts, role)
    vectors, place = embeddings.vectors, {text: index for index, text in enumerate(texts)}
    without_direction = ~np.any(vectors, axis=1)
    values: list[float | Failed] = []
    for pair in pairs:
        lost = next((text for text in pair if without_direction[place[text]]), None)
        values.append(0.0 if lost is None else Failed(f"{model.context.name} gives no direction to {lost[:80]!r}"))
    rows = [index for index, value in enumerate(values) if not isinstance(value, Failed)]
    if rows:
        first, second = (vectors[[place[pairs[row][side]] for row in rows]] for side in (0, 1))
        for row, cosine in zip(rows, kernels.cosine_rows(first, second).tolist(), strict=True):
            values[row] = cosine
    return Cosines(values, _remark_on_cut(int(embeddings.truncated.sum()), len(texts), model.context.name))


def _remark_on_cut(cut: int, total: int, model: str) -> tuple[Note, ...]:
    if not cut:
        return ()
    is_, was = ("is", "was") if cut == 1 else ("are", "were")
    message = f"{cut} of {count_noun(total, 'text')} {is_} longer than {model} reads and {was} cut"
    return (Note("texts_truncated", message, count=cut),)
