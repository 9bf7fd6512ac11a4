"""`stopping: {when: decided}` asks only as many questions as the gates need, and says how many it left out.

The comparisons that gates make, and when they are certain.

The state of a dataset between two rounds of questions.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from rageval_spec import registry
from rageval_spec.data.datasets import EvaluatedQueries
from rageval_spec.data.outcomes import Cell, Drop
from rageval_spec.data.tables import Collection
from rageval_spec.errors import BROKEN, GATE_FAILED, PASSED
from rageval_spec.pipeline.execution.stopping_decision import (
    Look,
    Round,
    RoundPairs,
    Scored,
    Stopper,
    clip,
    list_bound_looks,
    list_drop_looks,
    list_half_looks,
    list_share_looks,
    list_values,
    settle_looks,
    warns_of_few,
)
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.pipeline.values.step_inputs import Materials
from rageval_spec.plugin import Context, Metric
from rageval_spec.runner import Options, RunOutcome, plan, run
from rageval_spec.spec import load
from rageval_spec.spec.blocks.gates import GateNode

APP = """
import os, pathlib, zlib
FOLDER = pathlib.Path(__file__).parent

def answer(question, query_id):
    with open(FOLDER / "asked", "a") as log:
        log.write(query_id + "\\n")
    if os.environ.get("KILLED_AT") and len((FOLDER / "asked").read_text().splitlines()) >= int(os.environ["KILLED_AT"]):
        os.kill(os.getpid(), 9)
    share = zlib.crc32(query_id.encode()) % 100
    if share >= 95 and (FOLDER / "fails").exists():
        raise KeyError("no such page")
    return "yes" if share < 70 else "no"

def worse(question, query_id):
    return "yes" if zlib.crc32(query_id.encode()) % 100 < 50 else "no"
"""

MEASURE = """
def measure(answer):
    with open(FOLDER / "measured", "a") as log:
        log.write(".")
    return 1
"""


class App:
    """A system that is right in about 70% of 200 questions, and counts them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "stopped_app.py").write_text(APP)
        self.write_questions(200)

    def write_questions(self, count: int, name: str = "rows.jsonl", unanswerable: int = 0) -> None:
        """Questions with the reference "yes"; every `unanswerable`-th has none."""
        with (self.folder / name).open("w") as file:
            for row in range(count):
                reference = {} if unanswerable and row % unanswerable == 0 else {"reference": "yes"}
                file.write(json.dumps({"query_id": f"q{row}", "question": f"Is it {row}?", **reference}) + "\n")

    @property
    def asked(self) -> list[str]:
        """The ids of the questions that were asked since the last read."""
        log = self.folder / "asked"
        asked = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return asked

    def write_spec(self, *gates: dict[str, Any], **sections: Any) -> Path:
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": {"use": "python", "function": "stopped_app:answer", "concurrency": 1}},
            "metrics": ["exact_match"],
            "gates": list(gates),
            "stopping": {"when": "decided"},
            "statistics": {"resamples": 200, "permutations": 200},
            "history": "none",
            "reports": ["json"],
            **sections,
        }
        path = self.folder / "spec.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in spec.items() if value is not None}))
        return path

    def run(self, *gates: dict[str, Any], options: dict[str, Any] | None = None, **sections: Any) -> RunOutcome:
        path = self.write_spec(*gates, **sections)
        return run(path, Options(output=self.folder / "out", **(options or {})))


NAMES = {"app": "answer", "broken": "broken"}
CLEAR = {"metric": "exact_match", "min": 0.45}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    yield App(tmp_path)
    sys.modules.pop("stopped_app", None)


def notes(outcome: RunOutcome) -> list[str]:
    return [note.message for note in outcome.evaluation.notes]


def test_a_clear_gate_needs_few_questions(app: App) -> None:
    outcome = app.run(CLEAR)
    asked = app.asked
    assert 30 <= len(asked) <= 110
    assert len(asked) == len(set(asked))
    assert (len(asked) - 30) % 20 == 0
    assert outcome.exit_code == PASSED
    assert notes(outcome) == [f"asked {len(asked)} of 200 questions, in random order: every gate was decided"]
    found = outcome.evaluation.aggregate("rows", "app", "exact_match")
    assert found is not None and found.interval is not None
    assert (found.scored, found.total, found.interval.method) == (len(asked), len(asked), "betting")
    assert found.interval.low > 0.45
    stopping = json.loads((app.folder / "out" / "results.json").read_bytes())["stopping"]
    assert stopping["confidence"] == 0.95
    (rows,) = stopping["datasets"]
    assert (rows["asked"], rows["total"], rows["ending"]) == (len(asked), 200, "decided")


