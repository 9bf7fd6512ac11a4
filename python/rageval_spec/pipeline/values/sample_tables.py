"""A system's answers as samples, and the samples table of an evaluation, block by block.

The answers on a dataset are samples for metrics of answers and a run for ranking metrics. The samples table is built
when it is read. Until then, the only cost is that the queries, references and answers stay in memory, and of the
systems that only retrieve the first documents of each run. The other columns of questions are read when somebody
first looks at one: most evaluations never do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.data import tables
from rageval_spec.data.evidence.citations import find_first, load_citations, move_citations
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import DataError, no_exit
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.plan import StepTask, TaskResult
from rageval_spec.pipeline.values.answer_values import unfinished_notes
from rageval_spec.pipeline.values.passage_judgements import judge_contexts, judge_run
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.store.stored_tables import AnyTable, StoredTable, load_table
from rageval_spec.wording import agree, count_noun

if TYPE_CHECKING:
    from rageval_spec.pipeline.values.step_inputs import Materials


NOT_ANSWERED = "the system gave no answer to this query"


def answer_queries(materials: Materials, task: StepTask) -> TaskResult:
    """Ask a system all queries of its dataset, or read its stored answers: columns `tables.ANSWERS`.

    Raises `DataError` if the system's table lacks a column, or answers a query twice.
    """
    dataset, system = str(task.step.dataset), materials.parts.systems[str(task.step.system)]
    opened = materials.open(dataset)
    asked = opened.asked if task.part is None else task.part.queries
    is_part = opened.is_drawn or task.part is not None
    with no_exit():
        if is_part and not system.can_be_asked:
            answering = materials.read_answers(dataset, str(task.step.system))
        else:
            begun = time.perf_counter()
            answering = system.answer(asked)
            if system.can_be_asked:
                taken_over = 0 if answering.taken_over is None else answering.taken_over.answers
                count = answering.table.height - taken_over
                materials.budget.usage.time_answers(str(task.step.system), count, time.perf_counter() - begun)
    answers = take_step(system.node, answering.table)
    absent = [column for column in tables.ANSWERS if column not in answers.columns]
    if absent:
        raise DataError(f"the answers have no column {', '.join(map(repr, absent))}")
    ids = answers.select("query_id").to_series()
    if ids.is_duplicated().any():
        twice = ids.filter(ids.is_duplicated())[0]
        raise DataError(f"the query {twice!r} is answered twice")
    if is_part and asked.queries is not None:
        answers = tables.only_queries(answers, asked.queries)
    found = TaskResult(None, answering.notes, taken_over=answering.taken_over)
    if isinstance(answers, StoredTable):
        return replace(found, stored=answers)
    return replace(found, table=answers)


def take_step(node: Any, answers: Any) -> Any:
    """The answers with the documents of a system's `retrieval_step` as contexts; null without such a step."""
    if (step := getattr(node, "retrieval_step", None)) is None:
        return answers
    table, found, parts = load_table(answers), list[dict[str, Any]](), {"contexts": "text", "context_ids": "doc_id"}
    for text, cited, *named in table.select(tables.STEPS, tables.CITATIONS, *parts).iter_rows():
        steps = [one.documents for one in load_steps(text) if one.documents is not None]
        taken = steps[-1:] if step == "last" else steps[step - 1 : step]
        lists = {name: [[getattr(one, part) for one in of] for of in taken] for name, part in parts.items()}
        new = {name: next((one for one in of if None not in one), None) for name, of in lists.items()}
        pairs = [(old, one) for old, one in zip(named, new.values(), strict=True) if old and one]
        places = [[one.index(key) if key in one else None for key in old] for old, one in pairs]
        found.append({**new, tables.CITATIONS: move_citations(cited, places[-1] if places else [])})
    columns = pl.DataFrame(found, schema={name: table.schema[name] for name in (*parts, tables.CITATIONS)})
    unknown = ("scores", tables.CONTEXT_PLACES)  # they are of the contexts that the answer names
    return table.with_columns(*columns, *(pl.lit(None, table.schema[name]).alias(name) for name in unknown))


