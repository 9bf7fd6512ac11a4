"""What alerts come to where there is little, nothing, or something odd to see."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rageval_spec.monitoring.alerts import Look
from rageval_spec.monitoring.ledger import LEASE, Judgement, Ledger, SampledTrace, SeenTrace
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.windows import WindowReader
from rageval_spec.monitoring.traces.trace_judging import NO_QUESTION, Series
from rageval_spec.spec.blocks.monitor import MonitorNode
from rageval_spec.statistics.intervals import Resampling
from tests.monitoring.looks.test_levels import ERRORS, P95
from tests.monitoring.seen_traces import BEGAN, fill, make_trace, open_ledger, seen

START = BEGAN // 3600 * 3600
RANDOM = np.random.default_rng(11)


def make(
    folder: Path, alerts: Sequence[Any], name: str = "error_rate", metric: Any = None
) -> tuple[Ledger, Series, Watch]:
    ledger = open_ledger(folder)
    series = Series(ledger.find_series(name, "", {}, BEGAN), name, metric)
    node = MonitorNode.model_validate({"alerts": alerts})
    return ledger, series, Watch(node, ledger, WindowReader(ledger, 60, Resampling()), {name: series}, 300)


def look(watch: Watch, now: float) -> Look:
    (found,) = watch.look(now)
    return found


def test_no_data_neither_fires_nor_resolves(tmp_path: Path) -> None:
    _, _, watch = make(tmp_path, [{"metric": "error_rate", "warning": 0.1}], metric=ERRORS.metric)
    assert look(watch, START).verdict == "undecided"


def test_a_few_bad_answers_decide_nothing(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, [{"metric": "error_rate", "warning": 0.1}], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0] * 9, began=START)
    assert look(watch, START + 3900).verdict == "undecided"


def test_the_worst_of_two_bounds_that_are_surely_broken_counts(tmp_path: Path) -> None:
    alert = {"metric": "error_rate", "warning": 0.05, "critical": 0.3, "window": "hour"}
    ledger, series, watch = make(tmp_path, [alert], metric=ERRORS.metric)
    fill(ledger, series.id, [1.0, 0.0, 0.0, 0.0] * 50, began=START, step=15)
    found = look(watch, START + 3900)
    assert (found.verdict, found.severity, found.evidence["bound"]) == ("holds", "warning", 0.05)
    assert found.name == "error_rate above 0.050"
    fill(ledger, series.id, [1.0, 1.0, 1.0, 0.0] * 50, began=START + 3600, step=15, prefix="n")
    assert look(watch, START + 7500).severity == "critical"


def test_a_percentile_of_a_quarter_of_an_hour(tmp_path: Path) -> None:
    alert = {"metric": "latency@p95", "warning": 5, "critical": 10, "window": "15m"}
    ledger, series, watch = make(tmp_path, [alert], P95.name, P95.metric)
    fill(ledger, series.id, RANDOM.uniform(1, 2, 60).tolist(), began=START, step=15)
    assert look(watch, START + 1020).verdict == "clear"
    slow = np.where(np.arange(60) % 4 == 0, 20.0, 1.5).tolist()
    fill(ledger, series.id, slow, began=START + 900, step=15, prefix="n")
    found = look(watch, START + 1920)
    assert (found.verdict, found.severity) == ("holds", "critical")
    assert found.evidence["window"] == "15m"


def test_a_metric_that_judged_nothing_is_not_covered(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    assert [one.verdict for one in watch.look(START + 3000)] == ["undecided", "clear"]
    ledger.see([seen(f"t{at}", START, START) for at in range(5)], "live", None)
    claimed = ledger.claim(START + 60, 10, 300)
    made = [Judgement(series.id, one.trace_id, "failed", None, 1.0, "HTTP 401") for one in claimed]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, START + 60)
    found, _ = watch.look(START + 3000)
    assert (found.verdict, found.severity) == ("holds", "critical")
    assert found.summary == "error_rate judged none of 5 traces of the last hour: 5 failed"


def see_unasked(ledger: Ledger, series: int, began: float) -> None:
    """Traces in which nothing was asked, such as those of health checks."""
    trace = replace(make_trace(f"health{began}"), question="")
    ledger.see([SeenTrace(trace, began, began)], "live", None)
    (claimed,) = ledger.claim(began, 10, 300)
    told = Judgement(series, trace.id, "filtered", None, 1.0, NO_QUESTION)
    ledger.settle([SampledTrace(claimed, 1.0)], [told], began)


def test_traces_in_which_nothing_was_asked_are_a_fault_until_a_question_was_judged(tmp_path: Path) -> None:
    """Questions that nobody recognises must not pass unseen, and health checks at night must wake nobody."""
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    see_unasked(ledger, series.id, START)
    found, _ = watch.look(START + 3000)
    told = f"error_rate judged none of 1 trace of the last hour: 1 filtered; {NO_QUESTION}"
    assert (found.verdict, found.summary) == ("holds", told)
    fill(ledger, series.id, [0.0], began=START + 3600)
    see_unasked(ledger, series.id, START + 10_000)
    found, _ = watch.look(START + 10_100)
    assert found.verdict == "undecided"


def test_an_hour_without_traffic_is_a_fault_where_there_always_was_some(tmp_path: Path) -> None:
    ledger, series, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    for day in range(7):
        fill(ledger, series.id, [0.0] * 25, began=START + day * 86_400, prefix=f"{day}-")
        assert watch.look(START + (day + 1) * 86_400 - 7200)[0].verdict == "undecided"
    found, _ = watch.look(START + 7 * 86_400 + 3600)
    assert found.verdict == "holds"
    assert found.summary == (
        "error_rate judged nothing in the last hour; "
        "at this time of each of the last 7 days it judged 25 traces or more"
    )
    assert watch.look(START + 7 * 86_400 + 7200)[0].verdict == "undecided"


def test_what_a_killed_monitor_held_is_not_late_before_its_lease_ends(tmp_path: Path) -> None:
    """With `every: 10s`, six looks are over long before another process may take the traces."""
    ledger, _, watch = make(tmp_path, ["coverage"], metric=ERRORS.metric)
    watch = replace(watch, every=10)
    ledger.see([seen("t1", START, START)], "live", None)
    ledger.claim(START, 10, LEASE)
    assert watch.look(START + LEASE + 59)[-1].verdict == "clear"
    assert watch.look(START + LEASE + 61)[-1].summary == "1 trace waited too long to be judged"
    assert replace(watch, every=300).look(START + 1790)[-1].verdict == "clear"


def test_a_change_of_clicks_says_what_clicks_are_worth(tmp_path: Path) -> None:
    alert = {"metric": "feedback.clicks", "drift": {"high": "20%"}}
    ledger, series, watch = make(tmp_path, [alert], "feedback.clicks")
    now = fill(ledger, series.id, (RANDOM.random(300) < 0.8).astype(float).tolist()) + 30
    assert look(watch, now).verdict == "clear"
    now = fill(ledger, series.id, (RANDOM.random(100) < 0.2).astype(float).tolist(), began=now, prefix="n") + 30
    found = look(watch, now)
    assert found.verdict == "holds"
    assert "People click what stands first whether or not it is better" in found.summary
