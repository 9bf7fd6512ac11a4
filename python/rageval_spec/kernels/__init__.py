"""The kernels of the Rust core with Python's types: the one place that imports `_core`.

Every kernel checks its input and says what is wrong with it in a `ValueError`. None holds the interpreter
lock while it computes, and none gives another answer with another number of threads (`threads=None` takes
one per core). Matrices are read in place when they are contiguous and of the kernel's type, else converted; of
one-dimensional values the core has a copy of its own.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rageval_spec import _core

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = ArrayLike | array[float]

_SURROGATES = re.compile("[\ud800-\udfff]")
_LARGEST_SEED = 2**64 - 1
_LARGEST_COUNT = 2**63 - 1


# --- Statistics -------------------------------------------------------------------------------------------


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


class PermutationTest(NamedTuple):
    """The outcome of a paired permutation test."""

    mean_difference: float
    p_value: float
    """Two-sided, never 0."""
    permutations: int
    """Sign patterns tried: all there are if `exact`, else the number asked for."""
    exact: bool
    """Whether all patterns were enumerated, so that the p-value has no sampling error."""


class TTest(NamedTuple):
    """The outcome of a paired t-test.

    `statistic`, `p_value` and `effect_size` are None if all differences are equal and not 0.
    """

    mean_difference: float
    interval: Interval
    """Confidence interval of the mean difference."""
    statistic: float | None
    degrees_of_freedom: int
    p_value: float | None
    """Two-sided."""
    effect_size: float | None
    """Cohen's d_z: mean over standard deviation of the differences."""


class GroupSummary(NamedTuple):
    """Size, mean and quantiles of one group's values."""

    code: int
    size: int
    mean: float
    quantiles: list[float]


IntervalMethod: TypeAlias = Literal["bca", "percentile"]


def bootstrap_mean(
    values: Numbers,
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int,
    method: IntervalMethod = "bca",
    threads: int | None = None,
) -> Interval | None:
    """Return a bootstrap confidence interval of the mean of `values`, or None for a single value.

    The values, shape (n,), are resampled with replacement `resamples` times. `percentile` takes the plain
    quantiles of the resample means; `bca` corrects them for bias and skewness (Efron 1987) and agrees with
    `scipy.stats.bootstrap` up to the random draws. Equal values give an interval of no width.

    Raises:
        ValueError: no values, a value that is NaN or infinite, a setting out of range.
    """
    settings = (resamples, confidence, seed, method, threads)
    return _bootstrap([_vector("values", values)], *settings)[0]


def bootstrap_means(
    samples: Sequence[Numbers] | Floats,
    *,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int,
    method: IntervalMethod = "bca",
    threads: int | None = None,
) -> list[Interval | None]:
    """Return what `bootstrap_mean` returns for each of `samples`, faster than one by one.

    Samples (a matrix with one per row, or a sequence of arrays of any lengths) of equal length share their
    random draws, so each interval equals the one `bootstrap_mean` gives alone. An error names the sample.

    Raises:
        ValueError: as `bootstrap_mean`.
    """
    settings = (resamples, confidence, seed, method, threads)
    return _bootstrap(_vectors("sample", samples), *settings)


def _bootstrap(
    samples: list[Floats | array[float]],
    resamples: int,
    confidence: float,
    seed: int,
    method: IntervalMethod,
    threads: int | None,
) -> list[Interval | None]:
    intervals = _core.bootstrap_means(
        samples, _count("resamples", resamples), confidence, _seed(seed), method, _threads(threads)
    )
    return [None if ends is None else Interval(*ends) for ends in intervals]


def permutation_test_paired(
    comparisons: Sequence[Numbers] | Floats,
    *,
    permutations: int = 10_000,
    seed: int,
    threads: int | None = None,
) -> list[PermutationTest]:
    """Test each of `comparisons` for a mean difference of 0 by flipping signs at random (Fisher).

    A comparison holds `value_a - value_b` per query; give a matrix with one comparison per row, or a sequence of
    arrays. Two-sided for the absolute mean: `p = (1 + count) / (1 + permutations)` over random sign patterns,
    or the exact share where the differences other than 0 have no more than `permutations` patterns. A pattern
    counts when `|sum| >= |observed| - 1e-12 * sum(|d|)`: sums that differ by rounding are equal. All
    differences 0 give p = 1. A result does not depend on the other comparisons.

    Raises:
        ValueError: an empty comparison, a difference that is NaN or infinite, a setting out of range.
    """
    tests = _core.permutation_test_paired(
        _vectors("comparison", comparisons),
        _count("permutations", permutations),
        _seed(seed),
        _threads(threads),
    )
    return [PermutationTest(*test) for test in tests]


