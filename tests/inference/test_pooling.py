from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rageval_spec.errors import UsageError
from rageval_spec.inference.pooling import pool

METHODS = ("cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean")
HIDDEN = np.array([[[1, -8], [3, -2], [8, -5], [90, 90]]], np.float32)
MASK = np.array([[1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("cls", [1, -8]),
        ("lasttoken", [8, -5]),
        ("max", [8, -2]),
        ("mean", [4, -5]),
        ("mean_sqrt_len_tokens", [12 / math.sqrt(3), -15 / math.sqrt(3)]),
        ("weightedmean", [(1 + 6 + 24) / 6, (-8 - 4 - 15) / 6]),
    ],
)
def test_poolings_worked_by_hand(method: str, expected: list[float]) -> None:
    found = pool(HIDDEN, MASK, method)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [expected], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_padding_on_the_left_is_left_out_too(method: str) -> None:
    turned = pool(HIDDEN[:, [3, 0, 1, 2]], MASK[:, ::-1], method)
    if method == "weightedmean":  # weights count positions, as in sentence-transformers
        np.testing.assert_allclose(turned, [[(2 + 9 + 32) / 9, (-16 - 6 - 20) / 9]], rtol=1e-6)
    else:
        assert turned.tolist() == pool(HIDDEN, MASK, method).tolist()


def pool_slowly(hidden: NDArray[np.float32], mask: NDArray[np.int64], method: str) -> list[list[float]]:
    found = []
    for rows, counted in zip(hidden.astype(float), mask, strict=True):
        kept = [(place + 1, row) for place, row in enumerate(rows) if counted[place]]
        values = [row for _, row in kept]
        total = sum(values, np.zeros(rows.shape[1]))
        weighted = sum((place * row for place, row in kept), np.zeros(rows.shape[1]))
        found.append(
            {
                "cls": values[0],
                "lasttoken": values[-1],
                "max": np.array(values).max(0),
                "mean": total / len(values),
                "mean_sqrt_len_tokens": total / math.sqrt(len(values)),
                "weightedmean": weighted / sum(place for place, _ in kept),
            }[method].tolist()
        )
    return found


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_poolings_are_those_of_their_definitions(method: str, data: st.DataObject) -> None:
    texts, tokens, size = (data.draw(st.integers(1, 5)) for _ in range(3))
    hidden = np.random.default_rng(data.draw(st.integers(0, 99))).normal(0, 3, (texts, tokens, size))
    rows = st.lists(st.integers(0, 1), min_size=tokens, max_size=tokens).filter(any)
    mask = np.array(data.draw(st.lists(rows, min_size=texts, max_size=texts)))
    found = pool(hidden.astype(np.float32), mask, method)
    np.testing.assert_allclose(found, pool_slowly(hidden.astype(np.float32), mask, method), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_text_gets_bit_identical_vectors_alone_and_with_others(method: str) -> None:
    hidden = np.random.default_rng(0).normal(size=(9, 31, 48)).astype(np.float32)
    mask = np.ones((9, 31), np.int64)
    together = pool(hidden, mask, method)
    for row in range(9):
        assert pool(hidden[row : row + 1], mask[:1], method).tobytes() == together[row : row + 1].tobytes()


@pytest.mark.parametrize("method", ["mean", "mean_sqrt_len_tokens", "weightedmean"])
def test_a_text_without_tokens_gets_zeros(method: str) -> None:
    assert pool(HIDDEN, np.zeros((1, 4), np.int64), method).tolist() == [[0, 0]]


def test_an_unknown_pooling_is_refused_with_a_list_of_poolings() -> None:
    with pytest.raises(UsageError, match="no pooling 'sum'; the poolings are: cls, lasttoken, max, mean"):
        pool(HIDDEN, MASK, "sum")
