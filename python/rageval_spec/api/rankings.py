"""Evaluates and compares rankings for other programs: takes qrels and runs, and returns values.

`evaluate` returns values by query, and their aggregates. `compare` makes paired tests on the same queries.
`average_overlap` measures the overlap of two rankings.

Heavy imports happen only when they are needed: means of files or dicts need neither numpy nor polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from rageval_spec import kernels, registry
from rageval_spec.api.ranking_inputs import Judgements, Run, measure_name, measure_text, read_form
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import NothingScoredError, UsageError
from rageval_spec.kernels.ranking_measures import Duplicates, Missing, RankingOptions, check_choice, check_whole
from rageval_spec.libraries import np, pl
from rageval_spec.statistics.intervals import Resampling
from rageval_spec.statistics.mean_intervals import (
    MeanValues,
    ValueRange,
    compute_difference_range,
    compute_mean_intervals,
    compute_range,
)

if TYPE_CHECKING:
    from rageval_spec.data.outcomes import Interval
    from rageval_spec.libraries import Floats


Profile: TypeAlias = Literal["trec_eval", "trec_eval_2023", "float64", "input", "ranx", "beir"]
_PROFILES: tuple[str, ...] = get_args(Profile)


def evaluate(
    qrels: Judgements,
    run: Run,
    measures: Iterable[object] | object,
    *,
    profile: Profile = "trec_eval",
    missing: Missing = "skip",
    relevance_level: int = 1,
    judged_only: bool = False,
    depth: int | None = None,
    drop_self: bool | None = None,
    duplicates: Duplicates = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run in one pass, with the same numbers as trec_eval.

    Args:
        qrels: `{query_id: {doc_id: relevance}}`, where queries without judgements are excluded; or a frame (polars,
            pyarrow, pandas, anything with `__arrow_c_stream__`) or a mapping of arrays with the columns query_id,
            doc_id, relevance; or the path of a file (TREC's four columns or BEIR's three; plain, .gz, .zst).
        run: `{query_id: {doc_id: score}}`, where a query without documents has an empty ranking; or a frame or a
            mapping of arrays with the columns query_id, doc_id, score; or the path of a TREC run file.
        measures: one or more names like `ndcg@10`, `map`, `rr@10`, `recall@100`, `ndcg(gain=exp)@10`, `p(rel=2)@5`.
            The names of trec_eval, ir_measures and BEIR, and the objects of ir_measures, are accepted too.
        profile: how scores and ties are handled. "trec_eval": scores as float32, ties by doc_id descending, as in
            trec_eval's tag v9.0.8 (commit d95ca64, 2020); "trec_eval_2023" or "float64": scores as float64, as in its
            tag trec_eval-9.0.8 (2023); "input": scores as float64, ties in the order of the run; "ranx": the order of
            the library ranx; "beir": as "trec_eval", without the document whose id is the query's.
        missing: a query of the qrels that is not in the run is excluded ("skip", trec_eval's default), or counts as
            an empty ranking ("zero", its `-c`).
        relevance_level: the lowest relevance that counts as relevant (`-l`).
        judged_only: remove unjudged documents first (`-J`).
        depth: use only the first `depth` documents of a ranking (`-M`); None for all.
        drop_self: remove a document whose id is the query's; None for the profile's default.
        duplicates: a document that a query has twice is an error ("error"), or only its first row counts ("first").
        tie_range: also compute the lowest and the highest value over all orders of tied documents.
        threads: the number of threads; None for one per core. The values do not depend on it.

    Raises:
        UsageError: a measure is unknown (the message suggests the nearest one), or a setting is wrong.
        DataError: a file is malformed (with `file:line`), or a table has a NaN score or a document twice (with the
            row).
        TypeError, ValueError: a dict has a wrong type or a NaN score (with the place of the entry), a table has a
            missing column, a wrong type or a null, or a setting is out of range.
    """
    check_choice("profile", profile, _PROFILES)
    options = RankingOptions(
        ties="trec_eval" if profile == "beir" else profile,
        missing=missing,
        relevance_level=relevance_level,
        judged_only=judged_only,
        depth=depth,
        drop_self=profile == "beir" if drop_self is None else drop_self,
        duplicates=duplicates,
        tie_range=tie_range,
    )
    return evaluate_with(qrels, run, measures, options, threads=threads)


