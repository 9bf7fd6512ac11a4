from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode, OtelSource, OtelSourceNode
from rageval_spec.exchange.shared.spans.protobuf import LogEvent, Scope, encode_events, encode_spans
from rageval_spec.exchange.shared.spans.spans import SECOND, Span
from rageval_spec.plugin import Context
from tests.command_line import invoke
from tests.exchange.otel.collector import collecting
from tests.exchange.otel.sdk import send_rag

BEGIN = 1_772_366_400 * SECOND
PATIENCE = 60


def record_trace(number: int, **others: Any) -> list[Span]:
    root = Span(
        f"{number:032x}", f"{1:016x}", None, "ask", BEGIN + number * SECOND, BEGIN + (number + 1) * SECOND,
        {"openinference.span.kind": "CHAIN", "input.value": f"What is {number}?", "output.value": f"It is {number}.",
         **others},
    )  # fmt: skip
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": f"d{number}",
             "retrieval.documents.0.document.content": f"{number} is {number}."}  # fmt: skip
    return [root, Span(root.trace_id, f"{2:016x}", root.span_id, "search", root.start, root.end, found)]


def _write(path: Path, *spans: Span) -> Path:
    path.write_bytes(encode_spans(spans))
    return path


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_traces_in_pieces_over_several_files(tmp_path: Path) -> None:
    spans = [span for number in (3, 1, 2) for span in record_trace(number)]
    folder = tmp_path / "spans"
    folder.mkdir()
    _write(folder / "b.otlp", *spans[::2])
    _write(folder / "a.otlp", *spans[1::2])
    done = invoke("import", "otel", folder, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 0 and "wrote 3 questions with 3 answers" in done.stdout
    rows = _rows(tmp_path / "traces.jsonl")
    assert [row["question"] for row in rows] == ["What is 1?", "What is 2?", "What is 3?"]
    assert rows[0]["contexts"] == [{"id": "d1", "text": "1 is 1."}]
    assert rows[0]["trace"] == {
        "tool": "otel",
        "trace_id": f"{1:032x}",
        "span_id": f"{1:016x}",
        "retriever": f"{2:016x}",
        "ended": str(BEGIN + 2 * SECOND),
    }


def test_a_window_and_a_limit(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.otlp", *(span for number in range(1, 6) for span in record_trace(number)))
    window = {"since": "2026-03-01T12:00:02Z", "until": "2026-03-01T12:00:05Z"}

    def questions(**given: Any) -> list[str]:
        return [
            trace.question for trace in OtelFiles(OtelFilesNode(path=str(path), **given), Context("", Path())).read()
        ]

    assert questions(**window) == ["What is 2?", "What is 3?", "What is 4?"]
    assert questions(limit=2) == ["What is 4?", "What is 5?"]
    assert questions(limit=1, **window) == ["What is 4?"]


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    lone = Span("f" * 32, "1" * 16, name="GET", start=BEGIN)
    path = _write(tmp_path / "a.otlp", *record_trace(1), lone)
    done = invoke("import", "otel", path, "-o", tmp_path / "traces.jsonl")
    assert "1 trace was left out: no span has an input that could be the question" in done.stdout


def test_a_damaged_file_leaves_nothing_behind(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.otlp", *record_trace(1))
    path.write_bytes(path.read_bytes()[:-5])
    done = invoke("import", "otel", path, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 3 and f"{path}: not an OTLP request" in done.stderr
    assert not (tmp_path / "traces.jsonl").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name one of these: PATH or --listen"),
        (["x", "--listen", "4318"], "name one of these: PATH or --listen"),
        (["x", "--seconds", "3"], "--seconds belongs to --listen; name --listen too"),
        (["--listen", "nowhere:port"], "'nowhere:port' is not an address; write a host and a port"),
        (["absent"], "absent: no such file or folder"),
    ],
)
def test_wrong_options(given: list[str], message: str, tmp_path: Path) -> None:
    done = invoke("import", "otel", *given, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code in (2, 3) and message in done.stderr


@contextmanager
def _listening(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command `import otel --listen` and its URL."""
    command = [sys.executable, "-m", "rageval_spec", "import", "otel", "--listen", "0", "-o", "traces.jsonl", *options]
    program = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stderr is not None
        said = ""
        while "receiving spans at" not in said:
            line = program.stderr.readline()
            assert line, said
            said += line
        yield program, said.partition("receiving spans at ")[2].partition(";")[0]
    finally:
        program.kill()
        program.communicate()


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_writes_what_the_real_sdk_sent(tmp_path: Path, number: int) -> None:
    with _listening(tmp_path) as (program, url):
        ids = send_rag(url)
        program.send_signal(number)
        out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert "received 9 spans in 1 request" in err and "wrote 3 questions with 3 answers to traces.jsonl" in out
    rows = _rows(tmp_path / "traces.jsonl")
    assert {row["id"] for row in rows} == set(ids)
    first = next(row for row in rows if row["question"] == "What is 0?")
    assert first["answer"] == "It is 0." and first["contexts"] == [{"id": "d0", "text": "0 is 0.", "score": 0.5}]
    assert (first["input_tokens"], first["output_tokens"], first["trace"]["project"]) == (20, 4, "bot")


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with _listening(tmp_path) as (program, url):
        ids = send_rag(url)
        program.kill()
        program.wait(PATIENCE)
    assert not (tmp_path / "traces.jsonl").exists()
    with _listening(tmp_path) as (program, url):
        ids += send_rag(url, questions=2)
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert {row["id"] for row in _rows(tmp_path / "traces.jsonl")} == set(ids)
    with _listening(tmp_path, "--force") as (program, url):
        send_rag(url, questions=1)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE)
    assert len(_rows(tmp_path / "traces.jsonl")) == 1  # what was written is not written again


def test_receiving_for_some_time(tmp_path: Path) -> None:
    told: list[str] = []
    node = OtelSourceNode(listen="127.0.0.1:0", seconds=0.1, spool=str(tmp_path / "spool.otlp"))
    source = OtelSource(node, Context("otel", tmp_path, tell=told.append))
    with pytest.raises(DataError, match=r"http://127\.0\.0\.1:\d+/v1/traces: there are no spans"):
        list(source.read())
    assert told[-1] == "received 0 spans in 0 requests"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "spans.json: there are no spans"),
        (
            b'{"resourceLogs": []}',
            "spans.json: 1 request with logs was passed over; only spans and evaluation results are read",
        ),
        (encode_spans([Span("f" * 32, "1" * 16)]), "spans.json: 1 trace was left out: no span has an input"),
        (encode_spans(record_trace(1)), "spans.json: no trace began in this time"),
    ],
)
def test_nothing_to_import_is_said_with_its_reason(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "spans.json").write_bytes(content)
    since = ["--since", "2027-01-01"] if content == encode_spans(record_trace(1)) else []
    done = invoke("import", "otel", tmp_path / "spans.json", *since, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 3 and message in done.stderr


def test_tokens_of_the_cache_are_priced_from_the_spans_to_the_metric(tmp_path: Path) -> None:
    cached = {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 200,
              "gen_ai.usage.cache_read.input_tokens": 800, "gen_ai.usage.cache_write.input_tokens": 100}  # fmt: skip
    _write(tmp_path / "a.otlp", *record_trace(1, **cached))
    assert invoke("import", "otel", tmp_path / "a.otlp", "-o", tmp_path / "a.jsonl").exit_code == 0
    (row,) = _rows(tmp_path / "a.jsonl")
    assert (row["cache_read_tokens"], row["cache_write_tokens"]) == (800, 100)
    metric = "{use: cost, price: {input: 2.5, output: 10, cache_read: 0.25, cache_write: 5}}"
    for system in ("{use: file, path: a.jsonl}", "{use: otel, path: a.otlp}"):
        (tmp_path / "spec.yaml").write_text(
            "version: 1\ndatasets: {prod: {use: jsonl, path: a.jsonl}}\n"
            f"systems: {{bot: {system}}}\nmetrics: [{metric}]\nreports: [json]\n"
        )
        done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
        assert done.exit_code == 0, done.output
        found = json.loads((tmp_path / "results/results.json").read_text())
        assert found["aggregates"][0]["mean"] == pytest.approx(0.00295), system


def _write_log(name: str, value: float, trace: int, span: str = f"{1:016x}", **more: Any) -> LogEvent:
    said = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value, **more}
    return LogEvent("gen_ai.evaluation.result", BEGIN, said, f"{trace:032x}", span)


def _to_json(event: LogEvent) -> dict[str, Any]:
    """A log record as a collector's file exporter writes it."""
    attributes = [
        {"key": key, "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
        for key, value in event.attributes.items()
    ]
    ids = {"traceId": event.trace_id, "spanId": event.span_id}
    named = {"timeUnixNano": str(event.time), "severityNumber": 9, "eventName": event.name}
    return {**named, "attributes": attributes, **ids}


SCOPE = Scope("rageval-spec", "1")


@pytest.mark.parametrize("form", ["protobuf", "frames", "json", "snake case", "lines", "console"])
def test_evaluation_results_that_came_as_log_records_are_feedback_of_their_trace(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "received"
    folder.mkdir()
    _write(folder / "spans.otlp", *record_trace(1), *record_trace(2))
    events = [
        _write_log("faithfulness", 0.5, 1),
        _write_log("helpful", 1.0, 1, f"{2:016x}", **{"gen_ai.evaluation.score.label": "good"}),
        _write_log("root", 0.25, 2, ""),
        LogEvent("started", BEGIN, {}, f"{1:032x}", f"{1:016x}"),
    ]
    packed = encode_events(events, {"service.name": "app"}, SCOPE)
    records = [_to_json(event) for event in events]
    request: Any = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    if form == "snake case":
        request = {"resource_logs": [{"scope_logs": [{"log_records": [
            {"event_name": one.pop("eventName"), "trace_id": one.pop("traceId"), "span_id": one.pop("spanId"), **one}
            for one in records
        ]}]}]}  # fmt: skip
    console = [
        {"body": None, "severity_number": 9, "event_name": event.name, "attributes": dict(event.attributes),
         "trace_id": f"0x{event.trace_id}", "span_id": f"0x{event.span_id or '0' * 16}"}
        for event in events
    ]  # fmt: skip
    if form in ("protobuf", "frames"):
        (folder / "logs.otlp").write_bytes(packed if form == "protobuf" else len(packed).to_bytes(4, "big") + packed)
    else:
        lines = [{"resourceLogs": [{"scopeLogs": [{"logRecords": [one]}]}]} for one in records]
        listed: list[Any] = lines if form == "lines" else console if form == "console" else [request]
        (folder / "logs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in listed))
    done = invoke("import", "otel", folder, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 0, done.output
    first, second = _rows(tmp_path / "traces.jsonl")
    said = [(one["name"], one["value"], one.get("label"), one["source"]) for one in first["feedback"]]
    assert said == [("faithfulness", 0.5, None, "program"), ("helpful", 1.0, "good", "program")]
    assert [(one["name"], one["value"]) for one in second["feedback"]] == [("root", 0.25)]


def test_evaluation_results_of_other_traces_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "received"
    folder.mkdir()
    _write(folder / "spans.otlp", *record_trace(1))
    (folder / "logs.otlp").write_bytes(encode_events([_write_log("a", 1.0, 7), _write_log("b", 1.0, 7)], {}, SCOPE))
    done = invoke("import", "otel", folder, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 0
    assert "2 evaluation results of no trace that was read left out" in done.output


def test_what_export_otel_sends_is_read_back_beside_the_spans(tmp_path: Path) -> None:
    """The requests of the report, as a collector keeps them: the values become columns that a metric reads."""
    folder = tmp_path / "received"
    folder.mkdir()
    _write(folder / "spans.otlp", *record_trace(1), *record_trace(2))
    assert invoke("import", "otel", folder, "-o", tmp_path / "traces.jsonl").exit_code == 0
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: logs\ndatasets: {prod: {use: jsonl, path: traces.jsonl}}\n"
        "systems: {app: {use: file, path: traces.jsonl}}\nmetrics: [{use: max_words, value: 2}]\n"
    )
    with collecting() as collector:
        done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
        assert done.exit_code == 0, done.output
        sent = invoke("export", "otel", tmp_path / "results", "--endpoint", collector.url)
        assert sent.exit_code == 0, sent.output
        packed = [request.SerializeToString() for request in collector.requests]
    (folder / "logs.otlp").write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in packed))
    assert invoke("import", "otel", folder, "-o", tmp_path / "again.jsonl").exit_code == 0
    said = [(one["name"], one["value"]) for row in _rows(tmp_path / "again.jsonl") for one in row["feedback"]]
    assert said == [("max_words(value=2)", 0.0)] * 2
