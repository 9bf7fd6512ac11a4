"""A feed that cannot be read is never silent: the terminal, `/healthz` and the rule `coverage` say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.monitor.command import run_monitor
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.feeds.contract import Batch, Feed
from rageval_spec.monitoring.service import MonitorLoop
from rageval_spec.spec import load
from tests.monitoring.feeds.polling import Clock, write_rows
from tests.monitoring.seen_traces import BEGAN

SPEC = """
version: 1
name: bot
systems: {{live: {system}}}
metrics: [{{use: faithfulness, judge: overlap}}]
monitor: {{every: 1m, settle: 1s}}
"""


def write_spec(folder: Path, system: str = "{use: file, path: app.jsonl, follow: true}") -> Path:
    path = folder / "spec.yaml"
    path.write_text(SPEC.format(system=system))
    return path


class BrokenFeed(Feed):
    """Fails as long as it is told to."""

    is_broken = True
    polls = 0

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        self.polls += 1
        if self.is_broken:
            raise DataError("the tool answered 500")
        yield Batch([], {})


def coverage(loop: MonitorLoop) -> list[str]:
    """The alerts about feeds that fire, as the database has them."""
    rows = loop.ledger.connection.execute("SELECT alert, state FROM rageval_alerts")
    return [key for key, state in rows if state == "firing" and "feed" in key]


def list_stuck(loop: MonitorLoop) -> list[str]:
    """The feeds that people must know about, as the database has them."""
    return [f"{one.feed}: {one.message}" for one in loop.ledger.read_feeds() if one.is_stuck]


def test_a_feed_that_fails_four_times_is_told_and_told_again_once_it_works(tmp_path: Path) -> None:
    clock, told = Clock(), list[str]()
    with open_monitor(load(write_spec(tmp_path)), clock) as loop:
        feed = BrokenFeed("live", 1)
        loop.feeds, loop.tell = [feed], told.append
        for second in range(8):
            clock.now = BEGAN + second
            loop.poll()
        assert feed.polls == 4  # at 0, 1, 3 and 7 seconds
        assert told == ["live could not be read 4 times in a row: the tool answered 500"]
        assert list_stuck(loop) == ["live: the tool answered 500"]
        assert loop.progress.complaints == {"live": "the tool answered 500"}
        feed.is_broken = False
        clock.now += 60
        loop.poll()
        assert told[1:] == ["live can be read again"]
        assert list_stuck(loop) == []
        assert loop.progress.complaints == {}


def test_a_feed_that_fails_is_an_alert_until_it_works(tmp_path: Path) -> None:
    clock = Clock()
    with open_monitor(load(write_spec(tmp_path)), clock) as loop:
        feed = BrokenFeed("live", 1)
        loop.feeds = [feed]
        fired = []
        for _ in range(5):
            loop.poll()
            loop.look()
            fired.append(coverage(loop))
            clock.now += 61
        assert fired == [[], [], [], ["coverage:feed:live"], ["coverage:feed:live"]]
        feed.is_broken = False
        for _ in range(3):
            loop.poll()
            loop.look()
            clock.now += 61
        assert coverage(loop) == []


def test_rows_that_are_all_unreadable_are_an_alert_until_one_can_be_read(tmp_path: Path) -> None:
    """A program that writes another format must not look like a quiet night. Also if cron starts the monitor."""
    clock, told, path = Clock(), list[str](), tmp_path / "app.jsonl"
    for _ in range(3):
        with path.open("a") as file:
            file.write("Who wrote it? Ada.\n" * 2)
        with open_monitor(load(write_spec(tmp_path)), clock) as loop:
            loop.tell = told.append
            loop.run_once()
            clock.now += 61
        with open_monitor(load(write_spec(tmp_path)), clock) as loop:  # nothing new
            loop.run_once()
            clock.now += 61
    assert told == [f"rows of live could not be read 4 times in a row: {path}: byte 57: {NOT_JSON}"]
    with open_monitor(load(write_spec(tmp_path)), clock) as loop:
        assert coverage(loop) == ["coverage:feed:rows of live"]
        with path.open("a") as file:
            file.write("Who wrote it? Ada.\n")
        loop.poll()
        reason = f"rows of live cannot be read: {path}: byte 114: {NOT_JSON}"
        loop.progress.beat = clock.now
        assert (loop.find_trouble(), loop.find_trouble(is_start=True)) == (None, reason)
        write_rows(path, "a")
        for _ in range(3):
            loop.poll()
            loop.look()
            clock.now += 61
        assert coverage(loop) == []
        loop.progress.beat = clock.now
        assert loop.find_trouble(is_start=True) is None


NOT_JSON = "not valid JSON: Expecting value: line 1 column 1 (char 0)"


def test_a_few_unreadable_rows_among_others_are_no_alert(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "app.jsonl"
    with open_monitor(load(write_spec(tmp_path)), clock) as loop:
        for number in range(3):
            with path.open("a") as file:
                file.write("broken\n" * 10)
            write_rows(path, f"t{number}")
            loop.poll()
            loop.look()
            clock.now += 61
        assert (coverage(loop), loop.progress.unread) == ([], 30)


def test_a_feed_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    clock = Clock()
    write_rows(tmp_path / "app.jsonl", "a", "b")
    with open_monitor(load(write_spec(tmp_path)), clock) as loop:
        loop.feeds = [BrokenFeed("broken", 1), *loop.feeds]
        loop.poll()
        assert loop.ledger.count_traces() == 2


def test_a_monitor_that_cron_starts_counts_on(tmp_path: Path) -> None:
    clock, told = Clock(), list[str]()
    for _ in range(4):
        with open_monitor(load(write_spec(tmp_path)), clock) as loop:
            loop.tell = told.append
            loop.run_once()
            clock.now += 300
            fired = coverage(loop)
    assert len(told) == 1
    assert told[0].endswith("app.jsonl: there is no such file or folder yet")
    assert fired == ["coverage:feed:live"]


def test_monitor_run_shows_what_could_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = write_spec(tmp_path)
    (tmp_path / "app.jsonl").write_bytes(b'{"question": "Who?"}\n{broken\n\xff\xfe\n')
    assert run_monitor.main([str(spec), "--once"], standalone_mode=False) == 0
    told = capsys.readouterr().err
    assert "warning: 2 rows could not be read; the last: " in told
    assert f"{tmp_path / 'app.jsonl'}: byte 29: not " in told


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ("{use: file, path: app.jsonl}", "a monitor reads files that grow; add 'follow: true'"),
        ("{use: otel, path: spans}", "a monitor reads files that grow; add 'follow: true'"),
    ],
)
def test_a_system_that_nobody_records_is_refused(tmp_path: Path, system: str, told: str) -> None:
    (tmp_path / "spans").mkdir()
    (tmp_path / "app.jsonl").write_text(json.dumps({"id": "a", "question": "Who?", "answer": "Ada."}) + "\n")
    with pytest.raises(SpecError) as found:
        load(write_spec(tmp_path, system))
    assert told in str(found.value)


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ("{use: otel}", "name one of these: `path` or `listen`"),
        ("{use: otel, path: x, listen: '4318'}", "name one of these: `path` or `listen`"),
        ("{use: otel, path: x, token: y}", "`token` belongs to `listen`"),
        ("{use: otel, listen: nowhere/}", "'nowhere/' is not an address; write a host and a port: 127.0.0.1:4318"),
    ],
)
def test_a_block_of_spans_says_what_to_write(tmp_path: Path, system: str, told: str) -> None:
    with pytest.raises(SpecError) as found:
        load(write_spec(tmp_path, system))
    assert told in str(found.value)