@dataclass(frozen=True)
class Answered:
    """What a system answered, query by query, without the texts.

    Attributes:
        table: `query_id, error, is_unfinished, is_truncated, counts_from` in the order of the dataset; an answer has no
            error, and `counts_from` is the number that its citations give the first context, as far as they show it.
        run: `query_id, doc_id, score` of the contexts, best first; None if no answer names its documents.
    """

    table: pl.DataFrame
    run: pl.DataFrame | None

    def remark(self) -> Iterator[Note]:
        """Notes on queries that were not asked, or got no answer or half of one."""
        total, unfinished = self.table.height, self.table.filter("is_unfinished")
        yield from unfinished_notes(unfinished.height, total, "asked", next(iter(unfinished["error"]), None))
        failed = self.table.filter(pl.col("error").is_not_null() & ~pl.col("is_unfinished"))
        if failed.height:
            queries = count_noun(total, "query", "queries")
            message = f"{failed.height} of {queries} got no answer; the first, {failed['query_id'][0]}: "
            yield Note("unanswered", f"{message}{failed['error'][0]}", count=failed.height)
        answered = self.table.filter(pl.col("error").is_null())
        if truncated := answered.filter("is_truncated").height:
            answers = count_noun(answered.height, "answer")
            message = f"{truncated} of {answers} {agree(truncated, 'was')} cut off at the token limit"
            hint = "raise max_tokens where the system asks its model"
            yield Note("truncated_answers", f"{message}; {hint}", count=truncated, level="warning")
        from_zero, from_one = (answered.filter(counts_from=number).height for number in (0, 1))
        if from_zero and from_one:
            cite = f"{count_noun(from_zero, 'answer')} {agree(from_zero, 'cites')} number 0"
            message = f"{cite}, but the numbers of {from_one} of {answered.height} answers were counted from 1"
            hint = "if the system's numbers begin at 0, write 'citations_from: 0' in it; else write 'citations_from: 1'"
            yield Note("citation_numbers", f"{message}; {hint}", count=from_one, level="warning")


def describe_answers(answers: AnyTable, asked: Collection) -> Answered:
    """What a system's answers to the queries of a dataset amount to; a query without an answer gets an error."""
    assert asked.queries is not None, "queries_to_ask refuses a collection without"
    flags = [name for name in (tables.UNFINISHED, tables.TRUNCATED, tables.CITATIONS) if name in answers.columns]
    told = answers.select("query_id", "error", *flags).with_columns(is_answered=True)
    joined = tables.join_queries(asked.queries.select("query_id"), told)
    error = pl.when("is_answered").then("error").otherwise(pl.lit(NOT_ANSWERED))
    absent = [pl.lit(False).alias(name) for name in (tables.UNFINISHED, tables.TRUNCATED) if name not in flags]
    cited = joined[tables.CITATIONS] if tables.CITATIONS in flags else ()
    firsts = pl.Series([find_first(load_citations(text) or ()) for text in cited], dtype=pl.Int64)
    table = joined.with_columns(error.alias("error"), *absent).select(
        "query_id",
        "error",
        is_unfinished=pl.col(tables.UNFINISHED).fill_null(False) & pl.col("error").is_not_null(),
        is_truncated=pl.col(tables.TRUNCATED).fill_null(False),
        counts_from=firsts if len(firsts) else pl.lit(None),
    )
    return Answered(table, _rank_answer_contexts(answers, asked.queries))


def build_samples(asked: Collection, answers: AnyTable) -> list[Sample]:
    """A sample for each query; a query without an answer gets an error."""
    assert asked.queries is not None, "queries_to_ask refuses a collection without"
    queries = asked.queries.select("query_id", question="text")
    relevant: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in () if asked.qrels is None else asked.qrels.select(tables.QRELS).iter_rows():
        relevant.setdefault(query_id, {})[doc_id] = relevance
    blocks = tables.join_blocks(queries, answers.with_columns(is_answered=pl.lit(True)), asked.references)
    columns = cache(partial(_read_columns, asked)) if asked.load_columns is not None else None
    rows = (row for block in blocks for row in block.iter_rows(named=True))
    return [_build(row, relevant.get(row["query_id"]), columns) for row in rows]


