"""Limits on calls, cost and errors, counted from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread

import pytest

from rageval_spec.data.call_errors import LimitError
from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec import loads

SPEC = """version: 1
datasets: {d: {use: beir, path: d}}
systems: {s: {use: bm25}}
metrics: [rr]
limits: {max_errors: %s}
"""


def begin_call(budget: Budget, cost: float = 0.0) -> None:
    """Begin a call as soon as the calls under way leave room for it."""
    while not budget.try_call(cost):
        budget.wait_for_room(cost)


def test_calls_never_exceed_the_limit_however_many_threads_make_them() -> None:
    budget = Budget(max_calls=100)

    def call(_: int) -> bool:
        try:
            begin_call(budget)
        except LimitError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(call, range(400))) == 100
    assert budget.calls == 100


def test_a_reached_limit_says_what_to_do_and_stays_reached() -> None:
    budget = Budget(max_calls=0)
    for _ in range(2):
        with pytest.raises(LimitError, match=r"limits\.max_calls: 0 of 0 calls made; run again to continue"):
            begin_call(budget)


def test_cost_is_checked_before_it_is_spent_and_corrected_after() -> None:
    budget = Budget(max_cost=1.0)
    begin_call(budget, 0.9)
    assert budget.cost == 0
    budget.end_call(0.9, 0.1)
    begin_call(budget, 0.9)
    budget.end_call(0.9, 0.9)
    assert budget.cost == pytest.approx(1.0)
    with pytest.raises(LimitError, match=r"limits\.max_cost: 1 of 1 USD are spent, and the next call may cost 0\.2"):
        begin_call(budget, 0.2)


def test_a_call_waits_for_calls_under_way_if_only_they_leave_no_room() -> None:
    budget, begun = Budget(max_cost=1.0), Event()
    begin_call(budget, 0.9)

    def begin() -> None:
        begin_call(budget, 0.9)
        begun.set()

    waiting = Thread(target=begin, daemon=True)
    waiting.start()
    assert not begun.wait(0.1)
    assert budget.stopped is None
    budget.end_call(0.9, 0.05)
    assert begun.wait(10)
    assert budget.calls == 2
    assert budget.cost == pytest.approx(0.05)


def test_a_call_that_waits_for_room_ends_when_there_will_be_none() -> None:
    budget = Budget(max_cost=1.0)
    begin_call(budget, 0.9)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(begin_call, budget, 0.9) for _ in range(4)]
        budget.end_call(0.9, 0.9)
        for future in waiting:
            with pytest.raises(LimitError, match=r"0\.9 of 1 USD are spent, and the next call may cost 0\.9"):
                future.result(10)


@pytest.mark.parametrize("expected", [0.1, 0.3, 0.7])
def test_many_threads_spend_nearly_the_whole_limit_and_never_more(expected: float) -> None:
    """Each call costs a tenth of its expected cost, so the calls under way must not end the evaluation."""
    budget, most = Budget(max_cost=10.0), 0.0

    def call(_: int) -> None:
        nonlocal most
        with suppress(LimitError):
            begin_call(budget, expected)
            budget.end_call(expected, expected / 10)
            most = max(most, budget.cost)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(call, range(round(200 / expected))))
    assert 10 - 1.1 * expected <= most <= 10


def test_errors_are_limited_by_number_or_by_share_once_enough_questions_were_asked() -> None:
    few = Budget(max_errors=1)
    few.count_question(failed=True)
    begin_call(few)
    few.count_question(failed=True)
    with pytest.raises(LimitError, match=r"max_errors: 2 of 2 questions got no usable reply \(limit: 1\)"):
        begin_call(few)
    share = Budget(max_errors=0.1)
    for _ in range(10):
        share.count_question(failed=True)
    for _ in range(9):
        share.count_question()
    begin_call(share)
    share.count_question(failed=True)
    with pytest.raises(LimitError, match=r"11 of 20 questions got no usable reply \(limit: 10%\)"):
        begin_call(share)


def test_the_share_of_failed_questions_does_not_depend_on_the_number_of_calls() -> None:
    budget = Budget(max_errors=0.1)
    for number in range(20):
        for _ in range(3):
            begin_call(budget)
        budget.count_question(failed=number < 3)
    budget.count_error()
    assert "4 of 20 questions" in str(budget.stopped)


def test_retries_count_toward_the_limit_on_calls() -> None:
    budget = Budget(max_calls=3)
    begin_call(budget)
    budget.begin_retry()
    budget.begin_retry()
    with pytest.raises(LimitError, match=r"limits\.max_calls: 3 of 3 calls made"):
        budget.begin_retry()
    assert (budget.calls, budget.retries) == (1, 2)


@pytest.mark.parametrize(("written", "read"), [("10", 10), ("1%", 0.01), ("0.5 %", 0.005), ("0", 0)])
def test_max_errors_is_a_number_or_a_share(written: str, read: float) -> None:
    spec = loads(SPEC % written, check_files=False)
    assert spec.limits.budget().max_errors == pytest.approx(read)


@pytest.mark.parametrize("written", ["lots", "-1", "1000000%", "'%'"])
def test_any_other_max_errors_is_refused_with_its_position(written: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SPEC % written, check_files=False)
    assert caught.value.diagnostics[0].position.line == 5
