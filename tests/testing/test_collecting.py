"""What a test of a spec is called; `test_plugin.py` has what pytest shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.testing.collecting import SpecFile
from tests.tiny import write_spec


def list_names(request: pytest.FixtureRequest, path: Path) -> list[str]:
    return [item.name for item in SpecFile.from_parent(request.session, path=path).collect()]


def test_a_name_has_what_the_gate_names_and_its_bound(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    gates = [
        {"metric": "rr", "min": 0.4, "on": "lower"},
        {"metric": "rr", "system": "good", "dataset": "fruit", "max": 0.9},
    ]
    assert list_names(request, write_spec(tmp_path, gates=gates)) == [
        "evaluation",
        "rr lower end ≥ 0.4",
        "rr good fruit ≤ 0.9",
    ]


def test_gates_that_are_equal_get_numbers(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    gate = {"metric": "rr", "min": 0.4}
    assert list_names(request, write_spec(tmp_path, gates=[gate, gate]))[1:] == ["rr ≥ 0.4", "rr ≥ 0.4 (2)"]
