"""Retrieves runs and builds the values table of ranking metrics.

Each value is a number, or null with a status and a reason; never NaN or a silent 0.

| column | content |
|---|---|
| `value` | the number; null unless the status is "scored" |
| `status` | "scored"; "unscorable": this query cannot have a value; "error": it failed |
| `reason` | why there is no value |
| `details` | what the value was computed from, as JSON (for example claims with their verdicts), or null |
| `tie_low`, `tie_high` | the range over all orders of tied documents, or null |

`tie_low` and `tie_high` are null if `ranking.tie_range` is off, or if the order at this end of the range gives no
value.

A document with the query's id can be the query itself, and must then be dropped from rankings. BEIR drops every such
document, because in some of its collections (ArguAna, Quora) queries are documents of the corpus. If queries and
documents are numbered independently, equal ids mean nothing, and dropping such documents would lose results.
Therefore the texts are compared.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from rageval_spec.data import tables
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError, no_exit
from rageval_spec.libraries import np, pl
from rageval_spec.pipeline.planning.plan import RunShare, StepTask, TaskResult
from rageval_spec.plugin import RankingMetric, Retrieval, System
from rageval_spec.wording import agree, count_noun, list_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.data.tables import Collection
    from rageval_spec.kernels import RankingValues
    from rageval_spec.pipeline.values.step_inputs import Materials
    from rageval_spec.spec.blocks.spec_node import RankingNode


def retrieve_run(materials: Materials, task: StepTask) -> TaskResult:
    """Retrieve a system's run (`query_id, doc_id, score`), and measure the time it takes.

    The run has all queries of the task, even if only some questions are asked of the systems that answer.
    """
    plugin = materials.parts.system(str(task.step.system))
    collection = materials.open_whole(str(task.step.dataset)).collection
    if task.part is not None:
        part = task.part.queries
        collection = replace(collection, load_queries=part.load_queries, load_qrels=part.load_qrels)
    start = time.perf_counter()
    found = retrieve(plugin, collection, task.inputs, task.documents)
    seconds = time.perf_counter() - start
    documents = collection.documents.count() if "corpus" in plugin.needs and collection.documents is not None else 0
    queries = collection.queries.height if "queries" in plugin.needs and collection.queries is not None else 0
    return TaskResult(found.run, found.notes, share=RunShare(seconds, found.reused, documents), queries=queries)


def retrieve(
    plugin: System[Any],
    collection: Collection,
    runs: Mapping[str, pl.DataFrame],
    documents: tuple[int, int] | None = None,
) -> Retrieval:
    """Let a system retrieve, and check its run. Raises `DataError` if the dataset or the run lacks a part.

    With `documents`, it searches that part of the documents, and the run keeps the columns by which parts are joined.
    """
    for part in sorted(plugin.needs):
        if getattr(collection, "documents" if part == "corpus" else part) is None:
            wanted = "a corpus" if part == "corpus" else part
            raise DataError(f"{plugin.node.use} needs {wanted}, but the dataset '{collection.name}' has none")
    with no_exit():
        if documents is not None:
            return plugin.search_part(collection, *documents)
        found = plugin.retrieve(collection, runs)
    retrieval = found if isinstance(found, Retrieval) else Retrieval(found)
    run = retrieval.run
    absent = [column for column in tables.RUN if column not in run.columns]
    if absent:
        raise DataError(f"the run has no column {', '.join(map(repr, absent))}; it has {', '.join(run.columns)}")
    return replace(retrieval, run=run.select(tables.RUN))


COLUMNS = (*tables.VALUES, "tie_low", "tie_high", "details")
NOT_IN_THE_RUN = "the query is not in the run"
NO_RELEVANT = "the query has no relevant document"


def ranking_values(ranking: RankingNode, ranked: RankingValues, metric: RankingMetric[Any]) -> pl.DataFrame:
    """One metric's rows, without the columns that `label` adds; `ranking` says which queries are excluded.

    A number becomes null if the metric says that it is not a value. This also applies to the ends of the range over
    all orders of ties: one order can give a query a value, and another none.
    """
    no_relevant = pl.Series(ranked.no_relevant & (ranking.no_relevant == "skip"))
    missing = pl.Series(ranked.missing & (ranking.missing == "skip"))
    left_out = pl.when(no_relevant).then(pl.lit(NO_RELEVANT)).when(missing).then(pl.lit(NOT_IN_THE_RUN))
    skipped = pl.select(left_out.otherwise(pl.lit(None, dtype=pl.String))).to_series()
    value, reason = _explained(metric, ranked, ranked.values, skipped)
    low, _ = _explained(metric, ranked, ranked.low, skipped)
    high, _ = _explained(metric, ranked, ranked.high, skipped)
    columns = {"value": value, "tie_low": low, "tie_high": high, "reason": reason}
    table = pl.DataFrame({"query_id": pl.Series(ranked.query_ids, dtype=pl.String), **columns})
    scored = pl.when(pl.col("reason").is_null()).then(pl.lit("scored"))
    return table.with_columns(scored.otherwise(pl.lit("unscorable")).alias("status"))


def _explained(
    metric: RankingMetric[Any], ranked: RankingValues, numbers: NDArray[np.float64] | None, skipped: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """A metric's row of `numbers`, with null for queries without a value, and the reasons; all null without numbers."""
    if numbers is None:
        return pl.Series([None] * len(skipped), dtype=pl.Float64), skipped
    measure = metric.measure()
    frame = pl.DataFrame({name: numbers[ranked.measures.index(name)] for name in (measure, *metric.companions())})
    unscorable = metric.unscorable(frame)
    reason = skipped if unscorable is None else frame.select(pl.coalesce(skipped, unscorable)).to_series()
    return frame.select(pl.when(reason.is_null()).then(measure)).to_series(), reason