def _build(row: Mapping[str, Any], relevant: Mapping[str, int] | None, columns: Callable[[], _Texts] | None) -> Sample:
    """Build a sample from a joined row of query, references and answer; `is_answered` is null without an answer."""
    error = row.get("error") if row["is_answered"] else NOT_ANSWERED
    return Sample(
        row["query_id"],
        row["question"],
        answer=None if error else row.get("answer"),
        contexts=_as_tuple(row.get("contexts")),
        context_ids=_as_tuple(row.get("context_ids")),
        scores=_as_tuple(row.get("scores")),
        references=tuple(row.get("references") or ()),
        reference_contexts=_as_tuple(row.get("reference_contexts")),
        relevant=relevant,
        answerable=row.get("answerable"),
        group=row.get("group"),
        condition=row.get("condition"),
        error=error,
        is_unfinished=bool(error and row.get(tables.UNFINISHED)),
        seconds=row.get("seconds"),
        input_tokens=row.get("input_tokens"),
        output_tokens=row.get("output_tokens"),
        cost=row.get("cost"),
        **{name: row.get(name) for name in tables.CACHE_TOKENS},
        truncated=row.get(tables.TRUNCATED),
        columns=None if columns is None else _Columns(columns, row["query_id"]),
        answer_columns=json.loads(row.get(tables.ANSWER_COLUMNS) or "null"),
        citations=load_citations(row.get(tables.CITATIONS)),
        steps=None if row.get(tables.STEPS) is None else load_steps(row[tables.STEPS]),
    )


def _as_tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _rank_answer_contexts(answers: AnyTable, queries: pl.DataFrame) -> pl.DataFrame | None:
    """The documents of the contexts as a run, each at its first place; scores count down to 1 at the last one."""
    named = answers.select("query_id", "context_ids").rename({"context_ids": "doc_id"}).drop_nulls("doc_id")
    named = queries.select("query_id").join(named, on="query_id", how="inner", maintain_order="left")
    if named.is_empty():
        return None
    ids = named.with_columns(pl.col("doc_id").list.unique(maintain_order=True))
    ids = ids.filter(pl.col("doc_id").list.len() > 0)
    lengths = pl.col("doc_id").list.len()
    scores = pl.int_ranges(lengths, 0, -1).cast(pl.List(pl.Float64))
    return ids.with_columns(score=scores).explode("doc_id", "score")


_OF_ANSWERS = (*tables.ANSWERS, *tables.LATER_ANSWERS, tables.UNFINISHED)
_KNOWN = ("references", "reference_contexts", "answerable", "group", "condition")


