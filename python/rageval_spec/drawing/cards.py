"""Cards: everything that a reader wants to know about one question of one system.

Commands and reports show cards. `select_cards` chooses them, worst first; `list_first` chooses the few that a reader
of a report should look at first. Marks are the places in an answer that judges decided about.

Every text of a card comes from a user or a model, so whoever shows it must make it harmless in their own way.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.evidence.citations import load_citations
from rageval_spec.data.evidence.nuggets import NUGGETS
from rageval_spec.data.findings import is_supported, list_findings
from rageval_spec.data.outcomes import LABEL, Cause, explain_cause
from rageval_spec.data.tables import CITATIONS, SAMPLE_COLUMNS, STEPS, TRUNCATED
from rageval_spec.data.traces import Step
from rageval_spec.dataclass import dataclass, field, fields
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.question_order import (
    KEY,
    BaselineValues,
    Filter,
    find_base_values,
    is_earlier,
    rank_questions,
)
from rageval_spec.libraries import pl
from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.recorded.messages import MESSAGES, Turn, list_until_question, read_turns
from rageval_spec.wording import PERCENT, PLAIN, NumberFormat


@dataclass(frozen=True, slots=True)
class Mark:
    """A claim of an answer, and what a judge decided about it.

    Attributes:
        start, end: the characters of the answer that hold the claim, or that it was taken from; None if unknown.
        verdict: "supported", "contradicted" or "not_enough_info"; None if the judge gives only scores.
        score: how well the claim is supported, in [0, 1]; None if unknown.
        metric: the metric that asked.
        text: the claim as the judge read it; "" if the results leave texts out.
        source: the index (from 0) of the context or reference that decided; None if unknown.
        doc_id: the document of that context; None if unknown.
        evidence: the passage that decided; None if there is none.
        reason: the judge's explanation; None if there is none.
        evidence_start: the first character of `evidence` in its source; None if unknown.
        judge: the judge that the metric asked; None if unknown.
        step: the judge that decided, if `judge` asks others.
    """

    start: int | None
    end: int | None
    verdict: str | None
    score: float | None
    metric: str
    text: str
    source: int | None = None
    doc_id: str | None = None
    evidence: str | None = None
    reason: str | None = None
    evidence_start: int | None = None
    judge: str | None = None
    step: str | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the claim is supported: by its verdict, or by its score if it has none."""
        return is_supported(self.verdict, self.score or 0.0)


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A part of an answer, for showing it with its unsupported claims marked in place.

    Attributes:
        text: the characters of the answer; the pieces joined are the answer.
        number: the number (from 1) of the note that explains the mark; None for a part that is not marked.
        marks: the unsupported claims that lie here; empty for a part that is not marked.
    """

    text: str
    number: int | None = None
    marks: tuple[Mark, ...] = ()


def split_answer(answer: str, marks: Sequence[Mark]) -> list[AnswerPiece]:
    """Cut an answer where unsupported claims begin and end. Claims that overlap share a piece."""
    regions: list[tuple[int, int, list[Mark]]] = []
    placed = [mark for mark in marks if not mark.is_supported and mark.start is not None and mark.end is not None]
    for mark in sorted(placed, key=_place):
        start, end = max(mark.start or 0, 0), min(mark.end or 0, len(answer))
        if start >= end:
            continue
        if regions and start < regions[-1][1]:
            first, last, found = regions[-1]
            regions[-1] = (first, max(last, end), [*found, mark])
        else:
            regions.append((start, end, [mark]))
    return list(_cut(answer, regions))


def _cut(answer: str, regions: Sequence[tuple[int, int, Sequence[Mark]]]) -> Iterator[AnswerPiece]:
    at = 0
    for number, (start, end, marks) in enumerate(regions, start=1):
        if start > at:
            yield AnswerPiece(answer[at:start])
        yield AnswerPiece(answer[start:end], number, tuple(marks))
        at = end
    if at < len(answer):
        yield AnswerPiece(answer[at:])


CONTRADICTED, UNSUPPORTED = "✗", "?"
"""The signs of a claim that its source contradicts, and of one that no source supports."""


def choose_sign(marks: Sequence[Mark]) -> str:
    """The sign of the worst of some unsupported claims."""
    return CONTRADICTED if any(mark.verdict == "contradicted" for mark in marks) else UNSUPPORTED


@dataclass(frozen=True, slots=True)
class ClaimNote:
    """What judges said against one unsupported claim.

    Attributes:
        number: the number of its mark in the answer; None if it has no place there.
        claim: the claim as the judges read it; None if it is the marked text.
        marks: one for each metric that asked about the claim.
    """

    number: int | None
    claim: str | None
    marks: tuple[Mark, ...]

    @property
    def sign(self) -> str:
        return choose_sign(self.marks)

    def __str__(self) -> str:
        """The decision, and the claim if it is not the marked text."""
        return self.decision if self.claim is None else f"{self.decision}: “{self.claim}”"

    @property
    def decision(self) -> str:
        """`contradicted (faithfulness)`, or `not enough info (faithfulness 0.32, grounding 0.49)`."""
        metrics: dict[str, list[str]] = {}
        for mark in self.marks:
            score = f" {mark.score:.2f}" if mark.score is not None and 0 < mark.score < 1 else ""
            metrics.setdefault((mark.verdict or "not supported").replace("_", " "), []).append(f"{mark.metric}{score}")
        return "; ".join(f"{verdict} ({', '.join(dict.fromkeys(names))})" for verdict, names in metrics.items())


def list_notes(answer: str, marks: Sequence[Mark]) -> list[ClaimNote]:
    """The notes on all unsupported claims: first those that `split_answer` marks, in the order of the answer."""
    notes: dict[tuple[int | None, str], list[Mark]] = {}
    pieces = split_answer(answer, marks)
    for piece in pieces:
        for mark in piece.marks:
            notes.setdefault((piece.number, mark.text), []).append(mark)
    shown = {id(mark) for piece in pieces for mark in piece.marks}
    for mark in marks:
        if not mark.is_supported and id(mark) not in shown:
            notes.setdefault((None, mark.text), []).append(mark)
    texts = {piece.number: _fold(piece.text) for piece in pieces if piece.number is not None}
    return [
        ClaimNote(number, None if texts.get(number or 0) == _fold(claim) else claim, tuple(of))
        for (number, claim), of in notes.items()
    ]


def _fold(text: str) -> str:
    return " ".join(text.split())


def find_marks(
    values: Iterable[Mapping[str, Any]], sample: Mapping[str, Any], metrics: Sequence[str]
) -> tuple[Mark, ...]:
    """The marks on one answer, by its rows of the values table and its sample, which may be empty.

    They are in the order of their places, then of the metrics. Claims of other texts, such as the reference, are no
    marks, and neither is what a metric says about the use of a statement instead of its truth.
    """
    places = {metric: place for place, metric in enumerate(metrics)}
    ordered = sorted(values, key=lambda row: places.get(row["metric"], len(places)))
    names = [field.name for field in fields(Mark)]
    found = (finding for row in ordered for finding in list_findings(row, sample) if finding["part"] == "answer")
    read = (Mark(**{name: one[name] for name in names} | {"text": one["text"] or ""}) for one in found)
    return tuple(sorted(read, key=_place))


def _place(mark: Mark) -> tuple[bool, int, int]:
    return mark.start is None, mark.start or 0, mark.end or 0


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A citation of an answer: as it is written, the rank of the context that it names, and the verdicts by metric."""

    text: str
    rank: int | None
    verdicts: tuple[tuple[str, str], ...] = ()


