"""Computes cosines and exact nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.inputs import check_count, check_threads
from rageval_spec.libraries import Ints, np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SimilarityMetric: TypeAlias = Literal["dot", "cosine"]


Vectors: TypeAlias = "ArrayLike"
"""Vectors of equal length, one per row: a matrix, or an Arrow column.

A numpy array of float32, float16 or int8 that is contiguous in row-major order is read in place. So is a column of
fixed-size lists of these types in an object with the Arrow interface: a polars series of type `Array`, a pyarrow
`FixedSizeListArray`, or a table with one such column. The kernel converts a few rows at a time to float32; int8 values
are used as they are. A column in several chunks is copied into one chunk, a strided array into a contiguous one of its
type, and everything else (float64, lists, ...) into float32. Two operands can have different types. A null is a
`ValueError` that names the row.
"""


class Neighbours(NamedTuple):
    """The nearest rows of the corpus for every query, nearest first."""

    indices: Ints
    """The numbers of the corpus rows, shape (queries, k), or (queries, n) if the corpus has only n < k rows."""
    scores: NDArray[np.float32]
    """Their scores, with the same shape."""


def cosine_rows(a: Vectors, b: Vectors, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the cosine of `a[i]` and `b[i]` for every row; shapes (n, d) and (n, d) give (n,).

    Products are added up in float64; results are within [-1, 1].

    Raises:
        ValueError: the shapes differ, a value is NaN or infinite, or a row is all zeros, so that it has no direction.
            The message names the row.
    """
    return _core.cosine_rows(_matrix("a", a), _matrix("b", b), check_threads(threads))


def cosine_matrix(a: Vectors, b: Vectors, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the cosine of every row of `a` with every row of `b`; shapes (n, d) and (m, d) give (n, m).

    Values are multiplied as float32; results are within [-1, 1].

    Raises:
        ValueError: the dimensions differ, a value is NaN or infinite, or the length of a row is 0 or not between 1e-15
            and 1e15. The message names the row.
    """
    return _core.cosine_matrix(_matrix("a", a), _matrix("b", b), check_threads(threads))


def top_k(
    queries: Vectors,
    corpus: Vectors,
    k: int,
    *,
    metric: SimilarityMetric = "dot",
    threads: int | None = None,
) -> Neighbours:
    """Return the `k` rows of `corpus` with the highest score for each row of `queries`, exactly.

    Shapes (q, d) and (n, d) give two arrays of shape (q, min(k, n)). Scores are dot products or cosines in float32, in
    descending order; equal scores come in ascending order of rows. The result has the same bits for every number of
    threads, and the matrix of all scores is never built. With `dot`, the scores of int8 vectors are exact up to 1,024
    dimensions, and beyond if the product of the two vectors' lengths is at most 2^24.

    Raises:
        ValueError: k < 1, the dimensions differ, or a value is NaN or infinite; with `dot`, vectors are so long that a
            product could overflow; with `cosine`, the length of a row is 0 or not between 1e-15 and 1e15. The message
            names the row.
    """
    found = _core.top_k(
        _matrix("queries", queries), _matrix("corpus", corpus), check_count("k", k), metric, check_threads(threads)
    )
    return Neighbours(*found)


VectorForm: TypeAlias = Literal["float32", "float16", "int8", "binary"]
UNRANKED = 2**32 - 1
"""The rank of a row that is not searched."""


class NearestSearch:
    """An exact search for the nearest rows of a corpus that comes in blocks, of which none is copied.

    Scores are those of the form, the same bits on every processor (float16 and float32: on every one with fused
    multiply-add) and for any division into blocks and threads:

    - float32, float16: as `top_k`.
    - int8: the query becomes int16 values with a scale of its own. With `dot`, a score is the exact sum of the products
      of the integers, times both scales, in float32. With `cosine`, it is the cosine of the two vectors of integers.
    - binary: the number of equal signs less that of different ones; a sign is whether a value is above 0.
    """

    def __init__(
        self, queries: Vectors, k: int, form: VectorForm, *, metric: SimilarityMetric, threads: int | None = None
    ) -> None:
        """Begin a search for `k` rows for each query; raises `ValueError` for queries that `top_k` refuses."""
        self._search = _core.Search(
            _matrix("queries", queries), form, check_count("k", k), metric, check_threads(threads)
        )

    def scan(
        self, values: NDArray[Any], scales: NDArray[np.float32] | None = None, ranks: NDArray[np.uint32] | None = None
    ) -> None:
        """Search the next rows: `values` [n, dimension], or signs [n, ceil(dimension / 8)] as `np.packbits` gives them.

        `scales` [n] belong to int8. Of equal scores the row with the lower rank is nearer, and the result names rows by
        their ranks; rows with `UNRANKED` are left out. By default rows are numbered as they come.

        Raises:
            ValueError: the rows do not fit the form or the queries, or `top_k` refuses one that is ranked. The message
                numbers the rows of this block from 0.
        """
        self._search.scan(values, scales, ranks)

    def finish(self, following: NDArray[np.uint32] | None = None) -> Neighbours:
        """The nearest rows, by their ranks.

        `following` is for ranks that share a row: the next higher one of the same row for each rank, or `UNRANKED`. The
        row itself was given the lowest. Each rank counts as a row of its own.
        """
        return Neighbours(*self._search.finish(following))


def _matrix(name: str, values: ArrayLike) -> NDArray[Any] | _core.Vectors:
    if _may_be_vector_column(values):
        vectors = _core.read_vectors(values, name)
        if vectors is not None:
            return vectors
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"it holds {given.dtype}")
        own = next((kind for kind in (np.float32, np.float16, np.int8) if given.dtype == kind), np.float32)
        with np.errstate(over="ignore"):  # values that do not fit into float32 become infinite; the kernel refuses them
            matrix = np.require(given, own, ["C", "A"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a matrix of real numbers: {error}") from error
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and columns, not {matrix.ndim}")
    return matrix


def _may_be_vector_column(values: object) -> bool:
    """Whether an object has the Arrow interface and is not a table of several columns."""
    speaks_arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    columns = getattr(values, "shape", ())[1:]
    return speaks_arrow and columns in ((), (1,))