def test_a_gate_that_fails_clearly_needs_few_questions_too(app: App) -> None:
    outcome = app.run({"metric": "exact_match", "min": 0.95})
    assert len(app.asked) < 60
    assert outcome.exit_code == GATE_FAILED


def test_a_bound_at_the_mean_needs_every_question(app: App) -> None:
    everything = app.run(CLEAR, stopping=None).evaluation.aggregate("rows", "app", "exact_match")
    assert everything is not None and len(app.asked) == 200
    outcome = app.run({"metric": "exact_match", "min": everything.mean})
    assert len(app.asked) == 200
    assert outcome.evaluation.aggregate("rows", "app", "exact_match") == everything
    assert notes(outcome) == ["asked all of 200 questions: not every gate was decided earlier"]


def test_the_same_seed_asks_the_same_questions_and_another_seed_others(app: App) -> None:
    app.run(CLEAR)
    first = app.asked
    content = (app.folder / "out" / "results.json").read_bytes()
    app.run(CLEAR)
    assert app.asked == first
    assert (app.folder / "out" / "results.json").read_bytes() == content
    app.run(CLEAR, statistics={"seed": 7, "resamples": 200, "permutations": 200})
    assert set(app.asked) != set(first)


def test_a_killed_evaluation_goes_on_and_ends_the_same(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    app.run(CLEAR)
    expected, content = app.asked, json.loads((app.folder / "out" / "results.json").read_bytes())
    spec = app.write_spec(CLEAR)
    command = [sys.executable, "-m", "rageval_spec", "run", str(spec), "-o", str(app.folder / "out"), "--quiet"]
    monkeypatch.setenv("KILLED_AT", "43")
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    monkeypatch.delenv("KILLED_AT")
    (app.folder / "out" / "results.json").unlink()
    before = app.asked
    assert len(before) == 43
    assert subprocess.run(command, check=False, capture_output=True).returncode == PASSED
    after = app.asked
    assert before[-1] == after[0]  # it was killed while this one was answered
    assert [*before, *after[1:]] == expected
    continued = json.loads((app.folder / "out" / "results.json").read_bytes())
    [taken] = continued.pop("taken_over")
    assert (taken["answers"], taken["sources"]) == (42, ["unfinished"])
    assert continued == content


def test_nothing_is_asked_twice_without_a_store(app: App) -> None:
    app.run(CLEAR)
    expected = app.asked
    app.run(CLEAR, options={"no_store": True})
    assert app.asked == expected


def test_questions_that_fail_are_asked_once(app: App) -> None:
    (app.folder / "fails").touch()
    outcome = app.run({"metric": "exact_match", "min": 0.45, "min_scored": 0.5})
    asked = app.asked
    failed = [row for row in outcome.evaluation.values.iter_rows(named=True) if row["status"] == "error"]
    assert failed
    assert len(asked) == len(set(asked)) < 200
    assert outcome.exit_code == PASSED


def test_the_share_of_scored_questions_is_decided_too(app: App) -> None:
    (app.folder / "fails").touch()
    app.run({"metric": "exact_match", "min": 0.45, "min_scored": 0.5})
    few = len(app.asked)
    app.run({"metric": "exact_match", "min": 0.45, "min_scored": 0.94})
    assert len(app.asked) > few + 50  # about 5% fail, so that 94% could be reached or missed for long


def test_questions_without_a_reference_count_as_not_known(app: App) -> None:
    app.write_questions(200, unanswerable=3)
    outcome = app.run(CLEAR)
    found = outcome.evaluation.aggregate("rows", "app", "exact_match")
    assert found is not None
    assert found.scored < found.total < 200
    assert found.total == len(app.asked)


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ({"metric": "latency@p95", "max": 60}, "it looks at a percentile, not at a mean"),
        ({"metric": "latency", "max": 60}, "its values have no bounds"),
        ({"metric": "exact_match", "min": 0.4, "on": "lower"}, "it looks at an interval over all questions"),
        ({"metric": "exact_match", "min": 0.4, "decide": "certain"}, "it looks at an interval over all questions"),
        ({"metric": "exact_match", "min": 0.4, "min_scored": 1}, "every question must have a value ('min_scored: 1')"),
    ],
)
def test_gates_that_sequences_cannot_decide_need_every_question(app: App, gate: dict[str, Any], reason: str) -> None:
    outcome = app.run(CLEAR, gate, metrics=["exact_match", "latency@p95", "latency"])
    assert len(app.asked) == 200
    (warning,) = outcome.warnings
    assert warning.message.startswith("every question is asked because of the gate on")
    assert warning.message.endswith(reason)
    assert notes(outcome)[0] == f"asked all of 200 questions: the gate on {gate['metric']} needs them: {reason}"


