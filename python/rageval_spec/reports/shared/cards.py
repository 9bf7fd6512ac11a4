"""Cards: everything that a reader wants to know about one question of one system.

Commands and reports show cards; `select_cards` chooses them, worst first (`worst.py` has the order). Every text of a
card comes from a user or a model, so whoever shows it must make it harmless in their own way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.data.conversation import MESSAGES, Turn, list_until_question, read_turns
from rageval_spec.data.correction import LABEL
from rageval_spec.data.diagnosis import Cause, explain_cause
from rageval_spec.data.tables import STEPS
from rageval_spec.data.trace import Step
from rageval_spec.reading.agent_steps import load_steps
from rageval_spec.reports.shared.changes import Baseline as Baseline
from rageval_spec.reports.shared.changes import find_base_values
from rageval_spec.reports.shared.marks import Mark as Mark
from rageval_spec.reports.shared.marks import find_marks
from rageval_spec.reports.shared.worst import KEY, rank_questions
from rageval_spec.reports.shared.worst import Filter as Filter

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

Key: TypeAlias = tuple[str, str, str]
"""Dataset, system and query id."""
_Row: TypeAlias = Mapping[str, Any]
_Document: TypeAlias = tuple[str, str]
"""Dataset and document id."""
_Base: TypeAlias = tuple[float, str]
"""The value of a baseline, and its name."""


@dataclass(frozen=True, slots=True)
class ShownContext:
    """A text that the system answered from, or a document that it retrieved.

    Attributes:
        rank: its place, from 1.
        doc_id: its id in the corpus; None if the system does not say.
        score: what the retriever gave it; None if unknown.
        grade: its relevance in the qrels; None if it is not judged.
        text: None if the dataset has no corpus, or if the results hold no texts.
    """

    rank: int
    doc_id: str | None
    score: float | None
    grade: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A relevant document that is not among the contexts.

    Attributes:
        grade: its relevance in the qrels, above 0.
        text: None if the results do not hold it, because it is among no question's contexts.
        rank: its place in the system's run, from 1, if it was retrieved below the shown documents; None if it was not
            retrieved, or if that is not known.
    """

    doc_id: str
    grade: int
    text: str | None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class CardValue:
    """What one metric says about the question.

    Attributes:
        value: None unless `status` is "scored".
        status: "scored", "unscorable" (the question cannot have a value) or "error" (computing it failed).
        reason: why there is no value, or what decided it; None if there is nothing to say.
        baseline: the baseline's value for this question; None without one.
        change: `value - baseline`; None without either.
        band: what the value means in words, if the evaluation has a scale for the metric: "good".
        is_worse: whether the change is for the worse; None without a baseline, or if the change is too small to count.
        against: the name of the baseline: a label, a results folder or another system; None without one.
        label: what people say of the answer, on the metric's scale; None if nobody judged it.
    """

    metric: str
    value: float | None
    status: str
    reason: str | None
    baseline: float | None = None
    change: float | None = None
    band: str | None = None
    is_worse: bool | None = None
    against: str | None = None
    label: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One question of one system.

    Attributes:
        question: the question's text; "" if the results do not hold it.
        status: "answered", "failed" (the system gave no answer, see `error`), "unfinished" (the evaluation stopped
            before the system was asked) or "retrieved" (the system only retrieves).
        answer: the system's text; "" if it wrote nothing, None if it gave no answer.
        error: why there is no answer.
        marks: what judges decided about the claims of the answer, supported ones too, in the order of their places.
        contexts: the texts that the answer was written from, or the first retrieved documents, best first.
        missing: the relevant documents that are not among the contexts, most relevant first; empty if the ids of the
            contexts are not known.
        references: the gold answers, each correct by itself.
        columns: the other columns of the questions' file.
        slices: the names of the slices that the question belongs to.
        values: one for each metric that the system has, in the order of the spec.
        cause: why the question went wrong (`data.diagnosis.Cause`); None if the results have no diagnosis.
        cause_reason: the values that decided the cause, in words; None without a cause.
        history: the turns of the conversation before the question, oldest first.
        steps: what an agent did for the answer, in order.
        seconds, input_tokens, output_tokens, cost: what the answer took; None if unknown. The cost is in US dollars.
    """

    dataset: str
    system: str
    query_id: str
    question: str
    status: str
    answer: str | None
    error: str | None
    marks: tuple[Mark, ...] = ()
    contexts: tuple[ShownContext, ...] = ()
    missing: tuple[Missing, ...] = ()
    references: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    slices: tuple[str, ...] = ()
    values: tuple[CardValue, ...] = ()
    cause: Cause | None = None
    cause_reason: str | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    history: tuple[Turn, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def key(self) -> Key:
        """Dataset, system and query id."""
        return self.dataset, self.system, self.query_id

    def value(self, metric: str) -> CardValue | None:
        """What a metric says, or None if the system does not have it."""
        return next((one for one in self.values if one.metric == metric), None)


def build_card(
    evaluation: Evaluation, dataset: str, system: str, query_id: str, baseline: Baseline | None = None
) -> Card:
    """The card of one question; a `KeyError` if the system has no such question.

    For many questions, `build_cards` is much faster.

    Args:
        evaluation: the evaluation.
        dataset: the question's dataset.
        system: the system that was asked.
        query_id: the question's id.
        baseline: what the values are compared with; None stands for the baselines of gates, then for the first
            system of `evaluation` that has the metric.
    """
    cards = build_cards(evaluation, [(dataset, system, query_id)], baseline)
    if not cards:
        raise KeyError((dataset, system, query_id))
    return cards[0]


def select_cards(
    evaluation: Evaluation, wanted: Filter | None = None, baseline: Baseline | None = None
) -> tuple[Card, ...]:
    """The cards that a filter chooses, worst first, one for each question of each system.

    Raises:
        UsageError: the filter names something that the evaluation does not have.
    """
    chosen = rank_questions(evaluation, wanted, baseline)
    return build_cards(evaluation, chosen.select(KEY).iter_rows(), baseline)


def build_cards(
    evaluation: Evaluation, keys: Iterable[tuple[str, ...]], baseline: Baseline | None = None
) -> tuple[Card, ...]:
    """The cards of these questions, in this order; questions that the evaluation does not have are left out.

    Args:
        evaluation: the evaluation.
        keys: dataset, system and query id of each question.
        baseline: as for `build_card`.
    """
    import polars as pl

    wanted = pl.DataFrame(list(keys), schema=dict.fromkeys(KEY, pl.String), orient="row").unique(maintain_order=True)
    parts = _Parts(
        _group(evaluation.find_samples(wanted), wanted),
        _group(evaluation.values, wanted),
        _group(find_base_values(evaluation, baseline), wanted),
        evaluation,
    )
    texts = _find_texts(evaluation, _list_absent(parts.samples.values()))
    found = (key for key in wanted.iter_rows() if key in parts.samples or key in parts.values)
    return tuple(_build(key, parts, texts) for key in found)


@dataclass(frozen=True)
class _Parts:
    """The rows of the wanted questions, by question."""

    samples: Mapping[tuple[Any, ...], Sequence[_Row]]
    values: Mapping[tuple[Any, ...], Sequence[_Row]]
    base: Mapping[tuple[Any, ...], Sequence[_Row]]
    evaluation: Evaluation


def _group(table: pl.DataFrame, wanted: pl.DataFrame) -> dict[tuple[Any, ...], list[_Row]]:
    """The rows of `table` that belong to each wanted question."""
    chosen = table.join(wanted, on=KEY, how="semi", maintain_order="left")
    found: dict[tuple[Any, ...], list[_Row]] = {}
    for row in chosen.iter_rows(named=True):
        found.setdefault(tuple(row[name] for name in KEY), []).append(row)
    return found


def _build(key: tuple[Any, ...], parts: _Parts, texts: Mapping[_Document, str]) -> Card:
    dataset, system, query_id = key
    sample: _Row = next(iter(parts.samples.get(key, ())), {})
    columns: dict[str, Any] = json.loads(sample.get("columns") or "{}")
    turns = list_until_question(read_turns(columns.get(MESSAGES)) or ())
    contexts = tuple(_list_contexts(sample))
    base = {row["metric"]: (row["base"], row["against"]) for row in parts.base.get(key, ())}
    valued = parts.values.get(key, ())
    values = tuple(_read_values(parts.evaluation, valued, base))
    return Card(
        dataset,
        system,
        query_id,
        question=sample.get("question") or "",
        status=_read_status(sample),
        answer=sample.get("answer"),
        error=sample.get("error"),
        marks=find_marks(valued, sample, parts.evaluation.metrics),
        contexts=contexts,
        missing=tuple(_list_missing(sample, contexts, texts)),
        references=tuple(sample.get("references") or ()),
        columns=_list_columns(columns, [*([MESSAGES] if turns else []), *([STEPS] if sample.get("steps") else [])]),
        slices=tuple(sample.get("slices") or ()),
        values=values,
        cause=sample.get("cause"),
        cause_reason=_explain_cause(parts.evaluation, sample.get("cause"), values),
        history=turns[:-1],
        steps=load_steps(sample.get("steps")),
        **{name: sample.get(name) for name in ("seconds", "input_tokens", "output_tokens", "cost")},
    )


def _list_columns(columns: Mapping[str, Any], shown: Sequence[str]) -> dict[str, Any]:
    """The other columns, without those that the card shows in another way."""
    return {name: value for name, value in columns.items() if name not in shown}


def _read_status(sample: _Row) -> str:
    """The status, derived for results of earlier versions, which do not record it."""
    if (status := sample.get("status")) is not None:
        return str(status)
    if sample.get("error") is not None:
        return "failed"
    return "retrieved" if sample.get("answer") is None else "answered"


def _list_contexts(sample: _Row) -> Iterator[ShownContext]:
    texts, ids, scores = (sample.get(name) or () for name in ("contexts", "context_ids", "scores"))
    grades = {one["doc_id"]: one["relevance"] for one in sample.get("relevant") or ()}
    for at in range(max(len(texts), len(ids))):
        doc_id = ids[at] if at < len(ids) else None
        yield ShownContext(
            rank=at + 1,
            doc_id=doc_id,
            score=scores[at] if at < len(scores) else None,
            grade=grades.get(doc_id),
            text=texts[at] if at < len(texts) else None,
        )


def _list_missing(sample: _Row, contexts: Sequence[ShownContext], texts: Mapping[_Document, str]) -> Iterator[Missing]:
    if any(context.doc_id is None for context in contexts):
        return
    shown = {context.doc_id for context in contexts}
    judged = sample.get("relevant") or ()
    absent = [one for one in judged if one["relevance"] > 0 and one["doc_id"] not in shown]
    for one in sorted(absent, key=lambda one: -one["relevance"]):
        text = texts.get((sample["dataset"], one["doc_id"]))
        yield Missing(one["doc_id"], one["relevance"], text, one.get("rank"))


def _list_absent(groups: Iterable[Sequence[_Row]]) -> set[_Document]:
    """The relevant documents outside the contexts of any of these samples."""
    return {
        (sample["dataset"], one["doc_id"])
        for rows in groups
        for sample in rows
        for one in sample.get("relevant") or ()
        if one["relevance"] > 0 and one["doc_id"] not in (sample.get("context_ids") or ())
    }


def _find_texts(evaluation: Evaluation, documents: set[_Document]) -> dict[_Document, str]:
    """The texts of documents that are contexts of any question. Only ids are unfolded: texts would fill the memory."""
    import polars as pl

    if not documents:
        return {}
    schema = dict.fromkeys(("dataset", "context_ids"), pl.String)
    wanted = pl.DataFrame(sorted(documents), schema=schema, orient="row")
    held = pl.col("contexts").list.len() == pl.col("context_ids").list.len()
    texts: dict[_Document, str] = {}
    for samples in evaluation.iterate_samples():
        rows = samples.select("dataset", "context_ids", held=held).with_row_index("row").filter(pl.col("held"))
        found = rows.explode("context_ids").join(
            wanted, on=["dataset", "context_ids"], how="semi", maintain_order="left"
        )
        first = found.unique(["dataset", "context_ids"], keep="first", maintain_order=True)
        holders = samples.select("dataset", "context_ids", "contexts")[first["row"].unique().sort().to_list()]
        for dataset, ids, contexts in holders.iter_rows():
            for doc_id, text in zip(ids, contexts, strict=True):
                if (dataset, doc_id) in documents:
                    texts.setdefault((dataset, doc_id), text)
        if len(texts) == len(documents):
            break
    return texts


def _read_values(evaluation: Evaluation, rows: Sequence[_Row], base: Mapping[str, _Base]) -> Iterator[CardValue]:
    of_metric = {row["metric"]: row for row in rows}
    for metric in (*evaluation.metrics, *(name for name in of_metric if name not in evaluation.metrics)):
        if (row := of_metric.get(metric)) is None:
            continue
        value, (before, against) = row["value"], base.get(metric, (None, None))
        change = None if value is None or before is None else value - before
        worse = None if not change else (change > 0) == (metric in evaluation.lower_is_better)
        scale = evaluation.bands.get(metric)
        band = None if scale is None or value is None else scale.find(value).word
        told = (before, change, band, worse, against, row.get(LABEL))
        yield CardValue(metric, value, row["status"], row["reason"], *told)


def _explain_cause(evaluation: Evaluation, cause: Cause | None, values: Sequence[CardValue]) -> str | None:
    if cause is None or evaluation.diagnosis is None:
        return None
    return explain_cause(evaluation.diagnosis, cause, {one.metric: one.value for one in values})