@dataclass(frozen=True)
class SampleParts:
    """The tables from which one system's samples on one dataset are built.

    Attributes:
        queries: `query_id, text` of the queries that were asked; `text` is null if the dataset has only judgements.
        answers: the system's answers, with the columns `tables.ANSWERS`. Of a system that only retrieves, the ids,
            scores and texts of the first documents of its run, as contexts.
        ranks: `query_id, doc_id, rank` of the judged documents that the system retrieved or was given.
    """

    dataset: str
    system: str
    queries: pl.DataFrame
    references: pl.DataFrame | None
    qrels: pl.DataFrame | None
    columns: pl.DataFrame | None
    answers: AnyTable
    ranks: pl.DataFrame | None = None
    retrieves: bool = False

    @classmethod
    def of(cls, asked: Collection, system: str, answers: AnyTable) -> SampleParts:
        """The parts of the samples of a system that answers; `asked` holds the queries that it was asked."""
        with suppress(DataError):  # told with the values
            asked, answers = judge_contexts(asked, answers)
        assert asked.queries is not None, "queries_to_ask refuses a collection without queries"
        kept = answers.drop(name for name in answers.columns if name not in _OF_ANSWERS)
        return cls(asked.name, system, asked.queries, asked.references, asked.qrels, asked.columns, kept)

    @classmethod
    def of_run(cls, judged: Collection, system: str, run: pl.DataFrame, *, with_texts: bool) -> SampleParts:
        """The parts of the samples of a system that only retrieves; `judged` holds the judged queries.

        `with_texts` takes the texts of the documents from the corpus, if the dataset has one.
        """
        with suppress(DataError):  # told with the values
            judged = judge_run(judged, run)
        ranked = run.with_columns((pl.int_range(pl.len()) + 1).over("query_id").alias("rank"))
        first = ranked.filter(pl.col("rank") <= tables.SHOWN_DOCUMENTS)
        has_texts = with_texts and judged.documents is not None
        if has_texts:
            first = _add_texts(first, judged)
        answers = first.group_by("query_id", maintain_order=True).agg(
            pl.col("doc_id").alias("context_ids"),
            pl.col("score").alias("scores"),
            *([pl.col("text").alias("contexts")] if has_texts else []),
        )
        ranks = None
        if judged.qrels is not None:
            relevant = ranked.join(judged.qrels, on=["query_id", "doc_id"], how="semi")
            ranks = relevant.select("query_id", "doc_id", "rank")
        known = (_list_queries(judged), judged.references, judged.qrels, judged.columns)
        return cls(judged.name, system, *known, answers, ranks, retrieves=True)

    def stream(self, traits: Traits) -> Iterator[pl.DataFrame]:
        """The samples in blocks: columns `tables.SAMPLES`, one row for each query, in the order of the dataset."""
        of_slices, of_causes = traits.slices.get(self.dataset), traits.causes.get((self.dataset, self.system))
        queries = self.queries.select("query_id", question="text")
        answers = self.answers.with_columns(is_answered=pl.lit(True))
        others = (answers, self._known(), self._relevant(), self.columns, of_slices, of_causes)
        for block in tables.join_blocks(queries, *others):
            yield self._complete(block)

    def _complete(self, block: pl.DataFrame) -> pl.DataFrame:
        """A block of joined rows with all columns and their types."""
        empty = tables.empty_samples()
        unfinished = pl.col(tables.UNFINISHED) if tables.UNFINISHED in block.columns else pl.lit(False)
        absent = (pl.lit(None).alias(name) for name in empty.columns if name not in block.columns)
        block = block.with_columns(*absent, unfinished.fill_null(False).alias(tables.UNFINISHED))
        if self.retrieves:
            block = block.with_columns(pl.lit("retrieved").alias("status"), *_fill_lists("context_ids", "scores"))
        else:
            error = pl.when(pl.col("is_answered").is_null()).then(pl.lit(NOT_ANSWERED)).otherwise("error")
            failed = pl.when(tables.UNFINISHED).then(pl.lit("unfinished")).otherwise(pl.lit("failed"))
            # A retriever that is asked as systems that answer gives no text.
            is_retrieval = pl.col("answer").is_null() & pl.col("context_ids").is_not_null()
            told = pl.when(is_retrieval).then(pl.lit("retrieved")).otherwise(pl.lit("answered"))
            block = block.with_columns(error.alias("error")).with_columns(
                pl.when(pl.col("error").fill_null("") == "").then("answer").alias("answer"),
                pl.when(pl.col("error").fill_null("") != "").then(failed).otherwise(told).alias("status"),
            )
        named = block.with_columns(pl.lit(self.dataset).alias("dataset"), pl.lit(self.system).alias("system"))
        return named.select(empty.columns).cast(empty.schema).with_columns(_fill_lists("references", "slices"))

    def _known(self) -> pl.DataFrame | None:
        """The references of each query, once: where a dataset repeats one, the last row counts."""
        if self.references is None:
            return None
        known = self.references.select("query_id", *(name for name in _KNOWN if name in self.references.columns))
        if tables.holds_each_once(known["query_id"]):
            return known  # without a copy of all texts
        return known.unique("query_id", keep="last")

    def _relevant(self) -> pl.DataFrame | None:
        """The judged documents of each query, with their places among those that the system retrieved."""
        if self.qrels is None:
            return None
        judged = tables.only_queries(self.qrels, self.queries)
        ranks = _rank_sample_contexts(self.answers) if self.ranks is None else self.ranks
        placed = judged.join(ranks, on=["query_id", "doc_id"], how="left", maintain_order="left")
        documents = pl.struct("doc_id", pl.col("relevance").cast(pl.Int64), pl.col("rank").cast(pl.Int64))
        return placed.group_by("query_id", maintain_order=True).agg(documents.alias("relevant"))