def evaluate_with(
    qrels: Judgements,
    run: Run,
    measures: Iterable[object] | object,
    options: RankingOptions,
    *,
    threads: int | None = None,
) -> Results:
    """Compute ranking measures of a run like `evaluate`, with the settings in one object."""
    wanted = _list(measures)
    threads = None if threads is None else check_whole("threads", threads)
    evaluator = kernels.prepare_evaluator([measure_text(measure) for measure in wanted], options, threads=threads)
    data = read_form(qrels, "qrels", "relevance"), read_form(run, "run", "score")
    return Results([measure_name(measure) for measure in wanted], evaluator, evaluator.evaluate(*data))


def _list(measures: Iterable[object] | object) -> list[object]:
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        return [measures]
    return list(measures)


class Results:
    """The values of several measures on the queries of one run, and their aggregates."""

    def __init__(self, names: Sequence[str], evaluator: kernels.Evaluator, evaluation: kernels.Evaluation) -> None:
        """`evaluate` creates results; `names` are the measures as the caller wrote them."""
        self._names = list(names)
        self._evaluator = evaluator
        self._evaluation = evaluation
        self._means = dict(zip(self._names, evaluation.aggregates(), strict=True))

    @property
    def means(self) -> dict[str, float]:
        """`{measure: aggregate}`, with the measures as the caller wrote them.

        The aggregate is trec_eval's mean to the last digit, the geometric mean for `gm_map`, the sum for counts, and
        the mean of the ranks above 0 for `target_rank`.

        Raises:
            NothingScoredError: no query is in both the qrels and the run, so there is no mean.
        """
        if not len(self):
            raise NothingScoredError(self._why_nothing())
        return self._means

    def _why_nothing(self) -> str:
        if not self._evaluation.judged_queries:
            return "the qrels are empty, so there is nothing to average"
        if not self._evaluation.unjudged_queries:
            return "the run is empty, so there is nothing to average"
        return "no query of the qrels is in the run, so there is nothing to average; check that their ids agree"

    def __len__(self) -> int:
        """The number of queries with values."""
        return len(self._evaluation)

    def __getitem__(self, measure: object) -> float:
        """The aggregate of one measure, by the name or the object that was passed to `evaluate`."""
        return self.means[measure_name(measure)]

    def __repr__(self) -> str:
        """`Results(ndcg@10=0.4123, queries=40)`."""
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self._means.items()) if len(self) else "no means"
        return f"Results({means}, queries={len(self)})"

    @property
    def missing_queries(self) -> list[str]:
        """The queries that are not in the run but have values as empty rankings; only with `missing="zero"`."""
        marks = zip(self._evaluation.query_ids, self._evaluation.missing, strict=True)
        return [query for query, missing in marks if missing]

    @property
    def unjudged_queries(self) -> int:
        """The number of queries of the run that are not in the qrels."""
        return self._evaluation.unjudged_queries

    def per_query(self) -> dict[str, dict[str, float]]:
        """`{query_id: {measure: value}}`, in ascending order of query ids."""
        return self._evaluation.to_dicts(self._names)

    def to_polars(self) -> pl.DataFrame:
        """One row per query, in ascending order of ids: `query_id`, then a float64 column for each measure."""
        columns = {"query_id": pl.Series(self._evaluation.query_ids, dtype=pl.String)}
        return pl.DataFrame({**columns, **dict(zip(self._names, self._evaluation.values, strict=True))})

    @property
    def tie_range(self) -> dict[str, tuple[float, float]]:
        """`{measure: (lowest, highest)}`: the range of the aggregate over all orders of tied documents.

        Raises:
            UsageError: `evaluate` was called without `tie_range=True`.
            NothingScoredError: as `means`.
        """
        low, high = self._tie_values()
        _ = self.means
        names = zip(self._names, self._evaluator.measures, low, high, strict=True)
        missing = self._evaluation.missing
        return {
            name: (
                kernels.aggregate_measure(measure, lowest, missing),
                kernels.aggregate_measure(measure, highest, missing),
            )
            for name, measure, lowest, highest in names
        }

    @property
    def tied_queries(self) -> dict[str, int]:
        """`{measure: count}`: the number of queries whose value depends on the order of tied documents.

        Raises:
            UsageError: `evaluate` was called without `tie_range=True`.
        """
        low, high = self._tie_values()
        return {name: int((low[row] != high[row]).sum()) for row, name in enumerate(self._names)}

    def _tie_values(self) -> tuple[Any, Any]:
        if self._evaluation.low is None:
            raise UsageError("tie ranges were not computed; call evaluate(..., tie_range=True)")
        return self._evaluation.low, self._evaluation.high


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two systems compared on one measure, over the queries for which both have a value.

    Attributes:
        difference: the mean of `second - first`; for `gm_map`, of the logarithms.
        low, high: the ends of the interval of the difference (docs/intervals.md); None for fewer than two queries, and
            for equal differences of a measure without a highest value.
        p_value: the two-sided p-value of the test; None if it is undefined (for the t-test, with equal differences
            other than 0).
        p_adjusted: the p-value after Holm's correction over all comparisons of the call.
        effect_size: Cohen's d_z, the mean of the differences divided by their standard deviation; None if that is 0.
        wins, ties, losses: the number of queries on which `second` is better, equal or worse.
        queries: the number of compared queries.
    """

    measure: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    queries: int


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparisons of pairs of systems on some measures.

    Attributes:
        means: `{system: {measure: aggregate}}`.
        pairs: one entry for each pair and measure.
        test: the test that was used, "permutation" or "t".
    """

    means: dict[str, dict[str, float]]
    pairs: tuple[PairedComparison, ...]
    test: str

    def to_polars(self) -> pl.DataFrame:
        """A table with one row for each pair and measure; the columns are the attributes of `PairedComparison`."""
        kinds: dict[str, Any] = {"measure": pl.String, "first": pl.String, "second": pl.String}
        kinds |= dict.fromkeys(("wins", "ties", "losses", "queries"), pl.Int64)
        columns = {name: [getattr(pair, name) for pair in self.pairs] for name in PairedComparison.__slots__}
        return pl.DataFrame(
            {name: pl.Series(values, dtype=kinds.get(name, pl.Float64)) for name, values in columns.items()}
        )

    def __iter__(self) -> Iterator[PairedComparison]:
        """Iterate over the pairs."""
        return iter(self.pairs)


