"""Spans that applications send become traces, whatever is killed in between."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.traces.span_feed import SpanFeed
from tests.monitoring.seen_traces import BEGAN, judge_all, open_ledger

SECOND = 1_000_000_000
START = int(BEGAN) * SECOND
INPUT, OUTPUT = "input.value", "output.value"


def root(trace: str, answer: str | None = "Ada.", **others: int) -> Span:
    attributes = {INPUT: "Who wrote it?", **({} if answer is None else {OUTPUT: answer})}
    end = others.get("end", START + SECOND)
    return Span(trace * 32, "1" * 16, None, "chat", START, end, {**attributes, "openinference.span.kind": "CHAIN"})


def retrieval(trace: str, text: str) -> Span:
    attributes = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": text}
    return Span(trace * 32, "2" * 16, "1" * 16, "search", START, START + SECOND // 2, attributes)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path)


def open_feed(ledger: Ledger, folder: Path) -> SpanFeed:
    return SpanFeed("live", 60, ledger, folder, ("127.0.0.1", 0), None, print)


@pytest.fixture
def feed(ledger: Ledger, tmp_path: Path) -> Iterator[SpanFeed]:
    made = open_feed(ledger, tmp_path / "received")
    yield made
    made.close()


def send(feed: SpanFeed, *spans: Span) -> None:
    request = urllib.request.Request(feed.url, encode_spans(spans), {"content-type": "application/x-protobuf"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        assert reply.status == 200


def poll(feed: SpanFeed, ledger: Ledger, now: float) -> None:
    for batch in feed.poll(ledger.read_cursor("live"), now):
        ledger.see(batch.traces, "live", batch.cursor)


def test_spans_of_several_requests_are_one_trace(feed: SpanFeed, ledger: Ledger) -> None:
    send(feed, retrieval("a", "Ada Lovelace wrote the first program."))
    poll(feed, ledger, BEGAN)
    send(feed, root("a"))
    poll(feed, ledger, BEGAN + 10)
    (claimed,) = ledger.claim(BEGAN + 71, 10, 300)
    assert (claimed.trace.question, claimed.trace.answer) == ("Who wrote it?", "Ada.")
    assert [one.text for one in claimed.trace.documents or ()] == ["Ada Lovelace wrote the first program."]


def test_a_trace_without_an_end_waits_for_it(feed: SpanFeed, ledger: Ledger) -> None:
    send(feed, root("a", None, end=0))
    poll(feed, ledger, BEGAN)
    assert ledger.claim(BEGAN + 100, 10, 300) == []
    send(feed, root("a"))
    poll(feed, ledger, BEGAN + 200)
    assert len(ledger.claim(BEGAN + 261, 10, 300)) == 1


def test_late_spans_open_a_trace_once(feed: SpanFeed, ledger: Ledger) -> None:
    series = ledger.find_series("faithfulness", "x", {}, BEGAN)
    send(feed, root("a"))
    poll(feed, ledger, BEGAN)
    assert len(judge_all(ledger, series, BEGAN + 61)) == 1
    for number, text in enumerate(("Ada Lovelace wrote it.", "Somebody else did.")):
        send(feed, retrieval("a", text))
        poll(feed, ledger, BEGAN + 100 + 100 * number)
        assert len(judge_all(ledger, series, BEGAN + 190 + 100 * number)) == 1 - number
    assert ledger.count(series)["judged"] == 1


def test_a_kill_before_the_cursor_was_written_changes_nothing(feed: SpanFeed, ledger: Ledger) -> None:
    send(feed, root("a"), root("b"))
    (batch,) = feed.poll(None, BEGAN)
    assert len(batch.traces) == 2
    poll(feed, ledger, BEGAN + 5)
    assert ledger.count_traces() == 2


def test_what_was_acknowledged_is_read_after_a_restart(ledger: Ledger, tmp_path: Path) -> None:
    first = open_feed(ledger, tmp_path / "received")
    send(first, root("a"))
    first.close()
    second = open_feed(ledger, tmp_path / "received")
    send(second, root("b"))
    poll(second, ledger, BEGAN)
    second.close()
    assert ledger.count_traces() == 2


def test_files_that_were_read_are_deleted(feed: SpanFeed, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.monitoring.traces.span_feed.SEGMENT", 100)
    folder = feed._spool.folder
    for number, name in enumerate("abcdef"):
        send(feed, root(name))
        poll(feed, ledger, BEGAN + number)
    assert len(list(folder.glob("*.otlp"))) <= 3
    assert ledger.count_traces() == 6
