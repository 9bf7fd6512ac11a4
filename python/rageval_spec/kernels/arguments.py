"""Checks that several kernels make on their arguments before they call the core."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Numbers: TypeAlias = ArrayLike | array[float]

_LARGEST_SEED = 2**64 - 1
_LARGEST_COUNT = 2**63 - 1


def as_vector(name: str, values: Numbers) -> Floats | array[float]:
    """Return one-dimensional values in a form that the core can copy.

    An `array.array` of doubles is returned unchanged, without numpy, which takes a tenth of a second to load.
    """
    if isinstance(values, array) and values.typecode == "d":
        return values
    import numpy as np

    vector = np.require(values, np.float64, ["C", "A"]) if np.ndim(values) else None
    if vector is None or vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {np.ndim(values)}")
    return vector


def as_vectors(name: str, rows: Sequence[Numbers] | Floats) -> list[Floats | array[float]]:
    """Apply `as_vector` to each row. An error names the number of the row."""
    return [as_vector(f"{name} {number}", row) for number, row in enumerate(rows)]


def check_between(name: str, value: int, low: int, high: int) -> int:
    """Return `value` if it is between `low` and `high`, both included; otherwise raise `ValueError`."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, not {value}")
    return value


def check_count(name: str, value: int) -> int:
    """Return `value` if it is at least 1 and fits in 63 bits; otherwise raise `ValueError`."""
    return check_between(name, value, 1, _LARGEST_COUNT)


def check_seed(value: int) -> int:
    """Return `value` if it fits in an unsigned 64-bit integer; otherwise raise `ValueError`."""
    return check_between("seed", value, 0, _LARGEST_SEED)


def check_threads(value: int | None) -> int | None:
    """Return `value` if it is at least 1, or None, which means one thread for each core."""
    return None if value is None else check_count("threads", value)