def find_cited(values: Iterable[Mapping[str, Any]], sample: Mapping[str, Any]) -> Iterator[CitedDocument]:
    """What the answer of a sample cites, in order, with what judges said of it."""
    told: dict[tuple[Any, ...], dict[str, str]] = {}
    for metric, claim in _list_entries(values, "claims", {"citation"}):
        key = (claim["citation"], *(claim.get("marker") or (None, None)))
        told.setdefault(key, {})[metric] = str(claim.get("verdict"))
    for one in load_citations(sample.get(CITATIONS)) or ():
        marker = one.marker or (None, None)
        written = one.document if one.marker is None else str(sample.get("answer") or "")[slice(*one.marker)]
        text = written if one.document in written else f"{written} {one.document}"
        rank = None if one.context is None else one.context + 1
        yield CitedDocument(text, rank, tuple(told.get((one.document, *marker), {}).items()))


@dataclass(frozen=True, slots=True)
class ShownNugget:
    """A fact that a good answer has, and how far the answer has it, by metric: `support`, `partial_support`, ..."""

    text: str
    importance: str
    assignments: Mapping[str, str]


def find_nuggets(values: Iterable[Mapping[str, Any]]) -> Iterator[ShownNugget]:
    """The nuggets that metrics looked for in an answer, in order."""
    told: dict[tuple[str, str], dict[str, str]] = {}
    for metric, claim in _list_entries(values, "claims", {"assignment"}):
        key = (str(claim.get("text")), str(claim.get("importance")))
        told.setdefault(key, {})[metric] = str(claim["assignment"])
    yield from (ShownNugget(text, importance, of) for (text, importance), of in told.items())


