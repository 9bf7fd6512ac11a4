"""Digests tell when numbers stop being comparable, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec.history.opening import open_history
from rageval_spec.runner import Options, run
from tests.tiny import write_spec


def take(folder: Path, **spec: Any) -> dict[str, Any]:
    run(write_spec(folder, **spec), Options(output=None))
    with open_history(folder / ".rageval" / "history.db") as history:
        return dict(history.entries()[0].meaning)


def test_other_names_gates_and_statistics_change_no_digest(tmp_path: Path) -> None:
    first = take(tmp_path, metrics=["rr", "recall@5"])
    other = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}, "rr"], statistics={"seed": 1})
    assert other["data"] == first["data"]
    assert other["metrics"]["rr"] == first["metrics"]["rr"]
    assert other["metrics"]["found"] == first["metrics"]["recall@5"]


def test_another_cutoff_or_order_of_ties_is_another_definition(tmp_path: Path) -> None:
    first = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}])["metrics"]["found"]
    deeper = take(tmp_path, metrics=[{"use": "recall", "cutoff": 6, "as": "found"}])["metrics"]["found"]
    ties = {"ties": "input"}
    tied = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}], ranking=ties)["metrics"]["found"]
    assert len({first["definition"], deeper["definition"], tied["definition"]}) == 3
    assert "judge" not in first


def test_an_edited_judgement_changes_only_the_digest_of_judgements(tmp_path: Path) -> None:
    first = take(tmp_path)["data"]
    dataset = next(iter(first))
    path = next(path for path in tmp_path.rglob("*") if path.is_file() and "qrels" in str(path.relative_to(tmp_path)))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    second = take(tmp_path)["data"]
    assert second[dataset]["judgements"] != first[dataset]["judgements"]