def test_a_drop_from_another_system_is_decided_by_the_paired_differences(app: App) -> None:
    systems = {
        "app": {"use": "python", "function": "stopped_app:answer", "concurrency": 1},
        "worse": {"use": "python", "function": "stopped_app:worse"},
    }
    gate = {"metric": "exact_match", "baseline": "app", "max_drop": 0.02}
    outcome = app.run(gate, systems=systems)
    assert len(app.asked) < 200
    assert outcome.exit_code == GATE_FAILED
    (comparison,) = outcome.evaluation.comparisons
    assert comparison.interval is not None
    assert comparison.interval.method == "betting"
    assert comparison.interval.high < -0.02
    assert "the p-values do not take into account that the evaluation stopped early" in notes(outcome)


def test_a_drop_from_an_earlier_evaluation_is_decided(app: App) -> None:
    app.run(CLEAR, stopping=None, history="sqlite", options={"save_as": "main"})
    assert len(app.asked) == 200
    gate = {"metric": "exact_match", "baseline": "main", "max_drop": 0.2}
    outcome = app.run(gate, history="sqlite")
    assert len(app.asked) < 120
    assert outcome.exit_code == PASSED
    assert not any("removed" in told for told in (*notes(outcome), outcome.evaluation.gates[0].reason))
    share = app.run({"metric": "exact_match", "baseline": "main", "max_drop": "30%"}, history="sqlite")
    assert len(app.asked) < 120
    assert share.exit_code == PASSED
    graded = {"metric": "exact_match", "baseline": "main", "severities": {"low": 0.1, "high": "40%"}}
    assert app.run(graded, history="sqlite").exit_code == PASSED
    assert len(app.asked) < 200


def test_the_data_are_the_same_however_many_questions_were_asked(app: App) -> None:
    part, whole = app.run(CLEAR).evaluation, app.run(CLEAR, stopping=None).evaluation
    assert part.provenance.digests == whole.provenance.digests
    assert part.fingerprints == whole.fingerprints


def test_an_edited_reference_of_a_question_that_was_not_asked_counts(app: App) -> None:
    app.run(CLEAR, stopping=None, history="sqlite", options={"save_as": "main"})
    gate = {"metric": "exact_match", "baseline": "main", "max_drop": 0.2}
    assert len(app.asked) == 200
    app.run(gate, history="sqlite")
    asked = app.asked
    unasked = next(f"q{row}" for row in range(200) if f"q{row}" not in asked)
    rows = [json.loads(line) for line in (app.folder / "rows.jsonl").read_text().splitlines()]
    edited = [{**row, "reference": "YES"} if row["query_id"] == unasked else row for row in rows]
    (app.folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in edited))
    outcome = app.run(gate, history="sqlite")
    assert len(app.asked) == 200
    assert [one.outcome for one in outcome.evaluation.gates] == ["inconclusive"]
    outcome = app.run({**gate, "accept_changes": ["references"]}, history="sqlite")
    assert len(app.asked) < 120
    assert [one.outcome for one in outcome.evaluation.gates] == ["pass"]


def test_a_gate_without_a_baseline_yet_is_decided_by_its_other_bounds(app: App) -> None:
    gate = {"metric": "exact_match", "baseline": "branch:new", "max_drop": 0.2}
    app.run(gate, history="sqlite")
    assert len(app.asked) == 30 + 20  # 50 questions tell that enough of them can be scored
    app.run({**gate, "min": 0.69}, history="sqlite")
    assert len(app.asked) > 50


