"""The questions, conversations and documents of an evaluation as the page's data.

The page gets the columns that its list needs, and the blocks that its cards need. Conversations and steps of agents
are lines that are ready to be drawn.

Documents are numbered, so that the page holds each text once. The samples come in blocks and are read twice: once to
number their documents, and once to write the texts. Between the two, hashes stand for the texts, because the texts of
all contexts at once would fill the memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import LABEL
from rageval_spec.data.tables import CITATIONS, SAMPLE_COLUMNS, STEPS, TRUNCATED, empty_samples, explode_contexts
from rageval_spec.data.traces import Step
from rageval_spec.dataclass import dataclass
from rageval_spec.drawing.cards import find_first
from rageval_spec.drawing.html_shell import dump_json
from rageval_spec.drawing.question_order import find_base_values, is_earlier, list_baselines
from rageval_spec.libraries import pl
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.recorded.messages import MESSAGES, list_until_question, read_turns, write_turn


def separate_history(questions: pl.DataFrame) -> pl.DataFrame:
    """The questions with `history`, the lines of the turns before each, which `columns` then do not have.

    The table stays as it is if no question has a conversation.
    """
    columns = questions["columns"]
    if not columns.str.contains(f'"{MESSAGES}":', literal=True).any():
        return questions
    found = [_separate(text) for text in columns]
    history = pl.Series("history", [lines for _, lines in found], dtype=pl.List(pl.String))
    return questions.with_columns(history, pl.Series("columns", [kept for kept, _ in found], dtype=pl.String))


def summarize_steps(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with each step as its kind, its call and what it gave. No column if no sample has steps."""
    if samples[STEPS].null_count() == samples.height:
        return samples.drop(STEPS)
    told = [None if text is None else json.dumps([_tell(step) for step in load_steps(text)]) for text in samples[STEPS]]
    return samples.with_columns(pl.Series(STEPS, told, dtype=pl.String))


def _separate(text: str | None) -> tuple[str | None, list[str] | None]:
    if text is None:
        return None, None
    columns: dict[str, Any] = json.loads(text)
    turns = list_until_question(read_turns(columns.get(MESSAGES)) or ())
    kept = {name: value for name, value in columns.items() if not turns or name != MESSAGES}
    return json.dumps(kept, ensure_ascii=False), [write_turn(turn) for turn in turns[:-1]] or None


def _tell(step: Step) -> tuple[str, str, str]:
    call = step.name if step.input is None else f"{step.name}({step.input})"
    documents = [": ".join(filter(None, (one.doc_id, one.text))) for one in step.documents or ()]
    said = f"\u2717 {step.error}" if step.error is not None else "\n".join(documents) or step.output or ""
    return step.kind, call, said


_CHARACTERS_EACH = 1_000_000
"""About how much text one part of the documents holds."""
_SEEDS = {"hash": 1, "other_hash": 2}
"""Together, the hashes have 128 bits, so that no two texts share both."""


