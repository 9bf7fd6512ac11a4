"""Criteria, the questions that metrics put to judges, and findings, the judges' answers.

What judges decided about each claim is a table with one row for each claim:

| column | |
|---|---|
| `dataset, system, metric, query_id` | the value that the claim belongs to |
| `claim` | the claim's number within the value, from 0 |
| `part` | the text that was judged: `answer`, `reference`, `contexts` or `claims` (the answer's statements) |
| `text` | the claim, or the context |
| `start, end` | its characters in the judged text; null if they are not known |
| `verdict, score` | the judge's decision; null if it gives only the other |
| `source` | the number, from 0, of the context or reference that decided; the context itself if contexts are judged |
| `doc_id` | that context's document; null if it is not known, or if the source is not a context |
| `evidence, evidence_start` | the passage that decided, and its first character in the source |
| `reason` | the judge's explanation |
| `judge, step` | the judge that the metric asked, and the one that decided if that judge asks others |

The rows are read from the details of the values, so that evaluations that were saved have them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from rageval_spec.data.outcomes import AnyNote, Note, write_notes
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.libraries import pl

K = TypeVar("K")
V = TypeVar("V")

Ability = Literal["support", "usefulness", "grade", "claims", "questions", "entities"]
"""What a judge can do.

`support`, `usefulness` and `grade` are the kinds of criteria. The other three are texts that chat models write for
metrics: the claims of a text, the questions that an answer would answer, and the entities that a text names.
"""
Verdict = Literal["supported", "contradicted", "not_enough_info"]
TextPart = Literal["question", "answer", "reference", "contexts", "reference_contexts", "claims", "steps", "goal"]
"""A part of a sample that holds text. `claims` is set only in samples to which a metric has added claims."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question that a metric puts to a judge, for each sample.

    Attributes:
        name: the name that prompts and reports use, for example `faithfulness`.
        kind: `support`: are the claims of `text` supported by `against`? `usefulness`: is each part of `text` (each
            context or claim) useful for `against`? `grade`: how well does the whole sample meet `instruction`?
        instruction: the question as a full sentence, for judges that read it: "Is everything that the answer says
            supported by the contexts?" A high grade means yes.
        text, against: the part that is judged, whole or piece by piece, and the part that must support it or need it.
        shown: the parts of the sample that a grading judge sees.
        scale: the lowest and the highest grade, both included; None lets the judge choose.
        guide: the meaning of some grades.
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
        """The text to judge; several contexts or claims are joined by blank lines."""
        return "\n\n".join(read_part(sample, self.text))

    def sources_of(self, sample: Sample) -> tuple[str, ...]:
        """The texts to judge it against."""
        return read_part(sample, self.against)


def read_part(sample: Sample, part: TextPart) -> tuple[str, ...]:
    """The texts of one part of a sample: one text, several contexts or claims, or none."""
    if part in ("contexts", "reference_contexts", "claims"):
        texts: tuple[str, ...] | None = getattr(sample, part)
        return texts or ()
    if part == "steps":
        from rageval_spec.data.traces import describe_steps

        return ("no step was taken",) if sample.steps == () else tuple(describe_steps(sample.steps or ()))
    if part == "goal":
        return tuple(str(goal) for goal in [(sample.columns or {}).get("goal")] if goal)
    text = sample.reference if part == "reference" else sample.question if part == "question" else sample.answer
    return () if text is None else (text,)


def replace_texts(sample: Sample, criterion: Criterion, texts: tuple[str, ...]) -> Sample:
    """A copy of the sample in which `texts` replace the contexts or claims that the criterion judges one by one."""
    return replace(sample, claims=texts) if criterion.text == "claims" else replace(sample, contexts=texts)


SUPPORTED_FROM = 0.5
"""If a judge gives scores without verdicts, a claim with at least this score is supported."""


