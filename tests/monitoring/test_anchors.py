"""The judge is asked again about frozen answers when a change alert begins, within the budget."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.monitoring.assembly import make_explainer, open_ledger
from rageval_spec.monitoring.looks.what_changed import Explanation
from rageval_spec.monitoring.looks.windows import Span
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import load
from tests.commands.drift.test_frozen_answers import COUNT, Model, frozen, model, server
from tests.monitoring.seen_traces import BEGAN

__all__ = ["frozen", "model", "server"]


def explain(made: Path, **monitor: Any) -> Explanation:
    path = made.parent / "spec.yaml"
    content = yaml.safe_load(path.read_text())
    content["systems"] = {"live": {"use": "file", "path": "answers.jsonl", "follow": True}}
    content["monitor"] = {"anchors": made.name, **monitor}
    live = made.parent / "live.yaml"
    live.write_text(yaml.safe_dump(content))
    spec = load(live)
    parts = build_parts(spec)
    with open_ledger(spec) as ledger:
        series = Series(1, "faithfulness", parts.answer_metrics["faithfulness"])
        span = Span(BEGAN, BEGAN + 1)
        return make_explainer(spec, ledger, parts).explain(series, span, span)


def test_a_judge_that_changed_is_found(frozen: Path, model: Model, server: Any) -> None:
    model.changed = set(range(20))
    asked = len(server.calls)
    found = explain(frozen)
    assert "20 of 60 frozen answers have another value, 20 another decision" in found.moved["judge"]
    assert len(server.calls) == asked + 2 * COUNT


def test_a_judge_that_says_the_same_did_not_move(frozen: Path) -> None:
    found = explain(frozen)
    assert "judge" not in found.moved
    assert not any("the judge" in one for one in found.unknown)


def test_a_budget_that_is_too_small_is_told(frozen: Path, server: Any) -> None:
    asked = len(server.calls)
    found = explain(frozen, budget={"calls": "10 per 1h"})
    assert any(one.startswith("the judge, because it could not be asked again: ") for one in found.unknown)
    assert len(server.calls) <= asked + 10


@pytest.mark.parametrize(("content", "told"), [(None, "cannot be read"), ("{}", "anchors")])
def test_a_wrong_file_is_told(frozen: Path, content: str | None, told: str) -> None:
    other = frozen.parent / "other.json"
    if content is not None:
        other.write_text(content)
    found = explain(frozen, anchors="other.json")
    assert any(told in one for one in found.unknown)
