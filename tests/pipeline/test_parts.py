from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.plugin.budget import Budget
from rageval_spec.spec import load
from tests.tiny import write_spec

MODEL = {"use": "onnx", "model": "minilm"}
SYSTEMS = {
    "both": {"use": "hybrid", "systems": ["bm25", "dense"]},
    "dense": {"use": "dense", "model": "encoder"},
    "bm25": {"use": "bm25"},
}


def build(folder: Path, **sections: Any) -> Parts:
    return build_parts(load(write_spec(folder, **sections)))


def test_a_system_comes_after_those_whose_runs_it_reads(tmp_path: Path) -> None:
    parts = build(tmp_path, systems=SYSTEMS, models={"encoder": MODEL})
    assert [set(level) for level in parts.levels()] == [{"dense", "bm25"}, {"both"}]


def test_only_models_that_something_asks_are_asked(tmp_path: Path) -> None:
    parts = build(tmp_path, systems=SYSTEMS, models={"encoder": MODEL, "spare": MODEL})
    assert set(parts.models) == {"encoder", "spare"}
    assert set(parts.asked_models) == {"encoder"}


def test_all_plugins_share_the_budget(tmp_path: Path) -> None:
    budget = Budget(max_calls=5)
    parts = build_parts(load(write_spec(tmp_path, systems=SYSTEMS, models={"encoder": MODEL})), budget=budget)
    plugins = [*parts.datasets.values(), *parts.models.values(), *parts.systems.values(), *parts.metrics.values()]
    assert all(plugin.context.budget is budget for plugin in plugins)
