from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.commands.audit.evaluated import find_results, list_powers
from rageval_spec.errors import UsageError
from rageval_spec.spec import load
from tests.command_line import invoke
from tests.tiny import write_spec

SYSTEMS = {"bm25": {"use": "bm25"}, "flat": {"use": "bm25", "b": 0.0, "k1": 0.1}}


def test_without_results_nothing_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = load(write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"]))
    found = find_results(spec, [])
    assert found.names == [] and "rageval-spec run" in found.why_none
    assert list_powers(spec, found, "golden") is None
    assert not (tmp_path / ".rageval").exists()
    with pytest.raises(UsageError, match="nowhere"):
        find_results(spec, ["nowhere"])


def test_named_results_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"])
    assert invoke("run", path, "-q", "-o", tmp_path / "out").exit_code == 0
    spec = load(path)
    found = find_results(spec, [str(tmp_path / "out")])
    assert found.names == [str(tmp_path / "out")]
    (dataset,) = spec.datasets
    powers = list_powers(spec, found, dataset)
    assert powers is not None and {power.system for power in powers} == {"bm25", "flat"}
    assert list_powers(spec, found, "other") == []
