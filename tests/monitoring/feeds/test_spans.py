"""Spans become traces once they are complete: whatever order they come in, through kills, and late ones once more."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from rageval_spec.commands.monitor.command import prune_texts
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.feeds.spans import ReceiverFeed, SpanFileFeed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.traces.trace_judging import NO_QUESTION
from rageval_spec.spec import load
from tests.exchange.otel.sdk import send_rag
from tests.monitoring.feeds.polling import Clock, judge_due, list_questions, poll
from tests.monitoring.seen_traces import BEGAN, open_ledger

SETTLE = 60


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "history")


@pytest.fixture
def receiver(tmp_path: Path, ledger: Ledger) -> Iterator[ReceiverFeed]:
    feed = listen(tmp_path, ledger)
    yield feed
    feed.close()


def listen(folder: Path, ledger: Ledger, *, token: str | None = None, port: int = 0) -> ReceiverFeed:
    """A receiver that listens already."""
    feed = ReceiverFeed("live", SETTLE, ledger, ("127.0.0.1", port), folder / "received", token)
    poll(feed, ledger, BEGAN)
    return feed


def span(trace: int, number: int, parent: int | None = None, began: float = BEGAN, **texts: str) -> Span:
    """A chain; `question` and `answer` are its ends."""
    attributes = {"openinference.span.kind": "CHAIN"} | {
        {"question": "input.value", "answer": "output.value"}[name]: text for name, text in texts.items()
    }
    start = int(began * 1e9)
    above = None if parent is None else f"{trace:08x}{parent:08x}"
    return Span(f"{trace:032x}", f"{trace:08x}{number:08x}", above, "ask", start, start + 10**9, attributes)


def root(trace: int, answer: str = "Ada.", **others: Any) -> Span:
    return span(trace, 1, question=f"Who wrote {trace}?", answer=answer, **others)


def step(trace: int, number: int = 2, **others: Any) -> Span:
    """A call of a model below the root."""
    return span(trace, number, 1, **others)._replace(attributes={"openinference.span.kind": "LLM", "input.value": "P"})


def send(feed: ReceiverFeed, *spans: Span, token: str | None = None) -> None:
    assert feed.url is not None
    headers = {"Content-Type": "application/x-protobuf"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with build_opener(ProxyHandler({})).open(Request(feed.url, encode_spans(spans), headers)) as reply:
        assert reply.status == 200


def name(trace: int) -> str:
    return f"{trace:032x}"


def test_the_sdk_of_opentelemetry_sends_and_every_trace_is_given_once(ledger: Ledger, receiver: ReceiverFeed) -> None:
    ids = send_rag(str(receiver.url), questions=20, compress=True)
    poll(receiver, ledger, BEGAN)
    assert list_questions(ledger) == {}
    assert "20 traces are not complete yet" in receiver.remarks()
    poll(receiver, ledger, BEGAN + SETTLE)
    assert sorted(list_questions(ledger)) == sorted(ids)
    assert set(judge_due(ledger, BEGAN + SETTLE).values()) == {f"It is {number}." for number in range(20)}
    assert not list((receiver._spool.path).glob("*"))


def test_a_trace_is_not_judged_before_its_root_ended(ledger: Ledger, receiver: ReceiverFeed) -> None:
    """mlflow#21870: evaluated while it ran, with half of its spans."""
    send(receiver, step(1))
    for minute in range(5):
        poll(receiver, ledger, BEGAN + 60 * minute)
        assert judge_due(ledger, BEGAN + 60 * minute) == {}
    send(receiver, root(1))
    poll(receiver, ledger, BEGAN + 280)
    assert judge_due(ledger, BEGAN + 280 + SETTLE - 1) == {}
    poll(receiver, ledger, BEGAN + 280 + SETTLE)
    assert judge_due(ledger, BEGAN + 280 + SETTLE) == {name(1): "Ada."}


