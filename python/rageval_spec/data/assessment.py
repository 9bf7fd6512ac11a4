"""What judges are asked, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Note
    from rageval_spec.data.sample import Sample

Ability = Literal["support", "usefulness", "grade", "claims", "questions", "entities"]
"""What a judge can do: the three kinds of criteria, and what chat models write for metrics: a text's claims, questions
that an answer would answer, the named things of a text."""
Verdict = Literal["supported", "contradicted", "not_enough_info"]
TextPart = Literal["question", "answer", "reference", "contexts", "reference_contexts", "claims"]
"""A part of a sample that is text, or several texts. Only samples that a metric gave claims have `claims`."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question that a metric puts to a judge, for each sample.

    Attributes:
        name: in prompts and reports: `faithfulness`.
        kind: `support`: are the claims of `text` supported by `against`? `usefulness`: is each of `text` (contexts,
            or claims) useful for `against`? `grade`: how far does the sample as a whole meet `instruction`?
        instruction: what is asked, as a whole sentence in the imperative or as a question, for judges that read:
            "Is everything that the answer says supported by the contexts?" A high grade means yes.
        text: what is split into claims, or is judged piece by piece.
        against: what it must be found in, or be useful for.
        shown: the parts of the sample that a judge sees who grades it as a whole.
        scale: lowest and highest grade, both included; None leaves it to the judge.
        guide: what some grades mean.
    """

    name: str
    kind: Literal["support", "usefulness", "grade"]
    instruction: str
    text: TextPart = "answer"
    against: TextPart = "contexts"
    shown: tuple[TextPart, ...] = ("question", "answer", "contexts")
    scale: tuple[float, float] | None = None
    guide: Mapping[str, str] = field(default_factory=dict)

    def text_of(self, sample: Sample) -> str:
        """The text that is judged; contexts are joined by blank lines."""
        return "\n\n".join(read_part(sample, self.text))

    def sources_of(self, sample: Sample) -> tuple[str, ...]:
        """The texts that it is judged against."""
        return read_part(sample, self.against)


def read_part(sample: Sample, part: TextPart) -> tuple[str, ...]:
    """The texts of one part of a sample: one, several contexts or claims, or none."""
    if part in ("contexts", "reference_contexts", "claims"):
        texts: tuple[str, ...] | None = getattr(sample, part)
        return texts or ()
    text = sample.reference if part == "reference" else sample.question if part == "question" else sample.answer
    return () if text is None else (text,)


def replace_texts(sample: Sample, criterion: Criterion, texts: tuple[str, ...]) -> Sample:
    """The sample with other texts (contexts or claims) in the place of those that the criterion judges one by one."""
    return replace(sample, claims=texts) if criterion.text == "claims" else replace(sample, contexts=texts)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a text (or one context), and what a judge says of it.

    Attributes:
        score: in [0, 1]: how far it is supported, or how useful it is.
        verdict: `supported` stands for "useful" too; None where a judge gives scores alone.
        start, end: which characters of the judged text it is, or comes from; None where that is not known.
        source: which of the texts that it is judged against (from 0) decided.
        evidence: the words there that decided.
        reason: why, in the judge's words.
    """

    text: str
    score: float
    verdict: Verdict | None = None
    start: int | None = None
    end: int | None = None
    source: int | None = None
    evidence: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A judge's answer for one sample.

    Attributes:
        score: in [0, 1] for support and usefulness: the share of claims that are supported, or the mean of their scores
            where a judge gives scores alone; a grade is on the criterion's scale, or in [0, 1] where it has none. None
            where there is nothing to judge, and `reason` says why.
        claims: what the score was made of; for usefulness one for each context, in order.
        decided_by: which of several judges decided.
        confidence: in [0, 1]: how sure the judge is; None where it does not say.
        claimless: the judge has read the text, and it makes no claim. Any other finding without a score is undecided.
    """

    score: float | None
    claims: tuple[Claim, ...] = ()
    reason: str | None = None
    decided_by: str | None = None
    confidence: float | None = None
    claimless: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A sample of which a judge could say nothing: the call failed, or no reply could be read. Never a value.

    Attributes:
        reason: why, for a reader.
        raw: the reply as it came, where there was one.
        is_unfinished: the evaluation stopped before a reply came, because of a limit or an interrupt. Such a question
            is not an error of the model.
    """

    reason: str
    raw: str | None = None
    is_unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """A judge's answers, in the order of the samples, and remarks on all of them together.

    The notes need name neither dataset nor system nor metric.
    """

    findings: Sequence[Finding | Failed]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions that an answer would answer, and whether the answer is noncommittal ("I don't know")."""

    questions: tuple[str, ...]
    noncommittal: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a call is expected to take: tokens in and out."""

    input: int
    output: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls that are yet to be made, by the name of the model: each call's key and its tokens.

    Calls with one key are one call: what two metrics share is counted once.
    """

    calls: Mapping[str, Mapping[str, Tokens]] = field(default_factory=dict)

    def __or__(self, other: Estimate) -> Estimate:
        """All calls of both."""
        models = {**self.calls, **other.calls}
        return Estimate({name: {**self.calls.get(name, {}), **other.calls.get(name, {})} for name in models})
