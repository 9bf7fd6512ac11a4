"""The ledger adds up: whatever is seen twice, killed in between, opened again or judged by two at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rageval_spec.monitoring.ledger import STATES, Judgement, Ledger, SampledTrace
from tests.monitoring.seen_traces import BEGAN, fill, judge_all, open_ledger, seen

LATER = BEGAN + 1000


def add_up(ledger: Ledger, series: int) -> int:
    return sum(ledger.count(series).values())


def test_every_trace_has_one_state(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen(f"t{i}") for i in range(6)], "live", {"at": 6})
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"waiting": 6}
    claimed = ledger.claim(LATER, 5, 300)
    states = ["judged", "filtered", "failed", "over_budget"]
    ledger.settle(
        [SampledTrace(one, 2.0) for one in claimed[:4]] + [SampledTrace(claimed[4], None)],
        [Judgement(series, one.trace_id, state, 0.5 if state == "judged" else None, 2.0)  # type: ignore[arg-type]
         for one, state in zip(claimed, states, strict=False)],
        LATER,
    )  # fmt: skip
    assert ledger.count(series) == dict.fromkeys(STATES, 1)
    assert ledger.count_traces() == 6
    assert ledger.read_cursor("live") == {"at": 6}


def test_a_trace_that_is_seen_again_counts_once(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    for _ in range(2):
        ledger.see([seen("t1"), seen("t2")], "live", 1)
    assert sorted(judge_all(ledger, series, LATER)) == ["t1", "t2"]
    ledger.see([seen("t1")], "live", 2)
    assert judge_all(ledger, series, LATER) == []
    assert ledger.count(series)["judged"] == 2


def test_a_trace_waits_as_long_as_more_of_it_comes(ledger: Ledger) -> None:
    ledger.see([seen("t1", due=BEGAN + 60)], "live", 1)
    ledger.see([seen("t1", due=BEGAN + 100, answer="A longer answer.")], "live", 2)
    assert ledger.claim(BEGAN + 61, 10, 300) == []
    (claimed,) = ledger.claim(BEGAN + 100, 10, 300)
    assert claimed.trace.answer == "A longer answer."


def test_late_spans_open_a_trace_once_and_replace_its_value(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1")], "live", 1)
    judge_all(ledger, series, LATER, value=0.2)
    ledger.see([seen("t1", answer="More of it.")], "live", 2)
    assert add_up(ledger, series) == 1
    assert judge_all(ledger, series, LATER, value=0.9) == ["t1"]
    (row,) = ledger.connection.execute("SELECT judged, weights, weighted FROM rageval_panes")
    assert row == pytest.approx((1, 1.0, 0.9))
    ledger.see([seen("t1", answer="And even more.")], "live", 3)
    assert judge_all(ledger, series, LATER) == []
    assert ledger.connection.execute("SELECT value FROM rageval_judgements") == [(0.9,)]


def test_what_a_dead_monitor_held_is_judged_by_another_once(open_one: Callable[[str], Ledger]) -> None:
    dead, alive = open_one("dead"), open_one("alive")
    series = dead.find_series("faithfulness", "x", {}, BEGAN)
    assert alive.find_series("faithfulness", "x", {}, BEGAN) == series
    dead.see([seen("t1")], "live", 1)
    held = dead.claim(LATER, 10, lease=300)
    assert alive.claim(LATER + 299, 10, 300) == []
    assert judge_all(alive, series, LATER + 301, value=1.0) == ["t1"]
    dead.settle([SampledTrace(held[0], 1.0)], [Judgement(series, "t1", "judged", 0.0, 1.0)], LATER + 302)
    assert alive.count(series)["judged"] == 1
    assert alive.connection.execute("SELECT value FROM rageval_judgements") == [(1.0,)]


def test_a_failure_waits_until_it_is_tried_again(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1")], "live", 1)
    claimed = ledger.claim(LATER, 10, 300)
    failed = Judgement(series, "t1", "waiting", None, 1.0, "429", retry_at=LATER + 60)
    ledger.settle([SampledTrace(claimed[0], 1.0)], [failed], LATER)
    assert ledger.count(series)["waiting"] == 1
    assert ledger.claim_retries(LATER + 59, 10, 300) == []
    ((of, tries, again),) = ledger.claim_retries(LATER + 60, 10, 300)
    assert (of, tries, again.trace_id) == (series, 1, "t1")
    assert ledger.claim_retries(LATER + 61, 10, 300) == []
    ledger.retry([(failed._replace(state="judged", value=0.5, retry_at=None), again.started)], LATER + 61)
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"judged": 1}


def test_a_new_identity_begins_a_new_series(ledger: Ledger) -> None:
    first = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1")], "live", 1)
    judge_all(ledger, first, LATER)
    second = ledger.find_series("faithfulness", "y", {}, LATER)
    assert second != first
    ledger.see([seen("t2")], "live", 2)
    judge_all(ledger, second, LATER)
    assert (ledger.count(first)["judged"], ledger.count(second)["judged"]) == (1, 1)
    assert ledger.count_before(second) + add_up(ledger, second) == ledger.count_traces()


def test_a_judge_that_is_rolled_back_gets_its_series_back(ledger: Ledger) -> None:
    for at, identity in enumerate("xyx"):
        series = ledger.find_series("faithfulness", identity, {}, BEGAN + at)
        assert ledger.find_series("faithfulness", identity, {}, BEGAN + at) == series
        assert ledger.current_series() == {"faithfulness": series}
        ledger.see([seen(f"{at} kept"), seen(f"{at} left out")], "live", at)
        kept, left_out = sorted(ledger.claim(LATER, 10, 300))
        sampled = [SampledTrace(kept, 2.0), SampledTrace(left_out, None)]
        ledger.settle(sampled, [Judgement(series, kept.trace_id, "judged", 1.0, 2.0)], LATER)
        assert add_up(ledger, series) + ledger.count_before(series) == ledger.count_traces()
    assert series == 1
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"judged": 2, "sampled_out": 2}
    assert [one.trace_id for one in ledger.read_unfilled(series, BEGAN, 10)] == ["1 kept"]
    ledger.fill([(Judgement(series, "1 kept", "judged", 0.5, 2.0), BEGAN)], series, LATER)
    assert ledger.count_before(series) == 1  # the one that was left out
    assert ledger.count(series)["judged"] == 3


def test_what_was_paid_stays_paid(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1")], "live", 1)
    settle_one(ledger, series, "waiting", cost=0.25, retry_at=LATER)
    ((_, _, again),) = ledger.claim_retries(LATER, 10, 300)
    ledger.retry([(Judgement(series, "t1", "failed", None, 1.0, cost=0.5), again.started)], LATER)
    ledger.retry_failed(LATER)
    ledger.see([seen("t1", answer="More of it.")], "live", 2)
    settle_one(ledger, series, cost=1.0)
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"judged": 1}
    assert ledger.connection.execute("SELECT SUM(cost) FROM rageval_panes") == [(1.75,)]


def test_only_one_process_leads_until_its_lease_ends(open_one: Callable[[str], Ledger]) -> None:
    first, second = open_one("first"), open_one("second")
    assert first.lead("look", BEGAN, 60)
    assert not second.lead("look", BEGAN + 59, 60)
    assert first.lead("look", BEGAN + 59, 60)
    assert second.lead("look", BEGAN + 120, 60)
    second.release()
    assert first.lead("look", BEGAN + 121, 60)


def settle_one(ledger: Ledger, series: int, state: str = "judged", **others: object) -> None:
    (claimed,) = ledger.claim(LATER, 10, 300)
    judgement = Judgement(series, claimed.trace_id, state, None if state != "judged" else 1.0, 1.0, **others)  # type: ignore[arg-type]
    ledger.settle([SampledTrace(claimed, 1.0)], [judgement], LATER)


def test_failures_are_tried_again_on_demand(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1")], "live", 1)
    settle_one(ledger, series, "failed", reason="the judge answered 401")
    assert ledger.retry_failed(LATER) == {"failed": 1}
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"waiting": 1}
    assert ledger.retry_failed(LATER) == {}
    ((_, tries, _),) = ledger.claim_retries(LATER, 10, 300)
    assert tries == 0


def test_what_waits_for_a_later_try_is_tried_at_once_on_demand(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    wait_for_a_retry(ledger, series)
    assert ledger.claim_retries(LATER, 10, 300) == []
    assert ledger.retry_failed(LATER) == {"waiting": 1}
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"waiting": 1}
    assert [one.trace_id for *_, one in ledger.claim_retries(LATER, 10, 300)] == ["t1"]


def test_texts_go_after_their_time_and_numbers_stay(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("old"), seen("new", started=LATER)], "live", 1)
    judge_all(ledger, series, LATER + 100)
    assert ledger.prune_texts(LATER) == 1
    assert ledger.prune_texts(LATER) == 0
    kept = ledger.connection.execute("SELECT trace_id FROM rageval_traces WHERE content IS NOT NULL")
    assert kept == [("new",)]
    assert ledger.count(series)["judged"] == 2


def test_a_user_can_be_forgotten(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1", user="eve")], "live", 1)
    settle_one(ledger, series, reason="Eve lives in Rome")
    ledger.see([seen("t2", user="eve"), seen("t3", user="bob")], "live", 2)
    assert ledger.forget(user="eve") == 2
    (left,) = ledger.connection.execute("SELECT trace_id FROM rageval_traces WHERE content IS NOT NULL")
    assert left == ("t3",)
    assert ledger.connection.execute("SELECT reason FROM rageval_judgements") == [(None,)]
    assert ledger.connection.execute("SELECT COUNT(*) FROM rageval_traces WHERE user_id = 'eve'") == [(0,)]
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"judged": 1, "filtered": 1, "waiting": 1}
    ledger.see([seen("t2", user="eve")], "live", 2)
    assert judge_all(ledger, series, LATER) == ["t3"]


def test_a_new_series_is_filled_once(ledger: Ledger) -> None:
    first = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1"), seen("t2", started=BEGAN - 100)], "live", 1)
    judge_all(ledger, first, LATER)
    series = ledger.find_series("relevance", "x", {}, LATER)
    unfilled = ledger.read_unfilled(series, BEGAN, 10)
    assert [one.trace_id for one in unfilled] == ["t1"]
    for _ in range(2):
        ledger.fill([(Judgement(series, "t1", "judged", 0.5, 1.0), BEGAN)], series, LATER)
    assert ledger.count(series)["judged"] == 1
    assert ledger.count_before(series) + add_up(ledger, series) == ledger.count_traces() == 2


def test_two_monitors_share_what_is_due(open_one: Callable[[str], Ledger]) -> None:
    first, second = open_one("first"), open_one("second")
    series = first.find_series("faithfulness", "x", {}, BEGAN)
    first.see([seen(f"t{i}") for i in range(6)], "live", 1)
    mine = {one.trace_id for one in first.claim(LATER, 3, 300)}
    assert mine.isdisjoint(judge_all(second, series, LATER))
    assert second.count(series)["judged"] == 3


def test_a_trace_that_is_opened_again_keeps_its_value_in_an_older_series(ledger: Ledger) -> None:
    old = ledger.find_series("faithfulness", "x", {}, BEGAN)
    ledger.see([seen("t1"), seen("t2")], "live", 1)
    judge_all(ledger, old, LATER, value=0.2)
    new = ledger.find_series("faithfulness", "y", {}, LATER)
    ledger.see([seen("t1", answer="More of it.")], "live", 2)
    assert judge_all(ledger, new, LATER, value=0.9) == ["t1"]
    for series, before in ((old, 0), (new, 1)):
        assert ledger.count_before(series) == before
        assert add_up(ledger, series) + before == ledger.count_traces() == 2
    assert ledger.connection.execute(
        "SELECT SUM(judged), SUM(weighted) FROM rageval_panes WHERE series = ?", (old,)
    ) == [(2, 0.4)]


def test_what_a_monitor_with_an_older_spec_judges_is_left_to_fill(open_one: Callable[[str], Ledger]) -> None:
    older, newer = open_one("older"), open_one("newer")
    first = older.find_series("faithfulness", "x", {}, BEGAN)
    second = newer.find_series("relevance", "x", {}, BEGAN)
    older.see([seen("t1"), seen("t2")], "live", 1)
    judge_all(older, first, LATER)
    assert add_up(newer, second) + newer.count_before(second) == newer.count_traces() == 2
    assert [one.trace_id for one in newer.read_unfilled(second, BEGAN, 10)] == ["t1", "t2"]
    newer.fill([(Judgement(second, "t1", "judged", 0.5, 1.0), BEGAN)], second, LATER)
    newer.see([seen("t2", answer="More of it.")], "live", 2)
    judge_all(newer, second, LATER)
    assert (newer.count(second)["judged"], newer.count_before(second)) == (2, 0)


def test_looking_for_what_is_due_does_not_take_longer_in_a_large_ledger(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    series, steps, counts = ledger.find_series("faithfulness", "x", {}, BEGAN), [0], []
    ledger.connection._connection.set_progress_handler(lambda: steps.append(steps.pop() + 1), 100)
    for prefix in "abc":
        fill(ledger, series, [0.5] * 1000, prefix=prefix)
        ledger.prune_texts(LATER + 10**6)
        steps[:] = [0]
        ledger.claim_retries(LATER, 1000, 300)
        ledger.claim(LATER, 1000, 300)
        ledger.count_overdue(LATER)
        ledger.prune_texts(LATER)
        counts.append(steps[0])
    assert counts[2] <= counts[0] + 2


def wait_for_a_retry(ledger: Ledger, series: int) -> Judgement:
    ledger.see([seen("t1", user="eve")], "live", 1)
    claimed = ledger.claim(LATER, 10, 300)
    failed = Judgement(series, "t1", "waiting", None, 1.0, "429", retry_at=LATER + 60)
    ledger.settle([SampledTrace(claimed[0], 1.0)], [failed], LATER)
    return failed


def test_a_retry_that_another_monitor_made_meanwhile_counts_once(open_one: Callable[[str], Ledger]) -> None:
    slow, quick = open_one("slow"), open_one("quick")
    series = slow.find_series("faithfulness", "x", {}, BEGAN)
    judged = wait_for_a_retry(slow, series)._replace(state="judged", value=0.5, retry_at=None)
    assert len(slow.claim_retries(LATER + 60, 10, 300)) == 1
    ((_, _, again),) = quick.claim_retries(LATER + 361, 10, 300)
    quick.retry([(judged, again.started)], LATER + 362)
    slow.retry([(judged._replace(value=0.1), again.started)], LATER + 363)
    assert quick.count(series) == dict.fromkeys(STATES, 0) | {"judged": 1}
    assert quick.connection.execute("SELECT value FROM rageval_judgements") == [(0.5,)]


def test_what_waits_for_a_retry_fails_when_its_text_goes(ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    wait_for_a_retry(ledger, series)
    assert ledger.forget(user="eve") == 1
    assert ledger.count(series) == dict.fromkeys(STATES, 0) | {"failed": 1}
    assert ledger.retry_failed(LATER) == {}
