from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import UsageError
from rageval_spec.inference.batching import make_batches


def test_batches_worked_by_hand() -> None:
    found = [batch.tolist() for batch in make_batches([3, 5, 3, 2, 3, 9], budget=6)]
    assert found == [[5], [1], [0, 2], [4], [3]]


def test_no_texts_make_no_batches() -> None:
    assert list(make_batches([])) == []


@given(st.lists(st.integers(0, 40)), st.integers(1, 100))
def test_every_text_is_in_one_batch_of_equal_lengths_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(make_batches(lengths, budget))
    assert sorted(np.concatenate(batches).tolist() if batches else []) == list(range(len(lengths)))
    sizes = []
    for batch in batches:
        (length,) = {lengths[position] for position in batch}
        assert len(batch) == 1 or len(batch) * length <= budget
        assert batch.tolist() == sorted(batch)
        sizes.append(length)
    assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.integers(1, 40), min_size=1), st.integers(1, 100))
def test_batches_are_as_full_as_they_can_be(lengths: list[int], budget: int) -> None:
    batches = list(make_batches(lengths, budget))
    for one, following in pairwise(batches):
        length = lengths[one[0]]
        if lengths[following[0]] == length:
            assert (len(one) + 1) * length > budget


def test_a_budget_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 token, not 0"):
        list(make_batches([1], budget=0))
