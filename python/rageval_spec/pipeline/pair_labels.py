"""People's grades of pairs of a query and a document, and what they make of ranking metrics on each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.libraries import Floats, Ints, np, pl
from rageval_spec.spec.blocks.spec_node import RankingNode
from rageval_spec.statistics.raters.corrected_rankings import CorrectedCell, GradedPairs, correct_queries

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label
    from rageval_spec.plugin import Labels

_DEPTHS = (3, 10)
"""The last ranks of the strata; the last stratum has all other pairs."""
_FEW, _MANY = 50, 20
"""With fewer labels, intervals are wide; with as many, it is suspicious if none differs from the judge's grade."""
_PAIR = ("query_id", "doc_id")


def correct_rankings(
    source: Labels[Any], measures: Mapping[str, str], evaluation: Evaluation
) -> tuple[dict[str, dict[tuple[str, str], CorrectedCell]], list[Note]]:
    """What labels make of the kernel's measures, by metric, then dataset and system; and what readers must know.

    Raises DataError: values do not follow from the grades and ranks of judged documents, or probabilities are missing.
    """
    found: dict[str, dict[tuple[str, str], CorrectedCell]] = {name: {} for name in measures}
    samples = evaluation.select_samples("dataset", "system", "query_id", "relevant")
    judged = samples.explode("relevant").drop_nulls("relevant").unnest("relevant")
    told, settings = _tabulate(source.read()), evaluation.provenance.settings
    used = equal = 0
    for (dataset,), rows in judged.partition_by("dataset", as_dict=True, maintain_order=True).items():
        pool = _make_pool(rows, told.filter(pl.col("dataset").is_in(["", dataset])))
        grades, strata, people, weights, numbers = (pool[name].to_numpy() for name in pool.columns[2:])
        names = pool["query_id"].unique(maintain_order=True).to_list()
        keys, measure = _prepare(pool, rows, measures, len(names), settings["ranking"])
        places = {name: place for place, name in enumerate(names)}
        scored = evaluation.values.filter(pl.col("dataset") == dataset, pl.col("status") == "scored")
        for (metric, system), own in zip(keys, measure(grades, np.arange(len(grades))), strict=True):
            values = scored.filter(pl.col("metric") == metric, pl.col("system") == system)
            if any(abs(own[places[name]] - value) > 1e-9 for name, value in values["query_id", "value"].iter_rows()):
                raise DataError(f"{metric} of {system} depends on more than the ranks and grades of judged documents")
        used += (counted := pool.drop_nulls("people")).height
        equal += counted.filter(pl.col("people") == pl.col("relevance")).height
        if counted.height:
            pairs = GradedPairs(numbers, grades, strata, people, weights, source.node.each_query_has_relevant)
            labels = np.bincount(numbers, ~np.isnan(people)).astype(np.int64)
            corrected = correct_queries(pairs, measure, settings["statistics"]["seed"])
            for (metric, system), own in zip(keys, corrected, strict=True):
                found[metric][str(dataset), system] = CorrectedCell(places, own, labels)
    return found, [*_describe(told.height - used, used, equal)]


def _describe(unused: int, used: int, equal: int) -> Iterator[Note]:
    if unused:
        yield Note("unused_labels", f"labels of pairs that are not in the dataset's qrels: {unused}", count=unused)
    if used < _FEW:
        told = f"labels of pairs: only {used}; from {_FEW} on, intervals become useful"
        yield Note("few_labels", told, count=used)
    if used >= _MANY and equal == used:
        told = f"all {used} labels are the grades in the dataset's qrels, so they show no error of the judge"
        advice = "if people's grades were written into the qrels, 'generate qrels --also-judged' gives the judge's own"
        yield Note("no_judge_errors", f"{told}; {advice}", count=used, level="warning")