def is_supported(verdict: Verdict | str | None, score: float) -> bool:
    """Whether a claim is supported, or a context useful: by its verdict, or by its score if it has none."""
    return score >= SUPPORTED_FROM if verdict is None else verdict == "supported"


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a text (or one context), and what a judge decided about it.

    Attributes:
        score: how well the claim is supported, or how useful it is, in [0, 1].
        verdict: `supported` also means "useful"; None if the judge gives only scores.
        start, end: the characters of the judged text that the claim was taken from; None if unknown.
        source, evidence: the text that decided the score, from 0 among those it is judged against, and its passage.
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
        score: the share of supported claims, or the mean of their scores if the judge gives only scores, in [0, 1]. A
            grade is on the criterion's scale, if it has one. None if there is nothing to judge; `reason` then says why.
        claims: the claims that make up the score; for usefulness, one for each context, in order.
        decided_by: the judge that decided, if there were several.
        confidence: how sure the judge is, in [0, 1]; None if it does not say.
        apart: how far the score lies from that of the judge that was asked before and was unsure, from 0 to 1.
        claimless: True if the judge read the text and found no claim in it. Any other finding without a score is
            undecided.
    """

    score: float | None
    claims: tuple[Claim, ...] = ()
    reason: str | None = None
    decided_by: str | None = None
    confidence: float | None = None
    claimless: bool = False
    apart: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A sample that a judge could not assess: the call failed, or no reply could be parsed. It never becomes a value.

    Attributes:
        raw: the unparsed reply, if there was one.
        is_unfinished: True if a limit or an interrupt stopped the evaluation before a reply came, which is no error.
    """

    reason: str
    raw: str | None = None
    is_unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Assessment:
    """A judge's findings, in the order of the samples, with notes, which need not name dataset, system or metric."""

    findings: Sequence[Finding | Failed]
    notes: tuple[AnyNote, ...] = ()

    @property
    def written_notes(self) -> tuple[Note, ...]:
        """The notes, also those that are not written before all parts of a step are together."""
        return write_notes(self.notes)


class Questions(NamedTuple):
    """The questions that an answer would answer, and whether the answer is noncommittal ("I don't know")."""

    questions: tuple[str, ...]
    noncommittal: bool


class Tokens(NamedTuple):
    """The input and output tokens that a call is expected to use."""

    input: int
    output: int