@dataclass(frozen=True)
class Documents:
    """The distinct documents of the contexts, without their texts.

    Attributes:
        known: `document` (its number), `doc_id`, `part` (the number of the part that it is in), in the order in which
            the samples show them.
        is_first: for each context of each sample, whether it is the first one with its document.
    """

    known: pl.DataFrame
    is_first: pl.Series

    @property
    def count(self) -> int:
        return self.known.height

    def list_starts(self) -> list[int]:
        """The number of the first document of each part."""
        starts: list[int] = self.known.filter(pl.col("part").is_first_distinct()).get_column("document").to_list()
        return starts

    def split(self, blocks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The documents of the numbered samples, in parts of about a million characters: `document, doc_id, text`."""
        waiting: list[pl.DataFrame] = []
        place = number = 0
        for block in blocks:
            shown = explode_contexts(block.with_row_index("row"))
            texts = shown.get_column("text").filter(self.is_first.slice(place, shown.height))
            rows = self.known.slice(number, texts.len()).with_columns(texts)
            place, number = place + shown.height, number + texts.len()
            for part in rows.partition_by("part", maintain_order=True):
                if waiting and waiting[0].item(0, "part") != part.item(0, "part"):
                    yield pl.concat(waiting).drop("part")
                    waiting.clear()
                waiting.append(part)
        if waiting:
            yield pl.concat(waiting).drop("part")


def number_documents(blocks: Iterable[pl.DataFrame]) -> tuple[Documents, pl.DataFrame]:
    """The distinct documents of the contexts of at least one block of samples, and the samples that refer to them.

    The samples have `shown`, the numbers of the contexts, instead of `contexts` and `context_ids`. A context without a
    text and an id has no number. In `relevant`, `document` is the number of the judged document; None if no system
    retrieved it, because its text is then not known.
    """
    contexts, others, count = [], [], 0
    for block in blocks:
        rows = block.with_row_index("row", count)
        text = pl.col("text")
        hashes = {name: text.hash(seed) for name, seed in _SEEDS.items()}
        contexts.append(
            explode_contexts(rows).select("row", "doc_id", length=text.str.len_chars().fill_null(0), **hashes)
        )
        others.append(block.drop("contexts", "context_ids"))
        count += block.height
    shown = pl.concat(contexts).with_row_index("place")
    contexts.clear()
    first = shown.select(pl.col("place").first().over("doc_id", "length", *_SEEDS)).to_series()
    is_first = first == shown.get_column("place")
    document = (is_first.cast(pl.UInt32).cum_sum() - 1).gather(first).alias("shown")
    part = (pl.col("length").cum_sum() // _CHARACTERS_EACH).rle_id().alias("part")
    known = shown.filter(is_first).select("doc_id", part).with_row_index("document")
    lists = shown.select("row", document).group_by("row", maintain_order=True).agg("shown")
    del shown, first, document
    referring = pl.concat(others)
    others.clear()
    referring = referring.with_columns(align_rows(lists, referring.height))
    return Documents(known, is_first), _refer_to_judged(referring, known)


def align_rows(lists: pl.DataFrame, height: int) -> pl.Series:
    """The second column of `lists` for rows 0 to `height`, null for those that `row`, the first, does not have.

    The column can then stand beside those of a large table, which a join would copy.
    """
    rows = pl.select(row=pl.int_range(height, dtype=pl.UInt32))
    return rows.join(lists, on="row", how="left", maintain_order="left").to_series(1)


def _refer_to_judged(rows: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """The rows with the number of each judged document in `relevant`, a list of `{doc_id, relevance, document}`."""
    known = documents.filter(pl.col("doc_id").is_not_null()).unique("doc_id", keep="first").select("doc_id", "document")
    numbered = rows.select("relevant").with_row_index("row")
    judged = numbered.filter(pl.col("relevant").list.len() > 0).explode("relevant")
    fields = judged.select("row", pl.col("relevant").struct.unnest())
    found = fields.join(known, on="doc_id", how="left", maintain_order="left")
    structs = found.select("row", relevant=pl.struct(pl.exclude("row")))
    lists = structs.group_by("row", maintain_order=True).agg("relevant")
    return rows.with_columns(align_rows(lists, rows.height))


BLOCK = 250
"""The number of questions whose cards are in one part."""
_FIGURES = 6
_ROWS_AT_ONCE = 2048
_KEY = ("dataset", "query_id")
_OF_QUESTION = ("references", "reference_contexts", "answerable", "group", "condition", "columns")
_LATER = (TRUNCATED, CITATIONS, *(one.name for one in SAMPLE_COLUMNS if one.label))
"""Columns that the page has only where a sample has a value."""
_OF_SAMPLE = (
    "question",
    "system",
    "status",
    "answer",
    "shown",
    "scores",
    "relevant",
    "error",
    "seconds",
    "input_tokens",
    "output_tokens",
    "cost",
    "cause",
    STEPS,
    *_LATER,
)


@dataclass(frozen=True)
class QuestionData:
    """The questions and all that systems did with them, as tables that refer to one another by number.

    The large columns are those of the evaluation and are never copied whole, only for the questions of one block.

    Attributes:
        keys: `number, dataset, query_id, text, slices` of each question, in the order of datasets, and `row`, the row
            of its first sample; null if it only has values.
        samples: all samples, with `question` and `system` as numbers, and `_OF_QUESTION`. A sample of a dataset or a
            system that the evaluation does not have has no number.
        values: `question, cell, value, status, reason, details`, with `cell` as a number.
        cells: system and metric of each cell, as numbers.
        documents: the documents of the contexts, without their texts.
        earlier: `question, system, earlier, earlier_answer`: the answers of an earlier evaluation, and its name.
    """

    keys: pl.DataFrame
    samples: pl.DataFrame
    values: pl.DataFrame
    cells: tuple[tuple[int, int], ...]
    documents: Documents
    earlier: pl.DataFrame

    @property
    def count(self) -> int:
        return self.keys.height

    def describe(self, evaluation: Evaluation) -> dict[str, Any]:
        """The columns that the list of questions needs: ids, texts, slices, causes, failures and values."""
        datasets = {name: number for number, name in enumerate(evaluation.datasets)}
        names = list(dict.fromkeys(self.keys.get_column("slices").explode(empty_as_null=True).drop_nulls().to_list()))
        places = {name: number for number, name in enumerate(names)}
        listed = self.keys.get_column("slices").to_list() if names else []
        slices = [[places[name] for name in one or ()] for one in listed]
        samples = self.samples.select("question", "system", "status", "error", "cause").drop_nulls("system")
        failed = samples.drop_nulls("error")
        causes: dict[str, dict[str, list[int]]] = {}
        for (system, cause), rows in _split(samples.drop_nulls("cause"), "system", "cause"):
            causes.setdefault(str(system), {})[cause] = rows["question"].to_list()
        return {
            "first": self._describe_first(evaluation),
            "dataset": [datasets[name] for name in self.keys.get_column("dataset").to_list()],
            "id": self.keys.get_column("query_id").to_list(),
            "text": self.keys.get_column("text").to_list(),
            "sliceNames": names,
            "slices": slices,
            "causes": causes,
            "failed": {str(key[0]): rows.get_column("question").to_list() for key, rows in _split(failed, "system")},
            "answering": samples.filter(pl.col("status") != "retrieved").get_column("system").unique().sort().to_list(),
            "cells": self._describe_cells(evaluation),
            "block": BLOCK,
        }

    def _describe_first(self, evaluation: Evaluation) -> list[tuple[int, int, int]]:
        """The questions to look at first: the numbers of question, system and metric; -1 where no metric decided."""
        first = find_first(evaluation)
        keys = [(dataset, query_id) for dataset, _, query_id in first]
        found = {row[1:]: row[0] for row in self.keys.select("number", *_KEY).iter_rows() if row[1:] in keys}
        systems, metrics = evaluation.systems.index, evaluation.metrics.index
        return [
            (found[dataset, query_id], systems(system), metrics(metric) if metric else -1)
            for (dataset, system, query_id), metric in first.items()
        ]

    def _describe_cells(self, evaluation: Evaluation) -> list[dict[str, Any]]:
        """The cells; `base` is what a gate compares a cell with: a system's number, or an earlier evaluation's values.

        Without a gate on a baseline no cell has a `base`, and the page compares with the first system.
        """
        base = find_base_values(evaluation) if list_baselines(evaluation) else None
        shown = self.values.select("question", "value", "status", "cell", told=pl.col("details").is_not_null())
        rows = shown.partition_by("cell", include_key=False, as_dict=True)
        cells = []
        for number, (system, metric) in enumerate(self.cells):
            of = rows[(number,)]
            cell: dict[str, Any] = {"system": system, "metric": metric, "values": self._list_by_question(of)}
            cell["errors"] = of.filter(status="error")["question"].to_list()  # the questions that failed
            cell["told"] = bool(of["told"].any())
            if base is not None:
                of_cell = base.filter(system=evaluation.systems[system], metric=evaluation.metrics[metric])
                cell["base"] = self._describe_base(of_cell, evaluation)
            cells.append(cell)
        return cells

    def _describe_base(self, rows: pl.DataFrame, evaluation: Evaluation) -> dict[str, Any] | None:
        """What one cell is compared with; an earlier evaluation, if it has values of only some of the datasets."""
        if rows.is_empty():
            return None
        names = rows.get_column("against").unique(maintain_order=True).to_list()
        earlier = rows.filter(pl.col("against").is_in([name for name in names if is_earlier(evaluation, name)]))
        if earlier.is_empty():
            return {"system": evaluation.systems.index(names[0])}
        known = earlier.join(self.keys.select(*_KEY, question="number"), on=_KEY, maintain_order="left")
        values = self._list_by_question(known.select("question", value="base"))
        return {"name": earlier.item(0, "against"), "values": values}

    def _list_by_question(self, rows: pl.DataFrame) -> list[float | None]:
        """The values of all questions in their order, null where `rows` has none."""
        values: list[float | None] = [None] * self.count
        rounded = rows.get_column("value").round_sig_figs(_FIGURES).to_list()
        for question, value in zip(rows.get_column("question").to_list(), rounded, strict=True):
            if question is not None:
                values[question] = value
        return values

    def blocks(self) -> Iterator[bytes]:
        """The cards of `BLOCK` questions each, as JSON: questions, samples and what judges told."""
        samples = self.samples.select(_OF_SAMPLE)
        samples = samples.drop(name for name in _LATER if samples[name].is_null().all())
        rows = _Places(
            samples.select("question", is_known=pl.col("question").is_not_null() & pl.col("system").is_not_null())
        )
        told = self.values.select("question", "cell", "reason", "details")
        is_told = pl.col("reason").is_not_null() | pl.col("details").is_not_null()
        told_rows = _Places(told.select("question", "cell", is_known=is_told))
        for start in range(0, self.count, BLOCK):
            tables = {
                "questions": self._describe_questions(start),
                "samples": self._add_earlier(summarize_steps(_take(samples, rows.within(start, start + BLOCK)))),
                "told": _take(told, told_rows.within(start, start + BLOCK)),
            }
            texts = (f'"{name}":{table.write_json() if table.height else "[]"}' for name, table in tables.items())
            yield ("{" + ",".join(texts) + "}").encode()

    def _add_earlier(self, samples: pl.DataFrame) -> pl.DataFrame:
        """The samples with the name of an earlier evaluation, and its answer if it is another one than today's.

        No columns without earlier answers.
        """
        if self.earlier.is_empty():
            return samples
        known = samples.join(self.earlier, on=["question", "system"], how="left", maintain_order="left")
        is_other = pl.col("earlier_answer").ne_missing(pl.col("answer"))
        return known.with_columns(pl.when(is_other).then(pl.col("earlier_answer")))

    def _describe_questions(self, start: int) -> pl.DataFrame:
        """The numbers of `BLOCK` questions from `start`, and `_OF_QUESTION`."""
        keys = self.keys.slice(start, BLOCK)
        known = separate_history(_take(self.samples.select(_OF_QUESTION), keys.get_column("row")))
        return known.insert_column(0, keys.get_column("number").alias("question"))


class _Places:
    """Finds the rows of a table that belong to some questions, in the order of the questions."""

    def __init__(self, rows: pl.DataFrame) -> None:
        """Sort the rows by `question`, then by their other columns; `is_known` says whether a row is wanted at all."""
        wanted = rows.with_row_index("row").filter("is_known").drop("is_known")
        ordered = wanted.sort(pl.exclude("row"), maintain_order=True)
        self._questions, self._rows = ordered.get_column("question"), ordered.get_column("row")

    def within(self, start: int, end: int) -> pl.Series:
        """The rows of the questions from `start` to `end`, which is not among them."""
        first, last = (int(self._questions.search_sorted(number, side="left")) for number in (start, end))
        return self._rows.slice(first, last - first)


def _take(table: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    return table.select(pl.all().gather(rows))


def collect_questions(evaluation: Evaluation) -> QuestionData:
    """The questions of an evaluation, those of its samples and those that only have values."""
    documents, samples = number_documents(list_samples(evaluation))
    values = _complete_values(evaluation.values)
    keys = _list_keys(evaluation.datasets, samples, values)
    number = keys.select(*_KEY, question="number")
    systems = {name: place for place, name in enumerate(evaluation.systems)}
    system = pl.col("system").replace_strict(systems, default=None, return_dtype=pl.UInt32)
    question = _find_numbers(samples, number)
    numbered = samples.drop("dataset", "query_id", "question").with_columns(system, question)
    cells, values = _number_cells(evaluation, values, number)
    return QuestionData(keys, numbered, values, cells, documents, _number_earlier(evaluation, number))


def _number_earlier(evaluation: Evaluation, number: pl.DataFrame) -> pl.DataFrame:
    """The earlier answer of each system to each question, of the first baseline of the gates that has one."""
    systems = pl.DataFrame({"system": evaluation.systems}).with_row_index("of")
    answers = evaluation.base_answers.unique(["dataset", "system", "query_id"], keep="first", maintain_order=True)
    known = answers.join(number, on=_KEY).join(systems, on="system")
    return known.select("question", system="of", earlier="baseline", earlier_answer="answer")


def _find_numbers(rows: pl.DataFrame, number: pl.DataFrame) -> pl.Series:
    """The number of each row's question, null if it has none."""
    found = rows.lazy().select(_KEY).join(number.lazy(), on=_KEY, how="left", maintain_order="left")
    return found.select("question").collect().to_series()


def list_samples(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """The samples in blocks, with all columns that the page reads. At least one block, which can be empty."""
    blocks = (_complete(part) for block in evaluation.iterate_samples() for part in block.iter_slices(_ROWS_AT_ONCE))
    yield next(blocks, empty_samples())
    yield from blocks


def _complete(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with all columns that the page reads; tables of earlier versions lack some."""
    empty: dict[str, pl.Expr] = {
        "scores": pl.lit(None, pl.List(pl.Float64)),
        "columns": pl.lit(None, pl.String),
        "slices": pl.lit([], pl.List(pl.String)),
        "status": pl.when(pl.col("error").is_null()).then(pl.lit("answered")).otherwise(pl.lit("failed")),
        "cause": pl.lit(None, pl.String),
        STEPS: pl.lit(None, pl.String),
        CITATIONS: pl.lit(None, pl.String),
    }
    return samples.with_columns(**{name: made for name, made in empty.items() if name not in samples.columns})


def _complete_values(values: pl.DataFrame) -> pl.DataFrame:
    if "details" not in values.columns:
        values = values.with_columns(details=pl.lit(None, pl.String))
    if LABEL in values.columns:
        people = pl.format("people say {}", pl.col(LABEL).round(3))
        told = pl.concat_str(people, "reason", separator="; ", ignore_nulls=True)
        values = values.with_columns(reason=pl.when(told != "").then(told))
    return values.select("dataset", "system", "metric", "query_id", "value", "status", "reason", "details")


def _list_keys(datasets: Sequence[str], samples: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Each question once, in the order of the datasets, then in that of the samples, then in that of the values."""
    known = samples.select(_KEY).with_row_index("row").unique(_KEY, keep="first", maintain_order=True)
    others = values.select(_KEY).unique(maintain_order=True).join(known, on=_KEY, how="anti", maintain_order="left")
    places = {name: place for place, name in enumerate(datasets)}
    order = pl.col("dataset").replace_strict(places, default=None, return_dtype=pl.Int64)
    joined = pl.concat([known, others], how="diagonal").filter(order.is_not_null())
    keys = joined.sort(order, maintain_order=True).with_row_index("number")
    return keys.hstack(_take(samples.select(pl.col("question").alias("text"), "slices"), keys.get_column("row")))


def _number_cells(
    evaluation: Evaluation, values: pl.DataFrame, number: pl.DataFrame
) -> tuple[tuple[tuple[int, int], ...], pl.DataFrame]:
    """The cells that have values, and the values with the numbers of their question and cell."""
    systems = {name: place for place, name in enumerate(evaluation.systems)}
    metrics = {name: place for place, name in enumerate(evaluation.metrics)}
    system, metric = (
        pl.col(name).replace_strict(places, default=None, return_dtype=pl.Int64)
        for name, places in (("system", systems), ("metric", metrics))
    )
    cell = values.select((metric * len(systems) + system).alias("cell")).to_series()
    question = _find_numbers(values, number).set(cell.is_null(), None)
    used = cell.filter(question.is_not_null()).unique().sort().to_list()
    dense = cell.replace_strict(used, range(len(used)), default=None, return_dtype=pl.UInt32)
    numbered = values.select(question, dense, "value", "status", "reason", "details")
    pairs = [divmod(code, len(systems)) for code in used]
    # Without unknown questions, the table itself, because a filter would copy it.
    known = numbered.drop_nulls("question") if numbered["question"].has_nulls() else numbered
    return tuple((system, metric) for metric, system in pairs), known


def _split(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    return iter(table.partition_by(keys, as_dict=True, maintain_order=True).items())


def dump_documents(documents: pl.DataFrame) -> bytes:
    """Documents as JSON: the number of the first, and lists of ids and texts."""
    return dump_json(
        {
            "first": documents.get_column("document").item(0),
            "ids": documents.get_column("doc_id").to_list(),
            "texts": documents.get_column("text").to_list(),
        }
    )
