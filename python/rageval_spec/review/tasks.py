"""Tasks for reviewers: everything that a person needs to judge an answer, built from an evaluation.

All exports (CSV, XLSX, Label Studio, the page) are made from a `ReviewSheet`; `to_payload` has it in JSON types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rageval_spec.data.labels import digest_answer
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.review.criteria import GENERAL, ReviewCriterion

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

Key: TypeAlias = tuple[str, str, str]
"""Dataset, system and query id."""
KEY = ("dataset", "system", "query_id")
FORMAT = "rageval-review"
VERSION = 1
_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class ChosenAnswer:
    """An answer that was chosen for review, why in words (`random`, `low`), and how likely that was, in (0, 1]."""

    key: Key
    reasons: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """A text that the system answered from; `doc_id` is None if the system does not say."""

    text: str
    doc_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewClaim:
    """A claim that the judge of a metric found, by its number within the metric's value, and what the judge says.

    `part` is `answer`, `reference`, `contexts` or `claims`; `start` and `end` are Unicode code points of that text.
    """

    metric: str
    number: int
    text: str
    part: str = "answer"
    start: int | None = None
    end: int | None = None
    verdict: str | None = None
    score: float | None = None
    reason: str | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """One answer for people to judge.

    `claims` are those of all criteria's metrics, in the order of the metrics, and `judged` has the judge's value of
    each metric. Of `references`, each is correct by itself. `reasons` and `probability` are as of `ChosenAnswer`.
    """

    dataset: str
    system: str
    query_id: str
    question: str
    answer: str
    contexts: tuple[ReviewContext, ...] = ()
    references: tuple[str, ...] = ()
    claims: tuple[ReviewClaim, ...] = ()
    judged: Mapping[str, float | None] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    probability: float = 1.0
    slices: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Dataset, system and query id."""
        return self.dataset, self.system, self.query_id

    @property
    def answer_digest(self) -> str:
        """The digest of the answer, which its labels name."""
        return digest_answer(self.answer)

    @property
    def reason(self) -> str:
        """The reasons as labels name them: `low + unsure`."""
        return " + ".join(self.reasons)

    @property
    def id(self) -> str:
        """A name for the task that is the same in all exports; an answer with another text has another."""
        return digest_json([*self.key, self.answer_digest])

    def claims_of(self, criterion: ReviewCriterion) -> tuple[ReviewClaim, ...]:
        """The claims that a criterion asks about; none if it asks about the whole answer."""
        if criterion.kind != "claims":
            return ()
        return tuple(claim for claim in self.claims if claim.metric == criterion.name)


@dataclass(frozen=True)
class ReviewSheet:
    """Tasks, in an order that says nothing about the judge, with what people are asked about them.

    `results` is the folder or label that the user named. Without an `annotator`, people enter who judges. What the
    judge says is hidden by default, because people follow it; the page shows it to those who ask, and notes that they
    saw it.

    Of the `subject` "documents", a task's answer is a document's text and its system the document's id. Of "nuggets",
    it is the JSON list of a question's nuggets, and the label is that list as it was and as it is now.
    """

    name: str
    results: str
    spec_digest: str
    tasks: tuple[ReviewTask, ...]
    criteria: tuple[ReviewCriterion, ...]
    guidelines: str = GENERAL
    annotator: str = ""
    shows_judge: bool = False
    subject: Literal["answers", "documents", "nuggets"] = "answers"

    @property
    def digest(self) -> str:
        """A digest of the tasks and criteria; the sheets of several annotators of the same tasks share it."""
        return digest_json([[task.id for task in self.tasks], [(one.name, one.scale) for one in self.criteria]])

    def questions_of(self, task: ReviewTask) -> Iterator[tuple[ReviewCriterion, ReviewClaim | None]]:
        """What is asked about a task, one by one: a criterion, and the claim if it asks claim by claim."""
        for criterion in self.criteria:
            if criterion.kind == "claims":
                yield from ((criterion, claim) for claim in task.claims_of(criterion))
            else:
                yield criterion, None


