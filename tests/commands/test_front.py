from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import Collection
from tests.command_line import invoke
from tests.tiny import Counting, Install, Length, write_spec


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "Missing argument 'SPEC'."),
        (["run", "spec.yaml", "--lmit", "3"], "No such option '--lmit'. (Did you mean"),
        (["run", "spec.yaml", "--limit", "0"], "0 is not in the range 1<=x<="),
        (["score", "a", "b", "--ties", "fair"], "'fair' is not one of"),
    ],
)
def test_a_wrong_command_line_exits_with_2(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("rageval-spec: ")
    assert message in result.stderr
    assert "--help" in result.stderr
    assert result.stdout == ""


def test_without_a_command_help_is_shown_and_the_exit_code_is_2() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_an_unexpected_error_is_one_line_and_exits_with_3(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.runner.run", lambda *arguments: 1 / 0)
    result = invoke("run", spec)
    assert result.exit_code == 3
    expected = (
        "rageval-spec: internal error: ZeroDivisionError: division by zero; set RAGEVAL_DEBUG=1 to see the traceback\n"
    )
    assert result.stderr == expected
    debugged = invoke("run", spec, env={"RAGEVAL_DEBUG": "1"})
    assert "Traceback" in debugged.stderr


SLOW_SYSTEM = """
import sys, time
from rageval_spec import registry
from rageval_spec.cli import main
from tests.tiny import Counting

class Slow(Counting):
    def retrieve(self, collection, runs):
        sys.stdout.write("retrieving\\n")  # one write: two threads do not mix within a line
        sys.stdout.flush()
        for _ in range(600):
            time.sleep(0.1)

load, words = registry.load, registry.words
registry.words = lambda section: (*words(section), "slow") if section == "systems" else words(section)
registry.load = lambda section, word: Slow if word == "slow" else load(section, word)
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="has no SIGINT to send")
@pytest.mark.parametrize("systems", [1, 2])
def test_an_interrupt_exits_with_130_at_once(tmp_path: Path, install: Install, systems: int) -> None:

    install("systems", "slow", Counting)
    nodes = {f"slow{number}": {"use": "slow", "answer": f"d{number}"} for number in range(systems)}
    path = write_spec(tmp_path, systems=nodes)
    command = [sys.executable, "-c", SLOW_SYSTEM, "run", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "retrieving\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait(timeout=50)
    assert process.returncode == 130
    assert time.monotonic() - started < 40  # and not the minute that the system takes
    assert errors.replace("retrieving", "").strip() == "rageval-spec: interrupted"


class Leaving(Counting):
    """Ends the program instead of retrieving."""

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Nothing."""
        sys.exit(0)


class LeavingMetric(Length):
    """Ends the program instead of computing."""

    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """Nothing."""
        sys.exit(0)


@pytest.mark.parametrize(
    ("sections", "function"),
    [
        ({"systems": {"good": {"use": "file", "path": "data/good.run"}, "odd": {"use": "leaving"}}}, "retrieve"),
        ({"metrics": ["rr", "length"]}, "compute"),
    ],
)
def test_a_plugin_that_exits_counts_as_failed_and_the_rest_is_reported(
    tmp_path: Path, install: Install, sections: dict[str, Any], function: str
) -> None:
    install("systems", "leaving", Leaving)
    install("metrics", "length", LeavingMetric)
    result = invoke("run", write_spec(tmp_path, **sections, reports=["terminal"]))
    assert result.exit_code == 3
    assert f"'{function}' (test_front.py:" in result.stderr
    assert "called sys.exit(0); it must return or raise an exception" in result.stderr
    assert "BROKEN" in result.stdout


def test_sys_exit_elsewhere_is_an_error_too(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*arguments: object) -> None:
        sys.exit()

    monkeypatch.setattr("rageval_spec.runner.run", leave)
    result = invoke("run", spec)
    assert result.exit_code == 3
    assert result.stderr.startswith("rageval-spec: 'leave' (test_front.py:")