def t_test_paired(differences: Numbers, *, confidence: float = 0.95) -> TTest:
    """Return Student's paired t-test of `differences`, `value_a - value_b` per query, shape (n,), n >= 2.

    The numbers are those of `scipy.stats.ttest_rel`. Differences that are all 0 give t = 0, p = 1 and effect 0;
    differences that are all equal but not 0 leave all three undefined (None).

    Raises:
        ValueError: fewer than two differences, one that is NaN or infinite, a confidence outside (0, 1).
    """
    mean, interval, statistic, df, p_value, effect = _core.t_test_paired(
        _vector("differences", differences), confidence
    )
    return TTest(mean, Interval(*interval), statistic, df, p_value, effect)


def holm(p_values: Numbers) -> list[float]:
    """Return Holm's adjusted p-values of one family of comparisons, in the order given.

    Raises:
        ValueError: a p-value that is NaN or outside [0, 1].
    """
    return _core.holm(_vector("p_values", p_values))


def summarize_groups(codes: ArrayLike, values: Numbers, *, quantiles: Sequence[float] = ()) -> list[GroupSummary]:
    """Return size, mean and quantiles of `values` by group, for the groups that occur, by ascending code.

    `codes` (integers) and `values` have shape (n,). Quantiles, probabilities in [0, 1], are interpolated
    linearly as numpy does by default.

    Raises:
        ValueError: different lengths, a value that is NaN or infinite, a probability outside [0, 1].
    """
    groups = _core.summarize_groups(_codes(codes), _vector("values", values), list(quantiles))
    return [GroupSummary(*group) for group in groups]


# --- Vectors ----------------------------------------------------------------------------------------------


SimilarityMetric: TypeAlias = Literal["dot", "cosine"]


Vectors: TypeAlias = "ArrayLike"
"""Vectors of one dimension, one per row: a matrix, or an Arrow column.

A numpy array of float32, float16 or int8 that is contiguous in row-major order is read in place, as is a column of
fixed-size lists of these types in anything that speaks Arrow: a polars series of type `Array`, a pyarrow
`FixedSizeListArray`, a table of one such column. The kernel takes their values as float32, a few rows at a time; int8
values are taken as they are. The chunks of a column in several are copied into one, a strided array into a contiguous
one of its type, and everything else (float64, lists, ...) into float32. Two operands may differ in type.
A null is a `ValueError` that names the row.
"""


class Neighbours(NamedTuple):
    """The nearest corpus rows of every query, nearest first."""

    indices: NDArray[np.int64]
    """Numbers of corpus rows, shape (queries, k), or (queries, n) if the corpus has fewer than k rows."""
    scores: NDArray[np.float32]
    """Their scores, of the same shape."""