def test_each_span_that_comes_puts_the_judgement_off(ledger: Ledger, receiver: ReceiverFeed) -> None:
    send(receiver, root(1))
    poll(receiver, ledger, BEGAN)
    send(receiver, step(1))
    poll(receiver, ledger, BEGAN + SETTLE - 1)
    poll(receiver, ledger, BEGAN + SETTLE + 1)
    assert list_questions(ledger) == {}
    poll(receiver, ledger, BEGAN + 2 * SETTLE)
    assert list(list_questions(ledger)) == [name(1)]


def test_a_trace_whose_root_never_ends_is_judged_after_five_minutes(ledger: Ledger, receiver: ReceiverFeed) -> None:
    send(receiver, span(1, 2, 1, question="Who?", answer="Ada."))
    poll(receiver, ledger, BEGAN)
    poll(receiver, ledger, BEGAN + 299)
    assert list_questions(ledger) == {}
    poll(receiver, ledger, BEGAN + 300)
    assert judge_due(ledger, BEGAN + 300) == {name(1): "Ada."}
    ((is_whole,),) = ledger.connection.execute("SELECT is_whole FROM rageval_traces")
    assert not is_whole


def test_a_trace_that_never_stops_is_judged_after_two_hours(ledger: Ledger, receiver: ReceiverFeed) -> None:
    """A program that gives all spans one trace must not keep its trace open, and on the disk, for ever."""
    for minute in range(0, 121, 4):
        send(receiver, span(1, 100 + minute, 1, question="Who?", answer="Ada."))
        poll(receiver, ledger, BEGAN + 60 * minute)
    assert list(list_questions(ledger)) == [name(1)]


def test_late_spans_open_a_trace_once_more(ledger: Ledger, receiver: ReceiverFeed) -> None:
    send(receiver, root(1, answer="first"))
    poll(receiver, ledger, BEGAN)
    now = BEGAN
    judged = []
    for number in range(3):
        now += SETTLE
        poll(receiver, ledger, now)
        judged.append(judge_due(ledger, now))
        send(receiver, step(1, 10 + number))
        poll(receiver, ledger, now)
    poll(receiver, ledger, now + SETTLE)
    judged.append(judge_due(ledger, now + SETTLE))
    assert judged == [{name(1): "first"}, {name(1): "first"}, {}, {}]
    assert "2 traces got spans too late to be judged once more" in receiver.remarks()


def test_spans_that_come_after_their_trace_was_forgotten_do_not_replace_it(
    ledger: Ledger, receiver: ReceiverFeed
) -> None:
    send(receiver, root(1), step(1))
    poll(receiver, ledger, BEGAN)
    poll(receiver, ledger, BEGAN + SETTLE)
    judge_due(ledger, BEGAN + SETTLE)
    later = BEGAN + 3600
    poll(receiver, ledger, later)
    assert ledger.connection.execute("SELECT COUNT(*) FROM rageval_spans") == [(0,)]
    send(receiver, span(1, 7, 1, question="P", answer="half"))
    poll(receiver, ledger, later)
    poll(receiver, ledger, later + 300)
    assert judge_due(ledger, later + 300) == {}
    assert "1 trace got spans too late to be judged once more" in receiver.remarks()


def test_several_questions_of_one_trace_keep_their_ids(ledger: Ledger, receiver: ReceiverFeed) -> None:
    outer = span(1, 1)
    asked = [span(1, n, 1, BEGAN + n, question=f"Question {n}?", answer=f"Answer {n}.") for n in (2, 3)]
    send(receiver, outer, asked[0])
    poll(receiver, ledger, BEGAN)
    poll(receiver, ledger, BEGAN + SETTLE)
    assert judge_due(ledger, BEGAN + SETTLE) == {name(1): "Answer 2."}
    send(receiver, asked[1])
    poll(receiver, ledger, BEGAN + SETTLE)
    poll(receiver, ledger, BEGAN + 2 * SETTLE)
    assert judge_due(ledger, BEGAN + 2 * SETTLE) == {name(1): "Answer 2.", f"{name(1)}:{1:08x}{3:08x}": "Answer 3."}
    assert ledger.count_traces() == 2


