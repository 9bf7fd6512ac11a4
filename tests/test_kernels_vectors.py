"""Cosine similarity and exact nearest neighbours, against numpy and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SHAPES = st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40))


def random_rows(rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = rows.astype(np.float64)
    directions: NDArray[np.float64] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return directions


def sort_everything(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Equal scores in ascending order of row, which is what a stable sort leaves."""
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

    def test_never_leaves_the_unit_interval(self) -> None:
        a = random_rows(100, 384, 3)
        assert np.abs(kernels.cosine_matrix(a, np.vstack([a, -a]))).max() == 1.0

    def test_takes_other_float_types_and_strides(self) -> None:
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
            ([[]], [[]], "no dimension"),
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
