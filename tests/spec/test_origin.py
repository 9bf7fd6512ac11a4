from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.pipeline.selection import select
from rageval_spec.spec import load, load_dict
from rageval_spec.spec.origin import find_origin
from tests.tiny import write_spec

GATES = [{"metric": "rr", "min": 0.1}, {"metric": "precision@1", "min": 0.2}, {"metric": "rr", "max": 1.0}]


def read_lines(path: Path, lines: tuple[int, ...]) -> list[str]:
    text = path.read_text().splitlines()
    return [text[line - 1] for line in lines]


def test_the_path_starts_at_the_top_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evals").mkdir()
    path = write_spec(tmp_path / "evals", gates=GATES)
    monkeypatch.chdir(path.parent)
    origin = find_origin(load(path.name))
    assert origin is not None
    assert origin.path == "spec.yaml"
    (tmp_path / ".git").mkdir()
    origin = find_origin(load(path.name))
    assert origin is not None
    assert origin.path == "evals/spec.yaml"
    assert read_lines(path, origin.gate_lines) == ["- metric: rr", "- metric: precision@1", "- metric: rr"]


def test_gates_that_only_selects_keep_their_lines(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=GATES)
    origin = find_origin(select(load(path), ["precision@1"])[0])
    assert origin is not None
    assert read_lines(path, origin.gate_lines) == ["- metric: precision@1"]
    origin = find_origin(select(load(path), ["rr"])[0])
    assert origin is not None
    assert origin.gate_lines[1] > origin.gate_lines[0] + 2


def test_a_gate_that_the_command_line_set_is_on_the_first_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=GATES)
    origin = find_origin(load(path, overrides=["gates=[{metric: rr, min: 0.5}]"]))
    assert origin is not None
    assert len(origin.gate_lines) == 1


def test_a_dict_has_no_origin(tmp_path: Path) -> None:
    write_spec(tmp_path)
    assert find_origin(load_dict({
        "version": 1, "datasets": {"fruit": {"use": "beir", "path": "data"}},
        "systems": {"good": {"use": "file", "path": "data/good.run"}}, "metrics": ["rr"],
    }, folder=tmp_path)) is None  # fmt: skip