@pytest.mark.parametrize("skew", [-3600.0, -1.0, 1.0, 3600.0])
def test_clocks_that_are_wrong_change_nothing(ledger: Ledger, receiver: ReceiverFeed, skew: float) -> None:
    send(receiver, root(1, began=BEGAN + skew))
    poll(receiver, ledger, BEGAN)
    poll(receiver, ledger, BEGAN + SETTLE)
    assert judge_due(ledger, BEGAN + SETTLE) == {name(1): "Ada."}


@pytest.mark.parametrize("killed_after", [0, 1])
def test_a_kill_loses_and_doubles_nothing(ledger: Ledger, tmp_path: Path, killed_after: int) -> None:
    """Killed after the request was acknowledged, or after the spans were gathered and before the trace was written."""
    feed = listen(tmp_path, ledger)
    send(feed, root(1))
    send(feed, root(2))
    if killed_after:
        poll(feed, ledger, BEGAN)
        poll(feed, ledger, BEGAN + SETTLE, killed_after=0)
    feed.close()
    feed = listen(tmp_path, ledger)
    send(feed, root(2))  # an exporter that got no answer sends again
    poll(feed, ledger, BEGAN + SETTLE)
    poll(feed, ledger, BEGAN + 2 * SETTLE)
    assert judge_due(ledger, BEGAN + 2 * SETTLE) == {name(1): "Ada.", name(2): "Ada."}
    assert ledger.count_traces() == 2
    feed.close()


def test_a_kill_after_a_trace_was_written_does_not_give_it_again(ledger: Ledger, receiver: ReceiverFeed) -> None:
    send(receiver, root(1))
    poll(receiver, ledger, BEGAN)
    batches = receiver.poll(ledger.read_cursor("live"), BEGAN + SETTLE)
    batch = next(batches)
    ledger.see(batch.traces, "live", batch.cursor)
    batches.close()  # type: ignore[attr-defined]
    send(receiver, step(1))
    poll(receiver, ledger, BEGAN + SETTLE)
    poll(receiver, ledger, BEGAN + 2 * SETTLE)
    assert judge_due(ledger, BEGAN + 2 * SETTLE) == {name(1): "Ada."}
    assert not any("too late" in told for told in receiver.remarks())


