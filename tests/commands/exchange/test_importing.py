"""`import` on the command line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

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