def find_calls(values: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The calls of tools that metrics compared with the expected ones: `metric, name, arguments, step, state`."""
    for metric, call in _list_entries(values, "calls", {"name", "arguments", "step", "state"}):
        yield {"metric": metric, **call}


def _list_entries(
    values: Iterable[Mapping[str, Any]], key: str, needed: Set[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects in a list of the values' details, those that have the needed keys, each with its metric."""
    for row in values:
        details = json.loads(row.get("details") or "null")
        listed = details.get(key) if isinstance(details, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and needed <= one.keys():
                yield row["metric"], one


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
        is_earlier: whether the baseline is an earlier evaluation, not another system of this one; None without one.
        is_percent: whether the value is shown as a percentage.
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
    is_earlier: bool | None = None
    is_percent: bool = False

    @property
    def shown(self) -> NumberFormat:
        return PERCENT if self.is_percent else PLAIN


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
        cause: why the question went wrong (`data.outcomes.Cause`); None if the results have no diagnosis.
        cause_reason: the values that decided the cause, in words; None without a cause.
        history: the turns of the conversation before the question, oldest first.
        steps: what an agent did for the answer, in order.
        calls: the calls of tools that a metric expected or found, as `find_calls` lists them.
        seconds, input_tokens, output_tokens, cost: what the answer took; None if unknown. The cost is in US dollars.
        truncated: whether the model stopped at its token limit; None if that is unknown.
        citations: what the answer cites, in order.
        nuggets: the facts of a good answer that metrics looked for, in order.
        others: what other columns of samples with a label hold, by name; without those that are null.
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
    calls: tuple[Mapping[str, Any], ...] = ()
    truncated: bool | None = None
    citations: tuple[CitedDocument, ...] = ()
    nuggets: tuple[ShownNugget, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.dataset, self.system, self.query_id

    def value(self, metric: str) -> CardValue | None:
        """What a metric says, or None if the system does not have it."""
        return next((one for one in self.values if one.metric == metric), None)


def build_card(
    evaluation: Evaluation, dataset: str, system: str, query_id: str, baseline: BaselineValues | None = None
) -> Card:
    """The card of one question; a `KeyError` if the system has no such question.

    For many questions, `build_cards` is much faster. Values are compared with the baseline; None stands for the
    baselines of gates, then for the first system of `evaluation` that has the metric.
    """
    cards = build_cards(evaluation, [(dataset, system, query_id)], baseline)
    if not cards:
        raise KeyError((dataset, system, query_id))
    return cards[0]


def select_cards(
    evaluation: Evaluation, wanted: Filter | None = None, baseline: BaselineValues | None = None
) -> tuple[Card, ...]:
    """The cards that a filter chooses, worst first; errors are those of `rank_questions`."""
    chosen = rank_questions(evaluation, wanted, baseline)
    return build_cards(evaluation, chosen.select(KEY).iter_rows(), baseline)


def build_cards(
    evaluation: Evaluation, keys: Iterable[tuple[str, ...]], baseline: BaselineValues | None = None
) -> tuple[Card, ...]:
    """The cards of these questions, in this order; questions that the evaluation does not have are left out.

    A key is dataset, system and query id; the baseline is as for `build_card`.
    """
    wanted = pl.DataFrame(list(keys), schema=dict.fromkeys(KEY, pl.String), orient="row").unique(maintain_order=True)
    if wanted.is_empty():
        return ()
    base = find_base_values(evaluation, baseline)
    parts = _Parts(
        _group(evaluation.find_samples(wanted), wanted),
        _group(evaluation.values, wanted),
        _group(base, wanted),
        evaluation,
        {name for name in base["against"].unique() if is_earlier(evaluation, name, baseline)},
    )
    texts = _find_texts(evaluation, _list_absent(parts.samples.values()))
    found = (key for key in wanted.iter_rows() if key in parts.samples or key in parts.values)
    return tuple(_build(key, parts, texts) for key in found)


@dataclass(frozen=True)
class _Parts:
    """The rows of the wanted questions, by question; `earlier` are the baselines that are earlier evaluations."""

    samples: Mapping[tuple[Any, ...], Sequence[_Row]]
    values: Mapping[tuple[Any, ...], Sequence[_Row]]
    base: Mapping[tuple[Any, ...], Sequence[_Row]]
    evaluation: Evaluation
    earlier: Collection[str]


def _group(table: pl.DataFrame, wanted: pl.DataFrame) -> dict[tuple[Any, ...], list[_Row]]:
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
    shown = [*([MESSAGES] if turns else []), *([STEPS] if sample.get("steps") else [])]
    base = {row["metric"]: (row["base"], row["against"]) for row in parts.base.get(key, ())}
    valued = parts.values.get(key, ())
    values = tuple(_read_values(parts.evaluation, valued, base, parts.earlier))
    if nuggets := tuple(find_nuggets(valued)):
        shown.append(NUGGETS)
    reason, diagnosis = None, parts.evaluation.diagnosis
    if sample.get("cause") is not None and diagnosis is not None:
        reason = explain_cause(diagnosis, sample["cause"], {one.metric: one.value for one in values})
    return Card(
        dataset,
        system,
        query_id,
        question=sample.get("question") or "",
        status=_read_status(sample),
        answer=sample.get("answer"),
        error=sample.get("error"),
        marks=find_marks(valued, sample, parts.evaluation.metrics),
        citations=tuple(find_cited(valued, sample)),
        nuggets=nuggets,
        contexts=contexts,
        missing=tuple(_list_missing(sample, contexts, texts)),
        references=tuple(sample.get("references") or ()),
        columns={name: value for name, value in columns.items() if name not in shown},
        slices=tuple(sample.get("slices") or ()),
        values=values,
        cause=sample.get("cause"),
        cause_reason=reason,
        history=turns[:-1],
        steps=load_steps(sample.get("steps")),
        calls=tuple(find_calls(valued)),
        **{name: sample.get(name) for name in ("seconds", "input_tokens", "output_tokens", "cost", TRUNCATED)},
        others={one.name: sample[one.name] for one in SAMPLE_COLUMNS if one.label and sample.get(one.name) is not None},
    )


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


def _read_values(
    evaluation: Evaluation, rows: Sequence[_Row], base: Mapping[str, _Base], earlier: Collection[str]
) -> Iterator[CardValue]:
    of_metric = {row["metric"]: row for row in rows}
    for metric in (*evaluation.metrics, *(name for name in of_metric if name not in evaluation.metrics)):
        if (row := of_metric.get(metric)) is None:
            continue
        value, (before, against) = row["value"], base.get(metric, (None, None))
        change = None if value is None or before is None else value - before
        worse = None if not change else (change > 0) == (metric in evaluation.lower_is_better)
        scale = evaluation.bands.get(metric)
        band = None if scale is None or value is None else scale.find(value).word
        told = (before, change, band, worse, against, row.get(LABEL), None if against is None else against in earlier)
        yield CardValue(metric, value, row["status"], row["reason"], *told, metric in evaluation.show_as)


MOST = 3
_MOST_VALUES = 200_000
"""A larger evaluation names no questions: to rank them would need all texts in memory at once."""


def find_first(evaluation: Evaluation, most: int = MOST) -> dict[Key, str | None]:
    """The worst questions, which every report lists first, each with the metric that decided its place.

    The metric is None where no value decided, as for a question that failed. A question appears once, with the system
    that did worst on it. Questions on which nothing went wrong are left out: those with the best value of their metric.
    An error that several questions of a system have is listed with the first of them. Empty for an evaluation of more
    than 200,000 values.
    """
    if evaluation.values.height > _MOST_VALUES:
        return {}
    ranked = rank_questions(evaluation).filter(pl.col("is_failed") | (pl.col("badness") > 0))
    ranked = ranked.unique(["dataset", "query_id"], keep="first", maintain_order=True)
    errors = evaluation.select_samples(*KEY, "error").unique(KEY, keep="first")
    ranked = ranked.join(errors, on=KEY, how="left", maintain_order="left")
    is_new = pl.col("error").is_null() | pl.struct("dataset", "system", "error").is_first_distinct()
    chosen = ranked.filter(is_new).head(most)
    return {(row[0], row[1], row[2]): row[3] for row in chosen.select(*KEY, "metric").iter_rows()}


def list_first(evaluation: Evaluation, most: int = MOST) -> list[tuple[Card, str | None]]:
    """The cards of the questions that `find_first` names, each with the metric that decided its place."""
    deciding = find_first(evaluation, most)
    return [(card, deciding[card.key]) for card in build_cards(evaluation, deciding)]


def write_show(query_id: str | None, results: str) -> str:
    """The command that shows a question in full, or all of them, as a shell takes it: `rageval-spec show q14 out`.

    `results` is a folder or a label. The default folder needs no name.
    """
    names = [*([] if query_id is None else [query_id]), *([] if results == RESULTS_FOLDER else [results])]
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return make_visible(shlex.join(["rageval-spec", "show", *dashes, *names]))
