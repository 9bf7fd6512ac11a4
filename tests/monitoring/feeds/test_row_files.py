"""Growing files: every row once, through rotation, compression, truncation, kills and damage."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.monitoring.feeds.row_files import FileFeed, RowReader
from rageval_spec.monitoring.ledger import Ledger
from tests.monitoring.feeds.polling import list_questions, poll, read_trace, sample_of, write_rows
from tests.monitoring.seen_traces import BEGAN, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "history")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "app.jsonl"


def follow(path: Path, ledger: Ledger) -> FileFeed:
    return FileFeed("live", 60, path, RowReader(), ledger.find_questions)


def names(ledger: Ledger) -> list[str]:
    return list(list_questions(ledger))


def compress(path: Path, target: Path) -> None:
    target.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def rename(log: Path) -> None:
    log.rename(log.with_name("app.jsonl.1"))


def rename_by_time(log: Path) -> None:
    log.rename(log.with_name("app-2026-11-28T02-38-22.123.jsonl"))


def compress_at_once(log: Path) -> None:
    compress(log, log.with_name("app.jsonl.1.gz"))


def copy_and_truncate(log: Path) -> None:
    shutil.copy(log, log.with_name("app.jsonl.1"))
    log.write_bytes(b"")


def rename_twice(log: Path) -> None:
    log.rename(log.with_name("app.jsonl.2"))
    write_rows(log.with_name("app.jsonl.1"), "between")


@pytest.mark.parametrize("rotate", [rename, rename_by_time, compress_at_once, copy_and_truncate, rename_twice])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_was_written_before_a_rotation_is_read_after_it(
    ledger: Ledger, log: Path, rotate: Callable[[Path], None], is_restarted: bool
) -> None:
    write_rows(log, "a", "b")
    feed = follow(log, ledger)
    poll(feed, ledger, BEGAN)
    write_rows(log, "c")
    rotate(log)
    write_rows(log, "d")
    feed = follow(log, ledger) if is_restarted else feed
    assert poll(feed, ledger, BEGAN + 1) == 0
    between = ["between"] if rotate is rename_twice else []
    assert names(ledger) == ["a", "b", *between, "c", "d"]
    assert ledger.count_traces() == 4 + len(between)
    for batch in feed.poll(ledger.read_cursor("live"), BEGAN + 2):
        assert not batch.traces


def test_a_rotated_file_that_is_compressed_later_is_not_read_again(ledger: Ledger, log: Path) -> None:
    write_rows(log, "a", "b")
    feed = follow(log, ledger)
    poll(feed, ledger, BEGAN)
    rename(log)
    write_rows(log, "c")
    poll(feed, ledger, BEGAN + 1)
    compress(log.with_name("app.jsonl.1"), log.with_name("app.jsonl.2.gz"))
    rename(log)
    write_rows(log, "d")
    given = [one for batch in feed.poll(ledger.read_cursor("live"), BEGAN + 2) for one in batch.traces]
    assert [one.trace.id for one in given] == ["d"]


def test_a_compressed_file_that_is_not_complete_yet_is_read_once_it_is(ledger: Ledger, log: Path) -> None:
    write_rows(log, *(f"t{i}" for i in range(200)))
    feed = follow(log.parent, ledger)
    poll(feed, ledger, BEGAN)
    write_rows(log, "last")
    whole = gzip.compress(log.read_bytes())
    log.unlink()
    rotated = log.with_name("app.jsonl.1.gz")
    rotated.write_bytes(whole[: len(whole) // 2])
    poll(feed, ledger, BEGAN + 1)
    assert ledger.count_traces() == 200
    rotated.write_bytes(whole)
    poll(feed, ledger, BEGAN + 2)
    assert ledger.count_traces() == 201
    assert "last" in names(ledger)


def test_files_that_were_rotated_before_the_first_start_are_left_alone(ledger: Ledger, log: Path) -> None:
    write_rows(log.with_name("app.jsonl.1"), "old")
    compress_source = log.with_name("older")
    write_rows(compress_source, "older")
    compress(compress_source, log.with_name("app.jsonl.2.gz"))
    write_rows(log.with_name("app-eu.jsonl"), "another log")
    write_rows(log, "a")
    poll(follow(log, ledger), ledger, BEGAN)
    log.with_name("app.jsonl.2.gz").rename(log.with_name("app.jsonl.3.gz"))
    log.with_name("app.jsonl.1").rename(log.with_name("app.jsonl.2"))
    rename(log)
    write_rows(log, "b")
    poll(follow(log, ledger), ledger, BEGAN + 1)
    assert names(ledger) == ["a", "b"]


def test_a_folder_is_read_with_all_that_comes_into_it(ledger: Ledger, log: Path) -> None:
    write_rows(log, "a")
    write_rows(log.with_name("app.jsonl.1"), "b")
    (log.parent / "deep").mkdir()
    write_rows(log.parent / "deep" / "x.ndjson", "c")
    (log.parent / "notes.txt").write_text("no rows")
    feed = follow(log.parent, ledger)
    poll(feed, ledger, BEGAN)
    write_rows(log.with_name("new.jsonl"), "d")
    poll(feed, ledger, BEGAN + 1)
    assert names(ledger) == ["a", "b", "c", "d"]


def test_a_file_that_is_truncated_is_read_from_its_beginning(ledger: Ledger, log: Path) -> None:
    write_rows(log, "a", "b", "c")
    feed = follow(log, ledger)
    poll(feed, ledger, BEGAN)
    write_rows(log, "d", mode="w")
    poll(feed, ledger, BEGAN + 1)
    write_rows(log, "e", "f", "g", "h", mode="w")  # longer than what was read before
    poll(feed, ledger, BEGAN + 2)
    assert names(ledger) == list("abcdefgh")


def test_a_file_that_is_not_there_yet_is_told_and_read_once_it_is(ledger: Ledger, log: Path) -> None:
    feed = follow(log, ledger)
    with pytest.raises(DataError, match=r"app\.jsonl: there is no such file or folder yet"):
        poll(feed, ledger, BEGAN)
    write_rows(log, "a")
    poll(feed, ledger, BEGAN + 1)
    assert names(ledger) == ["a"]


def test_a_line_counts_once_its_newline_is_there(ledger: Ledger, log: Path) -> None:
    feed = follow(log, ledger)
    row = json.dumps({"id": "a", "question": "What is it?"}) + "\n"
    for part in (row[:10], row[10:-1]):
        with log.open("a") as file:
            file.write(part)
        poll(feed, ledger, BEGAN)
        assert names(ledger) == []
    with log.open("a") as file:
        file.write("\n")
    poll(feed, ledger, BEGAN)
    assert names(ledger) == ["a"]


def test_a_kill_loses_and_doubles_nothing(ledger: Ledger, log: Path) -> None:
    write_rows(log, *(f"t{i:05}" for i in range(5000)))
    poll(follow(log, ledger), ledger, BEGAN, killed_after=1)
    assert ledger.count_traces() == 2000
    poll(follow(log, ledger), ledger, BEGAN)
    assert ledger.count_traces() == 5000


def test_damage_is_counted_with_its_place_and_reason(ledger: Ledger, log: Path) -> None:
    feed = follow(log, ledger)
    cases = [
        (b"{not json\n", "not valid JSON"),
        ('{"question": "Où est-ce ?"}\n'.encode("latin-1"), "not UTF-8: .*; write the file in UTF-8"),
        (b"[1, 2]\n", "write an object with a question and an answer, not list"),
        (b'{"id": "x", "text_of_nothing": 1}\n', "the row has no question .*it has 'id', 'text_of_nothing'"),
        (b'{"question": "What?", "seconds": "soon"}\n', "'seconds'"),
        (b"[" * 100_000 + b"\n", "not valid JSON"),
    ]
    offset = 0
    for number, (line, reason) in enumerate(cases):
        with log.open("ab") as file:
            file.write(line)
        write_rows(log, f"good{number}")
        assert poll(feed, ledger, BEGAN) == 1
        told = feed.explain_unread() or ""
        assert f"app.jsonl: byte {offset:,}: " in told
        assert re.search(reason, told), told
        offset = log.stat().st_size
    assert names(ledger) == [f"good{number}" for number in range(len(cases))]


def test_a_line_of_50_megabytes_is_passed_over_and_counted(ledger: Ledger, log: Path) -> None:
    write_rows(log, "a")
    with log.open("ab") as file:
        file.write(b'{"question": "' + b"x" * 50_000_000)
    feed = follow(log, ledger)
    assert poll(feed, ledger, BEGAN) == 0  # it may be complete later
    with log.open("ab") as file:
        file.write(b'"}\n')
    write_rows(log, "b")
    assert poll(feed, ledger, BEGAN) == 1
    assert "a line of 50,000,017 bytes; at most 20,971,520 are read" in (feed.explain_unread() or "")
    assert names(ledger) == ["a", "b"]


def test_nul_bytes_are_no_reason_to_lose_a_row(ledger: Ledger, log: Path) -> None:
    with log.open("wb") as file:
        file.write(b"\0" * 5000)  # what truncating a file under a program leaves
    write_rows(log, "a", "b\0c")
    with log.open("a") as file:
        file.write(json.dumps({"id": "d", "question": "What?", "user": "ann\0"}) + "\n")
    assert poll(follow(log, ledger), ledger, BEGAN) == 0
    assert names(ledger) == ["a", "b\ufffdc", "d"]
    assert read_trace(ledger, "d").user == "ann\ufffd"


def test_two_questions_with_one_id_stay_two(ledger: Ledger, log: Path) -> None:
    rows = [("7", "Who wrote it?", "Ada."), ("7", "When was it?", "1843."), ("7", "Who wrote it?", "Ada Lovelace.")]
    with log.open("a") as file:
        for name, question, answer in rows:
            file.write(json.dumps({"id": name, "question": question, "answer": answer}) + "\n")
    feed = follow(log, ledger)
    poll(feed, ledger, BEGAN)
    found = list_questions(ledger)
    assert sorted(found.values()) == ["When was it?", "Who wrote it?"]
    assert read_trace(ledger, "7").answer == "Ada Lovelace."
    assert "1 row has the id of another question" in feed.remarks()[0]
    # The same is decided when the file is read again, after a restart, and when the texts are gone.
    poll(follow(log, open_ledger(log.parent.parent / "history")), ledger, BEGAN)
    with log.open("a") as file:
        file.write(json.dumps({"id": "7", "question": "When was it?", "answer": "In 1843."}) + "\n")
    ledger.connection.execute("UPDATE rageval_traces SET content = NULL, state = 'sampled_out'")
    poll(follow(log, ledger), ledger, BEGAN)
    assert ledger.count_traces() == 2


LAYOUTS: Sequence[tuple[str, dict[str, Any], dict[str, str]]] = (
    ("ragas", {"user_input": "Who?", "response": "Ada.", "retrieved_contexts": ["Ada did."]}, {}),
    ("DeepEval", {"input": "Who?", "actual_output": "Ada.", "retrieval_context": ["Ada did."]}, {}),
    ("plain", {"query": "Who?", "answer": "Ada.", "contexts": [{"text": "Ada did."}]}, {}),
    ("other spelling", {"Question": "Who?", "Answer": "Ada.", "Contexts": ["Ada did."]}, {}),
    (
        "messages",
        {
            "messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}],
            "contexts": ["Ada did."],
        },
        {},
    ),
    (
        "named columns",
        {"q": "Who?", "out": {"said": "Ada."}, "found": ["Ada did."]},
        {"question": "q", "answer": "$.out.said", "contexts": "found"},
    ),
)


@pytest.mark.parametrize(("layout", "row", "columns"), LAYOUTS, ids=[name for name, _, _ in LAYOUTS])
def test_rows_are_read_in_the_layouts_that_import_reads(layout: str, row: Any, columns: dict[str, str]) -> None:
    trace = RowReader("auto", columns).read(json.dumps(row).encode(), layout)
    sample = sample_of(trace)
    assert (sample.question, sample.answer, list(sample.contexts)) == ("Who?", "Ada.", ["Ada did."])


def test_a_result_of_promptfoo_is_read(ledger: Ledger) -> None:
    row = {"id": "r1", "testIdx": 0, "promptIdx": 0, "vars": {"question": "Who?"}, "latencyMs": 1500, "success": True,
           "response": {"output": "Ada.", "tokenUsage": {"prompt": 5, "completion": 2}}, "provider": {"id": "openai"},
           "prompt": {"raw": "Who?"}, "gradingResult": None, "testCase": {}}  # fmt: skip
    trace = RowReader().read(json.dumps(row).encode(), "place")
    assert (trace.question, trace.answer, trace.seconds, trace.input_tokens) == ("Who?", "Ada.", 1.5, 5)


def test_the_usual_names_of_a_log_are_read_and_doubtful_values_are_counted(ledger: Ledger, log: Path) -> None:
    rows = [
        {"timestamp": "2025-11-24T15:38:22Z", "latency_ms": 320, "user_id": "u1", "prompt_tokens": 5, "release": "v2"},
        {"timestamp": "yesterday", "latency": 2},
    ]
    with log.open("w") as file:
        for number, row in enumerate(rows):
            file.write(json.dumps({"id": f"t{number}", "question": "q", "answer": "a", **row}) + "\n")
    feed = follow(log, ledger)
    assert poll(feed, ledger, BEGAN) == 0
    first = read_trace(ledger, "t0")
    assert (first.started, first.seconds, first.user) == ("2025-11-24T15:38:22Z", 0.32, "u1")
    assert (first.input_tokens, first.version) == (5, "v2")
    started = dict(ledger.connection.execute("SELECT trace_id, started FROM rageval_traces"))
    assert started == {"t0": 1763998702.0, "t1": BEGAN}
    (remark,) = feed.remarks()
    assert remark.startswith("1 row has a doubtful value; the last: ")
    assert "'timestamp' is not a time" in remark
    assert ledger.forget(user="u1") == 1


def test_the_last_line_of_a_file_that_nobody_writes_to_needs_no_newline(ledger: Ledger, log: Path) -> None:
    write_rows(log, "a")
    with log.open("a") as file:
        file.write(json.dumps({"id": "b", "question": "What is it?"}))
    os.utime(log, (BEGAN, BEGAN))
    feed = follow(log, ledger)
    for second, found in ((59, ["a"]), (60, ["a", "b"]), (61, ["a", "b"])):
        assert poll(feed, ledger, BEGAN + second) == 0
        assert names(ledger) == found
    with log.open("a") as file:
        file.write("\n" + json.dumps({"id": "c", "question": "What is it?"})[:-1])  # half of a line
    os.utime(log, (BEGAN + 100, BEGAN + 100))
    for restarted in (feed, follow(log, ledger)):
        assert poll(restarted, ledger, BEGAN + 300) == 0
    with log.open("a") as file:
        file.write("}\n")
    assert poll(feed, ledger, BEGAN + 301) == 0
    assert names(ledger) == ["a", "b", "c"]
    assert ledger.count_traces() == 3


def test_equal_lines_without_an_id_are_as_many_traces(ledger: Ledger, log: Path) -> None:
    """Two users ask the same, and get the same answer."""
    row = json.dumps({"question": "Who wrote it?", "answer": "Ada."}) + "\n"
    log.write_text(row * 2)
    poll(follow(log, ledger), ledger, BEGAN, killed_after=0)
    poll(follow(log, ledger), ledger, BEGAN)
    assert ledger.count_traces() == 2
    before = names(ledger)
    rename(log)
    with log.with_name("app.jsonl.1").open("a") as file:
        file.write(row)
    write_rows(log, "new")
    feed = follow(log, ledger)
    poll(feed, ledger, BEGAN)
    assert ledger.count_traces() == 4
    # A program that writes a whole file again changes nothing.
    log.with_name("app.jsonl.1").write_text(row[:10])
    poll(feed, ledger, BEGAN)
    log.with_name("app.jsonl.1").write_text(row * 3)
    poll(feed, ledger, BEGAN)
    assert set(before) <= set(names(ledger))
    assert ledger.count_traces() == 4
