"""The questions of an evaluation for the page: the columns that its list needs, and the blocks that its cards need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.data.tables import empty_samples
from rageval_spec.reports.shared.changes import find_base_values, list_baselines
from rageval_spec.reports.shared.page.documents import Documents, number_documents
from rageval_spec.reports.shared.page.packing import dump_json

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Evaluation

BLOCK = 250
"""The number of questions whose cards are in one part."""
_FIGURES = 6
_ROWS_AT_ONCE = 512
_KEY = ("dataset", "query_id")
_OF_QUESTION = ("references", "reference_contexts", "answerable", "group", "condition", "columns")
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
)


@dataclass(frozen=True)
class Questions:
    """The questions and all that systems did with them, as tables that refer to one another by number.

    Attributes:
        keys: `number, dataset, query_id, text` and what else is known of a question, in the order of datasets.
        samples: a row for each question and system: `_OF_SAMPLE`, with `question` and `system` as numbers.
        values: `question, cell, value, status, reason, details`, with `cell` as a number.
        cells: system and metric of each cell, as numbers.
        documents: the documents of the contexts, without their texts.
    """

    keys: pl.DataFrame
    samples: pl.DataFrame
    values: pl.DataFrame
    cells: tuple[tuple[int, int], ...]
    documents: Documents

    @property
    def count(self) -> int:
        """The number of questions."""
        return self.keys.height

    def describe(self, evaluation: Evaluation) -> dict[str, Any]:
        """The columns that the list of questions needs: ids, texts, slices, causes, failures and values."""
        import polars as pl

        datasets = {name: number for number, name in enumerate(evaluation.datasets)}
        names = list(dict.fromkeys(self.keys.get_column("slices").explode(empty_as_null=True).drop_nulls().to_list()))
        places = {name: number for number, name in enumerate(names)}
        slices = [[places[name] for name in one or ()] for one in self.keys.get_column("slices").to_list()]
        failed = self.samples.filter(pl.col("error").is_not_null())
        return {
            "dataset": [datasets[name] for name in self.keys.get_column("dataset").to_list()],
            "id": self.keys.get_column("query_id").to_list(),
            "text": self.keys.get_column("text").to_list(),
            "sliceNames": names,
            "slices": slices if names else [],
            "causes": _group_causes(self.samples),
            "failed": {str(key[0]): rows.get_column("question").to_list() for key, rows in _split(failed, "system")},
            "answering": self.samples.filter(pl.col("status") != "retrieved")
            .get_column("system")
            .unique()
            .sort()
            .to_list(),
            "cells": self._describe_cells(evaluation),
            "block": BLOCK,
        }

    def _describe_cells(self, evaluation: Evaluation) -> list[dict[str, Any]]:
        """The cells; `base` is what a gate compares a cell with: a system's number, or an earlier evaluation's values.

        Without a gate on a baseline no cell has a `base`, and the page compares with the first system.
        """
        base = find_base_values(evaluation) if list_baselines(evaluation) else None
        cells = []
        for number, (system, metric) in enumerate(self.cells):
            cell = self._describe_cell(number)
            if base is not None:
                of_cell = base.filter(system=evaluation.systems[system], metric=evaluation.metrics[metric])
                cell["base"] = self._describe_base(of_cell, evaluation.systems)
            cells.append(cell)
        return cells

    def _describe_base(self, rows: pl.DataFrame, systems: Sequence[str]) -> dict[str, Any] | None:
        """What one cell is compared with; an earlier evaluation, if it has values of only some of the datasets."""
        import polars as pl

        if rows.is_empty():
            return None
        earlier = rows.filter(~pl.col("against").is_in(systems))
        if earlier.is_empty():
            return {"system": systems.index(rows.item(0, "against"))}
        known = earlier.join(self.keys.select(*_KEY, question="number"), on=_KEY, maintain_order="left")
        return {
            "name": earlier.item(0, "against"),
            "values": self._list_by_question(known.select("question", value="base")),
        }

    def _list_by_question(self, rows: pl.DataFrame) -> list[float | None]:
        """The values of all questions in their order, null where `rows` has none."""
        numbers = self.keys.select(question="number")
        full = numbers.join(rows, on="question", how="left", maintain_order="left")
        return full.get_column("value").round_sig_figs(_FIGURES).to_list()

    def _describe_cell(self, number: int) -> dict[str, Any]:
        """The values of one cell by question, null where there is none; `errors` lists the questions that failed."""
        import polars as pl

        rows = self.values.filter(pl.col("cell") == number)
        system, metric = self.cells[number]
        return {
            "system": system,
            "metric": metric,
            "values": self._list_by_question(rows.select("question", "value")),
            "errors": rows.filter(pl.col("status") == "error").get_column("question").to_list(),
            "told": bool(rows.get_column("details").is_not_null().any()),
        }

    def blocks(self) -> Iterator[bytes]:
        """The cards of `BLOCK` questions each, as JSON: questions, samples and what judges told."""
        import polars as pl

        questions = self.keys.select(pl.col("number").alias("question"), *_OF_QUESTION)
        told = self.values.filter(pl.col("reason").is_not_null() | pl.col("details").is_not_null())
        told = told.select("question", "cell", "reason", "details").sort("question", "cell", maintain_order=True)
        samples = self.samples.sort("question", maintain_order=True)
        for start in range(0, self.count, BLOCK):
            inside = pl.col("question").is_between(start, start + BLOCK, closed="left")
            tables = {"questions": questions, "samples": samples, "told": told}
            texts = (f'"{name}":{_write_rows(table.filter(inside))}' for name, table in tables.items())
            yield ("{" + ",".join(texts) + "}").encode()


def collect_questions(evaluation: Evaluation) -> Questions:
    """The questions of an evaluation, those of its samples and those that only have values."""
    import polars as pl

    documents, referring = number_documents(list_samples(evaluation))
    values = _complete_values(evaluation.values)
    keys = _list_keys(evaluation.datasets, referring, values)
    number = keys.select(*_KEY, question="number")
    systems = {name: place for place, name in enumerate(evaluation.systems)}
    of_sample = (
        referring.select(*_KEY, *(name for name in _OF_SAMPLE if name != "question"))
        .join(number, on=_KEY, how="inner", maintain_order="left")
        .with_columns(pl.col("system").replace_strict(systems, default=None, return_dtype=pl.Int64))
    )
    del referring
    cells, numbered = _number_cells(evaluation, values, number)
    return Questions(
        keys=keys,
        samples=of_sample.filter(pl.col("system").is_not_null()).select(_OF_SAMPLE),
        values=numbered,
        cells=cells,
        documents=documents,
    )


def list_samples(evaluation: Evaluation) -> Iterator[pl.DataFrame]:
    """The samples in blocks, with all columns that the page reads. At least one block, which can be empty."""
    blocks = (_complete(part) for block in evaluation.iterate_samples() for part in block.iter_slices(_ROWS_AT_ONCE))
    yield next(blocks, empty_samples())
    yield from blocks


def _complete(samples: pl.DataFrame) -> pl.DataFrame:
    """The samples with all columns that the page reads; tables of earlier versions lack some."""
    import polars as pl

    empty: dict[str, pl.Expr] = {
        "scores": pl.lit(None, pl.List(pl.Float64)),
        "columns": pl.lit(None, pl.String),
        "slices": pl.lit([], pl.List(pl.String)),
        "status": pl.when(pl.col("error").is_null()).then(pl.lit("answered")).otherwise(pl.lit("failed")),
        "cause": pl.lit(None, pl.String),
    }
    return samples.with_columns(**{name: made for name, made in empty.items() if name not in samples.columns})


def _complete_values(values: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    if "details" not in values.columns:
        values = values.with_columns(details=pl.lit(None, pl.String))
    return values.select("dataset", "system", "metric", "query_id", "value", "status", "reason", "details")


def _list_keys(datasets: Sequence[str], samples: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Each question once, in the order of the datasets, then in that of the samples, then in that of the values."""
    import polars as pl

    known = samples.select(*_KEY, pl.col("question").alias("text"), *_OF_QUESTION, "slices").unique(
        _KEY, keep="first", maintain_order=True
    )
    others = values.select(_KEY).unique(maintain_order=True).join(known, on=_KEY, how="anti", maintain_order="left")
    places = {name: place for place, name in enumerate(datasets)}
    order = pl.col("dataset").replace_strict(places, default=None, return_dtype=pl.Int64)
    joined = pl.concat([known, others], how="diagonal").filter(order.is_not_null())
    return (
        joined.sort(order, maintain_order=True).with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))
    )


