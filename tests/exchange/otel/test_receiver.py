""""""

from __future__ import annotations

import gzip
import json
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.otel import receiver as module
from rageval_spec.exchange.otel.receiver import Receiver, RequestSpool
from rageval_spec.exchange.shared.spans.protobuf import encode_spans, read_rejection
from rageval_spec.exchange.shared.spans.span_files import SpanFiles
from rageval_spec.exchange.shared.spans.spans import Span
from tests.exchange.otel.rotel import rotel_forwarding
from tests.exchange.otel.sdk import send_rag

TRACE = "0af7651916cd43dd8448eb211c80319c"
PROTOBUF, JSON = "application/x-protobuf", "application/json"


class Open(NamedTuple):
    receiver: Receiver
    spool: RequestSpool
    told: list[str]

    @property
    def port(self) -> int:
        return int(self.receiver.url.rpartition(":")[2].partition("/")[0])

    def post(self, body: bytes, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        connection.request("POST", path, body, {"Content-Type": kind, **named})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, content

    def kept(self) -> list[Span]:
        return list(SpanFiles().read(self.spool.path))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    spool, told = RequestSpool(tmp_path / "spool.otlp"), list[str]()
    receiver = Receiver("127.0.0.1", 0, spool, told.append)
    yield Open(receiver, spool, told)
    spool.close()
    receiver.close()


def await_spans(receiver: Receiver, count: int) -> None:
    """Return once so many spans have arrived; the time limit only guards against a hang."""
    until = time.monotonic() + 30
    while receiver.spans < count and time.monotonic() < until:
        time.sleep(0.02)


def _span(number: int) -> Span:
    return Span(TRACE, f"{number:016x}", attributes={"input.value": "q"})


def _json(*ids: str) -> bytes:
    spans = [{"traceId": TRACE, "spanId": one} for one in ids]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_the_real_sdk_sends_spans(opened: Open, compress: bool) -> None:
    ids = send_rag(opened.receiver.url, compress=compress)
    spans = opened.kept()
    assert {span.trace_id for span in spans} == set(ids) and len(spans) == 9 == opened.receiver.spans
    assert spans[0].resource["service.name"] == "bot"


def test_a_real_collector_forwards_spans(opened: Open) -> None:
    with rotel_forwarding(opened.receiver.url.removesuffix("/v1/traces")) as collector:
        ids = send_rag(f"{collector}/v1/traces")
        await_spans(opened.receiver, 9)
    assert {span.trace_id for span in opened.kept()} == set(ids) and opened.receiver.spans == 9


def test_answers_in_the_format_of_the_request(opened: Open) -> None:
    assert opened.post(encode_spans([_span(1)])) == (200, b"")
    assert opened.post(_json("000000000000000a"), JSON) == (200, b"{}")
    assert opened.post(gzip.compress(encode_spans([_span(2)]), mtime=0), Content_Encoding="gzip") == (200, b"")
    assert [int(span.span_id, 16) for span in opened.kept()] == [1, 10, 2]


def test_an_empty_request_is_fine_and_keeps_nothing(opened: Open) -> None:
    assert opened.post(b"") == (200, b"")
    assert opened.kept() == []


def test_spans_without_ids_are_rejected_and_the_others_kept(opened: Open) -> None:
    status, body = opened.post(encode_spans([_span(1), _span(2)._replace(trace_id=b"short".hex())]))
    assert status == 200
    assert read_rejection(body) == (1, "span 2: a trace id has 5 bytes where 16 were expected")
    status, body = opened.post(_json("x", "000000000000000a"), JSON)
    said = json.loads(body)["partialSuccess"]
    assert status == 200 and said["rejectedSpans"] == "1" and "spans[0].spanId: 'x'" in said["errorMessage"]
    assert [int(span.span_id, 16) for span in opened.kept()] == [1, 10] and opened.receiver.rejected == 2


def test_a_chunked_request(opened: Open) -> None:
    body = encode_spans([_span(1), _span(2)])
    with socket.create_connection(("127.0.0.1", opened.port), 20) as raw:
        raw.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n")
        raw.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        for part in (body[:7], body[7:]):
            raw.sendall(f"{len(part):x};ext=1\r\n".encode() + part + b"\r\n")
        raw.sendall(b"0\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 200")
    assert len(opened.kept()) == 2


BOMB = zlib.compressobj(9, wbits=31)
BOMBED = BOMB.compress(b"\0" * 30_000_000) + BOMB.flush()


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        (b"<html>", {}, 400, "not an OTLP request"),
        (b"{}", {"kind": "text/plain"}, 415, "send application/x-protobuf or application/json"),
        (b"{", {"kind": JSON}, 400, "not valid JSON"),
        (b"[" * 100_000, {"kind": JSON}, 400, "JSON"),
        (b"[]", {"kind": JSON}, 400, "a list of 0 where an OTLP request"),
        (b"x", {"Content_Encoding": "zstd"}, 415, "send gzip or none"),
        (b"xxxx", {"Content_Encoding": "gzip"}, 400, "damaged gzip data"),
        (gzip.compress(b"abc", mtime=0)[:-9], {"Content_Encoding": "gzip"}, 400, "end early"),
        (BOMBED, {"Content_Encoding": "gzip"}, 413, "after decompression"),
        (b"", {"path": "/v1/metrics"}, 404, "only spans are received, at /v1/traces; switch the export of metrics off"),
        (b"", {"path": "/"}, 404, "spans are received at /v1/traces"),
        (b"", {"Content_Length": "99999999999"}, 413, "at most 20,971,520"),
        (b"", {"Content_Length": "-5"}, 400, "Invalid HTTP request"),
    ],
)
def test_what_cannot_be_taken_is_refused(
    opened: Open, body: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    answered, content = opened.post(body, **headers)
    assert answered == status and message in content.decode("utf-8", "replace")
    assert opened.post(encode_spans([_span(1)])) == (200, b"")  # the receiver still works
    assert len(opened.kept()) == 1


def test_a_request_that_is_cut_off_keeps_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_connection(("127.0.0.1", opened.port), 20) as raw:
        raw.sendall(HEAD + b"Content-Length: 50\r\n\r\nabc")
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(1000) == b""
    assert opened.kept() == []


def test_nothing_is_acknowledged_that_is_not_on_the_disk(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rageval_spec.exchange.otel.receiver.os.fsync", fail)
        status, content = opened.post(encode_spans([_span(1)]))
    assert status == 503 and b"cannot be stored" in content
    assert opened.told == [f"{opened.spool.path}: cannot be written: No space left on device"]
    assert opened.post(encode_spans([_span(2)])) == (200, b"")
    assert [int(span.span_id, 16) for span in opened.kept()] == [2]


def test_a_receiver_that_is_stopping_asks_to_be_tried_again(opened: Open) -> None:
    opened.spool.close()
    status, content = opened.post(_json("000000000000000a"), JSON)
    assert status == 503 and json.loads(content)["message"] == "the receiver is stopping"


def test_many_senders_at_once_lose_nothing(opened: Open) -> None:
    def send(first: int) -> None:
        for number in range(first, first + 10):
            assert opened.post(encode_spans([_span(number)]))[0] == 200

    threads = [Thread(target=send, args=(first,)) for first in range(1, 200, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(span.span_id, 16) for span in opened.kept()) == list(range(1, 201))


def test_an_address_in_use_is_an_error(opened: Open, tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path / "other.otlp")
    with pytest.raises(RagevalError, match=rf"127\.0\.0\.1:{opened.port}: cannot listen"):
        Receiver("127.0.0.1", opened.port, spool, print)
    spool.close()


def test_a_larger_request_than_allowed(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    status, content = opened.post(b"\0" * 101)
    assert status == 413 and b"a request has at most 100 bytes; send smaller batches" in content
    chunks = b"Transfer-Encoding: chunked\r\n\r\n32\r\n" + b"\0" * 50 + b"\r\n33\r\n" + b"\0" * 51
    assert b" 413 " in exchange(opened, HEAD + chunks)


def test_a_sender_that_reads_nothing_before_all_is_sent_is_told_that_it_is_too_much(opened: Open) -> None:
    assert opened.post(b"\0" * (module.LARGEST + 2**20))[0] == 413


HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"


def exchange(opened: Open, sent: bytes) -> bytes:
    """What comes back for these bytes until the receiver closes the connection, or answers."""
    with socket.create_connection(("127.0.0.1", opened.port), 20) as raw:
        raw.sendall(sent)
        return raw.recv(2000)


@pytest.mark.parametrize("length", [b"-1", b"-0", b"+5", b"0x5", b"", b" ", b"zz", b"f" * 40])
def test_a_chunk_of_no_length_is_refused_and_nothing_of_it_is_read(opened: Open, length: bytes) -> None:
    answer = exchange(opened, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + length + b"\r\n" + b"x" * 10_000)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")) or answer == b""
    assert opened.kept() == []
    assert opened.post(encode_spans([_span(1)])) == (200, b"")


@pytest.mark.parametrize("begun", [b"", b"POST /v1", HEAD, HEAD + b"Content-Length: 50\r\n\r\nabc"])
def test_slow_senders_block_nobody(opened: Open, begun: bytes) -> None:
    slow = [socket.create_connection(("127.0.0.1", opened.port), 20) for _ in range(40)]
    try:
        for one in slow:
            one.sendall(begun)
        assert opened.post(encode_spans([_span(1)])) == (200, b"")
    finally:
        for one in slow:
            one.close()


@pytest.mark.parametrize("begun", [b"", b"POST /v1", HEAD, HEAD + b"Content-Length: 50\r\n\r\nabc"])
def test_a_request_that_does_not_come_in_time_is_ended(
    tmp_path: Path, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    monkeypatch.setattr(module, "_GRACE", 0.1)
    spool = RequestSpool(tmp_path / "spool.otlp")
    opened = Open(Receiver("127.0.0.1", 0, spool, print), spool, [])
    answer = exchange(opened, begun)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
    assert opened.kept() == []
    spool.close()
    opened.receiver.close()


def test_more_connections_than_allowed_are_asked_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    spool = RequestSpool(tmp_path / "spool.otlp")
    opened = Open(Receiver("127.0.0.1", 0, spool, print), spool, [])
    others = [socket.create_connection(("127.0.0.1", opened.port), 20) for _ in range(3)]
    for one in others:
        one.sendall(b"POST")
    assert opened.post(encode_spans([_span(1)]))[0] == 503
    for one in others:
        one.close()
    spool.close()
    opened.receiver.close()


def test_requests_share_a_bounded_memory(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 10)
    status, content = opened.post(b"\0" * 50)
    assert status == 503 and b"too many requests at once" in content
    monkeypatch.setattr(module, "MOST_HELD", 1000)
    assert opened.post(encode_spans([_span(1)])) == (200, b"")


def test_a_token_is_asked_of_every_request(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path / "spool.otlp")
    opened = Open(Receiver("127.0.0.1", 0, spool, print, "secret-1"), spool, [])
    body = encode_spans([_span(1)])
    for headers in ({}, {"Authorization": "Bearer secret-2"}, {"Authorization": "secret-1"}):
        status, content = opened.post(body, **headers)
        assert status == 401 and b"authorization: Bearer TOKEN" in content
    assert opened.post(body, Authorization="Bearer secret-1") == (200, b"")
    assert len(opened.kept()) == 1
    spool.close()
    opened.receiver.close()


def test_what_receiving_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    spool = RequestSpool(tmp_path / "spool.otlp")
    with pytest.raises(UsageError, match=r"pip install 'rageval-spec\[serve\]'"):
        Receiver("127.0.0.1", 0, spool, print)
    spool.close()


def _request(number: int) -> bytes:
    return encode_spans([Span("1" * 32, f"{number:016x}")])


def _read(path: Path) -> list[int]:
    return [int(span.span_id, 16) for span in SpanFiles().read(path)]


def test_requests_can_be_read_as_a_file_of_a_collector(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path / "deep" / "a.otlp")
    assert all(spool.add(_request(number)) for number in (1, 2))
    assert _read(spool.path) == [1, 2]  # also before it is closed
    spool.close()
    assert not spool.add(_request(3)) and _read(spool.path) == [1, 2]


@pytest.mark.parametrize("cut", [1, 3, 4, 10])
def test_what_a_kill_left_of_a_request_is_removed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.otlp"
    spool = RequestSpool(path)
    spool.add(_request(1))
    whole = path.stat().st_size
    spool.add(_request(2))
    spool.close()
    path.write_bytes(path.read_bytes()[: whole + cut])
    again = RequestSpool(path)
    assert again.found == 1
    again.add(_request(3))
    again.close()
    assert _read(path) == [1, 3]


def test_two_receivers_do_not_share_a_spool(tmp_path: Path) -> None:
    first = RequestSpool(tmp_path / "a.otlp")
    with pytest.raises(RagevalError, match="another receiver is writing"):
        RequestSpool(tmp_path / "a.otlp")
    first.close()
    RequestSpool(tmp_path / "a.otlp").close()


def test_a_retired_spool_is_kept_until_the_next_one(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path / "a.otlp")
    spool.add(_request(1))
    spool.retire()
    assert _read(tmp_path / "a.done") == [1] and not spool.path.exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RagevalError, match="cannot be written"):
        RequestSpool(tmp_path / "file" / "a.otlp")