def digest_json(value: object) -> str:
    """A digest of a value of JSON types."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def build_sheet(
    evaluation: Evaluation,
    chosen: Sequence[ChosenAnswer],
    criteria: Sequence[ReviewCriterion],
    *,
    results: str = "",
    guidelines: str = GENERAL,
    annotator: str = "",
    shows_judge: bool = False,
) -> ReviewSheet:
    """The sheet of the chosen answers that the evaluation has, in their order. Only these samples are read in full.

    Raises DataError: the results leave out the texts of questions or answers, or no task has a claim for a criterion
    that asks claim by claim.
    """
    tasks = tuple(build_tasks(evaluation, chosen, [criterion.name for criterion in criteria]))
    for criterion in criteria:
        if criterion.kind == "claims" and tasks and not any(task.claims_of(criterion) for task in tasks):
            raise DataError(
                f"the values of {criterion.name} hold no claims, so people cannot judge it claim by claim; "
                f"ask for a whole answer: --ask {criterion.name}=yes_no"
            )
    return ReviewSheet(
        evaluation.name,
        results,
        evaluation.provenance.spec_digest,
        tasks,
        tuple(criteria),
        guidelines,
        annotator,
        shows_judge,
    )


def build_tasks(evaluation: Evaluation, chosen: Sequence[ChosenAnswer], metrics: Sequence[str]) -> Iterator[ReviewTask]:
    """The tasks of the chosen answers, with claims and values of these metrics. Raises DataError: a text is absent."""
    wanted = pl.DataFrame([one.key for one in chosen], schema=dict.fromkeys(KEY, pl.String), orient="row")
    samples = evaluation.find_samples(wanted)
    claims = _group_claims(evaluation, wanted, samples, metrics)
    values = evaluation.values.filter(pl.col("metric").is_in(list(metrics))).join(wanted, on=KEY, how="semi")
    judged: dict[Key, dict[str, float | None]] = {}
    for *key, metric, value in values.select(*KEY, "metric", "value").iter_rows():
        judged.setdefault(tuple(key), {})[metric] = value
    rows = {tuple(row[name] for name in KEY): row for row in samples.iter_rows(named=True)}
    for one in chosen:
        if (row := rows.get(one.key)) is not None:
            of = judged.get(one.key, {})
            yield _make(row, one, claims.get(one.key, []), {name: of[name] for name in metrics if name in of})


def _group_claims(
    evaluation: Evaluation, wanted: pl.DataFrame, samples: pl.DataFrame, metrics: Sequence[str]
) -> dict[Key, list[ReviewClaim]]:
    from rageval_spec.data.findings import stream_findings

    values = evaluation.values.filter(pl.col("metric").is_in(list(metrics))).join(wanted, on=KEY, how="semi")
    found: dict[Key, list[ReviewClaim]] = {}
    for block in stream_findings(values, metrics, iter([samples])):
        for row in block.iter_rows(named=True):
            known = {name: row[name] for name in ("metric", "start", "end", "verdict", "score", "reason", "evidence")}
            claim = ReviewClaim(number=row["claim"], text=row["text"] or "", part=row["part"] or "answer", **known)
            found.setdefault((row["dataset"], row["system"], row["query_id"]), []).append(claim)
    return found


def _make(
    row: Mapping[str, Any], chosen: ChosenAnswer, claims: Iterable[ReviewClaim], judged: Mapping[str, float | None]
) -> ReviewTask:
    if row["answer"] is None or row["question"] is None:
        raise DataError(
            f"the results do not hold the {'answer' if row['answer'] is None else 'question'} of {row['query_id']}, "
            "so nobody can judge it; run the spec again without leaving its text out"
        )
    texts, ids = row["contexts"] or (), row["context_ids"] or ()
    return ReviewTask(
        *chosen.key,
        question=row["question"],
        answer=row["answer"],
        contexts=tuple(ReviewContext(text or "", ids[at] if at < len(ids) else None) for at, text in enumerate(texts)),
        references=tuple(row["references"] or ()),
        claims=tuple(claims),
        judged=judged,
        reasons=chosen.reasons,
        probability=chosen.probability,
        slices=tuple(row.get("slices") or ()),
    )


def to_payload(sheet: ReviewSheet) -> dict[str, Any]:
    """The sheet in JSON types, as the page embeds it. The page hides what the judge says until somebody asks.

    That is `judged` and `verdicts` (of all claims) of a task; its `claims` are those that a criterion asks about. A
    file of labels that is made from it carries over `reason` and `probability` of each task, so that means stay
    unbiased.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        **_pick(
            sheet, ("digest", "subject", "name", "results", "spec_digest", "annotator", "guidelines", "shows_judge")
        ),
        "criteria": [
            _pick(one, ("name", "kind", "scale", "choices", "low", "high", "question", "guidelines"))
            for one in sheet.criteria
        ],
        "tasks": [_describe(task, sheet) for task in sheet.tasks],
    }


def _describe(task: ReviewTask, sheet: ReviewSheet) -> dict[str, Any]:
    return {
        **_pick(task, ("id", *KEY, "question", "answer", "answer_digest")),
        "contexts": [_pick(one, ("text", "doc_id")) for one in task.contexts],
        "references": list(task.references),
        "claims": [_pick(claim, _ASKED) for _, claim in sheet.questions_of(task) if claim is not None],
        **_pick(task, ("reason", "probability", "slices")),
        "judged": dict(task.judged),
        "verdicts": [_pick(claim, _TOLD) for claim in task.claims],
    }


_ASKED = ("metric", "number", "text", "part", "start", "end")
_TOLD = ("metric", "text", "verdict", "score", "reason", "evidence")


def _pick(found: object, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(found, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
