from __future__ import annotations

import pytest

from rageval_spec.data.call_errors import CallError, InterruptedCallError, LimitError
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.reservation import Reservation


def test_a_reservation_counts_its_call_its_retries_and_its_cost() -> None:
    budget = Budget(max_calls=3)
    with Reservation(budget, 0.9) as reservation:
        assert reservation.begin() is None
        reservation.begin_retry()
        assert (budget.calls, budget.retries, budget.under_way) == (1, 1, 1)
        reservation.cost = 0.25
    assert (budget.cost, budget.under_way, budget.asked_of_systems) == (0.25, 0, 0)
    with Reservation(budget, is_of_system=True) as reservation:
        reservation.begin()
        with pytest.raises(LimitError, match="3 of 3 calls made"):
            reservation.begin_retry()
    assert budget.asked_of_systems == 1


def test_a_call_gets_a_function_to_wait_with_if_calls_under_way_leave_no_room() -> None:
    budget = Budget(max_cost=1.0)
    with Reservation(budget, 0.9) as first:
        first.begin()
        second = Reservation(budget, 0.9)
        wait = second.begin()
    assert wait is not None
    wait()
    assert second.begin() is None


@pytest.mark.parametrize(
    ("error", "interrupted"), [(CallError("answered 500"), 0), (InterruptedCallError(""), 1), (LimitError(""), 1)]
)
def test_a_call_that_the_evaluation_stopped_was_interrupted(error: Exception, interrupted: int) -> None:
    budget = Budget()
    with pytest.raises(type(error)), Reservation(budget) as reservation:
        reservation.begin()
        raise error
    assert (budget.interrupted, budget.under_way) == (interrupted, 0)


def test_a_call_that_was_not_allowed_was_not_interrupted() -> None:
    budget = Budget(max_calls=0)
    with pytest.raises(LimitError), Reservation(budget) as reservation:
        reservation.begin()
    assert (budget.interrupted, budget.under_way) == (0, 0)
