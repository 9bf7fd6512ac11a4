"""The budget of a monitor: a ceiling that holds, and weights that make up for what was left out."""

import random
from pathlib import Path

import numpy as np
import pytest

from rageval_spec.commands.monitor.command import describe_budget
from rageval_spec.data.chat import LimitError
from rageval_spec.monitoring.traces.sampling import Allowance, Spending, draw
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.blocks.monitor import HourlyBudgetNode, Rate
from rageval_spec.statistics.level_sequences import estimate_mean
from tests.monitoring.seen_traces import open_ledger

HOUR = 1_764_000_000 // 3600 * 3600.0


def open_spending(folder: Path, budget: Budget | None = None, **limits: str) -> Spending:
    return Spending(open_ledger(folder).connection, "bot", HourlyBudgetNode(**limits), budget or Budget())


def call(budget: Budget, times: int = 1, cost: float = 0.0) -> None:
    for _ in range(times):
        assert budget.try_call(cost)
        budget.end_call(cost, cost)


def test_without_a_limit_everything_is_judged(tmp_path: Path) -> None:
    spending = open_spending(tmp_path)
    assert spending.find_chance(100, HOUR) == 1.0
    assert spending.find_room(HOUR) == float("inf")


def test_no_call_begins_beyond_the_limit_also_after_a_restart(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="5 per 1h")
    spending.limit(HOUR)
    call(spending.budget, 3)
    spending.record(HOUR + 60)
    restarted = open_spending(tmp_path, calls="5 per 1h")
    restarted.limit(HOUR + 120)
    call(restarted.budget, 2)
    with pytest.raises(LimitError):
        restarted.budget.try_call()
    restarted.record(HOUR + 120)
    restarted.limit(HOUR + 3600)
    call(restarted.budget, 5)


def test_a_budget_counts_what_was_spent_before_the_spec_had_it(tmp_path: Path) -> None:
    unlimited = open_spending(tmp_path)
    call(unlimited.budget, 3)
    unlimited.record(HOUR + 60)
    limited = open_spending(tmp_path, calls="5 per 1h")
    (allowance,) = limited.list_allowances(HOUR + 1800)
    assert allowance.left == 2
    limited.note_needed(30, [HOUR + 1800])
    assert limited.list_allowances(HOUR + 2400)[0].usual == pytest.approx(180)  # in the ten minutes that are known


def test_dollars_are_limited_too(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, cost="0.10 per 1h")
    spending.limit(HOUR)
    call(spending.budget, 2, cost=0.04)
    with pytest.raises(LimitError):
        spending.budget.try_call(0.04)


def test_the_rest_of_an_hour_is_shared_by_the_calls_that_are_expected(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="100 per 1h")
    call(spending.budget, 50)
    spending.record(HOUR - 3600)
    spending.note_needed(400, [HOUR - 3600, HOUR - 1800])  # the hour before needed 400 calls, and 50 were made
    assert spending.find_chance(10, HOUR) == pytest.approx(100 / 410)
    assert spending.find_chance(10, HOUR + 1800) == pytest.approx(100 / 110)
    assert spending.find_room(HOUR) == 0


def test_old_traces_that_are_due_at_last_do_not_tell_how_many_are_to_come(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="100 per 1h")
    spending.note_needed(5000, [HOUR - 3600 * one for one in range(2, 102)])
    assert spending.find_chance(50, HOUR) == 1.0


def test_what_is_due_at_once_shares_the_budget_too(tmp_path: Path) -> None:
    chance = open_spending(tmp_path, calls="100 per 1h").find_chance(1000, HOUR)
    assert 1000 * chance + 2 * (1000 * chance) ** 0.5 == pytest.approx(100)  # chance decides how many it is


def test_dollars_are_shared_by_what_a_call_costs(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, cost="1.00 per 1h")
    assert spending.find_chance(500, HOUR) == 1.0  # what a call costs is not known yet; the ceiling holds
    call(spending.budget, 50, cost=0.01)
    spending.record(HOUR - 3600)
    spending.note_needed(200, [HOUR - 3600])
    assert spending.find_chance(200, HOUR) == pytest.approx(1.00 / (0.01 * 400))


@pytest.mark.parametrize(
    ("left", "expected", "told"),
    [
        (2, 0, "traces need about 0 calls until then"),
        (2, 40, "traces need about 40 calls until then, so some are left out at random, and any that are judged count"),
        (0, 40, "traces need about 40 calls until then, but none is left for them"),
    ],
)
def test_what_is_left_stands_beside_what_traces_need(left: int, expected: int, told: str) -> None:
    limit = Allowance(Rate(8, 3600), is_cost=False, left=left, price=1, expected=expected, usual=80)
    shown = describe_budget(limit, 100)
    assert shown.startswith(
        f"budget: {left} calls left of 8 calls until 1970-01-01 01:00 UTC; as traffic is now, {told}"
    )
    dollars = limit._replace(is_cost=True, price=0.01, expected=40)
    assert "need about 0.40 USD until then" in describe_budget(dollars, 100)
    assert describe_budget(dollars._replace(price=0), 100).endswith("; what a call costs is not known yet")


def test_a_filling_gets_what_new_traces_leave_over(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="100 per 1h")
    spending.note_needed(60, [HOUR - 3600])
    assert spending.find_room(HOUR) == pytest.approx(40)
    (limit,) = spending.list_allowances(HOUR)
    assert (limit.left, limit.usual, limit.spare) == pytest.approx((100, 60, 40))


@pytest.mark.parametrize("is_bursty", [False, True])
def test_means_are_unbiased_and_covered_when_the_budget_is_short(tmp_path: Path, is_bursty: bool) -> None:
    """Values fall towards the end of each hour, and traces of which the cheap judge is sure need no call."""
    chance_of = random.Random(3)
    errors, covered, calls, refused = [], [], [], 0
    spending = open_spending(tmp_path, calls="60 per 1h")
    spending.connection.execute("PRAGMA synchronous = OFF")  # the test is slow otherwise
    for hour in range(80):
        values, weights, truth, made = [], [], [], 0
        for minute in range(0, 60, 5):
            now = HOUR + 3600 * hour + 60 * minute
            count = (60 if minute == 30 else 12) if is_bursty else 24
            traces = [(f"{hour}-{minute}-{i}", chance_of.random() < 0.4) for i in range(count)]
            needed = sum(not is_sure for _, is_sure in traces)
            chance = spending.find_chance(needed, now)
            spending.note_needed(needed, [now])
            spending.limit(now)
            for name, is_sure in traces:
                level = 0.9 if is_sure else 0.75 - minute / 120
                truth.append(level)
                if not is_sure and draw(f"budget {name}") >= chance:
                    continue
                try:
                    call(spending.budget, not is_sure)
                except LimitError:
                    refused += 1
                    continue
                made += not is_sure
                values.append(float(chance_of.random() < level))
                weights.append(1.0 if is_sure else 1 / chance)
            spending.record(now)
        mean = estimate_mean(values, weights, value_range=(0.0, 1.0))
        assert mean is not None and mean.interval is not None
        errors.append(mean.mean - float(np.mean(truth)))
        covered.append(mean.interval.low <= float(np.mean(truth)) <= mean.interval.high)
        calls.append(made)
    assert max(calls) <= 60
    assert np.mean(calls[1:]) > 45
    assert refused < 0.01 * sum(calls)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / len(errors) ** 0.5
    assert 0.91 < np.mean(covered) < 0.99
