"""Detectors of changes: each trace once, whatever is late, reopened or killed; any metric; any amount."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rageval_spec.history.database import Connection
from rageval_spec.monitoring.ledger import Judgement, Ledger, SampledTrace
from rageval_spec.monitoring.looks import detectors, windows
from rageval_spec.monitoring.looks.detectors import ChangeRule, Detectors, FixedBaseline
from rageval_spec.monitoring.looks.windows import Span, WindowReader
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.spec.blocks.monitor import read_step
from rageval_spec.statistics.intervals import Resampling
from tests.monitoring.seen_traces import BEGAN, fill, open_ledger, seen

DAY = 86_400.0
RULE = ChangeRule("a", {"low": read_step("5%"), "high": read_step("20%")}, 1 / 90, False, (0.0, 1.0), 7.0)
RANDOM = np.random.default_rng(7)


def make_series(ledger: Ledger, name: str = "faithfulness") -> Series:
    return Series(ledger.find_series(name, "", {}, BEGAN), name)


def watch(ledger: Ledger, connection: Connection | None = None) -> Detectors:
    return Detectors(connection or ledger.connection, WindowReader(ledger, 60, Resampling()))


def draw(mean: float, count: int) -> list[float]:
    return [float(one) for one in RANDOM.random(count) < mean]


def dump(ledger: Ledger) -> Sequence[Sequence[Any]]:
    return ledger.connection.execute("SELECT state, trace_id FROM rageval_detectors")


def begin(ledger: Ledger, series: Series, rule: ChangeRule = RULE, values: Sequence[float] | None = None) -> float:
    """A detector with a baseline of 400 values; returns the time."""
    done = fill(ledger, series.id, draw(0.9, 400) if values is None else values, prefix="base") + 30
    assert watch(ledger).read(rule, series, done).level is not None
    return done


def test_a_fall_is_found_and_is_over_when_the_mean_is_back(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = begin(ledger, series)
    now = fill(ledger, series.id, draw(0.5, 80), began=now, prefix="bad")
    (change,) = watch(ledger).read(RULE, series, now + 30).changes
    assert (change.side, change.severity) == ("fall", "high")
    assert 60 <= change.values <= 90
    now = fill(ledger, series.id, draw(0.9, 200), began=now + 30, prefix="good")
    assert watch(ledger).read(RULE, series, now + 30).changes == []


def test_a_fall_that_is_over_is_no_part_of_the_level(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now, levels = BEGAN, []
    for prefix, values in (("base", [1.0] * 60), ("bad", [0.3] * 40), ("good", [1.0] * 60), ("more", [1.0] * 60)):
        now = fill(ledger, series.id, values, began=now, prefix=prefix) + 30
        levels.append(watch(ledger).read(RULE, series, now).level)
    assert set(levels) == {1.0}


def test_a_baseline_that_grows_does_not_swallow_a_fall(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = begin(ledger, series, values=draw(0.95, 60))
    now = fill(ledger, series.id, draw(0.4, 100), began=now, prefix="bad") + 30
    assert [one.severity for one in watch(ledger).read(RULE, series, now).changes] == ["high"]


def test_quiet_weeks_raise_no_alarm(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = begin(ledger, series)
    for part in range(10):
        now = fill(ledger, series.id, draw(0.9, 200), began=now, step=300, prefix=f"q{part}-") + 30
        assert not watch(ledger).read(RULE, series, now).changes


def test_a_trace_that_is_opened_again_counts_once(tmp_path: Path) -> None:
    states = []
    for is_reopened in (False, True):
        (tmp_path / str(is_reopened)).mkdir()
        ledger = open_ledger(tmp_path / str(is_reopened))
        series = make_series(ledger)
        now = begin(ledger, series, values=[1.0, 0.8] * 200)
        now = fill(ledger, series.id, [0.7] * 20, began=now, prefix="late")
        watch(ledger).read(RULE, series, now + 30)
        if is_reopened:
            again = [seen(f"late{at}", now, now, answer="Another answer.") for at in range(20)]
            ledger.see(again, "live", None)
            claimed = ledger.claim(now + 60, 100, 300)
            assert len(claimed) == 20
            made = [Judgement(series.id, one.trace_id, "judged", 0.0, 1.0) for one in claimed]
            ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, now + 60)
        watch(ledger).read(RULE, series, now + 120)
        states.append(dump(ledger))
    assert states[0] == states[1]


def test_a_judgement_that_failed_first_counts_when_it_succeeds(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = begin(ledger, series)
    ledger.see([seen("t", now, now)], "live", None)
    (claimed,) = ledger.claim(now, 10, 300)
    ledger.settle(
        [SampledTrace(claimed, 1.0)], [Judgement(series.id, "t", "waiting", None, 1.0, retry_at=now + 60)], now
    )
    watch(ledger).read(RULE, series, now + 30)
    assert dump(ledger)[0][1] == ""
    ledger.retry([(Judgement(series.id, "t", "judged", 0.5, 1.0), now)], now + 60)
    watch(ledger).read(RULE, series, now + 90)
    assert dump(ledger)[0][1] == "t"


class KilledError(Exception):
    """The process ends here."""


class Fragile(Connection):
    """A connection whose process is killed before a statement."""

    def __init__(self, inner: Connection, left: int) -> None:
        self.inner, self.left = inner, left

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        self.left -= 1
        if self.left < 0:
            raise KilledError
        return self.inner.execute(statement, parameters)


def test_a_kill_between_any_two_statements_loses_and_repeats_nothing(tmp_path: Path) -> None:
    values = draw(0.9, 400), draw(0.6, 100)
    states = []
    for folder, kills in (("whole", False), ("killed", True)):
        (tmp_path / folder).mkdir()
        ledger = open_ledger(tmp_path / folder)
        series = make_series(ledger)
        now = begin(ledger, series, values=values[0])
        for part in range(4):
            now = fill(ledger, series.id, values[1][part * 25 : part * 25 + 25], began=now + 30, prefix=f"p{part}-")
            for left in range(10 if kills else 0):
                try:
                    watch(ledger, Fragile(ledger.connection, left)).read(RULE, series, now + 30)
                except KilledError:
                    continue
                break
            watch(ledger).read(RULE, series, now + 30)
        states.append(dump(ledger))
    assert states[0] == states[1]


def test_many_values_a_day_are_seen_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detectors, "_MOST_PER_DAY", 200)
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    rule = replace(RULE, days=1.0)
    now = fill(ledger, series.id, draw(0.9, 3000), step=1.0, prefix="b") + 30
    assert watch(ledger).read(rule, series, now).level == pytest.approx(0.9, abs=0.02)
    ((settings,),) = ledger.connection.execute("SELECT settings FROM rageval_detectors")
    assert '"group": 15' in settings
    now = fill(ledger, series.id, draw(0.7, 2000), began=now, step=1.0, prefix="n") + 30
    (change,) = watch(ledger).read(rule, series, now).changes
    assert change.values == pytest.approx(2000, abs=100)
    assert change.size == pytest.approx(0.2, abs=0.05)


def test_a_baseline_of_very_many_values_is_of_a_part_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MANY", 100)
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    done = fill(ledger, series.id, [1.0, 0.0] * 500, prefix="b") + 30
    reader = WindowReader(ledger, 60, Resampling())
    part = reader.read_part(series, Span(BEGAN, done), done)
    assert len(part.values) in (90, 91)
    assert watch(ledger).read(RULE, series, done).level == pytest.approx(0.5, abs=0.02)


def test_one_slow_answer_is_no_change_but_slower_answers_are(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger, "latency")
    rule = replace(RULE, bounds=(0.0, None), lower_is_better=True)
    now = begin(ledger, series, rule, RANDOM.uniform(1, 2, 400).tolist())
    now = fill(ledger, series.id, [3600.0, *RANDOM.uniform(1, 2, 60)], began=now, prefix="one") + 30
    assert not watch(ledger).read(rule, series, now).changes
    now = fill(ledger, series.id, RANDOM.uniform(2, 3, 60).tolist(), began=now, prefix="all") + 30
    (change,) = watch(ledger).read(rule, series, now).changes
    assert (change.side, change.severity) == ("rise", "high")


def test_a_percentile_rises_although_the_mean_hardly_does(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger, "latency@p95")
    rule = replace(RULE, bounds=(0.0, None), lower_is_better=True, percent=95)

    def answers(slow: float, count: int) -> list[float]:
        fast, late = RANDOM.uniform(1, 2, count), RANDOM.uniform(4, 6, count)
        return [float(one) for one in np.where(RANDOM.random(count) < slow, late, fast)]

    now = begin(ledger, series, rule, answers(0.04, 600))
    assert watch(ledger).read(rule, series, now).level == pytest.approx(1.98, abs=0.05)
    now = fill(ledger, series.id, answers(0.2, 150), began=now, prefix="all") + 30
    assert [one.side for one in watch(ledger).read(rule, series, now).changes] == ["rise"]


def test_errors_where_there_were_none_are_a_change(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger, "error_rate")
    rule = replace(RULE, steps={"low": read_step("2pp"), "high": read_step("10pp")}, lower_is_better=True)
    now = begin(ledger, series, rule, [0.0] * 400)
    now = fill(ledger, series.id, draw(0.25, 80), began=now, prefix="new") + 30
    assert [one.severity for one in watch(ledger).read(rule, series, now).changes] == ["high"]


def test_feedback_below_zero_is_not_cut(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger, "feedback.thumbs")
    rule = replace(RULE, bounds=(None, None))
    now = begin(ledger, series, rule, [2 * one - 1 for one in draw(0.8, 400)])
    assert watch(ledger).read(rule, series, now).level == pytest.approx(0.6, abs=0.1)
    now = fill(ledger, series.id, [2 * one - 1 for one in draw(0.2, 80)], began=now, prefix="new") + 30
    assert [one.side for one in watch(ledger).read(rule, series, now).changes] == ["fall"]


def test_two_weeks_of_baseline_have_hours_of_the_week(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    rule = replace(RULE, days=14.0)
    hours = (np.arange(0, 14 * 24, 0.5) + BEGAN / 3600) % 24
    wave = np.where(hours < 12, 0.9, 0.5)
    values = np.clip(wave + RANDOM.normal(0, 0.05, len(wave)), 0, 1).tolist()
    now = fill(ledger, series.id, values, step=1800, prefix="b") + 30
    watching = watch(ledger)
    assert watching.read(rule, series, now).level is not None
    ((baseline,),) = ledger.connection.execute("SELECT baseline FROM rageval_detectors")
    assert '"offsets": []' not in baseline
    now = fill(ledger, series.id, values[:48], began=now, step=1800, prefix="n") + 30
    assert not watching.read(rule, series, now).changes


def test_a_record_is_a_baseline_from_the_first_trace_on(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    rule = replace(RULE, fixed=FixedBaseline("main", np.array(draw(0.9, 200)), np.ones(200)))
    now = begin(ledger, series, rule, [1.0])
    now = fill(ledger, series.id, draw(0.5, 80), began=now, prefix="n") + 30
    assert [one.severity for one in watch(ledger).read(rule, series, now).changes] == ["high"]


def test_weights_of_a_sample_are_those_of_its_rate(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    rule = replace(RULE, largest=20.0)
    now = fill(ledger, series.id, draw(0.9, 60), prefix="first")  # those that a least number keeps
    now = fill(ledger, series.id, draw(0.6, 300), began=now, weight=20.0, prefix="rest") + 30
    assert watch(ledger).read(rule, series, now).level == pytest.approx(0.6, abs=0.06)
    now = fill(ledger, series.id, draw(0.1, 120), began=now, weight=20.0, prefix="n") + 30
    (change,) = watch(ledger).read(rule, series, now).changes
    assert change.size == pytest.approx(0.5, abs=0.1)


def test_old_traces_that_fill_a_series_say_nothing_of_today(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = begin(ledger, series)
    fill(ledger, series.id, [0.0] * 100, began=BEGAN - 30 * DAY, now=now, prefix="old")
    assert not watch(ledger).read(RULE, series, now + 60).changes


@pytest.mark.parametrize("days_ago", [0.5, 5.0])
def test_a_fall_in_a_backlog_that_one_run_judged_is_found(tmp_path: Path, days_ago: float) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    weeks = np.arange(0, 21, 1 / 50)
    values = np.where(weeks < 21 - days_ago, 1.0, 0.3).tolist()
    now = fill(ledger, series.id, values, began=BEGAN, step=DAY / 50) + 30
    (change,) = watch(ledger).read(RULE, series, now).changes
    assert (change.side, change.severity) == ("fall", "high")
    assert change.size == pytest.approx(0.7, abs=0.05)
    assert change.values == pytest.approx(days_ago * 50, abs=3)


@pytest.mark.parametrize("good", [60, 300, 900])
def test_a_fall_within_one_file_is_found_wherever_it_is(tmp_path: Path, good: int) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = fill(ledger, series.id, [1.0] * good + [0.3] * 100, step=5) + 30
    assert [one.severity for one in watch(ledger).read(RULE, series, now).changes] == ["high"]
    now = fill(ledger, series.id, [1.0] * 200, began=now, step=5, prefix="again") + 30
    assert watch(ledger).read(RULE, series, now).changes == []


def test_a_backlog_is_compared_with_a_record(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    rule = replace(RULE, fixed=FixedBaseline("main", np.array(draw(0.9, 200)), np.ones(200)))
    now = fill(ledger, series.id, draw(0.5, 80)) + 30
    assert [one.severity for one in watch(ledger).read(rule, series, now).changes] == ["high"]


def test_a_quiet_backlog_raises_no_alarm(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    for number in range(10):
        series = make_series(ledger, f"m{number}")
        now = fill(ledger, series.id, draw(0.9, 700), step=DAY / 50, prefix=f"{number}-") + 30
        assert not watch(ledger).read(RULE, series, now).changes


def test_a_backlog_that_is_judged_while_the_detector_looks_is_seen(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series = make_series(ledger)
    now = BEGAN + 12 * DAY
    fill(ledger, series.id, draw(0.95, 150), began=BEGAN + 6 * DAY, step=DAY / 50, now=now, prefix="first")
    assert watch(ledger).read(RULE, series, now + 30).level == pytest.approx(0.95, abs=0.05)
    fill(ledger, series.id, draw(0.3, 90), began=BEGAN + 9 * DAY, step=DAY / 50, now=now + 60, prefix="rest")
    assert [one.severity for one in watch(ledger).read(RULE, series, now + 90).changes] == ["high"]
