from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.exchange.shared.otlp import span_store
from rageval_spec.exchange.shared.otlp.span_store import SpanStore
from rageval_spec.exchange.shared.spans import Span
from tests.exchange.shared.otlp.strategies import SPANS


@pytest.fixture
def store() -> Iterator[SpanStore]:
    opened = SpanStore()
    yield opened
    opened.close()


def _span(trace: int, number: int, start: int = 0) -> Span:
    return Span(f"{trace:032x}", f"{number:016x}", start=start, resource={"service.name": f"bot {trace % 2}"})


def test_spans_of_a_trace_come_together_however_they_came(store: SpanStore) -> None:
    spans = [_span(trace, number, 1000 - trace) for trace in range(1, 30) for number in range(1, 4)]
    shuffled = random.Random(3).sample(spans, len(spans))
    assert store.add(shuffled[:40]) + store.add(shuffled[40:]) == len(spans)
    traces = list(store.read_traces())
    assert [trace[0].start for trace in traces] == sorted({span.start for span in spans})
    assert all(len(trace) == 3 and len({span.trace_id for span in trace}) == 1 for trace in traces)
    assert sorted(span for trace in traces for span in trace) == sorted(spans)


def test_a_resource_belongs_to_its_own_spans(store: SpanStore) -> None:
    shared = {"service.name": "one"}
    spans = [Span("1" * 32, f"{number:016x}", start=number, resource=shared) for number in (1, 2)]
    others = [Span("1" * 32, f"{number:016x}", start=number, resource={"service.name": "two"}) for number in (3, 4)]
    store.add([spans[0], others[0], spans[1], others[1]])
    ((*found,),) = store.read_traces()
    assert [span.resource["service.name"] for span in found] == ["one", "one", "two", "two"]


def test_a_window_and_a_limit(store: SpanStore) -> None:
    store.add([_span(trace, 1, trace * 10) for trace in range(1, 8)])
    assert [trace[0].start for trace in store.read_traces(since=20, until=60)] == [20, 30, 40, 50]
    assert [trace[0].start for trace in store.read_traces(limit=2)] == [60, 70]


def test_of_a_trace_with_too_many_spans_the_first_are_read(store: SpanStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_store, "MOST_SPANS", 3)
    store.add([_span(1, number, 100 - number) for number in range(1, 6)] + [_span(2, number) for number in (1, 2, 3)])
    lengths = {len(trace): [span.start for span in trace] for trace in store.read_traces()}
    assert lengths == {3: [95, 96, 97]} and store.cut == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(SPANS, max_size=5, unique_by=lambda span: span.trace_id))
def test_spans_come_back_as_they_were(spans: list[Span]) -> None:
    opened = SpanStore()
    opened.add(spans)
    back = {trace[0].trace_id: trace for trace in opened.read_traces()}
    opened.close()
    assert back == {span.trace_id: [span] for span in spans}
