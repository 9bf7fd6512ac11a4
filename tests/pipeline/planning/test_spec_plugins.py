""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.plugin.budget import Budget
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import load
from tests.generation.conftest import workshop as workshop
from tests.generation.writing import Workshop
from tests.tiny import write_spec

MODEL = {"use": "onnx", "model": "minilm"}
SYSTEMS = {
    "both": {"use": "hybrid", "systems": ["bm25", "dense"]},
    "dense": {"use": "dense", "model": "encoder"},
    "bm25": {"use": "bm25"},
}


def build(folder: Path, **sections: Any) -> SpecPlugins:
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


OPTIONS = Options(output=None, no_history=True)


def test_questions_are_made_before_the_plan_and_only_once(workshop: Workshop) -> None:
    spec = workshop.write_spec()
    before = plan(spec)
    assert [(calls.model, calls.calls) for calls in before.expectation.models] == [("gpt", 30)]
    assert not workshop.writer.bodies
    first = run(spec, OPTIONS)
    assert [one.scored for one in first.evaluation.aggregates] == [10]
    assert len(workshop.writer.bodies) == 30
    again = run(spec, OPTIONS)
    assert again.evaluation.aggregates == first.evaluation.aggregates
    assert len(workshop.writer.bodies) == 30
    after = plan(spec)
    assert "no calls" in after.expectation.render()
    assert after.plan.of("open")[0].key != before.plan.of("open")[0].key
    assert "in the store" in after.render()


def test_a_limit_stops_the_evaluation_and_the_next_run_goes_on(workshop: Workshop) -> None:
    with pytest.raises(RagevalError, match=r"datasets.golden: .*max_calls.*; run again to continue"):
        run(workshop.write_spec(limits="max_calls: 17"), OPTIONS)
    assert run(workshop.write_spec(), OPTIONS).exit_code == 0
    assert len(workshop.writer.bodies) == 30


def test_without_a_store_the_questions_are_made_each_time(workshop: Workshop) -> None:
    options = Options(output=None, no_history=True, no_store=True)
    assert run(workshop.write_spec("count: 2"), options).exit_code == 0
    assert run(workshop.write_spec("count: 2"), options).exit_code == 0
    assert len(workshop.writer.bodies) == 12


def test_a_corpus_that_gives_too_few_is_said_in_the_results(workshop: Workshop) -> None:
    outcome = run(workshop.write_spec("count: 50, per_chunk: 1"), OPTIONS)
    assert outcome.exit_code == 0
    assert "30 questions are missing: no chunk is left to ask about" in outcome.evaluation.notes[0].message


def test_when_nothing_can_be_made_the_evaluation_breaks(workshop: Workshop) -> None:
    workshop.writer.draft = lambda asked: "no"  # type: ignore[method-assign]
    with pytest.raises(RagevalError, match="no question could be made: 2 questions: none passed the checks in 4"):
        run(workshop.write_spec("count: 2"), OPTIONS)