def _tabulate(labels: Sequence[Label]) -> pl.DataFrame:
    """A row for each labelled pair. The grade is the adjudicated one, or the median, the lower one of two."""
    columns = dict.fromkeys(("dataset", "query_id", "document"), pl.String)
    columns |= {"value": pl.Float64, "probability": pl.Float64, "adjudicated": pl.Boolean}
    table = pl.DataFrame([[getattr(one, name) for name in columns] for one in labels], columns, orient="row")
    keys = ("dataset", "query_id", pl.col("document").alias("doc_id"))
    kept = table.filter(pl.col("adjudicated") == pl.col("adjudicated").max().over(*keys))
    grade = pl.col("value").quantile(0.5, "lower").alias("people")
    pairs = kept.group_by(*keys, maintain_order=True).agg(grade, pl.col("probability").max())
    if 0 < (lacking := pairs["probability"].null_count()) < pairs.height:
        raise DataError(f"{lacking} of {pairs.height} labelled pairs have no probability; give all one, or none")
    return pairs


def _make_pool(rows: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """The judged pairs in the order of ids: `query_id, doc_id, relevance, stratum, people, weight, number`.

    The stratum is of the best rank in any system. Without probabilities, the labels of a stratum stand for its pairs.
    """
    pool = rows.group_by(*_PAIR, "relevance").agg(pl.col("rank").min()).sort(*_PAIR)
    if pool.select(pl.struct(_PAIR).is_duplicated().any()).item():
        raise DataError("documents have several grades, as where their relevance follows from passages")
    rank = pl.col("rank").fill_null(1 << 30)
    pool = pool.with_columns(stratum=pl.sum_horizontal((rank > depth).cast(pl.Int64) for depth in _DEPTHS))
    pool = pool.join(told, on=_PAIR, how="left", maintain_order="left")
    seen = pl.col("people").count().over("stratum")
    alike = pl.len().over("stratum") / seen * pl.len() / (seen > 0).sum()
    weight = pl.coalesce(1 / pl.col("probability"), alike).alias("weight")
    number = (pl.col("query_id").rle_id()).cast(pl.Int64).alias("number")
    return pool.select(*_PAIR, "relevance", "stratum", "people", weight, number)


def _prepare(
    pool: pl.DataFrame, rows: pl.DataFrame, measures: Mapping[str, str], count: int, ranking: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], Callable[[Ints, Ints], Floats]]:
    """The metrics and systems, and what computes all of them on queries with other grades; see `correct_queries`."""
    runs = {str(key[0]): _rebuild_run(own) for key, own in rows.group_by("system", maintain_order=True)}
    options = RankingNode.model_validate(ranking).options(drop_self=False, missing="zero")
    evaluator = kernels.prepare_evaluator([*measures.values()], options)
    order = [evaluator.measures.index(one) for one in measures.values()]

    def measure(grades: Ints, chosen: Ints) -> Floats:
        part = pool[chosen]
        qrels = part.select(*_PAIR, pl.Series("relevance", grades[chosen]))
        found = np.zeros((len(runs), len(measures), count))
        for values, run in zip(found, runs.values(), strict=True):
            own = run if len(chosen) == len(grades) else run.join(qrels, on="query_id", how="semi")
            values[:, part["number"].unique(maintain_order=True)] = evaluator.evaluate(qrels, own).values[order]
        return found.reshape(-1, count)

    return [(metric, system) for system in runs for metric in measures], measure


def _rebuild_run(rows: pl.DataFrame) -> pl.DataFrame:
    """A run with the judged documents of a system at their ranks, and others at the ranks between."""
    ranked = rows.drop_nulls("rank")
    every = ranked.group_by("query_id", maintain_order=True).agg(pl.col("rank").max())
    every = every.with_columns(rank=pl.int_ranges(1, pl.col("rank") + 1)).explode("rank")
    run = every.join(ranked, on=["query_id", "rank"], how="left", maintain_order="left")
    names = pl.coalesce("doc_id", pl.format("\0{}", "rank")).alias("doc_id")
    return run.select("query_id", names, score=-pl.col("rank").cast(pl.Float64))