def compare(
    qrels: Judgements,
    runs: Mapping[str, Run],
    measures: Iterable[str],
    *,
    baseline: str | None = None,
    test: Literal["permutation", "t"] = "permutation",
    permutations: int = 10_000,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
    **settings: Any,
) -> Comparisons:
    """Compare systems pairwise on the same queries.

    Args:
        qrels: as in `evaluate`.
        runs: at least two runs by name, each as in `evaluate`.
        measures: names as in `evaluate`. Measures whose aggregate is a sum (`num_ret`) cannot be compared.
        baseline: the run to compare every other run with; None compares all pairs.
        test: "permutation", a paired sign-flip test of the mean difference, or "t", Student's paired t-test.
        permutations, resamples, confidence, seed: settings of the test and of the intervals.
        settings: further arguments of `evaluate`, for example `missing="zero"`.

    Raises:
        UsageError: there are fewer than two runs, the baseline or the test is unknown, two runs have no query in
            common, or a measure is a count.
    """
    names = [measures] if isinstance(measures, str) else list(dict.fromkeys(measures))
    _check(runs, names, baseline, test)
    results = {system: evaluate(qrels, run, names, **settings) for system, run in runs.items()}
    tables = {system: result.per_query() for system, result in results.items()}
    others = [system for system in runs if system != baseline]
    pairs = list(combinations(runs, 2)) if baseline is None else [(baseline, other) for other in others]
    cells = [(measure, first, second) for first, second in pairs for measure in names]
    paired = [_pair(tables[first], tables[second], *cell) for cell in cells for _, first, second in [cell]]
    differences = [pairs[1] - pairs[0] for pairs in paired]
    p_values = _test(differences, test, permutations=permutations, seed=seed, confidence=confidence)
    intervals = compute_mean_intervals(
        [
            MeanValues(difference, _find_range(measure, pairs))
            for (measure, _, _), difference, pairs in zip(cells, differences, paired, strict=True)
        ],
        Resampling(confidence, resamples, permutations, seed),
    )
    adjusted = iter(kernels.holm([p for p in p_values if p is not None]))
    compared = tuple(
        _summarize(cell, difference, interval, p, None if p is None else next(adjusted), confidence)
        for cell, difference, interval, p in zip(cells, differences, intervals, p_values, strict=True)
    )
    return Comparisons({system: result.means for system, result in results.items()}, compared, test)


def _check(runs: Mapping[str, Run], measures: Sequence[str], baseline: str | None, test: str) -> None:
    if test not in ("permutation", "t"):
        raise UsageError(f"unknown test '{test}'; write 'permutation' or 't'")
    if len(runs) < 2:
        raise UsageError(f"a comparison takes at least two runs, not {len(runs)}")
    if baseline is not None and baseline not in runs:
        raise UsageError(f"the baseline '{baseline}' is not among the runs {', '.join(runs)}")
    if counts := [measure for measure in measures if _find_statistic(measure) == "sum"]:
        raise UsageError(f"{', '.join(counts)}: counts have no mean to compare")


