from __future__ import annotations

from itertools import pairwise

import pytest

from rageval_spec.data.evaluation import Aggregate, Interval
from rageval_spec.data.trace import TraceLink
from rageval_spec.exchange.otel.evaluations import Place, find_place, list_gauges
from rageval_spec.exchange.shared.span_traces import SpanReader
from tests.exchange.otel.test_source import record_trace
from tests.exchange.traced_evaluation import evaluate

AGGREGATES = tuple(
    Aggregate("golden", "bot", metric, mean, Interval(0.1, 0.4, 0.95, "bootstrap"), 2, 3)
    for metric, mean in (("ndcg@10", 0.25), ("faithfulness", 0.5))
)
T, S = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("link", "place"),
    [
        (TraceLink("otel", T, S, None, {"ended": "5"}), Place(T, S, 5)),
        (TraceLink("phoenix", T.upper(), S), Place(T, S, 0)),
        (TraceLink("mlflow", f"tr-{T}", S), Place(T, S, 0)),
        (TraceLink("otel", T), None),
        (TraceLink("langfuse", "abc", S), None),
        (TraceLink("otel", "0" * 32, S), None),
        (TraceLink("otel", T, S, None, {"ended": "later"}), Place(T, S, 0)),
        (None, None),
    ],
)
def test_any_tool_with_ids_of_opentelemetry_has_a_place(link: TraceLink | None, place: Place | None) -> None:
    assert find_place(link) == place


def test_gauges_of_one_name_stand_together() -> None:
    traces = [trace for number in (1, 2) for trace in SpanReader("otel").read(record_trace(number))]
    names = [gauge.name for gauge in list_gauges(evaluate(traces, aggregates=AGGREGATES), 5)]
    assert names == sorted(names, key=names.index) and len(set(names)) >= 3
    changes = sum(before != after for before, after in pairwise(names))
    assert changes == len(set(names)) - 1
