"""Compares systems for other programs: paired tests on the same queries, and the overlap of two rankings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec import kernels
from rageval_spec.api.forms import Judgements, Run
from rageval_spec.api.ranking import evaluate
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.kernels import Floats


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two systems compared on one measure, over the queries for which both have a value.

    Attributes:
        difference: the mean of `second - first`; for `gm_map`, of the logarithms.
        low, high: the ends of the BCa bootstrap interval of the difference; None for fewer than two queries.
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
        import polars as pl

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
    differences = [_differences(tables[first], tables[second], *cell) for cell in cells for _, first, second in [cell]]
    p_values = _test(differences, test, permutations=permutations, seed=seed, confidence=confidence)
    intervals = kernels.bootstrap_means(differences, resamples=resamples, confidence=confidence, seed=seed)
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
    statistics = {word.name: word.statistic for word in kernels.measure_words()}
    counts = [measure for measure in measures if statistics[kernels.parse_measure(measure).name] == "sum"]
    if counts:
        raise UsageError(f"{', '.join(counts)}: counts have no mean to compare")


def _differences(
    first: Mapping[str, Mapping[str, float]],
    second: Mapping[str, Mapping[str, float]],
    measure: str,
    first_name: str,
    second_name: str,
) -> Floats:
    import numpy as np

    shared = [query for query in first if query in second]
    if not shared:
        raise UsageError(f"{first_name} and {second_name} have no evaluated query in common")
    values = [(first[query][measure], second[query][measure]) for query in shared]
    if _is_rank(measure):
        values = [pair for pair in values if all(pair)]
    if not values:
        raise UsageError(f"{measure}: no query has a rank in both {first_name} and {second_name}")
    return np.array([of_second - of_first for of_first, of_second in values])


def _is_rank(measure: str) -> bool:
    """Whether the measure's values are ranks: low values are good, and 0 means no rank."""
    word = kernels.parse_measure(measure).name
    return any(known.name == word and known.statistic == "mean rank" for known in kernels.measure_words())


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
    interval: kernels.Interval | None,
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
    import numpy as np

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
