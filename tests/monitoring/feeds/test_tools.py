"""Tools that record traces are asked so that no trace is skipped, judged before it ended, or counted twice.

Named after what users of such tools report: traces evaluated before they were complete, or skipped for ever because
they ended late (mlflow#21870, langfuse#9062), and evaluators that silently never ran (langfuse#15681, #13202).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.monitoring.feeds.tools import ToolFeed
from rageval_spec.monitoring.ledger import Ledger
from tests.exchange.langfuse.server import LangfuseServer, observation, set_keys
from tests.exchange.mlflow.server import MlflowServer
from tests.exchange.phoenix.server import PhoenixServer
from tests.models.endpoint import Answer
from tests.monitoring.feeds.polling import judge_due, list_questions, poll
from tests.monitoring.feeds.tool_fakes import Tool, fake_langfuse, fake_mlflow, fake_phoenix, moment
from tests.monitoring.seen_traces import BEGAN, open_ledger

SETTLE = 60
MINUTE, HOUR = 60, 3600


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "history")


@pytest.fixture(params=["phoenix", "mlflow", "langfuse", "langfuse 3"])
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tool]:
    for name in ("http_proxy", "all_proxy", "PHOENIX_API_KEY", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    server: Any
    if request.param == "phoenix":
        server = PhoenixServer()
        monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
        yield fake_phoenix(server)
    elif request.param == "mlflow":
        server = MlflowServer()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        yield fake_mlflow(server)
    else:
        set_keys(monkeypatch)
        server = LangfuseServer(is_old=request.param == "langfuse 3", page=4)
        yield fake_langfuse(server)
    server.close()


@pytest.fixture
def feed(tool: Tool, tmp_path: Path, ledger: Ledger) -> ToolFeed:
    return tool.open(tmp_path, ledger, SETTLE)


def test_traces_are_given_once_however_often_they_are_listed(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    for number in range(1, 8):
        tool.write(number, BEGAN - number, 0.5, f"Answer {number}.")
    judged: list[str] = []
    for minute in range(30):
        poll(feed, ledger, BEGAN + minute * MINUTE)
        judged += judge_due(ledger, BEGAN + minute * MINUTE)
    assert sorted(judged) == sorted(map(tool.id_of, range(1, 8)))
    assert ledger.count_traces() == 7


def test_a_trace_is_not_judged_before_its_root_ended(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    """mlflow#21870: evaluated while it ran, so that the answer was missing."""
    tool.write(1, BEGAN, None, "")
    for minute in range(5):
        poll(feed, ledger, BEGAN + minute * MINUTE)
        assert judge_due(ledger, BEGAN + minute * MINUTE) == {}
    tool.write(1, BEGAN, 270.0, "whole")
    poll(feed, ledger, BEGAN + 280)
    assert judge_due(ledger, BEGAN + 280 + SETTLE - 1) == {}
    assert judge_due(ledger, BEGAN + 280 + SETTLE) == {tool.id_of(1): "whole"}
    poll(feed, ledger, BEGAN + 400)
    assert judge_due(ledger, BEGAN + 4000) == {}


