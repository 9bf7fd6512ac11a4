"""People's grades of pairs of a query and a document: which belong to which values, and the measures they correct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec import kernels
from rageval_spec.data.labels import Label, join_probabilities, list_draws
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.libraries import Floats, Ints, np, pl
from rageval_spec.plugin import RankingMetric
from rageval_spec.spec.blocks.spec_node import RankingNode
from rageval_spec.statistics.raters.corrected_rankings import CorrectedCell, GradedPairs, correct_queries
from rageval_spec.wording import agree, count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_DEPTHS = (3, 10)
"""The last ranks of the groups of pairs on which a judge is taken to err alike; the last group has all others."""
_NOT_RETRIEVED = 1 << 30
_ROUNDING = 1e-9
_MANY = 20
"""From so many labels on, it is suspicious if the judge gave every grade that people gave."""

Cells = dict[str, dict[tuple[str, str], CorrectedCell]]


def correct_rankings(
    labels: Sequence[Label], metrics: Mapping[str, RankingMetric[Any]], evaluation: Evaluation, *, has_relevant: bool
) -> tuple[Cells, list[Note]]:
    """What people's grades make of metrics on each query: by metric, dataset and system. And what readers must know.

    Raises:
        DataError: the values do not follow from the grades and ranks that the samples hold, or some of the labels have
            no probability and others do.
    """
    found: Cells = {name: {} for name in metrics}
    samples = evaluation.select_samples("dataset", "system", "query_id", "relevant").drop_nulls("relevant")
    judged = samples.explode("relevant").drop_nulls("relevant").unnest("relevant")
    used = 0
    seen, equal = 0, 0
    for (dataset,), rows in judged.partition_by("dataset", as_dict=True, maintain_order=True).items():
        name = str(dataset)
        told = _tabulate([one for one in labels if one.dataset in ("", name)])
        pool = _make_pool(rows, told)
        graded = pool.drop_nulls("people")
        used += graded.height
        seen, equal = seen + graded.height, equal + int((graded["people"] == graded["relevance"]).sum())
        if graded.is_empty():
            continue
        for key, cell in _correct(pool, rows, metrics, evaluation, name, has_relevant=has_relevant):
            found[key[0]][key[1:]] = cell
    items = len({one.item for one in labels})
    return found, [*_describe(items, used, equal)]


def _describe(labels: int, used: int, equal: int) -> Iterator[Note]:
    if unused := labels - used:
        are = f"{unused} of {count_noun(labels, 'label')} {agree(unused, 'is')} of pairs without a grade of the judge"
        yield Note("unused_labels", f"{are}; {agree(unused, 'it does')} not count", count=unused)
    if used >= _MANY and equal == used:
        told = f"all {used} labels are the grades that the dataset's qrels have, so they show no error of the judge"
        advice = "if people's grades were written into the qrels, 'generate qrels --also-judged' gives the judge's own"
        yield Note("no_judge_errors", f"{told}; {advice}", count=used, level="warning")


def _tabulate(labels: Sequence[Label]) -> pl.DataFrame:
    """A row for each labelled pair: `query_id, doc_id, people, probability`.

    The grade is the adjudicated one, or else the median of the annotators', the lower one of two.
    """
    pairs: dict[tuple[str, str], list[Label]] = {}
    for one in labels:
        pairs.setdefault((one.query_id, one.document), []).append(one)
    rows = []
    for pair, own in pairs.items():
        grades = sorted(int(one.value) for one in [one for one in own if one.adjudicated] or own)
        draws = [probability for _, probability in list_draws(own)]
        rows.append((*pair, grades[(len(grades) - 1) // 2], join_probabilities(draws) if draws else None))
    lacking = sum(row[-1] is None for row in rows)
    if 0 < lacking < len(rows):
        raise DataError(
            f"{lacking} of {len(rows)} labelled pairs have no probability; give all of them one, or remove the column"
        )
    schema = {"query_id": pl.String, "doc_id": pl.String, "people": pl.Int64, "probability": pl.Float64}
    return pl.DataFrame(rows, schema, orient="row")


def _make_pool(rows: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """A row for each judged pair: `query_id, doc_id, relevance, stratum, people, weight`, in the order of ids.

    The stratum is of the best rank that any system gives the document. Without probabilities, the labels of a stratum
    stand for all of its pairs, and those of all strata for the strata without labels.
    """
    best = pl.col("rank").min().fill_null(_NOT_RETRIEVED)
    pool = rows.group_by("query_id", "doc_id", "relevance").agg(best.alias("rank")).sort("query_id", "doc_id")
    if pool.select(pl.struct("query_id", "doc_id").is_duplicated().any()).item():
        raise DataError("the grades of documents differ between systems, as where they follow from passages")
    pool = pool.with_columns(stratum=pl.sum_horizontal((pl.col("rank") > depth).cast(pl.Int64) for depth in _DEPTHS))
    pool = pool.join(told, on=["query_id", "doc_id"], how="left", maintain_order="left")
    share = (pl.len() / pl.col("people").count()).over("stratum")
    post = share * pl.len() / (pl.col("people").count().over("stratum") > 0).sum()
    return pool.with_columns(weight=pl.coalesce(1 / pl.col("probability"), post))


def _correct(
    pool: pl.DataFrame,
    rows: pl.DataFrame,
    metrics: Mapping[str, RankingMetric[Any]],
    evaluation: Evaluation,
    dataset: str,
    *,
    has_relevant: bool,
) -> Iterator[tuple[tuple[str, str, str], CorrectedCell]]:
    """The corrected queries of each metric of each system on a dataset."""
    settings = evaluation.provenance.settings
    queries = pool["query_id"].unique(maintain_order=True)
    places = {query_id: place for place, query_id in enumerate(queries)}
    numbers = pool["query_id"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
    runs = {str(key[0]): _rebuild_run(own) for key, own in rows.group_by("system", maintain_order=True)}
    options = RankingNode.model_validate(settings["ranking"]).options(drop_self=False, missing="zero")
    measures = [metric.measure() for metric in metrics.values()]
    evaluator = kernels.prepare_evaluator(measures, options)

    def measure(grades: Ints, chosen: Ints) -> Floats:
        qrels = pool[chosen].select("query_id", "doc_id", pl.Series("relevance", grades[chosen]))
        found = np.zeros((len(runs), len(measures), len(queries)))
        for values, run in zip(found, runs.values(), strict=True):
            part = run if len(chosen) == len(grades) else run.join(qrels, on="query_id", how="semi")
            ranked = kernels.ranking_values(evaluator, evaluator.evaluate(qrels, part))
            columns = [places[query_id] for query_id in ranked.query_ids]
            values[:, columns] = [ranked.values[ranked.measures.index(one)] for one in measures]
        return found.reshape(-1, len(queries))

    keys = [(metric, dataset, system) for system in runs for metric in metrics]
    graded = pool["relevance"].to_numpy()
    for key, own in zip(keys, measure(graded, np.arange(len(graded))), strict=True):
        _check(key, own, places, evaluation.values)
    people, weights = (pool[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("people", "weight"))
    pairs = GradedPairs(numbers, graded, pool["stratum"].to_numpy(), people, np.maximum(weights, 1.0), has_relevant)
    labels = np.bincount(numbers, ~np.isnan(people)).astype(np.int64)
    for key, found in zip(keys, correct_queries(pairs, measure, int(settings["statistics"]["seed"])), strict=True):
        yield key, CorrectedCell(places, found, labels)


def _rebuild_run(rows: pl.DataFrame) -> pl.DataFrame:
    """A run with the judged documents of a system at their ranks, and others without a grade at the ranks between."""
    ranked = rows.drop_nulls("rank")
    depths = ranked.group_by("query_id", maintain_order=True).agg(pl.col("rank").max())
    every = depths.with_columns(rank=pl.int_ranges(1, pl.col("rank") + 1)).explode("rank")
    joined = every.join(ranked, on=["query_id", "rank"], how="left", maintain_order="left")
    names = pl.coalesce("doc_id", pl.format("\0{}", "rank"))
    return joined.select("query_id", names.alias("doc_id"), score=-pl.col("rank").cast(pl.Float64))


def _check(key: tuple[str, str, str], found: Floats, places: Mapping[str, int], values: pl.DataFrame) -> None:
    """Raise DataError if a metric's values are not what the ranks of judged documents give."""
    metric, dataset, system = key
    own = values.filter(metric=metric, dataset=dataset, system=system, status="scored").select("query_id", "value")
    for query_id, value in own.iter_rows():
        if query_id not in places or abs(found[places[query_id]] - value) > _ROUNDING:
            raise DataError(f"{metric} of {system} does not follow from the ranks of judged documents ({query_id})")
