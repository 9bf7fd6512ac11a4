"""`import` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from rageval_spec.data.trace import Trace, TraceLink
from rageval_spec.errors import RagevalError
from tests.command_line import invoke


def test_an_unknown_tool_and_an_existing_file_are_refused(toy: ModuleType, tmp_path: Path) -> None:
    assert invoke("import", "phonix").exit_code == 2
    (tmp_path / "there.jsonl").write_text("")
    done = invoke("import", "toy", "-o", tmp_path / "there.jsonl")
    assert (done.exit_code, "already exists" in done.stderr) == (2, True)
    assert "--since: '7x' is not a moment; write how long ago" in invoke("import", "toy", "--since", "7x").stderr


def test_a_source_that_fails_leaves_no_file(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: object) -> object:
        yield from toy.TRACES[:2]
        raise RagevalError("half a page")

    monkeypatch.setattr(toy.ToySource, "read", read)
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert (done.exit_code, [*tmp_path.iterdir()]) == (3, [])


HOSTILE = {"NaN": "Infinity", "half": "\ud800", "control": "\x00\u2028", "big": 10**30, "small": 5e-324, "many": [[[]]]}


def test_whatever_a_tool_knows_becomes_a_line_of_json(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = [Trace(TraceLink("toy", name), name, metadata={name: value}) for name, value in HOSTILE.items()]
    monkeypatch.setattr(toy.ToySource, "traces", traces)
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_bytes().split(b"\n")[:-1]]
    assert {row["question"]: row["metadata"][row["question"]] for row in rows} == HOSTILE


def test_a_number_that_is_none_is_never_written(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(TraceLink("toy", "t"), "Why?", metadata={"deep": [float("nan")]})
    monkeypatch.setattr(toy.ToySource, "traces", [trace])
    assert invoke("import", "toy", "-o", tmp_path / "traces.jsonl").exit_code == 3
    assert [*tmp_path.iterdir()] == []


def test_an_import_of_nothing_says_what_was_left_out(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy.ToySource, "traces", [])
    monkeypatch.setattr(toy.ToySource, "remarks", lambda self: ["7 traces without a question left out"])
    done = invoke("import", "toy", "-o", tmp_path / "traces.jsonl")
    assert done.exit_code == 3
    assert "nothing to import in what the options name; 7 traces without a question left out" in done.stderr