@pytest.mark.parametrize("seconds", [1, 5 * MINUTE, 40 * MINUTE, 2 * HOUR - 1])
def test_a_trace_that_began_early_and_ended_late_is_not_skipped(
    tool: Tool, feed: ToolFeed, ledger: Ledger, seconds: int
) -> None:
    """langfuse#9062: the next question began after the last trace that was seen, so this one was never read.

    The tool shows the trace only once it ended, and others came meanwhile.
    """
    now, end = BEGAN, BEGAN + seconds
    while now < end:
        tool.write(2 + int(now - BEGAN) // MINUTE % 50, now, 1.0, "another")
        poll(feed, ledger, now)
        now += 5 * MINUTE
    tool.write(1, BEGAN, float(seconds), "late")
    judged: dict[str, str | None] = {}
    while now < end + 40 * MINUTE:
        poll(feed, ledger, now)
        judged |= judge_due(ledger, now)
        now += 2 * MINUTE
    assert judged[tool.id_of(1)] == "late"


def test_most_questions_reach_back_only_a_little(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    """Asking for two hours each minute would read every trace 120 times."""
    tool.write(1, BEGAN - HOUR, 1.0, "old")
    tool.write(2, BEGAN, 1.0, "new")
    given = []
    for minute in range(34):
        now = BEGAN + minute * MINUTE
        given.append([one.trace.id for batch in feed.poll(ledger.read_cursor("live"), now) for one in batch.traces])
        poll(feed, ledger, now)
    assert [tool.id_of(1) in ids for ids in given] == [minute in (0, 33) for minute in range(34)]


def test_the_longer_a_trace_took_the_later_it_is_found(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    """At most a quarter of an hour for one of 40 minutes; asking for two hours every minute would cost too much."""
    now = BEGAN
    while now < BEGAN + 40 * MINUTE:
        poll(feed, ledger, now)
        now += MINUTE
    tool.write(1, BEGAN, 40.0 * MINUTE, "late")
    while now <= BEGAN + 51 * MINUTE:
        poll(feed, ledger, now)
        now += MINUTE
    assert list(list_questions(ledger)) == [tool.id_of(1)]


def test_a_trace_whose_root_never_ends_is_judged_after_five_minutes_and_again_at_its_end(
    tool: Tool, feed: ToolFeed, ledger: Ledger
) -> None:
    tool.write(1, BEGAN, None, "")
    judged = []
    for minute in range(9):
        poll(feed, ledger, BEGAN + minute * MINUTE)
        if due := judge_due(ledger, BEGAN + minute * MINUTE):
            judged.append((minute, due))
    assert judged == [(5, {tool.id_of(1): "half"})]
    assert ledger.connection.execute("SELECT is_whole FROM rageval_traces") == [(0,)]
    tool.write(1, BEGAN, 600.0, "whole")
    poll(feed, ledger, BEGAN + 10 * MINUTE)
    assert judge_due(ledger, BEGAN + 11 * MINUTE) == {tool.id_of(1): "whole"}
    assert ledger.count_traces() == 1


@pytest.mark.parametrize("skew", [-HOUR, -9 * MINUTE, 9 * MINUTE, HOUR])
def test_clocks_that_are_wrong_hide_no_trace(tool: Tool, feed: ToolFeed, ledger: Ledger, skew: int) -> None:
    poll(feed, ledger, BEGAN)
    now = BEGAN + 20 * MINUTE
    tool.write(1, now + skew, 2.0, "skewed")
    judged: dict[str, str | None] = {}
    while now < BEGAN + HOUR:
        poll(feed, ledger, now)
        judged |= judge_due(ledger, now)
        now += 2 * MINUTE
    assert judged == {tool.id_of(1): "skewed"}


def test_what_came_while_the_monitor_was_down_is_read(
    tool: Tool, feed: ToolFeed, ledger: Ledger, tmp_path: Path
) -> None:
    poll(feed, ledger, BEGAN)
    for number in range(1, 25):
        tool.write(number, BEGAN + number * HOUR - 30 * MINUTE, 20.0 * MINUTE, "x")
    poll(tool.open(tmp_path, ledger, SETTLE), ledger, BEGAN + 24 * HOUR)
    assert ledger.count_traces() == 24


def test_since_says_from_when_on_traces_are_read_at_first(tool: Tool, ledger: Ledger, tmp_path: Path) -> None:
    tool.write(1, BEGAN - 40 * HOUR, 1.0, "too old")
    tool.write(2, BEGAN - 20 * HOUR, 1.0, "old")
    tool.write(3, BEGAN - HOUR, 1.0, "new")
    poll(tool.open(tmp_path, ledger, SETTLE, since=moment(BEGAN - 24 * HOUR)), ledger, BEGAN)
    assert sorted(list_questions(ledger)) == sorted(map(tool.id_of, (2, 3)))


HALF = b'{"data": [{"id": "x"'
FAULTS = {
    "429 once": [Answer({}, 429, Retry_After="0")],
    "500 once": [Answer({}, 500, Retry_After="0")],
    "a reply that is cut off": [Answer(HALF)],
    "a web page": [Answer(b"<html>", Content_Type="text/html")] * 9,
    "403": [Answer({}, 403)],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_page_that_fails_is_asked_for_again(tool: Tool, feed: ToolFeed, ledger: Ledger, fault: str, at: int) -> None:
    """Whichever reply fails, and however: nothing is lost, nothing is doubled, and the failure is told."""
    for number in range(1, 10):
        tool.write(number, BEGAN - number, 0.5, "x")
    seen = 0
    faults = list(FAULTS[fault])

    def break_off(asked: Any) -> Answer | None:
        nonlocal seen
        seen += 1
        return faults.pop(0) if seen >= at and faults else None

    tool.fail(break_off)
    now, failures, more = BEGAN, 0, 2  # two questions once no reply fails any longer
    while more and now < BEGAN + 12 * MINUTE:
        more -= not faults
        try:
            poll(feed, ledger, now)
        except RagevalError:
            failures += 1
        now += MINUTE
    assert sorted(list_questions(ledger)) == sorted(map(tool.id_of, range(1, 10)))
    assert bool(failures) == (fault in ("403", "a reply that is cut off", "a web page"))


def test_a_page_that_lacks_traces_is_made_up_for_by_the_next(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    """A tool that writes what came with a delay answers with half of it, and without an error."""
    poll(feed, ledger, BEGAN - MINUTE)
    tool.write(1, BEGAN - 2, 0.5, "x")
    poll(feed, ledger, BEGAN)
    tool.write(2, BEGAN - 3, 0.5, "x")  # began before one that was seen
    poll(feed, ledger, BEGAN + MINUTE)
    assert sorted(list_questions(ledger)) == sorted(map(tool.id_of, (1, 2)))


def test_a_kill_while_pages_are_read_loses_and_doubles_nothing(
    tool: Tool, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rageval_spec.monitoring.feeds.tools.BATCH", 2)
    for number in range(1, 8):
        tool.write(number, BEGAN - number, 0.5, "x")
    poll(tool.open(tmp_path, ledger, SETTLE), ledger, BEGAN, killed_after=2)
    assert ledger.count_traces() == 4
    assert ledger.read_cursor("live") is None
    poll(tool.open(tmp_path, ledger, SETTLE), ledger, BEGAN)
    assert ledger.count_traces() == 7


def test_the_tool_is_not_asked_more_often_than_traces_settle(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    poll(feed, ledger, BEGAN)
    asked = len(tool.server.asked)
    for second in range(1, 30):
        poll(feed, ledger, BEGAN + second)
    assert len(tool.server.asked) == asked
    poll(feed, ledger, BEGAN + 30)
    assert len(tool.server.asked) > asked


def test_a_trace_that_cannot_be_read_does_not_hide_the_others(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    if tool.word == "langfuse":
        pytest.skip("what Langfuse gives has no part that makes a row unreadable")
    for number in range(1, 6):
        tool.write(number, BEGAN - 100 * number, 0.5, "x")
    spoil(tool, 3)
    assert poll(feed, ledger, BEGAN) == 1
    assert sorted(list_questions(ledger)) == sorted(map(tool.id_of, (1, 2, 4, 5)))
    assert "span" in (feed.explain_unread() or "")
    assert poll(feed, ledger, BEGAN + MINUTE) == 0  # it was counted


def spoil(tool: Tool, number: int) -> None:
    """Make the tool give a span of a trace that is none."""
    if tool.word == "phoenix":
        (span, *_) = [one for one in tool.server.spans if one["context"]["trace_id"] == tool.id_of(number)]
        span["context"]["span_id"] = None
    else:
        (trace,) = [one for one in tool.server.traces if one["trace_info"]["trace_id"] == tool.id_of(number)]
        trace["spans"][0]["span_id"] = "??"


@pytest.mark.parametrize("keys", [{"until": "1h"}, {"limit": 5}])
def test_keys_that_name_a_part_of_the_traces_are_refused(
    tool: Tool, ledger: Ledger, tmp_path: Path, keys: dict[str, Any]
) -> None:
    (key,) = keys
    with pytest.raises(UsageError, match=rf"spec\.yaml: systems\.live: a monitor reads all traces .* remove '{key}'"):
        tool.open(tmp_path, ledger, SETTLE, **keys)


def test_the_cursor_is_json(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    tool.write(1, BEGAN, None, "")
    poll(feed, ledger, BEGAN)
    cursor = ledger.read_cursor("live")
    assert json.loads(json.dumps(cursor)) == cursor
    assert list(cursor["open"]) == [tool.id_of(1)]
    assert feed.remarks()[-1] == "1 trace has not ended yet"


def test_a_trace_that_a_poll_cuts_in_two_keeps_what_was_judged(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Langfuse lists steps by when each began, and all of a trace can be roots: a later one looks like a whole."""
    set_keys(monkeypatch)
    server = LangfuseServer()
    server.observations = [
        observation(
            number, "t1", "CHAIN", input=json.dumps("Who?"), output=json.dumps(answer), startTime=moment(began),
            endTime=moment(began + 1),
        )
        for number, answer, began in ((1, "Ada.", BEGAN), (2, "half", BEGAN + 200))
    ]  # fmt: skip
    feed = fake_langfuse(server).open(tmp_path, ledger, SETTLE)
    judged: list[str | None] = []
    for minute in range(4, 60):
        poll(feed, ledger, BEGAN + minute * MINUTE)
        judged += judge_due(ledger, BEGAN + minute * MINUTE).values()
    server.close()
    assert judged == ["Ada."]


def test_a_clock_that_is_hours_ahead_does_not_move_a_trace_into_the_future(
    tool: Tool, feed: ToolFeed, ledger: Ledger
) -> None:
    """Windows and detectors would see it hours late; it counts as begun when it came."""
    tool.write(1, BEGAN + 3 * HOUR, 1.0, "ahead")
    tool.write(2, BEGAN + 9 * MINUTE, 1.0, "a little ahead")
    for seconds in (0, 30):
        poll(feed, ledger, BEGAN + seconds)
    found = dict(ledger.connection.execute("SELECT trace_id, started FROM rageval_traces"))
    assert found == {tool.id_of(1): BEGAN, tool.id_of(2): BEGAN + 9 * MINUTE}
    told = "1 trace says that it began more than 10 minutes from now; the time at which they came counts"
    assert told in feed.remarks()


def test_windows_wait_until_the_traces_of_their_end_were_asked_for(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    """A trace that ends just after a question is read by the next one, and is due `settle` later."""
    poll(feed, ledger, BEGAN)
    tool.write(1, BEGAN - 1, 1.5, "x")
    poll(feed, ledger, BEGAN + 30)
    assert BEGAN + 0.5 + feed.delay < BEGAN + 30 + SETTLE + 1
    assert judge_due(ledger, BEGAN + feed.delay) == {tool.id_of(1): "x"}


def test_a_trace_in_which_nothing_was_asked_is_in_the_ledger(tool: Tool, feed: ToolFeed, ledger: Ledger) -> None:
    if tool.word == "langfuse":
        pytest.skip("what Langfuse gives of such a trace is left out and told in the remarks")
    tool.write(1, BEGAN, 1.0, "x")
    for span in tool.server.spans if tool.word == "phoenix" else tool.server.traces[0]["spans"]:
        span["attributes"] = {}
    poll(feed, ledger, BEGAN + 2)
    assert list_questions(ledger) == {tool.id_of(1): ""}
    assert feed.remarks() == ()