def check_values(values: pl.DataFrame, queries: pl.DataFrame) -> pl.DataFrame:
    """Check the table of a `TableMetric`, and complete it to one row for each query.

    A query without a valid row gets the status "error", never a 0. Raises `DataError` if the table lacks a column, or
    has several rows for a query.
    """
    absent = [column for column in ("query_id", "value", "status", "reason") if column not in values.columns]
    if absent:
        raise DataError(f"the metric's table has no column {', '.join(map(repr, absent))}")
    if values["query_id"].is_duplicated().any():
        raise DataError("the metric returned several values for one query")
    table = queries.join(values.cast({"value": pl.Float64, "reason": pl.String}), on="query_id", how="left")
    table = table.sort("query_id").with_columns(_fault().alias("fault"))
    sound = pl.col("fault").is_null()
    return table.select(
        "query_id",
        pl.when(sound & (pl.col("status") == "scored")).then("value"),
        pl.when(sound).then("status").otherwise(pl.lit("error")).alias("status"),
        pl.coalesce("fault", "reason").alias("reason"),
    )


def _fault() -> pl.Expr:
    value, status = pl.col("value"), pl.col("status")
    statuses = get_args(tables.Status)
    known = pl.lit(statuses, dtype=pl.List(pl.String))
    unknown = f"the metric returned the unknown status '{{}}'; the statuses are {list_names(statuses)}"
    return (
        pl.when(status.is_null())
        .then(pl.lit("the metric returned no value"))
        .when(~status.is_in(known))
        .then(pl.format(unknown, status))
        .when((status == "scored") & value.is_null())
        .then(pl.lit("the metric returned 'scored' without a value"))
        .when((status == "scored") & ~value.is_finite())
        .then(pl.lit("the value is not a finite number"))
        .otherwise(pl.lit(None, dtype=pl.String))
    )


def error_values(queries: pl.DataFrame, reason: str) -> pl.DataFrame:
    value, status = pl.lit(None, dtype=pl.Float64), pl.lit("error")
    return queries.with_columns(value.alias("value"), status.alias("status"), pl.lit(reason).alias("reason"))


def label(values: pl.DataFrame, dataset: str, system: str, metric: str) -> pl.DataFrame:
    """The rows of one metric, completed to all of `COLUMNS`."""
    names = {"dataset": pl.lit(dataset), "system": pl.lit(system), "metric": pl.lit(metric)}
    absent = {name: pl.lit(None, dtype=_type(name)) for name in COLUMNS if name not in (*values.columns, *names)}
    return values.with_columns(**names, **absent).select(COLUMNS)


def concatenate(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One table of all rows, in the order given. It has all columns even if there are no rows."""
    return pl.concat([pl.DataFrame(schema={column: _type(column) for column in COLUMNS}), *frames])


def _type(column: str) -> type[pl.Float64 | pl.String]:
    return pl.Float64 if column in ("value", "tie_low", "tie_high") else pl.String


def may_drop_self(ranking: RankingNode, collection: Collection) -> bool:
    """Whether rows could be dropped, as far as this is known before a run is read."""
    return ranking.self_retrieval == "drop" or (ranking.self_retrieval == "auto" and collection.drops_self_retrieval)


def drops_self(ranking: RankingNode, collection: Collection, run: pl.DataFrame) -> bool:
    """Whether to drop the documents whose id is the query's from a run.

    With `auto`, they are dropped if the dataset's benchmark does so and the texts do not disagree (missing texts never
    do). The texts are read only if the run has such rows.
    """
    if not may_drop_self(ranking, collection) or not (run["query_id"] == run["doc_id"]).any():
        return False
    return ranking.self_retrieval == "drop" or collection.repeats_queries is not False


def self_retrieval_notes(ranking: RankingNode, collection: Collection, system: str, found: int) -> list[Note]:
    """A note on the `found` retrieved documents with the query's id; one note for all systems if they were kept."""
    if not found:
        return []
    if ranking.self_retrieval == "auto" and collection.repeats_queries is False:
        message = (
            "documents with the id of the query are kept, because their texts differ from the query's; "
            "set 'ranking.self_retrieval: drop' to drop them"
        )
        return [Note("self_retrieval", message, collection.name)]
    message = f"{count_noun(found, 'retrieved document')} with the id of the query {agree(found, 'was')} dropped"
    if ranking.self_retrieval == "auto":
        message += ", as BEIR does; set 'ranking.self_retrieval: keep' to keep them"
    return [Note("self_retrieval", message, collection.name, system, found)]