def _find_range(measure: str, pairs: Floats) -> ValueRange | None:
    """The lowest and the highest possible difference of a measure's values, in so far as the measure says."""
    word = kernels.parse_measure(measure).name
    info = registry.load("metrics", word).info if word in registry.words("metrics") else None
    bounds = None if info is None else info.bounds
    return compute_difference_range(compute_range(bounds, _find_statistic(measure), pairs.ravel().tolist()))


def _pair(
    first: Mapping[str, Mapping[str, float]],
    second: Mapping[str, Mapping[str, float]],
    measure: str,
    first_name: str,
    second_name: str,
) -> Floats:
    """The values of both systems on the queries that both have, shape (2, queries)."""
    shared = [query for query in first if query in second]
    if not shared:
        raise UsageError(f"{first_name} and {second_name} have no evaluated query in common")
    values = [(first[query][measure], second[query][measure]) for query in shared]
    if _is_rank(measure):
        values = [pair for pair in values if all(pair)]
    if not values:
        raise UsageError(f"{measure}: no query has a rank in both {first_name} and {second_name}")
    return np.array(values).T


def _is_rank(measure: str) -> bool:
    """Whether the measure's values are ranks: low values are good, and 0 means no rank."""
    return _find_statistic(measure) == "mean rank"


def _find_statistic(measure: str) -> str:
    word = kernels.parse_measure(measure).name
    return next(known.statistic for known in kernels.measure_words() if known.name == word)


def _test(
    differences: Sequence[Floats], test: str, *, permutations: int, seed: int, confidence: float
) -> list[float | None]:
    if test == "permutation":
        outcomes = kernels.permutation_test_paired(differences, permutations=permutations, seed=seed)
        return [outcome.p_value for outcome in outcomes]
    return [kernels.t_test_paired(d, confidence=confidence).p_value if len(d) > 1 else None for d in differences]


def _summarize(
    cell: tuple[str, str, str],
    difference: Floats,
    interval: Interval | None,
    p_value: float | None,
    p_adjusted: float | None,
    confidence: float,
) -> PairedComparison:
    measure, first, second = cell
    better = -difference if _is_rank(measure) else difference
    effect = kernels.t_test_paired(difference, confidence=confidence).effect_size if len(difference) > 1 else None
    return PairedComparison(
        measure=measure,
        first=first,
        second=second,
        difference=float(difference.mean()),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        p_value=p_value,
        p_adjusted=p_adjusted,
        effect_size=effect,
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        queries=len(difference),
    )


def average_overlap(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]], depth: int = 10
) -> dict[str, float]:
    """The average overlap of two runs, by query: the mean over depths d = 1..depth of |top-d of both| / d.

    Rankings are ordered as in trec_eval (scores as float32 descending, ties by doc_id descending). The overlap is 1 if
    the first `depth` documents are the same in the same order, and 0 if none is shared. A ranking shorter than d
    contributes only the documents that it has. Only queries in both runs are compared. Sources: Wu and Crestani 2003;
    Fagin, Kumar and Sivakumar 2003.

    Raises:
        UsageError: the depth is below 1.
        TypeError, ValueError: an id is not a str, or a score is not a number or is NaN.
    """
    if depth < 1:
        raise UsageError(f"depth {depth} is below 1")
    return {
        query: _overlap(_order("first", query, docs)[:depth], _order("second", query, second[query])[:depth], depth)
        for query, docs in first.items()
        if query in second
    }


def _order(run: str, query: str, docs: Mapping[Any, Any]) -> list[str]:
    for doc, score in docs.items():
        if not isinstance(doc, str):
            raise TypeError(f"{run}[{query!r}]: the doc_id {doc!r} is of type {type(doc).__name__}; ids must be str")
        if not isinstance(score, Real):
            raise TypeError(f"{run}[{query!r}][{doc!r}]: the score {score!r} is not a number")
        if score != score:
            raise ValueError(f"{run}[{query!r}][{doc!r}]: the score is NaN, which cannot be ranked")
    # Python orders str by code points, which is also the order of their UTF-8 bytes.
    ids = sorted(docs, reverse=True)
    with np.errstate(over="ignore"):
        scores = np.array([docs[doc] for doc in ids], dtype=np.float64).astype(np.float32)
    return [ids[place] for place in np.argsort(-scores, kind="stable")]


def _overlap(first: Sequence[str], second: Sequence[str], depth: int) -> float:
    seen_first: set[str] = set()
    seen_second: set[str] = set()
    shared, total = 0, 0.0
    for rank in range(depth):
        for ranking, own, other in ((first, seen_first, seen_second), (second, seen_second, seen_first)):
            if rank < len(ranking):
                own.add(ranking[rank])
                shared += ranking[rank] in other
        total += shared / (rank + 1)
    return total / depth
