"""What a beginner meets at `monitor run`, `plan`, `prune` and `validate`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

import pytest

from rageval_spec.errors import GATE_FAILED, PASSED, SPEC_WRONG
from rageval_spec.monitoring import service
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.ledger import Judgement, SampledTrace
from rageval_spec.spec import load
from tests.command_line import invoke

SPEC = """
version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: overlap}, latency@p95]
monitor:
  settle: 0.001s
"""
ROW = {"id": "t1", "question": "Who?", "answer": "Ada wrote it.", "contexts": ["Ada wrote it."], "user_id": "u1"}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def watch(spec: Path, *rows: Mapping[str, object]) -> None:
    """Read rows and judge them."""
    (spec.parent / "traces.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert invoke("monitor", "run", spec, "--once").exit_code == PASSED
    time.sleep(0.01)


def test_a_deletion_that_finds_nothing_says_so(spec: Path) -> None:
    watch(spec, ROW)
    found = invoke("monitor", "prune", spec, "--user", "u2")
    assert found.exit_code == GATE_FAILED
    assert "nothing removed: no kept text belongs to the user 'u2'" in found.stderr
    assert "'user_id'" in found.stderr
    found = invoke("monitor", "prune", spec, "--trace", "t2")
    assert (found.exit_code, found.stdout) == (GATE_FAILED, "")
    assert "the monitor has no trace 't2'" in found.stderr


def test_a_user_of_a_log_can_be_deleted(spec: Path) -> None:
    watch(spec, ROW)
    found = invoke("monitor", "prune", spec, "--user", "u1")
    assert (found.exit_code, found.stdout) == (PASSED, "removed the texts of 1 trace\n")
    again = invoke("monitor", "prune", spec, "--trace", "t1")
    assert (again.exit_code, again.stdout) == (PASSED, "the texts of trace t1 were removed before\n")


def test_columns_that_no_trace_has_and_metrics_that_measure_nothing_are_told(spec: Path) -> None:
    spec.write_text(f"{SPEC}  sample: {{by: rout}}\n  ab: {{by: variant, metric: faithfulness}}\n")
    watch(spec, {**ROW, "route": "x"})
    found = invoke("monitor", "run", spec, "--once")
    for told in (
        "sample.by: no column 'rout' in the last 1 trace; the columns are ",
        "ab.by: no column 'variant' in the last 1 trace; ",
        "latency@p95 has no value for any of 1 trace: the system does not report how long it took",
    ):
        assert found.stderr.count(told) == 1
        assert told in invoke("monitor", "plan", spec).stderr
    assert "faithfulness has no value" not in found.stderr


def test_a_line_that_is_being_written_is_no_mistake(spec: Path) -> None:
    (spec.parent / "traces.jsonl").write_text(f'{json.dumps(ROW)}\n{{"id": "t2", "question": "Wh')
    assert invoke("validate", spec).exit_code == PASSED


@pytest.mark.parametrize("command", [["validate"], ["monitor", "run"], ["monitor", "plan"]])
def test_validate_and_run_agree_on_a_file_that_is_not_followed(spec: Path, command: list[str]) -> None:
    spec.write_text(SPEC.replace(", follow: true", ""))
    found = invoke(*command, spec)
    assert found.exit_code == SPEC_WRONG
    assert "a monitor reads files that grow; add 'follow: true'" in found.stderr


def test_a_quiet_run_still_shows_its_counts(spec: Path) -> None:
    watch(spec, ROW)
    found = invoke("monitor", "run", spec, "--once", "-q")
    assert found.stdout == "faithfulness: 1 judged\nlatency@p95: 1 filtered\n"


def test_a_run_that_is_stopped_in_a_backlog_keeps_the_rest(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CLAIM", 1)
    rows = [{**ROW, "id": f"t{number}"} for number in range(3)]
    (spec.parent / "traces.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seen = invoke("monitor", "run", spec, "--once", "--set", "monitor.settle=0.2s")
    assert seen.stdout.startswith("faithfulness: 3 waiting")
    time.sleep(0.2)
    stop = Event()
    with open_monitor(load(spec)) as loop:
        judge = loop.judge.judge

        def judge_last(sampled: Sequence[SampledTrace], now: float) -> list[Judgement]:
            stop.set()
            return judge(sampled, now)

        monkeypatch.setattr(loop.judge, "judge", judge_last)
        loop.run_once(stop)
        series = loop.judge.series["faithfulness"].id
        assert {state: count for state, count in loop.ledger.count(series).items() if count} == {
            "judged": 1,
            "waiting": 2,
        }
    assert invoke("monitor", "run", spec, "--once").stdout.startswith("faithfulness: 3 judged\n")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("alerts: [{metric: faithfulness, warning: 0.8, window: 15}]", "15 has no unit; write 15s, 15m or 15h"),
        ("windows: [1h]", "expected a mapping, found the text '1h'; write {name: hour, length: 1h}"),
        ("sample: 5%", "expected a mapping, found the text '5%'; write {rate: 5%}"),
        ("alerts: [faithfulness]", "found the text 'faithfulness'; write {metric: faithfulness, warning: 0.8}"),
        ("baseline: 7d", "'7d' would be the label of a record; for a duration write {window: 7d}"),
        ("baseline: 7", "7 has no unit; write 7s, 7m or 7h"),
        ("serve: [9464]", "expected text, found a list"),
        ("notify: [{use: webhook, url: hooks.example}]", "write a URL such as https://hooks.example.com/alerts"),
        ("notify: [{use: alertmanager, url: 'localhost:9093'}]", "write a URL such as http://127.0.0.1:9093"),
    ],
)
def test_a_message_shows_what_to_write(spec: Path, block: str, told: str) -> None:
    spec.write_text(f"{SPEC}  {block}\n")
    found = invoke("validate", spec)
    assert found.exit_code == SPEC_WRONG
    assert told in found.stderr


def test_a_port_needs_no_quotes(spec: Path) -> None:
    spec.write_text(f"{SPEC}  serve: 9464\n")
    assert invoke("validate", spec).exit_code == PASSED, invoke("validate", spec).stderr


def test_a_monitor_without_a_history_is_refused_when_the_spec_is_read(spec: Path) -> None:
    spec.write_text(f"{SPEC}history: none\n")
    found = invoke("validate", spec)
    assert found.exit_code == SPEC_WRONG
    assert "a monitor keeps its ledger in the history; remove 'history: none'" in found.stderr


def test_a_service_reports_how_it_does_and_ends_on_a_signal(spec: Path) -> None:
    watch(spec, {**ROW, "latency": 0.3})
    command = [sys.executable, "-m", "rageval_spec", "monitor", "run", str(spec)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        running.send_signal(signal.SIGTERM)
        stdout, _ = running.communicate(timeout=60)
    assert re.search(r"[01] traces? processed, [01] waiting, 0 alerts firing", first)
    assert running.returncode == PASSED
    assert "faithfulness: 1 judged" in stdout


@pytest.mark.parametrize("command", ["alerts", "page", "plan", "prune", "retry", "run"])
def test_a_spec_without_the_block_is_told_what_to_add(spec: Path, command: str) -> None:
    (spec.parent / "traces.jsonl").write_text(f"{json.dumps(ROW)}\n")
    spec.write_text(f"{SPEC.partition('monitor:')[0]}datasets: {{d: {{use: jsonl, path: traces.jsonl}}}}\n")
    found = invoke("monitor", command, spec)
    assert found.exit_code == SPEC_WRONG, found.stdout
    assert "the spec has no 'monitor:'; add one: monitor:" in found.stderr
