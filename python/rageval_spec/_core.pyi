from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__version__: str

def bootstrap_means(
    samples: Sequence[NDArray[np.float64]],
    resamples: int,
    confidence: float,
    seed: int,
    method: str,
    threads: int | None,
) -> list[tuple[float, float] | None]: ...
def permutation_test_paired(
    comparisons: Sequence[NDArray[np.float64]], permutations: int, seed: int, threads: int | None
) -> list[tuple[float, float, int, bool]]: ...
def t_test_paired(
    differences: NDArray[np.float64], confidence: float
) -> tuple[float, tuple[float, float], float | None, int, float | None, float | None]: ...
def holm(p_values: NDArray[np.float64]) -> list[float]: ...
def summarize_groups(
    codes: NDArray[np.int64], values: NDArray[np.float64], quantiles: Sequence[float]
) -> list[tuple[int, int, float, list[float]]]: ...