def cosine_rows(a: Vectors, b: Vectors, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the cosine of `a[i]` and `b[i]` for every row; shapes (n, d) and (n, d) give (n,).

    Products are added up in float64, and the result lies within [-1, 1].

    Raises:
        ValueError: different shapes; a value that is NaN or infinite; a row of zeros, which has no direction
            and so no cosine. The message names the row.
    """
    return _core.cosine_rows(_matrix("a", a), _matrix("b", b), _threads(threads))


def cosine_matrix(a: Vectors, b: Vectors, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the cosine of every row of `a` with every row of `b`; shapes (n, d) and (m, d) give (n, m).

    Values are multiplied as float32; the result lies within [-1, 1].

    Raises:
        ValueError: different dimensions; a value that is NaN or infinite; a row of zeros, or one whose length is not
            between 1e-15 and 1e15. The message names the row.
    """
    return _core.cosine_matrix(_matrix("a", a), _matrix("b", b), _threads(threads))


def top_k(
    queries: Vectors,
    corpus: Vectors,
    k: int,
    *,
    metric: SimilarityMetric = "dot",
    threads: int | None = None,
) -> Neighbours:
    """Return the `k` rows of `corpus` with the highest score for each row of `queries`, exactly.

    Shapes (q, d) and (n, d) give two arrays of (q, min(k, n)). Scores, the dot product or the cosine in float32, come
    in descending order, equal ones by ascending row. The result is the same bits for every number of threads;
    the matrix of all scores is never made. Scores of int8 vectors by `dot` are exact up to 1,024 dimensions, and beyond
    where the product of two vectors' lengths is at most 2^24.

    Raises:
        ValueError: k < 1; different dimensions; a value that is NaN or infinite; `dot`: vectors so long that a
            product might overflow; `cosine`: a row of zeros, or one whose length is not between 1e-15 and 1e15.
            The message names the row.
    """
    found = _core.top_k(
        _matrix("queries", queries), _matrix("corpus", corpus), _count("k", k), metric, _threads(threads)
    )
    return Neighbours(*found)


# --- Ranking ----------------------------------------------------------------------------------------------


TieRule: TypeAlias = Literal["trec_eval", "input", "float64", "ranx"]

Evaluator: TypeAlias = _core.Evaluator
"""Measures and options, ready for any number of runs."""
Evaluation: TypeAlias = _core.Evaluation
"""Values of all queries, by rising query id."""


class Measure(NamedTuple):
    """A measure's name, taken apart."""

    name: str
    """The canonical word: `ndcg`."""
    cutoff: int | None
    parameters: dict[str, str | float | int | bool]
    """`rel`, `judged_only`, `recall` and the word's own, as far as they are given."""
    text: str
    """The canonical text: `precision(rel=2)@10`."""


class MeasureWord(NamedTuple):
    """A word of the kernel, and what its name may carry."""

    name: str
    aliases: list[str]
    cutoff: str
    """`never`, `optional`, `required`, or `level` (a recall level behind the `@`)."""
    parameters: list[str]
    """Its own, beside `judged_only`, which all words take, and `rel`, where a relevance level changes something."""
    statistic: str
    """`mean`, `mean rank` (of ranks from 1, lower being better; 0 is none), `geometric mean` (of values that are
    logarithms) or `sum`."""
    listed: bool
    """False for words that exist for the drop-in's sake alone."""


class RankingValues(NamedTuple):
    """Values of several measures on the same queries.

    `query_ids` are sorted bytewise: all of the qrels with `missing="zero"`, else those that the run has too.
    """

    query_ids: list[str]
    measures: list[str]
    """Canonical names, in the order asked for."""
    values: NDArray[np.float64]
    """[measures, queries]; never NaN. A measure whose formula would divide by 0 is 0, as trec_eval has it."""
    low: NDArray[np.float64] | None
    """The lowest value over all orders of tied documents; None unless asked for. For `target_rank` the best rank, 0 for
    none."""
    high: NDArray[np.float64] | None
    """The highest value; for `target_rank` the worst rank, 0 where some order loses the document."""
    missing: NDArray[np.bool_]
    """Whether the query is not in the run."""
    no_relevant: NDArray[np.bool_]
    """Whether the query has no relevant document."""
    unjudged_queries: int
    """How many queries of the run are not in the qrels; they are not evaluated."""


def version() -> str:
    """Return the version of the core, which is the package's."""
    return _core.__version__


def parse_measure(text: str) -> Measure:
    """Read a measure's name as ir_measures, trec_eval, BEIR or we spell it.

    Raises:
        UsageError: an unknown name (with the nearest known one), a wrong parameter or cutoff.
    """
    name, cutoff, parameters, canonical = _core.parse_measure(text)
    return Measure(name, cutoff, parameters, canonical)


def measure_words() -> list[MeasureWord]:
    """Return all words of the kernel, listed ones first."""
    return [MeasureWord(*word) for word in _core.measure_words()]


def measure_names() -> tuple[str, ...]:
    """Return the canonical names that are offered in specs."""
    return tuple(word.name for word in measure_words() if word.listed)


def measure_aliases() -> dict[str, str]:
    """Return alias to canonical name; case, `-` and `_` do not matter in either."""
    return {alias: word.name for word in measure_words() if word.listed for alias in word.aliases}


def aggregate_measure(measure: str, values: Numbers, missing: NDArray[np.bool_] | None = None) -> float:
    """Return trec_eval's aggregate of per-query values, shape (n,), by rising query id.

    That is the mean in this order of addition; for `gm_map`, whose values are logarithms, `exp` of it; for counts
    the sum; for `target_rank` the mean of the ranks, without the zeros, which are none. `missing` marks queries that
    are not in the run: a geometric mean adds them last, as trec_eval does. Without values it is 0.
    """
    return _core.aggregate_measure(measure, _vector("values", values), missing)


def prepare_evaluator(
    measures: Sequence[str],
    *,
    ties: TieRule = "trec_eval",
    depth: int | None = None,
    judged_only: bool = False,
    drop_self: bool = False,
    relevance_level: int = 1,
    missing: Literal["zero", "skip"] = "skip",
    duplicates: Literal["error", "first"] = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> Evaluator:
    """Return measures and options ready for any number of runs; the settings are those of `evaluate_ranking`."""
    return _core.Evaluator(
        list(measures),
        ties=ties,
        depth=None if depth is None else _count("depth", depth),
        judged_only=judged_only,
        drop_self=drop_self,
        level=_between("relevance_level", relevance_level, 1, 2**31 - 1),
        missing_as_empty=missing == "zero",
        keep_first=duplicates == "first",
        tie_range=tie_range,
        threads=_threads(threads) or 0,
    )


def evaluate_ranking(
    qrels: pl.DataFrame,
    run: pl.DataFrame,
    measures: Sequence[str],
    *,
    ties: TieRule = "trec_eval",
    depth: int | None = None,
    judged_only: bool = False,
    drop_self: bool = False,
    relevance_level: int = 1,
    missing: Literal["zero", "skip"] = "zero",
    duplicates: Literal["error", "first"] = "error",
    tie_range: bool = False,
    threads: int | None = None,
) -> RankingValues:
    """Compute measures of a run in one pass.

    `qrels` has the columns query_id, doc_id, relevance, `run` query_id, doc_id, score; rows may come in any order.

    Args:
        ties: how equal scores are ordered. "trec_eval": scores as float32, ties by doc_id descending bytewise;
            "float64": the same without the cast; "input": in the order of the rows; "ranx": as that library does.
        depth: look at the first so many documents of a ranking (trec_eval's -M).
        judged_only: remove unjudged documents first (-J).
        drop_self: remove a document whose id is the query's.
        relevance_level: from which relevance on a document is relevant (-l).
        missing: a query that is not in the run counts as an empty ranking (-c), or not at all.
        duplicates: a document that a query has twice is an error, or its first row counts.
        tie_range: compute `low` and `high` too.
        threads: all cores where None. The values do not depend on it.

    Raises:
        DataError: a NaN score, a document twice (with the row).
        UsageError: an unknown measure.
        ValueError: a missing or null column, a wrong setting.
    """
    evaluator = prepare_evaluator(
        measures,
        ties=ties,
        depth=depth,
        judged_only=judged_only,
        drop_self=drop_self,
        relevance_level=relevance_level,
        missing=missing,
        duplicates=duplicates,
        tie_range=tie_range,
        threads=threads,
    )
    return ranking_values(evaluator, evaluator.evaluate(qrels, run))


def ranking_values(evaluator: Evaluator, evaluation: Evaluation) -> RankingValues:
    """Copy an evaluation's values into arrays."""
    return RankingValues(
        evaluation.query_ids,
        evaluator.measures,
        evaluation.values,
        evaluation.low,
        evaluation.high,
        evaluation.missing,
        evaluation.no_relevant,
        evaluation.unjudged_queries,
    )


def read_run(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a TREC run file (`query_id Q0 doc_id rank score tag`; plain, .gz or .zst) as query_id, doc_id, score.

    Rows keep the order of the file; the rank column is ignored, as trec_eval ignores it.

    Raises:
        DataError: with `file:line`, for a line with fewer columns, a score that is no number or NaN, an id that is
            not UTF-8; a file that cannot be read or is empty.
    """
    import polars as pl

    return pl.DataFrame(_core.read_run(path))


def read_qrels(path: str | PathLike[str]) -> pl.DataFrame:
    """Read qrels, TREC's four columns or BEIR's three with tabs, as query_id, doc_id, relevance; plain, .gz or .zst.

    Raises:
        DataError: with `file:line`, for a wrong number of columns, a relevance that is no whole number, an id that
            is not UTF-8, a document that is judged twice for a query; a file that cannot be read or is empty.
    """
    import polars as pl

    return pl.DataFrame(_core.read_qrels(path))


# --- Fusion -----------------------------------------------------------------------------------------------


FusionMethod: TypeAlias = Literal["rrf", "weighted"]
Normalization: TypeAlias = Literal["min_max", "z_score", "max", "none"]


def fuse_runs(
    runs: Sequence[pl.DataFrame],
    *,
    method: FusionMethod,
    weights: Sequence[float] | None = None,
    k: float = 60,
    normalization: Normalization = "min_max",
    depth: int,
    threads: int | None = None,
) -> pl.DataFrame:
    """Fuse runs into one: `query_id, doc_id, score`, grouped by query, best first, at most `depth` rows a query.

    Each run has these columns and a query's rows best first; a query may be absent from some runs. Queries come in the
    order in which they first appear, run after run. Documents are ordered as trec_eval orders them: scores as
    float32, descending, ties by doc_id descending bytewise.

    Args:
        method: "rrf": the sum over the runs that have the document of `weight / (k + rank)`, ranks from 1 in the order
            of the rows (Cormack, Clarke and Büttcher, SIGIR 2009). "weighted": the sum of
            `weight * normalised score`.
        weights: one per run, finite, not negative, not all 0; all 1 where None.
        k: rrf only: how much the first ranks are levelled; finite, not negative. The paper's is 60.
        normalization: weighted only, for each run and query apart. "min_max": (score - lowest) / (highest - lowest).
            "z_score": (score - mean) / standard deviation (of the population). "max": score / highest, which
            must be above 0. "none": the score. A document that a run does not have gets what a normalised lowest score
            is with "min_max" (0) and "z_score", and 0 with the others; a query that a run does not have adds nothing.
            Equal scores of a query are all 1 with "min_max" and all 0 with "z_score".
        depth: how many documents a query keeps at most, at least 1.
        threads: all cores where None. The answer does not depend on it.

    ranx 0.3.21 gives the same sums but where it makes equal scores 0 with min_max (a run's only document then counts
    for nothing), gives absent documents 0, the mean, with z_score, and needs each query in every run.

    Raises:
        DataError: a score that is NaN or infinite, a document that a run has twice for a query, a highest score not
            above 0 with "max"; with run, row, query and document.
        ValueError: no runs, a missing or null column, a wrong setting.
    """
    import polars as pl

    if not runs:
        raise ValueError("there are no runs to fuse")
    weights = [1.0] * len(runs) if weights is None else list(weights)
    depth = _count("depth", depth)
    return pl.DataFrame(_core.fuse_runs(list(runs), method, weights, k, normalization, depth, _threads(threads)))


def rank_documents(run: pl.DataFrame, depth: int | None = None, *, threads: int | None = None) -> pl.DataFrame:
    """Order a run, `query_id, doc_id, score`, and cut each query's ranking at `depth` documents (None: nowhere).

    Rows may come in any order. Queries keep the order in which they first appear; documents are ordered as trec_eval
    orders them: scores as float32, descending, ties by doc_id descending bytewise. Scores stay as they are.

    Raises:
        DataError: a score that is NaN or infinite, a document that a query has twice; with row, query and document.
        ValueError: a missing or null column, a wrong setting.
    """
    import polars as pl

    return pl.DataFrame(_core.rank_documents(run, None if depth is None else _count("depth", depth), _threads(threads)))


# --- Text -------------------------------------------------------------------------------------------------


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of a text as `(start, end)`, so that `text[start:end]` is one, trimmed and not empty.

    They come in order and together hold every character that is no white space; "" has none. Abbreviations, initials,
    decimals, URLs, lists, citations behind a full stop, wrapped lines and the full stops of other scripts are known.
    A piece without letter or digit belongs to the sentence before it.
    """
    return _core.split_sentences(_whole_characters(text))


def content_words(text: str) -> list[str]:
    """Return the words of a text that mean something, in the form in which they are compared, in order.

    They are in lower case, without accents, possessives and the English endings of plurals, `-ed` and `-ing`; English
    function words are left out, repetitions and numbers are not. `1,200.50` is `1200.5`, `2nd` is `2`, `5km` is `5` and
    `km`, `U.S.` is `us`, and a word with hyphens is several. Of scripts without spaces between words, and of Korean,
    there are pairs of characters.
    """
    return _core.content_words(_whole_characters(text))


def names(text: str) -> list[str]:
    """Return the numbers, dates and capitalised names of a text, in order, each once, as far as their looks tell.

    Numbers are in one form (`1200`, `$3.5 million`, `15%`), and so are dates (`12 May 1999`, `May 1999`, `12 May`).
    Scripts without capitals, and texts in capitals alone, have no names but numbers.
    """
    return _core.names(_whole_characters(text))


class WordShare(NamedTuple):
    """How much of a text's words was found: points, of a number 10, a content word 5, a function word 1 and a pair of
    neighbours 1, each distinct one once.
    """

    found: int
    total: int
    """0 where the text has no content word."""

    @property
    def share(self) -> float | None:
        """`found / total`, or None where there is nothing to find."""
        return self.found / self.total if self.total else None


def word_support(
    texts: Sequence[str], sources: Sequence[Sequence[str]], *, threads: int | None = None
) -> list[list[WordShare]]:
    """Return how far the words of each text are found in each of its sources, and last in all of them together.

    `sources` has as many elements as `texts`; the list of text number i has `len(sources[i]) + 1` shares. Words are
    compared as `content_words` has them, with the function words; `email` and `e-mail` are the same. A pair of words
    that stand beside one another is found where they stand so in one source. Neighbouring texts with equal sources cost
    one reading of these.

    Raises:
        ValueError: another number of texts than of sources.
    """
    if len(texts) != len(sources):
        raise ValueError(f"there are {len(texts)} texts, but sources for {len(sources)}")
    searches: list[tuple[list[str], list[str]]] = []
    last: Sequence[str] | None = None
    for text, found_in in zip(texts, sources, strict=True):
        if last is None or (found_in is not last and list(found_in) != list(last)):
            searches.append(([], [_whole_characters(source) for source in found_in]))
        last = found_in
        searches[-1][0].append(_whole_characters(text))
    support = _core.word_support(searches, _threads(threads))
    return [[WordShare(*share) for share in shares] for search in support for shares in search]


# --- Arguments --------------------------------------------------------------------------------------------


def _vector(name: str, values: Numbers) -> Floats | array[float]:
    """What the core can copy; an `array.array` of doubles needs no numpy, which takes a tenth of a second to load."""
    if isinstance(values, array) and values.typecode == "d":
        return values
    import numpy as np

    vector = np.require(values, np.float64, ["C", "A"]) if np.ndim(values) else None
    if vector is None or vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {np.ndim(values)}")
    return vector


def _vectors(name: str, rows: Sequence[Numbers] | Floats) -> list[Floats | array[float]]:
    return [_vector(f"{name} {number}", row) for number, row in enumerate(rows)]


def _matrix(name: str, values: ArrayLike) -> NDArray[Any] | _core.Vectors:
    import numpy as np

    if _may_be_vector_column(values):
        vectors = _core.read_vectors(values, name)
        if vectors is not None:
            return vectors
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"it holds {given.dtype}")
        own = next((kind for kind in (np.float32, np.float16, np.int8) if given.dtype == kind), np.float32)
        with np.errstate(over="ignore"):  # what does not fit into float32 becomes infinite, which the kernel refuses
            matrix = np.require(given, own, ["C", "A"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no matrix of real numbers: {error}") from error
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and columns, not {matrix.ndim}")
    return matrix


def _may_be_vector_column(values: object) -> bool:
    """Whether it speaks Arrow and is no table of several columns."""
    speaks_arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    columns = getattr(values, "shape", ())[1:]
    return speaks_arrow and columns in ((), (1,))


def _whole_characters(text: str) -> str:
    """The text, with a replacement character for each half of a surrogate pair, which is in no encoding."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _codes(codes: ArrayLike) -> NDArray[np.int64]:
    import numpy as np

    given = np.asarray(codes)
    if given.ndim != 1 or not (np.issubdtype(given.dtype, np.integer) or given.size == 0):
        raise ValueError(f"codes must be integers in one dimension, not {given.dtype} in {given.ndim}")
    return np.ascontiguousarray(given, dtype=np.int64)


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value}")
    return value


def _count(name: str, value: int) -> int:
    return _between(name, value, 1, _LARGEST_COUNT)


def _seed(value: int) -> int:
    return _between("seed", value, 0, _LARGEST_SEED)


def _threads(value: int | None) -> int | None:
    return None if value is None else _count("threads", value)
