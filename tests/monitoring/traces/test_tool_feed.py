"""Tools are polled so that no trace is skipped for ever and none counts twice, whenever they show it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from rageval_spec.data.traces import Trace
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.contracts import TraceSource, WindowNode
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.traces.tool_feed import LONGEST, ToolFeed
from rageval_spec.plugin import Context
from tests.monitoring.seen_traces import BEGAN, make_trace


class Tool(TraceSource[WindowNode]):
    """A tool that shows some traces, and fails after a few of them."""

    node_type = WindowNode
    shown: ClassVar[list[Trace]] = []
    fails_after: ClassVar[int | None] = None

    def read(self) -> Iterator[Trace]:
        since = self.node.window[0]
        for number, trace in enumerate(self.shown):
            if number == self.fails_after:
                raise RagevalError("the tool answered 500")
            began = datetime.fromisoformat(trace.started or "")
            if since is None or began >= since:
                yield trace


def at(name: str, moment: float, seconds: float | None = 1.0, answer: str | None = "Ada.") -> Trace:
    started = datetime.fromtimestamp(moment, UTC).isoformat()
    return replace(make_trace(name, answer), started=started, seconds=seconds, error=None)


@pytest.fixture
def poll(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    feed = ToolFeed("live", 60, Tool, Tool(WindowNode(), Context("live")))

    def poll_once(now: float, *shown: Trace, fails_after: int | None = None) -> None:
        monkeypatch.setattr(Tool, "shown", list(shown))
        monkeypatch.setattr(Tool, "fails_after", fails_after)
        for batch in feed.poll(ledger.read_cursor("live"), now):
            ledger.see(batch.traces, "live", batch.cursor)

    return poll_once


def list_due(ledger: Ledger, now: float) -> list[str]:
    return sorted(one.trace_id for one in ledger.claim(now, 100, 1))


def test_a_trace_that_began_early_and_ended_late_is_not_skipped(ledger: Ledger, poll: Any) -> None:
    """mlflow#21870, langfuse#9062: the cursor had passed it when it appeared."""
    poll(BEGAN, at("early", BEGAN - 10))
    late = at("late", BEGAN - LONGEST + 60, seconds=LONGEST)
    poll(BEGAN + 300, at("early", BEGAN - 10), late)
    assert list_due(ledger, BEGAN + 1000) == ["early", "late"]


def test_a_trace_is_not_judged_before_it_is_complete(ledger: Ledger, poll: Any) -> None:
    poll(BEGAN, at("t", BEGAN, seconds=None, answer=None))
    assert list_due(ledger, BEGAN + 61) == []
    poll(BEGAN + 100, at("t", BEGAN, seconds=90.0))
    assert list_due(ledger, BEGAN + 159) == []
    (claimed,) = ledger.claim(BEGAN + 161, 10, 1)
    assert claimed.trace.answer == "Ada."


def test_a_trace_that_never_ends_is_judged_after_a_while(ledger: Ledger, poll: Any) -> None:
    poll(BEGAN, at("t", BEGAN, seconds=None, answer=None))
    assert list_due(ledger, BEGAN + 301) == ["t"]


def test_what_is_polled_again_counts_once(ledger: Ledger, poll: Any) -> None:
    for minute in range(5):
        poll(BEGAN + 60 * minute, at("t", BEGAN))
    assert ledger.count_traces() == 1
    assert list_due(ledger, BEGAN + 61) == ["t"]


def test_half_a_page_is_kept_and_the_rest_comes_with_the_next_poll(ledger: Ledger, poll: Any) -> None:
    traces = [at(f"t{i}", BEGAN - i) for i in range(5)]
    with pytest.raises(RagevalError):
        poll(BEGAN, *traces, fails_after=3)
    assert ledger.read_cursor("live") is None
    poll(BEGAN + 60, *traces)
    assert ledger.count_traces() == 5


@pytest.mark.parametrize("skew", [-500.0, 500.0])
def test_a_clock_that_is_off_skips_nothing(ledger: Ledger, poll: Any, skew: float) -> None:
    poll(BEGAN)
    poll(BEGAN + 60, at("t", BEGAN + 30 + skew))
    assert ledger.count_traces() == 1


def test_after_a_pause_everything_since_then_is_read(ledger: Ledger, poll: Any) -> None:
    poll(BEGAN)
    poll(BEGAN + 90_000, at("t", BEGAN + 100), at("u", BEGAN + 80_000))
    assert ledger.count_traces() == 2
