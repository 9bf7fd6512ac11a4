"""Sending what a target has of an evaluation: each value once, also after a failure."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate


def test_each_value_goes_to_its_trace_once(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    done = invoke("export", "toy", results)
    assert done.exit_code == 0, done.output
    assert done.stdout == "sent 10 scores to the toy\n"
    assert len(toy.ToyTarget.stored) == 10 and toy.ToyTarget.stored["t3/latency@p50"] == 0.25
    assert invoke("export", "toy", results).stdout == "sent nothing to the toy; 10 values had been sent before\n"
    assert invoke("export", "toy", results, "--again").stdout == "sent 10 scores to the toy\n"


def test_after_a_failure_only_the_rest_is_sent(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = evaluate(tmp_path)
    monkeypatch.setattr(toy.ToyTarget, "fails_after", 4)
    done = invoke("export", "toy", results)
    assert (done.exit_code, "the toy is broken" in done.stderr) == (3, True)
    monkeypatch.setattr(toy.ToyTarget, "fails_after", 10**6)
    ledger = next((results / "exports").iterdir())
    ledger.write_bytes(ledger.read_bytes()[:-5])  # as a kill in mid write leaves it
    assert invoke("export", "toy", results).stdout == "sent 7 scores to the toy; 3 values had been sent before\n"
    assert len(toy.ToyTarget.stored) == 10
    assert [len(json.loads(line)) for line in ledger.read_text().splitlines() if line.endswith("]")] == [2] * 10
