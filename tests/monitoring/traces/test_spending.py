"""The budget of a monitor: a ceiling that holds, and weights that make up for what was left out."""

from pathlib import Path

import pytest

from rageval_spec.data.chat import LimitError
from rageval_spec.monitoring.traces.sampling import Spending
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec.blocks.monitor import HourlyBudgetNode
from tests.monitoring.seen_traces import open_ledger

HOUR = 1_764_000_000 // 3600 * 3600.0


def open_spending(folder: Path, budget: Budget | None = None, **limits: str) -> Spending:
    return Spending(open_ledger(folder).connection, "bot", HourlyBudgetNode(**limits), budget or Budget())


def call(budget: Budget, times: int = 1, cost: float = 0.0) -> None:
    for _ in range(times):
        assert budget.try_call(cost)
        budget.end_call(cost, cost)


def test_without_a_limit_everything_is_judged(tmp_path: Path) -> None:
    assert open_spending(tmp_path).choose(["a", "b"], 100, HOUR) == ({"a", "b"}, 1.0)


def test_traces_that_need_no_call_are_all_judged(tmp_path: Path) -> None:
    assert open_spending(tmp_path, calls="1 per 1h").choose(["a", "b"], 0, HOUR) == ({"a", "b"}, 1.0)


def test_no_call_begins_beyond_the_limit_also_after_a_restart(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="5 per 1h")
    spending.limit(HOUR)
    call(spending.budget, 3)
    spending.record(3, HOUR + 60)
    restarted = open_spending(tmp_path, calls="5 per 1h")
    restarted.limit(HOUR + 120)
    call(restarted.budget, 2)
    with pytest.raises(LimitError):
        restarted.budget.try_call()
    restarted.record(2, HOUR + 120)
    restarted.limit(HOUR + 3600)
    call(restarted.budget, 5)


def test_dollars_are_limited_too(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, cost="0.10 per 1h")
    spending.limit(HOUR)
    call(spending.budget, 2, cost=0.04)
    with pytest.raises(LimitError):
        spending.budget.try_call(0.04)


def test_what_is_judged_stands_for_what_is_left_out(tmp_path: Path) -> None:
    spending, totals = open_spending(tmp_path, calls="100 per 1h"), []
    for run in range(30):
        names = [f"{run}-{i}" for i in range(400)]
        chosen, chance = spending.choose(names, 400, HOUR)
        assert chance == pytest.approx(0.25)
        totals.append(len(chosen) / chance)
    assert sum(totals) / len(totals) == pytest.approx(400, rel=0.05)


def test_the_rest_of_an_hour_is_shared_by_the_traffic_that_is_expected(tmp_path: Path) -> None:
    spending = open_spending(tmp_path, calls="100 per 1h")
    call(spending.budget, 50)
    spending.record(200, HOUR - 1800)  # the hour before had 200 traces
    _, chance = spending.choose([f"t{i}" for i in range(10)], 10, HOUR)
    assert chance == pytest.approx(100 / 200)
