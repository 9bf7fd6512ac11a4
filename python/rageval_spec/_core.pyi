from array import array
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

_Numbers: TypeAlias = NDArray[np.float64] | array[float]

__version__: str
__all__ = [
    "Alphabet",
    "Bm25Builder",
    "Bm25Index",
    "Evaluation",
    "Evaluator",
    "Search",
    "Table",
    "Unigram",
    "Vectors",
    "__version__",
    "aggregate_measure",
    "bootstrap_means",
    "bound_means",
    "cosine_matrix",
    "cosine_rows",
    "fuse_runs",
    "holm",
    "measure_words",
    "names",
    "parse_measure",
    "permutation_test_paired",
    "permutation_test_unpaired",
    "rank_documents",
    "read_qrels",
    "read_run",
    "read_vectors",
    "sentence_support",
    "split_pieces",
    "split_sentences",
    "student_p_value",
    "student_quantile",
    "t_test_paired",
    "top_k",
    "word_support",
]

def bootstrap_means(
    samples: Sequence[_Numbers],
    resamples: int,
    confidence: float,
    seed: int,
    method: str,
    threads: int | None,
) -> list[tuple[float, float] | None]: ...
def bound_means(
    samples: Sequence[_Numbers],
    counts: Sequence[_Numbers | None],
    bounds: Sequence[tuple[float, float]],
    confidence: float,
    threads: int | None,
) -> list[tuple[float, float]]: ...
def permutation_test_paired(
    comparisons: Sequence[_Numbers], permutations: int, seed: int, threads: int | None
) -> list[tuple[float, float, int, bool]]: ...
def permutation_test_unpaired(
    firsts: Sequence[_Numbers], seconds: Sequence[_Numbers], permutations: int, seed: int, threads: int | None
) -> list[tuple[float, float, int, bool]]: ...
def t_test_paired(
    differences: _Numbers, confidence: float
) -> tuple[float, tuple[float, float], float | None, int, float | None, float | None]: ...
def student_p_value(t: float, degrees: float) -> float: ...
def student_quantile(p_value: float, degrees: float) -> float: ...
def holm(p_values: _Numbers) -> list[float]: ...

# --- Vectors ----------------------------------------------------------------------------------------------

@final
class Vectors: ...

@final
class Search:
    def __new__(cls, queries: _Matrix, form: str, k: int, metric: str, threads: int | None) -> Self: ...
    def scan(
        self,
        values: NDArray[np.float32] | NDArray[np.float16] | NDArray[np.int8] | NDArray[np.uint8],
        scales: NDArray[np.float32] | None,
        ranks: NDArray[np.uint32] | None,
    ) -> None: ...
    def finish(self, next: NDArray[np.uint32] | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...

_Matrix: TypeAlias = NDArray[np.float32] | NDArray[np.float16] | NDArray[np.int8] | Vectors

def read_vectors(object: object, name: str) -> Vectors | None: ...
def cosine_rows(a: _Matrix, b: _Matrix, threads: int | None) -> NDArray[np.float32]: ...
def cosine_matrix(a: _Matrix, b: _Matrix, threads: int | None) -> NDArray[np.float32]: ...
def top_k(
    queries: _Matrix, corpus: _Matrix, k: int, metric: str, threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...

# --- Ranking ----------------------------------------------------------------------------------------------

def parse_measure(text: str) -> tuple[str, int | None, dict[str, str | float | int | bool], str]: ...
def measure_words() -> list[tuple[str, list[str], str, list[str], str, bool]]: ...
def aggregate_measure(measure: str, values: _Numbers, missing: NDArray[np.bool_] | None = None) -> float: ...
def read_run(path: str | PathLike[str]) -> Table: ...
def read_qrels(path: str | PathLike[str]) -> Table: ...
def fuse_runs(
    runs: Sequence[object],
    method: str,
    weights: Sequence[float],
    k: float,
    normalization: str,
    depth: int,
    threads: int | None,
) -> Table: ...
def rank_documents(run: object, depth: int | None, threads: int | None) -> Table: ...

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Evaluator:
    def __new__(
        cls,
        measures: Sequence[str],
        *,
        ties: str,
        depth: int | None,
        judged_only: bool,
        drop_self: bool,
        level: int,
        missing_as_empty: bool,
        keep_first: bool,
        tie_range: bool,
        threads: int | None,
    ) -> Evaluator: ...
    @property
    def measures(self) -> list[str]: ...
    def evaluate(self, qrels: object, run: object) -> Evaluation: ...

@final
class Evaluation:
    @property
    def query_ids(self) -> list[str]: ...
    @property
    def values(self) -> NDArray[np.float64]: ...
    @property
    def low(self) -> NDArray[np.float64] | None: ...
    @property
    def high(self) -> NDArray[np.float64] | None: ...
    @property
    def missing(self) -> NDArray[np.bool_]: ...
    @property
    def no_relevant(self) -> NDArray[np.bool_]: ...
    @property
    def judged_queries(self) -> int: ...
    @property
    def unjudged_queries(self) -> int: ...
    def __len__(self) -> int: ...
    def aggregates(self) -> list[float]: ...
    def to_dicts(self, names: Sequence[str]) -> dict[str, dict[str, float]]: ...

# --- Text -------------------------------------------------------------------------------------------------

def split_sentences(text: str) -> list[tuple[int, int]]: ...
def names(text: str) -> list[str]: ...
def word_support(
    searches: Sequence[tuple[Sequence[str], Sequence[str]]], threads: int | None
) -> list[list[list[tuple[int, int]]]]: ...
def sentence_support(
    searches: Sequence[tuple[str, Sequence[str]]], threads: int | None
) -> list[
    list[tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, tuple[int, int] | None] | None]]
]: ...

@final
class Unigram:
    def __new__(
        cls, pieces: NDArray[np.uint8], offsets: NDArray[np.uint32], scores: NDArray[np.float32], unknown: int
    ) -> Unigram: ...
    def read(
        self, texts: Sequence[str], most: int | None = None, threads: int | None = None
    ) -> list[NDArray[np.uint32]]: ...

@final
class Alphabet:
    def __new__(cls, words: Sequence[tuple[int, int]], lowered: Sequence[tuple[int, int]]) -> Alphabet: ...

@final
class Bm25Builder:
    def __new__(
        cls,
        split: str,
        stop_words: Sequence[str],
        stems: bool,
        folder: str | PathLike[str] | None,
        threads: int | None,
    ) -> Bm25Builder: ...
    def add(
        self, documents: object, alphabet: Alphabet, expand: Callable[[Sequence[str]], list[list[str]]]
    ) -> None: ...
    def finish(
        self, path: str | PathLike[str] | None, note: bytes, proceed: Callable[[int, int], object]
    ) -> NDArray[np.uint8] | None: ...

@final
class Bm25Index:
    def __new__(cls, content: NDArray[np.uint8], path: str | PathLike[str]) -> Bm25Index: ...
    @property
    def documents(self) -> int: ...
    @property
    def note(self) -> bytes: ...
    def search(
        self,
        queries: Sequence[Sequence[str]],
        method: str,
        k1: float,
        b: float,
        delta: float,
        depth: int,
        threads: int | None,
    ) -> Table: ...

def split_pieces(texts: Sequence[str], split: str, alphabet: Alphabet) -> list[list[str]]: ...
