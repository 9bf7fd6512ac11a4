"""People's grades of pairs of a query and a document, and what they make of ranking metrics on each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.libraries import Floats, Ints, np, pl
from rageval_spec.spec.blocks.spec_node import RankingNode
from rageval_spec.statistics.raters.corrected_rankings import CorrectedCell, GradedPairs, correct_queries

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.plugin import Labels

_DEPTHS = (3, 10)
"""The last ranks of the strata; the last stratum has all other pairs."""
_FEW, _MANY = 50, 20
"""With fewer labels, intervals are wide; with as many, it is suspicious if all are the judge's grades."""
_PAIR = ("query_id", "doc_id")


def correct_rankings(
    source: Labels[Any], metric: str, measure: str, evaluation: Evaluation
) -> tuple[dict[tuple[str, str], CorrectedCell], str | None, list[Note]]:
    """What labels make of the kernel's measure, by dataset and system; why nothing; and what readers must know."""
    cells, notes, used, equal, most = dict[tuple[str, str], CorrectedCell](), list[Note](), 0, 0, 0
    try:
        told = _tabulate(source)
        samples = evaluation.select_samples("dataset", "system", "query_id", "relevant").explode("relevant")
        judged = samples.drop_nulls("relevant").unnest("relevant")
        for (dataset,), rows in judged.group_by("dataset", maintain_order=True):
            pool = _make_pool(rows, told.filter(pl.col("dataset").is_in(["", dataset])))
            used += (counted := pool.drop_nulls("people")).height
            most = max(most, pool.select(pl.max("relevance")).item())
            equal += counted.filter(pl.col("people") == pl.col("relevance")).height
            values = evaluation.values.filter(dataset=dataset, metric=metric, status="scored")
            found = _correct(pool, rows, values, measure, evaluation.provenance.settings, source.node)
            cells |= {(str(dataset), system): cell for system, cell in found.items()}
    except DataError as error:  # the values may have cost money
        return {}, str(error), []
    if unused := told.height - used:
        notes.append(Note("unused_labels", f"labels of pairs that the qrels do not have: {unused}", count=unused))
    if used < _FEW:
        notes.append(Note("few_labels", f"only {used} labels of pairs; {_FEW} and more are useful", count=used))
    if (highest := told.select(pl.max("people")).item()) > most:
        what = f"people's grades go up to {highest:g}, those of the qrels to {most}; if these are two scales, use one"
        notes.append(Note("two_scales", what, level="warning"))
    if used >= _MANY and equal == used:
        what = (
            f"all {used} labels are the grades in the dataset's qrels, so they show no error of the judge; if people's"
        )
        what += " grades were written into the qrels, 'generate qrels --also-judged' gives the judge's own"
        notes.append(Note("no_judge_errors", what, count=used, level="warning"))
    return cells, None, notes


def _tabulate(source: Labels[Any]) -> pl.DataFrame:
    """A row for each labelled pair. The grade is the adjudicated one, or the median, the lower one of two."""
    columns = ("dataset", "query_id", "document", "value", "probability", "adjudicated")
    table = pl.DataFrame({name: [getattr(one, name) for one in source.read()] for name in columns}, strict=False)
    table = table.cast({"value": pl.Float64, "probability": pl.Float64}).rename({"document": "doc_id"})
    kept = table.filter(pl.col("adjudicated") == pl.col("adjudicated").max().over("dataset", *_PAIR))
    grade = pl.col("value").quantile(0.5, "lower").alias("people")
    return kept.group_by("dataset", *_PAIR, maintain_order=True).agg(grade, pl.col("probability").max())


def _make_pool(rows: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """The judged pairs by ids, in strata of their best rank in any system, with the query's number from 0.

    Without probabilities, the labels of a stratum stand for its pairs.
    """
    pool = rows.group_by(*_PAIR, "relevance").agg(pl.col("rank").min()).sort(*_PAIR)
    if pool.select(pl.struct(_PAIR).is_duplicated().any()).item():
        raise DataError("documents have several grades, as where their relevance follows from passages")
    rank = pl.col("rank").fill_null(1 << 30)
    pool = pool.with_columns(stratum=pl.sum_horizontal((rank > depth).cast(pl.Int64) for depth in _DEPTHS))
    pool = pool.join(told, on=_PAIR, how="left", maintain_order="left")
    seen = pl.col("people").count().over("stratum")
    alike = pl.len().over("stratum") / seen * pl.len() / (seen > 0).sum()
    weight = pl.coalesce(1 / pl.col("probability"), alike)
    number = pl.col("query_id").rle_id().cast(pl.Int64)
    return pool.select(*_PAIR, "relevance", "stratum", "people", weight=weight, number=number)


def _correct(
    pool: pl.DataFrame, rows: pl.DataFrame, values: pl.DataFrame, name: str, settings: dict[str, Any], node: Any
) -> dict[str, CorrectedCell]:
    runs = {str(key[0]): _rebuild_run(own) for key, own in rows.group_by("system", maintain_order=True)}
    options = RankingNode.model_validate(settings["ranking"]).options(drop_self=False, missing="zero")
    evaluator = kernels.prepare_evaluator([name], options)
    grades, strata, people, weights, numbers = (pool[name].to_numpy() for name in pool.columns[2:])
    places = dict(pool.select("query_id", "number").unique().iter_rows())

    def measure(changed: Ints, chosen: Ints) -> Floats:
        qrels = pool[chosen].select(*_PAIR, pl.Series("relevance", changed[chosen]))
        found = np.zeros((len(runs), len(places)))
        for values, run in zip(found, runs.values(), strict=True):
            own = run if len(chosen) == len(changed) else run.join(qrels, on="query_id", how="semi")
            values[np.unique(numbers[chosen])] = evaluator.evaluate(qrels, own).values[0]
        return found

    for system, own in zip(runs, measure(grades, np.arange(len(grades))), strict=True):
        for query_id, value in values.filter(system=system).select("query_id", "value").iter_rows():
            if query_id not in places or abs(own[places[query_id]] - value) > 1e-9:
                raise DataError(f"the values of {system} depend on more than the ranks and grades of judged documents")
    pairs = GradedPairs(numbers, grades, strata, people, weights, node.each_query_has_relevant)
    labels = np.bincount(numbers, ~np.isnan(people)).astype(np.int64)
    corrected = correct_queries(pairs, measure, settings["statistics"]["seed"])
    return {system: CorrectedCell(places, own, labels) for system, own in zip(runs, corrected, strict=True)}


def _rebuild_run(rows: pl.DataFrame) -> pl.DataFrame:
    """A run with the judged documents of a system at their ranks, and others at the ranks between."""
    ranked = rows.drop_nulls("rank")
    ranks = pl.int_range(1, pl.col("rank").max() + 1).alias("rank")
    every = ranked.group_by("query_id", maintain_order=True).agg(ranks).explode("rank")
    run = every.join(ranked, on=["query_id", "rank"], how="left", maintain_order="left")
    return run.select("query_id", pl.coalesce("doc_id", pl.format("\0{}", "rank")), score=-pl.col("rank").cast(float))