def test_a_baseline_that_stopped_early_is_compared_on_its_questions(app: App) -> None:
    app.run(CLEAR, history="sqlite", options={"save_as": "main"})
    asked = len(app.asked)
    gate = {"metric": "exact_match", "baseline": "main", "max_drop": 0.02}
    outcome = app.run(gate, history="sqlite", stopping=None)
    assert len(app.asked) == 200
    (comparison,) = outcome.evaluation.baselines
    assert (comparison.queries, comparison.difference) == (asked, 0)
    assert not any("added" in told for told in (*notes(outcome), outcome.evaluation.gates[0].reason))


def test_the_plan_shows_the_fewest_and_the_most_calls(app: App) -> None:
    models = {
        "judge": {"use": "chat", "base_url": "http://localhost:9", "model": "m", "price": {"input": 1, "output": 1}}
    }
    judges = {"strict": {"use": "claims", "model": "judge"}}
    metrics = ["exact_match", {"use": "answer_correctness", "judge": "strict"}]
    path = app.write_spec(CLEAR, models=models, judges=judges, metrics=metrics)
    planned = plan(path)
    assert re.search(r"app +30 to 200 questions\n", planned.render())
    assert re.search(
        r"judge +[\d,]+ to [\d,]+ calls, about [\d,]+ to [\d,]+ tokens in and [\d,]+ to [\d,]+ out, "
        r"about 0.\d+ to 0.\d+ USD\n",
        planned.render(),
    )
    content = json.loads(planned.to_json())["to_ask"]
    assert (content["questions"], content["least"]["questions"]) == ({"app": 200}, {"app": 30})
    (least,), (most,) = content["least"]["models"], content["models"]
    assert least["calls"] * 200 == most["calls"] * 30
    assert app.asked == []


def test_the_plan_names_the_gate_that_needs_every_question(app: App) -> None:
    path = app.write_spec({"metric": "latency@p95", "max": 60}, metrics=["exact_match", "latency@p95"])
    shown = plan(path).render()
    assert re.search(r"app +200 questions\n", shown)
    assert "all questions of rows are asked: the gate on latency@p95 needs them: it looks at a percentile" in shown


def test_a_system_that_fails_does_not_keep_the_others_from_being_decided(app: App) -> None:
    broken = APP + "def broken(question):\n    raise KeyError('no index')\n"
    (app.folder / "stopped_app.py").write_text(broken)
    systems = {name: {"use": "python", "function": f"stopped_app:{word}"} for name, word in NAMES.items()}
    outcome = app.run(CLEAR, systems=systems)
    assert 30 < len(app.asked) < 200
    assert outcome.exit_code == BROKEN
    assert f"asked {len(outcome.evaluation.values) // 2} of 200 questions, in random order: " in notes(outcome)[0]
    assert notes(outcome)[0].endswith("every gate was decided, except where something failed")
    found = {gate.system: gate.outcome for gate in outcome.evaluation.gates}
    assert found == {"app": "pass", "broken": "fail"}


def test_answers_that_are_kept_are_not_asked_in_any_round(app: App) -> None:
    systems = {"app": {"use": "python", "function": "stopped_app:answer", "reuse": "always", "version": "1"}}
    app.run(CLEAR, systems=systems)
    first = app.asked
    assert 30 <= len(first) < 200
    app.run(CLEAR, systems=systems)
    assert app.asked == []
    app.run({"metric": "exact_match", "min": 0.6}, systems=systems)
    assert not {*first} & {*app.asked}


def test_datasets_have_their_own_rounds(app: App) -> None:
    app.write_questions(150, "more.jsonl")
    datasets = {name: {"use": "jsonl", "path": f"{name}.jsonl"} for name in ("rows", "more")}
    gates = [{**CLEAR, "dataset": "rows"}, {"metric": "exact_match", "min": 0.7, "dataset": "more"}]
    outcome = app.run(*gates, datasets=datasets)
    stopping = outcome.evaluation.stopping
    assert stopping is not None
    rows, more = stopping.find("rows"), stopping.find("more")
    assert rows is not None and more is not None
    assert rows.asked < 200
    assert (more.asked, more.total) == (150, 150)


def test_a_dataset_that_no_gate_looks_at_is_asked_completely(app: App) -> None:
    app.write_questions(150, "more.jsonl")
    datasets = {name: {"use": "jsonl", "path": f"{name}.jsonl"} for name in ("rows", "more")}
    outcome = app.run({**CLEAR, "dataset": "rows"}, datasets=datasets)
    assert outcome.evaluation.stopping is not None
    more = outcome.evaluation.stopping.find("more")
    assert more is not None
    assert (more.asked, more.reason) == (150, "no gate looks at this dataset")


