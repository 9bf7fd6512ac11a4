from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode, OtelSource, OtelSourceNode, split_address
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.spans import SECOND, Span
from rageval_spec.plugin import Context
from tests.command_line import invoke
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
    assert done.exit_code == 3 and re.search(rf"{path}: byte \d+: not an OTLP request", done.stderr)
    assert not (tmp_path / "traces.jsonl").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name either a file or folder of spans, or an address to --listen at"),
        (["x", "--listen", "4318"], "name either a file"),
        (["x", "--seconds", "3"], "--seconds, --spool and --token-env belong to --listen"),
        (["--listen", "nowhere:port"], "'nowhere:port' is not an address; write a host and a port"),
        (["absent"], "absent: no such file or folder"),
    ],
)
def test_wrong_options(given: list[str], message: str, tmp_path: Path) -> None:
    done = invoke("import", "otel", *given, "-o", tmp_path / "traces.jsonl")
    assert done.exit_code in (2, 3) and message in done.stderr


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:4318", ("127.0.0.1", 4318)),
        ("4000", ("127.0.0.1", 4000)),
        (":4000", ("127.0.0.1", 4000)),
        ("localhost", ("localhost", 4318)),
        ("[::1]:5", ("::1", 5)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address


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
        (b'{"resourceLogs": []}', "spans.json: 1 request with logs was passed over; only spans are read"),
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
