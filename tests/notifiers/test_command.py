"""`command`: a program gets the alerts, and what it does decides whether it has them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from tests.notifiers.alert_messages import HOSTILE, build, make_end, make_message

SAVE = """#!/usr/bin/env python3
import json, os, sys
variables = {name: value for name, value in os.environ.items() if name.startswith("RAGEVAL_ALERT_")}
with open("got.jsonl", "a") as file:
    file.write(json.dumps({"arguments": sys.argv[1:], "input": json.load(sys.stdin), "variables": variables}) + "\\n")
"""


def write(folder: Path, text: str) -> str:
    script = folder / "page.py"
    script.write_text(text)
    script.chmod(0o755)
    return "./page.py"


def test_the_program_gets_the_alerts_on_its_input_and_the_worst_in_its_environment(tmp_path: Path) -> None:
    notifier = build("command", tmp_path, run=[write(tmp_path, SAVE), "--team", "$(touch hacked) search"])
    notifier.send([make_message("a", name="latency", severity="warning"), make_message("b", summary=HOSTILE)])
    (got,) = [json.loads(line) for line in (tmp_path / "got.jsonl").read_text().splitlines()]
    assert got["arguments"] == ["--team", "$(touch hacked) search"], "no shell reads the arguments"
    assert [one["key"] for one in got["input"]["alerts"]] == ["a", "b"]
    assert "CRITICAL: faithfulness below 0.700" in got["input"]["text"]
    assert got["input"]["title"].startswith("[support-bot] 2 alerts, the worst critical")
    variables = got["variables"]
    assert variables["RAGEVAL_ALERT_NAME"] == "faithfulness below 0.700"
    assert (variables["RAGEVAL_ALERT_STATE"], variables["RAGEVAL_ALERT_SEVERITY"]) == ("firing", "critical")
    assert (variables["RAGEVAL_ALERT_VALUE"], variables["RAGEVAL_ALERT_COUNT"]) == ("0.612", "2")
    assert "\x1b" not in variables["RAGEVAL_ALERT_SUMMARY"]
    assert variables["RAGEVAL_ALERT_ID"] == got["input"]["id"]


def test_each_state_has_an_id_of_its_own(tmp_path: Path) -> None:
    notifier = build("command", tmp_path, run=[write(tmp_path, SAVE)])
    for message in (make_message(), make_message(), make_end()):
        notifier.send([message])
    lines = [json.loads(line) for line in (tmp_path / "got.jsonl").read_text().splitlines()]
    ids = [one["variables"]["RAGEVAL_ALERT_ID"] for one in lines]
    assert ids[0] == ids[1] != ids[2]


def test_a_program_that_fails_has_not_taken_the_alerts(tmp_path: Path) -> None:
    script = write(tmp_path, "#!/bin/sh\necho 'no \033[31mbattery' >&2\nexit 3\n")
    with pytest.raises(RagevalError) as raised:
        build("command", tmp_path, run=[script]).send([make_message()])
    assert str(raised.value) == r"monitor.notify.command: ./page.py ended with exit code 3: no \x1b[31mbattery"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RagevalError, match=r"monitor.notify.command: ./none.sh cannot be started: No such file"):
        build("command", tmp_path, run=["./none.sh"]).send([make_message()])


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = write(tmp_path, "#!/bin/sh\nsleep 60 & echo $! > child; wait\n")
    with pytest.raises(RagevalError, match=r"did not end within 0.5 s"):
        build("command", tmp_path, run=[script], timeout=0.5).send([make_message()])
    child = int((tmp_path / "child").read_text())
    assert not is_running(child)


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended but that nobody has asked about does not."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return listed.stdout.strip()[:1] not in ("", "Z")


def test_what_goes_on_in_the_background_does_not_hold_the_monitor(tmp_path: Path) -> None:
    script = write(tmp_path, "#!/bin/sh\nsleep 5 & echo $! > child\n")
    build("command", tmp_path, run=[script], timeout=3).send([make_message()])
    os.kill(int((tmp_path / "child").read_text()), 9)


def test_a_program_that_reads_nothing_has_the_alerts_all_the_same() -> None:
    long = make_message(summary="x" * 1_000_00)
    build("command", run=[sys.executable, "-c", ""]).send([long] * 20)