def test_a_limit_is_the_set_from_which_questions_are_drawn(app: App) -> None:
    app.run({"metric": "exact_match", "min": 0.5}, options={"limit": 60})
    assert {int(query[1:]) for query in app.asked} <= set(range(60))


def test_the_limits_of_a_spec_hold_over_all_rounds(app: App) -> None:
    outcome = app.run({"metric": "exact_match", "min": 0.68}, limits={"max_calls": 60})
    assert len(app.asked) == 60
    assert outcome.exit_code == BROKEN
    stopping = outcome.evaluation.stopping
    assert stopping is not None
    assert [one.ending for one in stopping.datasets] == ["interrupted"]
    assert "pass" not in {gate.outcome for gate in outcome.evaluation.gates}
    assert "a limit was reached while the first 70 of 200 questions were asked, before every gate was decided" in notes(
        outcome
    )


@pytest.mark.parametrize(("bound", "most"), [(0.45, 90), (0.6, 200)])
def test_gates_are_rarely_wrong_and_save_questions(app: App, bound: float, most: int) -> None:
    """200 values with the mean 0.6, drawn in 60 random orders."""
    spec = load(app.write_spec({"metric": "exact_match", "min": bound}))
    parts = build_parts(spec)
    stopper, whole = Stopper(spec, parts, {}), Materials(spec, parts).open_whole("rows")
    every = frozenset(whole.asked.queries["query_id"]) if whole.asked.queries is not None else frozenset[str]()
    ids = [f"q{row}" for row in range(200)]
    values = np.array([1.0] * 120 + [0.0] * 80)
    names = {"dataset": "rows", "system": "app", "metric": "exact_match"}
    table = pl.DataFrame({**names, "query_id": ids, "value": values, "status": "scored"})
    evaluated = EvaluatedQueries(whole.asked, table["query_id"])
    generator, asked, wrong = np.random.default_rng(2), [], 0
    for _ in range(60):
        places = generator.permutation(200)
        order = [ids[place] for place in places]
        for count in stopper.list_counts("rows", 200):
            if count == 200 or stopper.is_decided(Round(evaluated, every, frozenset(), order, count, table)):
                break
        asked.append(count)
        wrong += bool(values[places[:count]].mean() < bound)
    assert wrong <= 3
    assert 0.5 * most < np.mean(asked) <= most


def test_metrics_without_a_gate_are_computed_once(app: App) -> None:
    (app.folder / "stopped_app.py").write_text(APP + MEASURE)
    app.run(CLEAR, metrics=["exact_match", {"use": "python", "function": "stopped_app:measure"}])
    assert len((app.folder / "measured").read_text()) == len(app.asked)


UNIT = (0.0, 1.0)


ONE, NONE, ERROR = Scored("scored", 1.0), Scored("unscorable", None), Scored("error", None)


def metric(word: str) -> Metric[Any]:
    plugin = registry.load("metrics", word)
    made: Metric[Any] = plugin(plugin.node_type(use=word), Context(word, Path()))
    return made


def gate(**keys: Any) -> GateNode:
    return GateNode(metric="exact_match", **keys)


def share(value: float) -> Look:
    return Look([value] * 80, 200, 0.5, UNIT)


def test_a_bound_is_met_missed_or_open() -> None:
    assert share(0.9).decide(0.95) is True
    assert share(0.1).decide(0.95) is False
    assert share(0.5).decide(0.95) is None
    assert share(0.1)._replace(passes_above=False).decide(0.95) is True
    assert share(math.nan).decide(0.95) is None


def test_a_decision_that_the_mean_seen_contradicts_is_open() -> None:
    values = [1.0] * 30 + [0.0] * 50  # after 30 the mean is surely above a half; then it falls below
    assert Look(values[:30], 500, 0.5, UNIT).decide(0.95) is True
    assert Look(values, 500, 0.5, UNIT).decide(0.95) is None


