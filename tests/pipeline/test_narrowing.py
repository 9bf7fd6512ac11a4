"""Only some queries of a dataset are evaluated, and their tables are not taken for those of all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.runner import Options, plan, run


def write(folder: Path) -> Path:
    rows = [{"id": f"q{row}", "question": "?", "answer": "a b", "reference": "a b" if row else "c"} for row in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "version": 1,
        "datasets": {name: {"use": "jsonl", "path": "rows.jsonl"} for name in ("first", "second")},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "metrics": ["token_f1"],
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))
    return folder / "spec.yaml"


def find(path: Path, queries: dict[str, set[str]]) -> dict[str, list[str]]:
    values = run(path, Options(output=None, no_history=True, queries=queries)).evaluation.values
    return {name: values.filter(dataset=name)["query_id"].to_list() for name in ("first", "second")}


def test_only_the_wanted_queries_have_values(tmp_path: Path) -> None:
    path, everything = write(tmp_path), [f"q{row}" for row in range(6)]
    assert find(path, {"first": {"q2", "q0", "absent"}}) == {"first": ["q0", "q2"], "second": everything}
    assert find(path, {}) == {"first": everything, "second": everything}
    assert find(path, {"first": {"q1"}, "second": {"q5"}}) == {"first": ["q1"], "second": ["q5"]}


def test_each_part_has_tables_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path)

    def key(queries: dict[str, set[str]]) -> str:
        steps = plan(path, Options(queries=queries)).plan.steps
        return next(step.key for step in steps if step.kind == "evaluate" and step.dataset == "first")

    whole = key({})
    assert key({"second": {"q1"}}) == whole
    assert len({whole, key({"first": {"q1"}}), key({"first": {"q1", "q2"}})}) == 3
    assert key({"first": {"q2", "q1"}}) == key({"first": {"q1", "q2"}})


def test_a_dataset_without_any_of_them_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="dataset 'first' has none of the 2 wanted queries"):
        find(write(tmp_path), {"first": {"x", "y"}})