@dataclass(frozen=True)
class Traits:
    """What an evaluation found out about samples: slices by dataset, and causes by dataset and system.

    The columns are `query_id, slices: list[str]`, and `query_id, cause: str`, why a query went wrong.
    """

    slices: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    causes: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict)


NO_TRAITS = Traits()


def stream_samples(parts: Sequence[SampleParts], traits: Traits = NO_TRAITS) -> Iterator[pl.DataFrame]:
    """The samples of all parts in blocks, in the order given: columns `tables.SAMPLES`."""
    for part in parts:
        yield from part.stream(traits)


_Texts: TypeAlias = "tuple[pl.Series, Mapping[str, int]]"
"""The other columns of all questions, as JSON, and the place of each question's."""


class _Columns(Mapping[str, Any]):
    """The other columns of one question, which are found and parsed at each look-up."""

    __slots__ = ("_query_id", "_read")

    def __init__(self, read: Callable[[], _Texts], query_id: str) -> None:
        self._read = read
        self._query_id = query_id

    def _parse(self) -> dict[str, Any]:
        texts, places = self._read()
        place = places.get(self._query_id)
        found: dict[str, Any] = {} if place is None else json.loads(texts[place])
        return found

    def __getitem__(self, name: str) -> Any:
        return self._parse()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parse())

    def __len__(self) -> int:
        return len(self._parse())

    def __repr__(self) -> str:
        return repr(self._parse())


def _read_columns(collection: Collection) -> _Texts:
    table = collection.columns
    if table is None:
        return pl.Series([], dtype=pl.String), {}
    return table["columns"], {query_id: place for place, query_id in enumerate(table["query_id"])}


def _list_queries(judged: Collection) -> pl.DataFrame:
    """The judged queries in the order of the qrels, with their texts as far as the dataset has them."""
    assert judged.qrels is not None, "nothing is retrieved without judgements"
    ids = judged.qrels.select("query_id").unique(maintain_order=True)
    if judged.queries is None:
        return ids.with_columns(pl.lit(None, dtype=pl.String).alias("text"))
    texts = judged.queries.select("query_id", "text").unique("query_id", keep="first")
    return ids.join(texts, on="query_id", how="left", maintain_order="left")


def _add_texts(first: pl.DataFrame, judged: Collection) -> pl.DataFrame:
    """Documents with their texts; "" for one that the corpus does not have."""
    wanted = judged.find_documents(first["doc_id"])
    texts = wanted.select("doc_id", tables.document_texts(wanted).alias("text"))
    return first.join(texts, on="doc_id", how="left", maintain_order="left").with_columns(pl.col("text").fill_null(""))


def _rank_sample_contexts(answers: AnyTable) -> pl.DataFrame:
    """The first place, from 1, of each document among the contexts of an answer."""
    placed = answers.select("query_id", "context_ids").with_columns(
        pl.int_ranges(1, pl.col("context_ids").list.len() + 1).alias("rank")
    )
    rows = placed.filter(pl.col("context_ids").list.len() > 0).explode("context_ids", "rank")
    return rows.rename({"context_ids": "doc_id"}).unique(["query_id", "doc_id"], keep="first", maintain_order=True)


def _fill_lists(*names: str) -> list[pl.Expr]:
    return [pl.col(name).fill_null(pl.lit([])) for name in names]