def test_a_metric_that_is_wrong_about_its_bounds_is_never_decided() -> None:
    assert Look([0.9, 1.4] * 100, 500, 0.5, UNIT).decide(0.95) is None
    assert clip([1 + 1e-12, -1e-12, 0.5, 2.0], UNIT) == [1.0, 0.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ([True, True], True),
        ([False, None], True),
        ([None, False], False),
        ([True, None], False),
        ([True, False], True),
        ([], True),
    ],
)
def test_a_gate_is_settled_once_nothing_open_could_change_its_outcome(met: list[bool | None], expected: bool) -> None:
    looks = [share(0.5), share(0.5)._replace(miss="warn")]
    assert settle_looks(zip(looks, met, strict=False)) is expected


def test_the_joint_error_of_two_bounds_is_small() -> None:
    """A gate with two bounds, one of which equals the mean, has the wrong outcome in at most 5% of the draws."""
    generator = np.random.default_rng(3)
    values = np.array([1.0] * 120 + [0.0] * 80)
    wrong = 0
    for _ in range(300):
        drawn = generator.permutation(values)[:150].tolist()
        low = Look(drawn, 200, 0.6, UNIT).decide(0.975)
        high = Look(drawn, 200, 0.6, UNIT, passes_above=False).decide(0.975)
        wrong += low is False or high is False
    assert wrong <= 15


def test_each_bound_of_a_gate_is_a_look() -> None:
    looks = [*list_bound_looks(gate(min=0.2, max=0.9, target=0.5), metric("exact_match"), [ONE, NONE], 10, None)]
    assert [(look.bound, look.passes_above, look.miss) for look in looks] == [
        (0.2, True, "fail"),
        (0.9, False, "fail"),
        (0.5, True, "warn"),
    ]
    assert looks[0].values[0] == 1.0
    assert math.isnan(looks[0].values[1])
    (low,) = list_bound_looks(gate(target=0.1), metric("error_rate"), [ONE], 10, None)
    assert not low.passes_above


def test_a_drop_is_a_bound_of_the_differences() -> None:
    pairs = RoundPairs({"a": (0.5, 0.25), "b": (0.0, 1.0), "c": None}, 10, True)
    (drop,) = list_drop_looks(gate(baseline="main", max_drop=0.02), metric("exact_match"), pairs)
    assert (drop.bound, drop.bounds, drop.passes_above, drop.population) == (-0.02, (-1.0, 1.0), True, 10)
    assert drop.values[:2] == [0.25, -1.0]
    assert math.isnan(drop.values[2])
    (rise,) = list_drop_looks(gate(baseline="main", max_drop=0.02), metric("error_rate"), pairs)
    assert (rise.bound, rise.passes_above) == (0.02, False)


def test_a_drop_by_a_share_is_a_bound_of_what_is_left_of_the_baseline() -> None:
    pairs = RoundPairs({"a": (0.5, 1.0)}, 10, True)
    (drop,) = list_drop_looks(gate(baseline="main", max_drop="20%"), metric("exact_match"), pairs)
    assert (drop.bound, drop.bounds, round(drop.values[0], 9)) == (0.0, (-0.8, 1.0), -0.3)
    (rise,) = list_drop_looks(gate(baseline="main", max_drop="20%"), metric("error_rate"), pairs)
    assert (rise.bound, rise.bounds, round(rise.values[0], 9)) == (0.0, (-1.2, 1.0), -0.7)
    (wide,) = list_drop_looks(gate(baseline="main", max_drop="150%"), metric("exact_match"), pairs)
    assert (wide.bounds, wide.values[0]) == ((0.0, 1.5), 1.0)


def test_severities_are_bounds_unless_the_gate_has_one_of_its_own() -> None:
    pairs = RoundPairs({"a": (0.5, 1.0)}, 10, True)
    severities = {"low": "5%", "high": 0.2}
    graded = [*list_drop_looks(gate(baseline="main", severities=severities), metric("exact_match"), pairs)]
    assert [(look.bound, look.miss) for look in graded] == [(0.0, "warn"), (-0.2, "fail")]
    both = [*list_drop_looks(gate(baseline="main", max_drop=0.1, severities=severities), metric("exact_match"), pairs)]
    assert [(look.bound, look.miss) for look in both] == [(-0.1, "fail")]
    assert gate(baseline="main").allowed_drops == [(Drop(0.0), "fail", None)]
    assert gate(min=0.5).allowed_drops == []


def test_questions_that_cannot_be_scored_do_not_count_against_min_scored() -> None:
    (look,) = list_share_looks(gate(min=0.2), metric("exact_match"), [ONE, NONE, ERROR], 10)
    assert (look.values[0], look.values[2], look.bound) == (1.0, 0.0, 0.9)
    assert math.isnan(look.values[1])
    assert not [*list_share_looks(gate(min=0.2, min_scored=0), metric("exact_match"), [ONE], 10)]


