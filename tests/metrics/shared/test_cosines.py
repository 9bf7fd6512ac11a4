from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.assessment import Failed
from rageval_spec.metrics.shared.cosines import compare_meanings
from tests.metrics.judges import TableModel


def test_all_texts_are_embedded_in_one_call_and_each_only_once() -> None:
    model = TableModel({"x": [1, 0], "y": [0, 2], "xy": [3, 3], "none": [0, 0]}, cut=["xy"])
    pairs = [("x", "y"), ("x", "xy"), ("x", "x"), ("none", "x"), ("y", "none")]
    cosines = compare_meanings(model, pairs, "query")
    assert model.asked == [("query", ("x", "y", "xy", "none"))]
    assert cosines.values[:3] == pytest.approx([0.0, math.sqrt(0.5), 1.0])
    assert cosines.values[3:] == [Failed("minilm gives a vector of zeros for 'none'")] * 2
    (note,) = cosines.notes
    assert (note.code, note.count) == ("texts_truncated", 1)
    assert note.message == "1 of 4 texts is longer than minilm reads and was cut"


def test_without_pairs_no_model_is_needed() -> None:
    model = TableModel({})
    assert compare_meanings(model, [], "query").values == ()
    assert model.asked == []


@given(st.lists(st.lists(st.integers(-5, 5), min_size=3, max_size=3), min_size=2, max_size=6))
def test_cosines_equal_numpys(rows: list[list[int]]) -> None:
    vectors = {str(place): [float(number) for number in row] for place, row in enumerate(rows)}
    pairs = [(first, second) for first in vectors for second in vectors]
    for (first, second), cosine in zip(
        pairs, compare_meanings(TableModel(vectors), pairs, "document").values, strict=True
    ):
        a, b = np.array(vectors[first]), np.array(vectors[second])
        if not a.any() or not b.any():
            assert isinstance(cosine, Failed)
        else:
            assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)
