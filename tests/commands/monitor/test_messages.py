"""What a beginner meets at `monitor run`, `plan`, `prune` and `validate`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from rageval_spec.errors import GATE_FAILED, PASSED, SPEC_WRONG
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


@pytest.mark.parametrize("command", ["alerts", "page", "plan", "prune", "retry", "run"])
def test_a_spec_without_the_block_is_told_what_to_add(spec: Path, command: str) -> None:
    (spec.parent / "traces.jsonl").write_text(f"{json.dumps(ROW)}\n")
    spec.write_text(f"{SPEC.partition('monitor:')[0]}datasets: {{d: {{use: jsonl, path: traces.jsonl}}}}\n")
    found = invoke("monitor", command, spec)
    assert found.exit_code == SPEC_WRONG, found.stdout
    assert "the spec has no 'monitor:'; add one: monitor:" in found.stderr