def _number_cells(
    evaluation: Evaluation, values: pl.DataFrame, number: pl.DataFrame
) -> tuple[tuple[tuple[int, int], ...], pl.DataFrame]:
    """The cells that have values, and the values with the numbers of their question and cell.

    Names become numbers before the join, which would otherwise copy them for every value.
    """
    import polars as pl

    systems = {name: place for place, name in enumerate(evaluation.systems)}
    metrics = {name: place for place, name in enumerate(evaluation.metrics)}
    system, metric = (
        pl.col(name).replace_strict(places, default=None, return_dtype=pl.Int64)
        for name, places in (("system", systems), ("metric", metrics))
    )
    placed = (
        values.select(*_KEY, (metric * len(systems) + system).alias("cell"), "value", "status", "reason", "details")
        .drop_nulls("cell")
        .join(number, on=_KEY, how="inner", maintain_order="left")
        .drop(_KEY)
    )
    pairs = [divmod(code, len(systems)) for code in placed.get_column("cell").unique().sort().to_list()]
    numbered = placed.with_columns(pl.col("cell").rank("dense").cast(pl.Int64) - 1)
    return tuple((system, metric) for metric, system in pairs), numbered.select(
        "question", "cell", "value", "status", "reason", "details"
    )


def _group_causes(samples: pl.DataFrame) -> dict[str, dict[str, list[int]]]:
    """By system, the questions of each cause."""
    import polars as pl

    causes: dict[str, dict[str, list[int]]] = {}
    for (system, cause), rows in _split(samples.filter(pl.col("cause").is_not_null()), "system", "cause"):
        causes.setdefault(str(system), {})[cause] = rows.get_column("question").to_list()
    return causes


def _split(table: pl.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    return iter(table.partition_by(keys, as_dict=True, maintain_order=True).items())


def _write_rows(table: pl.DataFrame) -> str:
    """The rows as a JSON list of objects, written by polars."""
    return table.write_json() if table.height else "[]"


def dump_documents(documents: pl.DataFrame) -> bytes:
    """Documents as JSON: the number of the first, and lists of ids and texts."""
    return dump_json(
        {
            "first": documents.get_column("document").item(0),
            "ids": documents.get_column("doc_id").to_list(),
            "texts": documents.get_column("text").to_list(),
        }
    )
