""""""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.spans import span_files
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.span_files import SpanFiles, SpanStore, list_files
from rageval_spec.exchange.shared.spans.spans import Span
from tests.exchange.shared.spans.strategies import SPANS

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _span(number: int) -> Span:
    return Span(TRACE, f"{number:016x}", name=f"s{number}")


def _frame(*numbers: int) -> bytes:
    data = encode_spans(map(_span, numbers))
    return len(data).to_bytes(4, "big") + data


def _json(*numbers: int) -> dict[str, Any]:
    spans = [{"traceId": TRACE, "spanId": f"{number:016x}", "name": f"s{number}"} for number in numbers]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _flat(number: int) -> dict[str, Any]:
    context = {"trace_id": f"0x{TRACE}", "span_id": f"0x{number:016x}"}
    return {"name": f"s{number}", "context": context, "start_time": None, "attributes": {"a": "}{"}}


LAYOUTS: dict[str, bytes] = {
    "one request": encode_spans(map(_span, (1, 2, 3))),
    "requests with lengths": _frame(1, 2) + _frame(3),
    "one line a request": b"\n".join(json.dumps(one).encode() for one in (_json(1, 2), _json(3))) + b"\n\n",
    "one indented document": json.dumps(_json(1, 2, 3), indent=2).encode(),
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps(_json(1, 2, 3)).encode(),
    "console exporter": b"\n".join(json.dumps(_flat(number), indent=4).encode() for number in (1, 2, 3)),
    "a list": json.dumps([_flat(1), _flat(2), _flat(3)]).encode(),
    "a page of phoenix": json.dumps({"data": [_flat(1), _flat(2), _flat(3)], "next_cursor": None}).encode(),
    "spans without a request": json.dumps(
        {"data": _json(1, 2, 3)["resourceSpans"][0]["scopeSpans"][0]["spans"]}
    ).encode(),
    "batches of tempo": json.dumps({"batches": _json(1, 2, 3)["resourceSpans"]}).encode(),
}


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_is_recognised_by_its_first_bytes(tmp_path: Path, layout: str, compressed: bool) -> None:
    path = tmp_path / "spans"
    content = LAYOUTS[layout]
    path.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    spans = list(SpanFiles().read(path))
    assert [(span.trace_id, span.name) for span in spans] == [(TRACE, name) for name in ("s1", "s2", "s3")]
    assert all(span.place.startswith(f"{path}:") for span in spans)


def test_places_name_the_line_of_a_document(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(LAYOUTS["console exporter"])
    lines = [int(span.place.rpartition(":")[2]) for span in SpanFiles().read(path)]
    assert lines == [1, 13, 25] or len(set(lines)) == 3
    assert all(path.read_text().splitlines()[line - 1] == "{" for line in lines)


def test_other_signals_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(map(json.dumps, ({"resourceLogs": []}, _json(1), {"resourceMetrics": []}))))
    reader = SpanFiles()
    assert [span.name for span in reader.read(path)] == ["s1"]
    assert reader.remarks() == [
        "1 request with logs was passed over; only spans and evaluation results are read",
        "1 request with metrics was passed over; only spans and evaluation results are read",
    ]


HALF = json.dumps(_json(1, 2)).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html>502 Bad Gateway</html>", "this is an HTML or XML page, not spans"),
        (b"question,answer\n1,2\n", "begins with 'ques'"),
        (b"\x28\xb5\x2f\xfd....", "compressed with zstd; decompress it first: zstd -d spans"),
        (HALF[:-20], r"spans:1:\d+: not valid JSON"),
        (HALF + b"\n" + HALF[:60], r"spans:2:\d+: not valid JSON"),
        (json.dumps(_json(1), indent=1).encode()[:-30], r"spans:\d+:\d+: not valid JSON"),
        (
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 5}]}]}]}',
            r"spans:1: resourceSpans\[0\].*traceId",
        ),
        (b'{"question": "q", "answer": "a"}', r"spans:1: an object with the keys 'question', 'answer' is neither"),
        (b"[1, 2]", "spans:1: a number is neither an OTLP request nor a span"),
        (b"[" * 100_000, r"spans:1: the JSON has too many lists|spans:1:\d+: not valid JSON"),
        (b'{"a": "\xff"}', "spans:1: not valid JSON"),
        (encode_spans([_span(1)])[:-4], "spans: not an OTLP request: the bytes are damaged, cut off"),
        (_frame(1) + _frame(2)[:-3], r"byte \d+: the file is cut off: a request of"),
        (_frame(1) + b"\0\0", r"byte \d+: the file is cut off inside a length"),
        (b"\0\xff\xff\xff" * 9, r"byte 0: the file is cut off: a request of 16,777,215 bytes has only 32"),
        (_frame(1) + b"\x7f\xff\xff\xff", r"a request of 2,147,483,647 bytes; at most"),
        (gzip.compress(LAYOUTS["one request"], mtime=0)[:-12], "its gzip data end early"),
        (gzip.compress(LAYOUTS["one request"], mtime=0)[:20] + b"x" * 40, "damaged gzip data|end early"),
    ],
)
def test_hostile_files_are_errors_with_their_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "spans"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(SpanFiles().read(path))


def test_a_document_that_is_too_large_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_files, "LARGEST", 1000)
    path = tmp_path / "spans"
    for content in (
        b'{"a": "' + b"x" * 2000 + b'"}',
        b"[\n" + b"1,\n" * 2000 + b"]",
        encode_spans(map(_span, range(1, 99))),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match="more than 0 MiB"):
            list(SpanFiles().read(path))
    path.write_bytes(gzip.compress(b"{" + b" " * 10_000_000, mtime=0))
    with pytest.raises(DataError, match="more than 0 MiB"):
        list(SpanFiles().read(path))


def test_a_folder_gives_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.json.gz", "sub/c.otlp", ".hidden.json", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in list_files(tmp_path)] == ["a.json.gz", "b.jsonl", "c.otlp"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no file that ends in \.json"):
        list_files(tmp_path / "empty")
    with pytest.raises(DataError, match="no such file or folder"):
        list_files(tmp_path / "absent")


@pytest.fixture
def store() -> Iterator[SpanStore]:
    opened = SpanStore()
    yield opened
    opened.close()


def _stored_span(trace: int, number: int, start: int = 0) -> Span:
    return Span(f"{trace:032x}", f"{number:016x}", start=start, resource={"service.name": f"bot {trace % 2}"})


def test_spans_of_a_trace_come_together_however_they_came(store: SpanStore) -> None:
    spans = [_stored_span(trace, number, 1000 - trace) for trace in range(1, 30) for number in range(1, 4)]
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
    store.add([_stored_span(trace, 1, trace * 10) for trace in range(1, 8)])
    assert [trace[0].start for trace in store.read_traces(since=20, until=60)] == [20, 30, 40, 50]
    assert [trace[0].start for trace in store.read_traces(limit=2)] == [60, 70]


def test_of_a_trace_with_too_many_spans_the_first_are_read(store: SpanStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_files, "MOST_SPANS", 3)
    store.add(
        [_stored_span(1, number, 100 - number) for number in range(1, 6)]
        + [_stored_span(2, number) for number in (1, 2, 3)]
    )
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