class Reader(NamedTuple):
    """What reads texts on this machine: the name of a model, or of a judge without one, and what it reads."""

    name: str
    unit: Literal["text", "pair", "sample"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What has not been asked or read yet. Equal keys are one, so what two metrics share is counted once.

    Attributes:
        calls: for each model's name, the key and the expected tokens of each call.
        reads: what is read on this machine: for each reader, the key and the approximate tokens of each text or pair.
    """

    calls: Mapping[str, Mapping[str, Tokens]] = field(default_factory=dict)
    reads: Mapping[Reader, Mapping[str, int]] = field(default_factory=dict)

    def __or__(self, other: Estimate) -> Estimate:
        """What is in either estimate."""
        return Estimate(_unite(self.calls, other.calls), _unite(self.reads, other.reads))


def _unite(first: Mapping[K, Mapping[str, V]], second: Mapping[K, Mapping[str, V]]) -> dict[K, Mapping[str, V]]:
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in {**first, **second}}


FINDINGS = (
    "dataset", "system", "metric", "query_id", "claim", "part", "text", "start", "end", "verdict", "score", "source",
    "doc_id", "evidence", "evidence_start", "reason", "judge", "step",
)  # fmt: skip
_JUDGED: Mapping[str, tuple[str, str]] = {
    "context_recall": ("reference", "contexts"),
    "completeness": ("reference", "answer"),
    "conciseness": ("claims", "question"),
    "noise_sensitivity": ("answer", "reference"),
}
"""The judged part and its source in details that do not name them, by the metric; `_USUAL` for any other metric."""
_USUAL = ("answer", "contexts")
_BOTH_WAYS = (("answer", "reference"), ("reference", "answer"))
"""The parts of details that hold claims of the answer and of the reference, and what each is judged against."""
_KEYS = ("dataset", "system", "query_id")
_TEXTS = ("question", "answer", "references", "contexts", "reference_contexts")
_DECISION = frozenset({"score", "verdict"})
_BLOCK = 4096


class _Judged(NamedTuple):
    """Claims of one part of a sample. `details` is what the judge said about them as a whole."""

    claims: Sequence[Mapping[str, Any]]
    part: str
    against: str
    details: Mapping[str, Any]


def empty_findings() -> pl.DataFrame:
    """A findings table without rows, with all columns of `FINDINGS` and their types."""
    numbers = dict.fromkeys(("claim", "start", "end", "source", "evidence_start"), pl.Int64)
    kinds: dict[str, Any] = {**numbers, "score": pl.Float64}
    return pl.DataFrame(schema={name: kinds.get(name, pl.String) for name in FINDINGS})


def stream_findings(
    values: pl.DataFrame, metrics: Sequence[str], samples: Iterator[pl.DataFrame]
) -> Iterator[pl.DataFrame]:
    """The findings in blocks, in the order of the samples, then of `metrics`, then of the claims.

    Values without a sample come last. Their findings have no `doc_id` and no `evidence_start`.
    """
    told = _find_claims(values, metrics)
    seen = []
    for block in samples if told.height else ():
        wanted = [*_KEYS, *_TEXTS, "context_ids"]
        found = block.select(wanted).join(told, on=_KEYS, how="inner", maintain_order="left_right")
        if found.height:
            seen.append(found["row"])
            yield _tabulate(_add_details(found, values))
    alone = told.filter(~pl.col("row").is_in(pl.concat(seen).implode())) if seen else told
    for block in alone.iter_slices(_BLOCK):
        yield _tabulate(_add_details(block, values))


def list_findings(value: Mapping[str, Any], sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The findings of one value, as rows with the columns `FINDINGS`.

    `sample` is the row of the samples table that the value belongs to; without it, findings have no `doc_id` and no
    `evidence_start`.
    """
    if value.get("details") is None:
        return
    for row in _list_rows({**sample, **value}):
        finding = dict(zip(FINDINGS, row, strict=True))
        score = finding["score"]
        yield finding | {"score": None if score is None else float(score)}


def _find_claims(values: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The rows of values whose details hold claims, in the order of `metrics`: their keys, their number as `row`, and
    their `place` among the values. The details stay where they are: they are most of a large evaluation.
    """
    if "details" not in values.columns:
        return values.select(*_KEYS, "metric").clear()
    details = pl.col("details")
    holds_claims = details.str.contains(r'"(claims|contexts)": ?\[\{')
    order = pl.col("metric").replace_strict(list(metrics), range(len(metrics)), default=len(metrics))
    told = values.lazy().with_row_index("place").filter(holds_claims).select(*_KEYS, "metric", "place")
    return told.sort(order, maintain_order=True).with_row_index("row").collect()


def _add_details(claims: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    return claims.with_columns(values["details"].gather(claims["place"]))


def _tabulate(values: pl.DataFrame) -> pl.DataFrame:
    """The findings of rows of values, each of which can have the texts of its sample."""
    rows = [row for value in values.iter_rows(named=True) for row in _list_rows(value)]
    empty = empty_findings()
    return pl.DataFrame(rows, schema=empty.schema, orient="row")


def _list_rows(value: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    number = 0
    details = json.loads(value["details"])
    for judged in _list_judged(details, value["metric"]) if isinstance(details, dict) else ():
        judge = details.get("judge")
        for place, claim in enumerate(judged.claims):
            source = place if judged.part == "contexts" else claim.get("source")
            in_contexts = "contexts" in (judged.part, judged.against)
            yield (
                *(value[key] for key in ("dataset", "system", "metric", "query_id")),
                number,
                judged.part,
                *(claim.get(key) for key in ("text", "start", "end", "verdict", "score")),
                source,
                _pick(value.get("context_ids"), source) if in_contexts else None,
                claim.get("evidence"),
                _find_evidence(claim.get("evidence"), _read_source(value, judged, source)),
                claim.get("reason"),
                judge,
                judged.details.get("decided_by"),
            )
            number += 1


def _list_judged(details: Mapping[str, Any], metric: str) -> Iterator[_Judged]:
    """The parts of a value's details that hold claims."""
    usual = _JUDGED.get(metric, _USUAL)
    part, against = details.get("part", usual[0]), details.get("against", usual[1])
    if _are_claims(details.get("claims")):
        yield _Judged(details["claims"], part, against, details)
    if _are_claims(details.get("contexts")):
        yield _Judged(details["contexts"], "contexts", details.get("against", "question"), details)
    for part, against in _BOTH_WAYS:
        found = details.get(part)
        if isinstance(found, dict) and _are_claims(found.get("claims")):
            yield _Judged(found["claims"], part, against, found)


def _are_claims(found: object) -> bool:
    """Whether these are claims, which have a verdict or a score. Compared documents have neither."""
    return isinstance(found, list) and all(isinstance(one, dict) and _DECISION & one.keys() for one in found)


def _read_source(value: Mapping[str, Any], judged: _Judged, source: int | None) -> str | None:
    """The text that a claim was judged against."""
    if judged.against in ("answer", "question"):
        text: str | None = value.get(judged.against)
        return text
    part = {"reference": "references"}.get(judged.against, judged.against)
    return _pick(value.get(part), source)


def _pick(texts: Sequence[str] | None, place: int | None) -> str | None:
    return texts[place] if texts is not None and place is not None and 0 <= place < len(texts) else None


def _find_evidence(evidence: str | None, source: str | None) -> int | None:
    start = source.find(evidence) if source and evidence else -1
    return None if start < 0 else start
