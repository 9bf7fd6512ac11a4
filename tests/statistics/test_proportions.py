from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from rageval_spec.statistics.proportions import find_p_of_excess, find_wilson_interval


def test_a_worked_example() -> None:
    interval = find_wilson_interval(8, 10)
    assert interval is not None
    # Agresti and Coull (1998): centre (8 + 1.9207) / 13.8415, half width 1.96 / 13.8415 * sqrt(8 * 2 / 10 + 0.9604).
    assert interval.low == pytest.approx(0.4902, abs=5e-5)
    assert interval.high == pytest.approx(0.9433, abs=5e-5)
    assert (interval.method, interval.confidence) == ("wilson", 0.95)


@given(st.integers(1, 500), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_it_equals_scipys(total: int, data: st.DataObject, confidence: float) -> None:
    count = data.draw(st.integers(0, total))
    interval = find_wilson_interval(count, total, confidence)
    expected = binomtest(count, total).proportion_ci(confidence, method="wilson")
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= interval.low <= count / total <= interval.high <= 1


def test_nothing_has_no_interval() -> None:
    assert find_wilson_interval(0, 0) is None


@given(st.data())
def test_an_excess_has_the_p_value_of_fishers_exact_test(data: st.DataObject) -> None:
    total, rest = data.draw(st.integers(1, 300)), data.draw(st.integers(0, 3000))
    count, others = data.draw(st.integers(0, total)), data.draw(st.integers(0, rest))
    table = np.array([[count, total - count], [others, rest - others]])
    expected = fisher_exact(table, alternative="greater").pvalue
    found = find_p_of_excess(count, total, count + others, total + rest)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
