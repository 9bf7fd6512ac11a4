from __future__ import annotations

from array import array

import numpy as np
import pytest

from rageval_spec.kernels.arguments import as_vector, as_vectors, check_count, check_seed, check_threads


def test_an_array_of_doubles_is_passed_on_unchanged() -> None:
    values = array("d", [0.5, 1.0])
    assert as_vector("values", values) is values


def test_other_numbers_become_doubles() -> None:
    assert as_vector("values", [1, 2]).tolist() == [1.0, 2.0]
    assert as_vector("values", array("f", [0.5])).tolist() == [0.5]
    assert as_vector("values", np.array([[1, 2], [3, 4]])[:, 1]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(("values", "dimensions"), [(1.5, 0), ([[1.0]], 2)])
def test_values_of_other_dimensions_are_refused(values: object, dimensions: int) -> None:
    with pytest.raises(ValueError, match=f"^values must have one dimension, not {dimensions}$"):
        as_vector("values", values)  # type: ignore[arg-type]


def test_a_bad_row_is_named_by_its_number() -> None:
    with pytest.raises(ValueError, match=r"^sample 1 must have one dimension"):
        as_vectors("sample", [[1.0], 2.0])


@pytest.mark.parametrize("value", [0, -1, 2**63])
def test_a_count_that_the_core_cannot_take_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"depth must be .*, not {value}$"):
        check_count("depth", value)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_seed_has_64_bits(value: int) -> None:
    with pytest.raises(ValueError, match="seed must be between 0 and 18446744073709551615"):
        check_seed(value)


def test_none_threads_stay_none() -> None:
    assert check_threads(None) is None
    assert check_threads(3) == 3
    with pytest.raises(ValueError, match=r"threads must be .*, not 0$"):
        check_threads(0)
