"""Spans of any content, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
IDS = st.binary(min_size=8, max_size=8).filter(any).map(bytes.hex)
TRACE_IDS = st.binary(min_size=16, max_size=16).filter(any).map(bytes.hex)
TIMES = st.integers(0, (1 << 64) - 1)
PLAIN = (
    TEXTS
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=20)
    | st.none()
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)
ATTRIBUTES = st.dictionaries(TEXTS, VALUES.filter(lambda value: value is not None), max_size=4)
SPANS = st.builds(
    Span,
    TRACE_IDS,
    IDS,
    st.none() | IDS,
    TEXTS,
    TIMES,
    TIMES,
    ATTRIBUTES,
    st.lists(st.builds(SpanEvent, TEXTS, TIMES, ATTRIBUTES), max_size=2).map(tuple),
    st.lists(st.builds(Link, TRACE_IDS, IDS, ATTRIBUTES), max_size=2).map(tuple),
    st.integers(0, 2),
    TEXTS,
    ATTRIBUTES,
    st.integers(0, 5),
    st.just(""),
)
