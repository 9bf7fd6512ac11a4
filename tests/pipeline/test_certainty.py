from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.pipeline.certainty import Estimate, count_more, decide

ENDS = st.tuples(*[st.floats(-1, 1)] * 3).map(sorted)


@given(ENDS, st.floats(-1, 1), st.booleans())
def test_a_decision_holds_for_every_number_in_the_interval(ends: list[float], bound: float, below_is_bad: bool) -> None:
    low, point, high = ends
    outcome = decide(Estimate(point, low, high, 10), bound, below_is_bad=below_is_bad, miss="fail")
    misses = {value < bound if below_is_bad else value > bound for value in (low, point, high)}
    assert outcome == ("inconclusive" if len(misses) == 2 else "fail" if misses == {True} else "pass")


def test_more_queries_shrink_the_interval_with_their_square_root() -> None:
    assert count_more(Estimate(0.5, 0.3, 0.6, 100), 0.4) == 300
    assert count_more(Estimate(0.5, 0.3, 0.6, 100), 0.55) == 300
    assert count_more(Estimate(0.5, 0.3, 0.6, 100), 0.3) == 1


@pytest.mark.parametrize("bound", [0.5, 0.5000001])
def test_a_bound_next_to_the_mean_cannot_be_decided(bound: float) -> None:
    assert count_more(Estimate(0.5, 0.3, 0.6, 100), bound) is None


def test_the_promised_number_of_queries_decides() -> None:
    chance = random.Random(5)
    values = [chance.betavariate(2, 1) for _ in range(2000)]

    def estimate(queries: int) -> Estimate:
        seen = values[:queries]
        half = 1.96 * statistics.stdev(seen) / queries**0.5
        return Estimate(statistics.fmean(seen), statistics.fmean(seen) - half, statistics.fmean(seen) + half, queries)

    first = estimate(50)
    bound = first.point - 0.04
    more = count_more(first, bound)
    assert decide(first, bound, below_is_bad=True, miss="fail") == "inconclusive"
    assert more is not None
    assert decide(estimate(50 + 2 * more), bound, below_is_bad=True, miss="fail") == "pass"
