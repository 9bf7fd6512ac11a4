"""Cosines and exact nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.arguments import check_count, check_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

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
    return _core.cosine_rows(_matrix("a", a), _matrix("b", b), check_threads(threads))


def cosine_matrix(a: Vectors, b: Vectors, *, threads: int | None = None) -> NDArray[np.float32]:
    """Return the cosine of every row of `a` with every row of `b`; shapes (n, d) and (m, d) give (n, m).

    Values are multiplied as float32; the result lies within [-1, 1].

    Raises:
        ValueError: different dimensions; a value that is NaN or infinite; a row of zeros, or one whose length is not
            between 1e-15 and 1e15. The message names the row.
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
        _matrix("queries", queries), _matrix("corpus", corpus), check_count("k", k), metric, check_threads(threads)
    )
    return Neighbours(*found)


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
