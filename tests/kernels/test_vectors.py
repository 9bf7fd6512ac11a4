"""Cosine similarity and exact nearest neighbours, against numpy and by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rageval_spec
from rageval_spec import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Matrix = NDArray[Any]

TYPES = ["float32", "float16", "int8"]
SHAPES = st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40))


def random_rows(rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = rows.astype(np.float64)
    directions: NDArray[np.float64] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return directions


def sort_everything(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The expected neighbours; a stable sort leaves equal scores in ascending order of rows."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


class TestCosine:
    def test_hand_worked_example(self) -> None:
        a, b = [[3, 4], [1, 0], [-2, 0]], [[4, 3], [0, 7], [9, 0]]
        assert kernels.cosine_rows(a, b).tolist() == pytest.approx([0.96, 0.0, -1.0])
        expected = np.array([[0.96, 0.8, 0.6], [0.8, 0.0, 1.0], [-0.8, 0.0, -1.0]])
        assert kernels.cosine_matrix(a, b) == pytest.approx(expected, abs=1e-6)

    @given(SHAPES, st.integers(0, 99))
    def test_agrees_with_numpy(self, shape: tuple[int, int, int], seed: int) -> None:
        n, m, dimension = shape
        a, b = random_rows(n, dimension, seed), random_rows(m, dimension, seed + 1)
        matrix = kernels.cosine_matrix(a, b)
        assert matrix.shape == (n, m)
        assert matrix.dtype == np.float32
        np.testing.assert_allclose(matrix, unit(a) @ unit(b).T, atol=2e-6)
        both = min(n, m)
        expected = np.sum(unit(a[:both]) * unit(b[:both]), axis=1)
        np.testing.assert_allclose(kernels.cosine_rows(a[:both], b[:both]), expected, atol=1e-7)

    def test_many_rows_on_any_number_of_threads(self) -> None:
        a, b = random_rows(700, 30, 1), random_rows(1500, 30, 2)
        matrices = [kernels.cosine_matrix(a, b, threads=threads) for threads in (1, 2, 5, None)]
        np.testing.assert_allclose(matrices[0], unit(a) @ unit(b).T, atol=2e-6)
        assert all(np.array_equal(matrix, matrices[0]) for matrix in matrices)
        one, three = (kernels.cosine_rows(b, b[::-1], threads=threads) for threads in (1, 3))
        assert np.array_equal(one, three)

    def test_results_stay_between_minus_1_and_1(self) -> None:
        a = random_rows(100, 384, 3)
        assert np.abs(kernels.cosine_matrix(a, np.vstack([a, -a]))).max() == 1.0

    def test_accepts_other_float_types_and_strides(self) -> None:
        a = random_rows(10, 8, 4)
        assert np.array_equal(kernels.cosine_rows(a.astype(np.float64)[::2], a[::2]), np.ones(5))
        half = kernels.cosine_matrix(a.astype(np.float16), a)
        assert np.diag(half).tolist() == pytest.approx([1.0] * 10, abs=1e-3)

    def test_no_rows_give_no_values(self) -> None:
        none, two = np.empty((0, 3)), np.ones((2, 3))
        assert kernels.cosine_rows(none, none).shape == (0,)
        assert kernels.cosine_matrix(none, two).shape == (0, 2)
        assert kernels.cosine_matrix(two, none).shape == (2, 0)

    @pytest.mark.parametrize("cosine", [kernels.cosine_rows, kernels.cosine_matrix])
    @pytest.mark.parametrize(
        ("a", "b", "message"),
        [
            ([[1, 0], [0, 0]], [[1, 0], [1, 0]], "row 1 of a is all zeros"),
            ([[1, 0], [0, 1]], [[0, 0], [1, 0]], "row 0 of b is all zeros"),
            ([[1, 0]], [[1, np.nan]], "row 0 of b has the value NaN in column 1"),
            ([[np.inf, 0]], [[1, 0]], "row 0 of a has the value inf in column 0"),
            ([[1e300, 0]], [[1, 0]], "row 0 of a has the value inf in column 0"),
            ([[1, 0]], [[1, 0, 0]], "vectors of a have 2 dimensions, those of b have 3"),
            ([[]], [[]], "0 dimensions"),
            ([1, 0], [[1, 0]], "a must have two dimensions"),
        ],
    )
    def test_bad_input_is_named(
        self, cosine: Callable[..., object], a: list[object], b: list[object], message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            cosine(a, b)

    def test_different_numbers_of_rows_are_named(self) -> None:
        with pytest.raises(ValueError, match="a has 2 rows, b has 1"):
            kernels.cosine_rows(np.ones((2, 3)), np.ones((1, 3)))


class TestTopK:
    def test_hand_worked_example(self) -> None:
        found = kernels.top_k([[1, 2]], [[1, 0], [0, 1], [2, 2], [0, 1]], 3)
        assert found.indices.tolist() == [[2, 1, 3]]
        assert found.scores.tolist() == [[6.0, 2.0, 2.0]]

    @given(SHAPES, st.integers(1, 80), st.integers(0, 99))
    def test_whole_numbers_with_ties_agree_with_a_full_sort(
        self, shape: tuple[int, int, int], k: int, seed: int
    ) -> None:
        q, n, dimension = shape
        rng = np.random.default_rng(seed)
        queries, corpus = rng.integers(-3, 4, (q, dimension)), rng.integers(-3, 4, (n, dimension))
        scores = (queries @ corpus.T).astype(np.float64)
        found = kernels.top_k(queries, corpus, k)
        assert np.array_equal(found.indices, sort_everything(scores, k))
        assert np.array_equal(found.scores, np.take_along_axis(scores, found.indices, axis=1))

    @pytest.mark.parametrize("metric", ["dot", "cosine"])
    def test_many_rows_agree_with_numpy_on_any_number_of_threads(self, metric: kernels.SimilarityMetric) -> None:
        queries, corpus = random_rows(600, 48, 1), random_rows(9000, 48, 2)
        results = [kernels.top_k(queries, corpus, 50, metric=metric, threads=t) for t in (1, 2, 3, None)]
        if metric == "cosine":
            exact = unit(queries) @ unit(corpus).T
        else:
            exact = queries.astype(np.float64) @ corpus.astype(np.float64).T
        found = results[0]
        best = np.take_along_axis(exact, sort_everything(exact, 50), axis=1)
        np.testing.assert_allclose(found.scores, best, rtol=1e-4)
        np.testing.assert_allclose(found.scores, np.take_along_axis(exact, found.indices, axis=1), rtol=1e-4)
        for other in results:
            assert np.array_equal(other.indices, found.indices)
            assert np.array_equal(other.scores, found.scores)

    def test_results_do_not_depend_on_the_other_queries(self) -> None:
        queries, corpus = random_rows(500, 20, 3), random_rows(5000, 20, 4)
        together = kernels.top_k(queries, corpus, 10)
        for query in (0, 47, 479, 480, 499):
            alone = kernels.top_k(queries[query : query + 1], corpus, 10)
            assert np.array_equal(alone.indices[0], together.indices[query])
            assert np.array_equal(alone.scores[0], together.scores[query])

    def test_duplicates_come_in_order_of_row(self) -> None:
        corpus = np.tile(random_rows(1, 16, 5), (9000, 1))
        found = kernels.top_k(corpus[:2], corpus, 100, metric="cosine")
        assert np.array_equal(found.indices, np.tile(np.arange(100), (2, 1)))

    def test_a_corpus_smaller_than_k_is_returned_whole(self) -> None:
        found = kernels.top_k([[1.0], [-1.0]], [[3.0], [5.0]], 10)
        assert found.indices.tolist() == [[1, 0], [0, 1]]
        assert kernels.top_k([[1.0]], np.empty((0, 1)), 10).scores.shape == (1, 0)
        assert kernels.top_k(np.empty((0, 1)), [[1.0]], 10).scores.shape == (0, 1)

    @pytest.mark.parametrize(
        ("queries", "corpus", "options", "message"),
        [
            ([[1, 0]], [[1, 0]], {"k": 0}, "k must be between 1"),
            ([[1, 0]], [[1, 0], [0, np.nan]], {}, "row 1 of corpus has the value NaN in column 1"),
            ([[1, 0]], [[1, 0], [0, 0]], {"metric": "cosine"}, "row 1 of corpus is all zeros"),
            ([[1, 0]], [[1e-20, 0]], {"metric": "cosine"}, "row 0 of corpus has length 1.0e-20"),
            ([[1e30, 0]], [[1e20, 0]], {}, "row 0 of queries has length 1.0e30"),
            ([[1, 0]], [[1, 0, 0]], {}, "queries have 2 dimensions, those of corpus have 3"),
            ([[1, 0]], [1, 0], {}, "corpus must have two dimensions"),
            ([[1, 0]], [[1, 0]], {"metric": "l2"}, "'dot' or 'cosine', not 'l2'"),
            ([[1, 0]], [[1, 0]], {"threads": 0}, "threads must be between 1"),
        ],
    )
    def test_bad_input_is_named(
        self, queries: list[object], corpus: list[object], options: dict[str, object], message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.top_k(queries, corpus, **{"k": 1, **options})  # type: ignore[arg-type]


def random_matrix(rows: int, dimension: int, seed: int, dtype: str) -> Matrix:
    """Matrices without a row of zeros."""
    rng = np.random.default_rng(seed)
    if dtype == "int8":
        return rng.integers(-64, 64, (rows, dimension), dtype=np.int8) * 2 + 1
    return rng.normal(size=(rows, dimension)).astype(dtype)


def multiply(a: Matrix, b: Matrix) -> list[list[float]]:
    """Dot products of rows, added up one by one; exact for whole numbers."""
    return [[sum(float(x) * float(y) for x, y in zip(row, other, strict=True)) for other in b] for row in a]


class TestTypes:
    @pytest.mark.parametrize("dtype", TYPES)
    @pytest.mark.parametrize("other", TYPES)
    def test_hand_worked_example(self, dtype: str, other: str) -> None:
        a = np.array([[3, 4], [1, 0], [-2, 0]], dtype)
        b = np.array([[4, 3], [0, 7], [9, 0]], other)
        assert rageval_spec.cosine(a, b).tolist() == pytest.approx([0.96, 0.0, -1.0])
        expected = np.array([[0.96, 0.8, 0.6], [0.8, 0.0, 1.0], [-0.8, 0.0, -1.0]])
        assert rageval_spec.cosine_matrix(a, b) == pytest.approx(expected, abs=1e-6)
        found = rageval_spec.top_k(a, b, 2)
        assert found.indices.tolist() == [[1, 2], [2, 0], [1, 0]]
        assert found.scores.tolist() == [[28.0, 27.0], [9.0, 4.0], [0.0, -8.0]]

    @given(SHAPES, st.sampled_from(TYPES), st.sampled_from(TYPES), st.integers(0, 99))
    def test_agrees_with_plain_sums(self, shape: tuple[int, int, int], dtype: str, other: str, seed: int) -> None:
        n, m, dimension = (min(size, 12) for size in shape)
        a, b = random_matrix(n, dimension, seed, dtype), random_matrix(m, dimension, seed + 1, other)
        products = np.array(multiply(a, b))
        found = kernels.top_k(a, b, m)
        close = {"rtol": 0, "atol": 0} if {dtype, other} == {"int8"} else {"rtol": 1e-5, "atol": 1e-3}
        np.testing.assert_allclose(found.scores, -np.sort(-products, axis=1), **close)
        lengths = [[np.sqrt(multiply(row[None], row[None])[0][0]) for row in rows] for rows in (a, b)]
        cosines = products / np.outer(lengths[0], lengths[1])
        np.testing.assert_allclose(kernels.cosine_matrix(a, b), cosines, atol=2e-6)
        both = min(n, m)
        np.testing.assert_allclose(kernels.cosine_rows(a[:both], b[:both]), np.diag(cosines), atol=1e-7)

    @pytest.mark.parametrize("dtype", ["float16", "int8"])
    @pytest.mark.parametrize("other", TYPES)
    @pytest.mark.parametrize("metric", ["dot", "cosine"])
    def test_bits_are_those_of_float32(self, dtype: str, other: str, metric: kernels.SimilarityMetric) -> None:
        queries, corpus = random_matrix(500, 48, 1, dtype), random_matrix(9000, 48, 2, other)
        wide = queries.astype(np.float32), corpus.astype(np.float32)
        expected = kernels.top_k(*wide, 50, metric=metric)
        for threads in (1, 2, 3):
            found = kernels.top_k(queries, corpus, 50, metric=metric, threads=threads)
            assert np.array_equal(found.indices, expected.indices)
            assert np.array_equal(found.scores, expected.scores)
        few = corpus[:500]
        assert np.array_equal(kernels.cosine_rows(queries, few), kernels.cosine_rows(wide[0], wide[1][:500]))
        assert np.array_equal(kernels.cosine_matrix(queries, few), kernels.cosine_matrix(wide[0], wide[1][:500]))

    def test_int8_products_are_exact_whole_numbers(self) -> None:
        rng = np.random.default_rng(0)
        extremes = np.array([[127] * 1024, [-128] * 1024, *rng.choice([-128, 127], (9, 1024))], np.int8)
        exact = extremes.astype(np.int64) @ extremes.astype(np.int64).T
        found = kernels.top_k(extremes, extremes, 11)
        assert np.array_equal(found.scores, np.take_along_axis(exact, found.indices, axis=1))
        assert np.array_equal(found.scores, -np.sort(-exact, axis=1))

    @pytest.mark.parametrize("dtype", TYPES)
    def test_strides_and_byte_orders_make_no_difference(self, dtype: str) -> None:
        rows = random_matrix(20, 6, 3, dtype)
        expected = kernels.cosine_matrix(rows[::2], rows)
        assert np.array_equal(kernels.cosine_matrix(rows[::2], np.asfortranarray(rows)), expected)
        swapped = rows.astype(rows.dtype.newbyteorder(">"))
        assert np.array_equal(kernels.cosine_matrix(swapped[::2], rows), expected)
        unaligned = np.frombuffer(b"x" + rows.tobytes(), rows.dtype, offset=1).reshape(rows.shape)
        assert np.array_equal(kernels.cosine_matrix(rows[::2], unaligned), expected)

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "bool"])
    def test_other_types_are_converted(self, dtype: str) -> None:
        rows = np.array([[1, 0, 1], [1, 1, 0]], dtype)
        assert kernels.cosine_rows(rows, rows[::-1]).tolist() == pytest.approx([0.5, 0.5])

    @pytest.mark.parametrize("values", [[["a", "b"]], [[1, 2], [3]], [[object()]], [[1j]]])
    def test_values_that_are_not_a_matrix_of_real_numbers_are_named(self, values: Any) -> None:
        with pytest.raises(ValueError, match="corpus is not a matrix of real numbers"):
            kernels.top_k([[1.0, 2.0]], values, 1)

    def test_float16_values_that_are_not_finite_are_named(self) -> None:
        rows = np.array([[1, 2], [3, np.inf]], np.float16)
        with pytest.raises(ValueError, match="row 1 of corpus has the value inf in column 1"):
            kernels.top_k(rows[:1], rows, 1)
        with pytest.raises(ValueError, match="row 0 of b is all zeros"):
            kernels.cosine_rows(rows[:1], np.zeros((1, 2), np.int8))


def pyarrow_lists(rows: Matrix) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def polars_arrays(rows: Matrix) -> pl.Series:
    kind = {"float32": pl.Float32, "float16": pl.Float16, "int8": pl.Int8}[rows.dtype.name]
    return pl.Series("vector", rows.tolist(), pl.Array(kind, rows.shape[1]))


FORMS: dict[str, Callable[[Matrix], Any]] = {
    "pyarrow array": pyarrow_lists,
    "pyarrow slice": lambda rows: pyarrow_lists(np.vstack([rows, rows, rows]))[len(rows) : 2 * len(rows)],
    "pyarrow chunks": lambda rows: pa.chunked_array([pyarrow_lists(rows[:7]), pyarrow_lists(rows[7:])]),
    "pyarrow table": lambda rows: pa.table({"vector": pyarrow_lists(rows)}),
    "pyarrow record batch": lambda rows: pa.record_batch({"vector": pyarrow_lists(rows)}),
    "polars series": polars_arrays,
    "polars slice": lambda rows: polars_arrays(np.vstack([rows, rows, rows]))[len(rows) : 2 * len(rows)],
    "polars chunks": lambda rows: pl.concat([polars_arrays(rows[:7]), polars_arrays(rows[7:])], rechunk=False),
    "polars frame": lambda rows: polars_arrays(rows).to_frame(),
}


class TestArrow:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("dtype", TYPES)
    def test_columns_give_the_same_results_as_matrices(self, form: str, dtype: str) -> None:
        rows, others = random_matrix(30, 5, 1, dtype), random_matrix(30, 5, 2, "float32")
        column = FORMS[form](rows)
        assert np.array_equal(rageval_spec.cosine(column, others), kernels.cosine_rows(rows, others))
        assert np.array_equal(rageval_spec.cosine_matrix(others, column), kernels.cosine_matrix(others, rows))
        found, expected = kernels.top_k(column, column, 3), kernels.top_k(rows, rows, 3)
        assert np.array_equal(found.indices, expected.indices)
        assert np.array_equal(found.scores, expected.scores)

    def test_columns_without_rows_keep_their_dimension(self) -> None:
        none = pl.Series([], dtype=pl.Array(pl.Float32, 3))
        for column in (none, pa.chunked_array([], pa.list_(pa.float32(), 3))):
            assert kernels.cosine_matrix(column, np.ones((2, 3))).shape == (0, 2)
            with pytest.raises(ValueError, match="a have 3 dimensions, those of b have 2"):
                kernels.cosine_matrix(column, np.ones((2, 2)))

    @pytest.mark.parametrize(
        ("column", "message"),
        [
            (pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int8, 2)), "row 2 of corpus is null"),
            (pl.Series([[1, 2], [3, None]], dtype=pl.Array(pl.Float32, 2)), "row 1 of corpus has a null in column 1"),
            (pa.array([[0, 0], [1, 1], None, [2, 2]], pa.list_(pa.int8(), 2))[1:], "row 1 of corpus is null"),
            (
                pa.chunked_array([[[1.0, 2.0]], [[1.0, 1.0], None]], pa.list_(pa.float32(), 2)),
                "row 2 of corpus is null",
            ),
            (pl.Series([[1.0, float("nan")]], dtype=pl.Array(pl.Float32, 2)), "row 0 of corpus has the value NaN"),
            (pl.Series([[]], dtype=pl.Array(pl.Float32, 0)), "0 dimensions"),
        ],
    )
    def test_bad_columns_are_named(self, column: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            kernels.top_k([[1.0, 2.0]], column, 1)

    def test_columns_of_other_types_are_converted(self) -> None:
        doubles = pl.Series([[1.0, 0.0], [0.0, 2.0]], dtype=pl.Array(pl.Float64, 2))
        assert kernels.cosine_matrix(doubles, doubles).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        features = pl.DataFrame({"x": [1.0, 0.0], "y": [0.0, 2.0]})
        assert kernels.cosine_matrix(features, features).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        with pytest.raises(ValueError, match="a must have two dimensions"):
            kernels.cosine_rows(pl.Series([1.0, 2.0]), [[1.0]])


MEMORY = """
import sys
import numpy as np
import polars as pl
from rageval_spec import kernels

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))

rows = np.ones((100_000, 384), sys.argv[1])
corpus = pl.Series(rows) if sys.argv[2] == "arrow" else rows
kernels.top_k(corpus[:1], corpus[:10], 1)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
kernels.top_k(corpus[:1], corpus, 10)
print(peak() - before)
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not tell a process's peak memory"
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_no_matrix_is_copied(dtype: str, form: str) -> None:
    """The smallest possible copy of a matrix would take 38,400 kB."""
    command = [sys.executable, "-c", MEMORY, dtype, form]
    extra = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(extra) < 10_000


class Handed:
    """An object that returns the same capsules again and again."""

    def __init__(self, count: int = 2) -> None:
        self.capsules = pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float32, 2)).to_arrow().__arrow_c_array__()[:count]

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules


def test_used_or_incomplete_capsules_are_refused() -> None:
    handed: Any = Handed()
    lacking: Any = Handed(1)
    other = np.ones((1, 2), np.float32)
    kernels.cosine_rows(handed, other)
    with pytest.raises(ValueError, match="was already read and released"):
        kernels.cosine_rows(handed, other)
    with pytest.raises(ValueError, match="gives 1 capsules, not a schema and an array"):
        kernels.cosine_rows(lacking, other)