def test_the_warning_of_few_scored_questions_is_decided_by_two_shares() -> None:
    assert warns_of_few(gate(min=0.2), metric("exact_match"))
    assert not warns_of_few(gate(min=0.2, min_scored=0.9), metric("exact_match"))
    assert not warns_of_few(gate(min=0.2), metric("ndcg"))
    half, excused = list_half_looks([ONE, NONE, ERROR], 10)
    assert (half.values, half.bound) == ([1.0, 0.0, 0.0], 0.5)
    assert (excused.values, excused.bound, excused.bounds) == ([1.0, 2.0, 0.0], 1.0, (0.0, 2.0))


QUERIES = pl.DataFrame({"query_id": ["a", "b", "c", "d"], "text": ["?"] * 4})
QRELS = pl.DataFrame({"query_id": ["a", "b"], "doc_id": ["1", "2"], "relevance": [1, 1]})
ORDER = ("c", "a", "d", "b")


def make_round(count: int, **systems: dict[str, float | None]) -> Round:
    rows = [
        ("golden", system, "exact_match", query_id, value, "error" if value is None else "scored")
        for system, values in systems.items()
        for query_id, value in values.items()
    ]
    names = ("dataset", "system", "metric", "query_id", "value", "status")
    values = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"value": pl.Float64}, orient="row")
    whole = Collection("golden", load_queries=lambda: QUERIES, load_qrels=lambda: QRELS)
    asked, judged = frozenset(QUERIES["query_id"]), frozenset(QRELS["query_id"])
    return Round(EvaluatedQueries(whole, QUERIES["query_id"]), asked, judged, ORDER, count, values)


def test_values_are_in_the_order_in_which_they_were_drawn() -> None:
    done = make_round(3, app={"a": 1.0, "c": 0.0, "d": None})
    column = done.read("app", "exact_match")
    assert column == {"c": Scored("scored", 0.0), "a": Scored("scored", 1.0), "d": Scored("error", None)}
    values = list_values([*(column or {}).values()])
    assert values[:2] == [0.0, 1.0]
    assert math.isnan(values[2])
    assert done.read("app", "other") is None


def test_metrics_of_answers_and_of_rankings_have_values_of_different_questions() -> None:
    done = make_round(1, app={"c": 1.0})
    assert done.list_all(metric("exact_match")) == {"a", "b", "c", "d"}
    assert done.list_all(metric("ndcg")) == {"a", "b"}
    assert not done.has_judged
    assert make_round(2, app={"c": 1.0, "a": 1.0}).has_judged


def test_differences_are_of_questions_with_a_value_in_both() -> None:
    done = make_round(3, app={"c": 1.0, "a": 1.0, "d": 0.0}, base={"c": 0.5, "a": None, "d": 1.0})
    pairs = done.pair(Cell("golden", "app", "exact_match"), metric("exact_match"), "base", {})
    assert pairs.values == {"c": (1.0, 0.5), "a": None, "d": (0.0, 1.0)}
    assert (pairs.shared, pairs.population, pairs.has_baseline) == (2, 4, True)
    assert (pairs.subtract()["c"], pairs.subtract(2)["d"]) == (0.5, -2.0)
    assert math.isnan(pairs.subtract()["a"])


def test_a_round_adds_to_those_before_it() -> None:
    first, second = make_round(2, app={"c": 1.0, "a": None}), make_round(4, app={"d": 1.0, "b": 0.0})
    done = first.extend(4, second.values, frozenset({("app", "exact_match")}))
    assert [*(done.read("app", "exact_match") or {})] == ["c", "a", "d", "b"]
    assert done.failed is not None
    assert [*done.failed] == [("app", "exact_match")]
    assert done.extend(4, second.values, frozenset()).failed == frozenset()


def test_a_gate_that_a_limit_left_undecided_is_inconclusive(app: App) -> None:
    outcome = app.run({"metric": "exact_match", "min": 0.5, "min_scored": 0.5}, limits={"max_calls": 60})
    (gate,) = outcome.evaluation.gates
    assert (gate.outcome, gate.counts_as) == ("inconclusive", "warn")
    assert "undecided, because a limit was reached while the first" in gate.reason