def test_a_request_that_a_kill_cut_off_is_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "received"
    folder.mkdir()
    whole = encode_spans([root(1)])
    frame = len(whole).to_bytes(4, "big") + whole
    (folder / "127.0.0.1-0-00000000000000000001.otlp").write_bytes(frame + frame[: len(frame) // 2])
    feed = listen(tmp_path, ledger)
    poll(feed, ledger, BEGAN + SETTLE)
    feed.close()
    assert list(list_questions(ledger)) == [name(1)]
    assert list(folder.iterdir()) == []


def test_only_senders_with_the_token_are_heard(ledger: Ledger, tmp_path: Path) -> None:
    feed = listen(tmp_path, ledger, token="s3cret")
    with pytest.raises(HTTPError, match="401"):
        send(feed, root(1), token="guess")
    send(feed, root(2), token="s3cret")
    poll(feed, ledger, BEGAN)
    poll(feed, ledger, BEGAN + SETTLE)
    assert list(list_questions(ledger)) == [name(2)]
    feed.close()


def test_an_address_that_is_in_use_is_told_and_what_was_gathered_is_still_given(
    ledger: Ledger, receiver: ReceiverFeed, tmp_path: Path
) -> None:
    send(receiver, root(1))
    poll(receiver, ledger, BEGAN)
    port = int(str(receiver.url).split(":")[2].partition("/")[0])
    second = ReceiverFeed("live", SETTLE, ledger, ("127.0.0.1", port), tmp_path / "received", None)
    with pytest.raises(RagevalError, match=rf"127\.0\.0\.1:{port}: cannot listen: Address already in use"):
        poll(second, ledger, BEGAN + SETTLE)
    assert list(list_questions(ledger)) == [name(1)]


def test_a_trace_without_a_question_is_filtered_with_the_reason(tmp_path: Path) -> None:
    """It is in the ledger once, not among the rows that cannot be read, and a question that comes late is judged."""
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    with open_monitor(load(path), clock := Clock()) as loop:
        loop.poll()
        (receiver,) = loop.feeds
        assert isinstance(receiver, ReceiverFeed)
        send(receiver, span(1, 1), root(2), span(3, 1))
        for late in ((), (span(3, 5, 1, question="Who?", answer="Ada."),), ()):
            for _ in range(2):
                loop.poll()
                clock.now += 2
            loop.judge_due()
            send(receiver, *late)
        series = loop.judge.series["faithfulness"].id
        counts = loop.ledger.count(series)
        reasons = loop.ledger.connection.execute("SELECT trace_id, reason FROM rageval_judgements ORDER BY trace_id")
        assert loop.ledger.count_traces() == sum(counts.values()) == 3
        assert (reasons[0], loop.progress.unread) == ((name(1), NO_QUESTION), 0)
        assert reasons[2][1] != NO_QUESTION
        loop.feeds[0].close()


def as_json(*spans: Span) -> bytes:
    """A line as a collector's file exporter writes it."""
    listed = [
        {
            "traceId": one.trace_id,
            "spanId": one.span_id,
            "parentSpanId": one.parent_id or "",
            "name": one.name,
            "startTimeUnixNano": str(one.start),
            "endTimeUnixNano": str(one.end),
            "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in one.attributes.items()],
        }
        for one in spans
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}).encode() + b"\n"


def as_protobuf(*spans: Span) -> bytes:
    content = encode_spans(spans)
    return len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("write", [as_json, as_protobuf])
@pytest.mark.parametrize("is_folder", [False, True])
def test_the_growing_files_of_a_collector_are_read_with_those_it_rotated(
    ledger: Ledger, tmp_path: Path, write: Any, is_folder: bool
) -> None:
    path = tmp_path / "out" / "traces.json"
    path.parent.mkdir()
    feed = SpanFileFeed("live", SETTLE, ledger, path.parent if is_folder else path)
    path.write_bytes(write(step(1)) + write(root(2))[:-10])
    assert poll(feed, ledger, BEGAN) == 0
    path.write_bytes(write(step(1)) + write(root(2)) + write(root(1)))
    path.rename(path.with_name("traces-2026-11-28T02-38-22.123.json"))
    path.write_bytes(write(root(3)))
    feed = SpanFileFeed("live", SETTLE, ledger, path.parent if is_folder else path)
    assert poll(feed, ledger, BEGAN + 1) == 0
    path.with_name("traces-2026-11-28T02-39-22.123.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.write_bytes(write(root(4)))
    assert poll(feed, ledger, BEGAN + 1) == 0
    poll(feed, ledger, BEGAN + 1 + SETTLE)
    assert judge_due(ledger, BEGAN + 1 + SETTLE) == {name(number): "Ada." for number in (1, 2, 3, 4)}


def test_lines_that_hold_no_spans_are_counted_or_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_bytes(b'{"resourceLogs": []}\n' + b'{"what": 1}\n' + b"\xff\xfe\n" + b"\n" + as_json(root(1)))
    feed = SpanFileFeed("live", SETTLE, ledger, path)
    assert poll(feed, ledger, BEGAN) == 2
    assert "traces.json: byte 33: not a request of spans: " in (feed.explain_unread() or "")
    assert "1 request of logs or metrics passed over" in feed.remarks()
    poll(feed, ledger, BEGAN + SETTLE)
    assert list(list_questions(ledger)) == [name(1)]


def test_a_trace_whose_root_came_does_not_wait_for_ever(ledger: Ledger, receiver: ReceiverFeed) -> None:
    """A span each 30 seconds, for four hours: judged after two hours, and once more after two more."""
    judged = []
    send(receiver, root(1))
    for number in range(8 * 60 + 4):
        poll(receiver, ledger, now := BEGAN + 30 * number)
        judged += [now - BEGAN for _ in judge_due(ledger, now)]
        if number < 8 * 60:
            receiver._spool.add(encode_spans([step(1, 100 + number)]))
    assert judged == [7200, 7200 + 7200]


def test_a_trace_that_is_forgotten_leaves_no_spans_and_takes_no_more(ledger: Ledger, receiver: ReceiverFeed) -> None:
    send(receiver, root(1), step(1))
    send(receiver, root(2))
    poll(receiver, ledger, BEGAN)
    poll(receiver, ledger, BEGAN + SETTLE)
    assert ledger.forget(trace_id=name(1)) == 1
    assert ledger.connection.execute("SELECT DISTINCT trace_id FROM rageval_spans") == [(name(2),)]
    send(receiver, step(1, 3))
    poll(receiver, ledger, BEGAN + SETTLE)
    poll(receiver, ledger, BEGAN + 2 * SETTLE)
    assert ledger.connection.execute("SELECT DISTINCT trace_id FROM rageval_spans") == [(name(2),)]
    assert judge_due(ledger, BEGAN + 2 * SETTLE) == {name(2): "Ada."}


SPEC = """
version: 1
name: bot
systems: {live: {use: otel, listen: "127.0.0.1:0"}}
metrics: [{use: faithfulness, judge: overlap}]
monitor: {every: 1m, settle: 1s}
"""
USER = {"openinference.span.kind": "CHAIN", "user.id": "eve", "input.value": "Who?", "output.value": "Eve."}


def test_all_that_waits_of_a_user_is_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the ledger, in traces whose root has not come, and in requests that were not read before the monitor ended."""
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    with open_monitor(load(path), clock := Clock()) as loop:
        loop.poll()
        (receiver,) = loop.feeds
        assert isinstance(receiver, ReceiverFeed)
        send(receiver, root(1)._replace(attributes=USER), step(1), root(2))
        loop.poll()
        send(receiver, step(3)._replace(attributes=USER), step(3, 4))
        clock.now += 1
        loop.poll()
        assert sorted(list_questions(loop.ledger)) == [name(1), name(2)]
        send(receiver, root(4)._replace(attributes=USER), root(5))
        send(receiver, step(4))
        loop.feeds[0].close()
    assert prune_texts.main([str(path), "--user", "eve"], standalone_mode=False) == 0
    assert "removed the texts of 1 trace" in capsys.readouterr().out
    with open_monitor(load(path), clock) as loop:
        assert list(list_questions(loop.ledger)) == [name(2)]
        kept = "SELECT DISTINCT trace_id FROM rageval_spans"
        assert loop.ledger.connection.execute(kept) == [(name(2),)]
        (folder,) = (tmp_path / ".rageval" / "received").iterdir()
        left = b"".join(file.read_bytes() for file in folder.iterdir())
        assert b"Eve." not in left
        assert b"Who wrote 5?" in left
        loop.poll()
        clock.now += 1
        loop.poll()
        assert sorted(list_questions(loop.ledger)) == [name(2), name(5)]
        loop.feeds[0].close()


def test_two_receivers_with_the_same_trace_ids_stay_apart(ledger: Ledger, tmp_path: Path) -> None:
    feeds = [ReceiverFeed(one, SETTLE, ledger, ("127.0.0.1", 0), tmp_path / one, None) for one in ("a", "b")]
    feeds[1].prefix = "b/"
    for second in (0, SETTLE):
        for feed in feeds:
            poll(feed, ledger, BEGAN + second)
            if not second:
                send(feed, root(1, answer=feed.name))
                poll(feed, ledger, BEGAN)
    assert judge_due(ledger, BEGAN + SETTLE) == {name(1): "a", f"b/{name(1)}": "b"}
    for feed in feeds:
        feed.close()
