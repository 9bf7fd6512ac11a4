"""Gates: what passes, what fails, and the sentence that explains it.

Evaluations are compared with what they can be compared with, from the spec to the gate.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import DataError
from rageval_spec.pipeline.gating.gate_outcomes import describe_bound
from rageval_spec.runner import Options, run
from rageval_spec.spec.blocks.gates import GateNode
from tests.pipeline.gate_samples import METRICS, cell, check, check_gates, comparison


def test_no_value_fails_even_if_no_share_is_required() -> None:
    checked = check({"max": 1.0, "min_scored": 0}, cell(None, interval=None, scored=0, total=40))
    assert (checked.outcome, checked.observed) == ("fail", None)
    assert checked.reason == "ndcg@10 of bm25 has no value: 0 of 40 queries could be scored"


def test_passing_bounds_share_one_sentence() -> None:
    checked = check({"min": 0.4, "target": 0.41})
    assert checked.reason == "ndcg@10 of bm25 is 0.412, at least the minimum 0.400 and at least the target 0.410"
    drop = check({"min": 0.4, "baseline": "main", "max_drop": 0.02}, against=comparison(0.01))
    assert drop.reason.startswith("ndcg@10 of bm25 is 0.412, at least the minimum 0.400; ndcg@10 of bm25 is 0.010 ")


def test_all_failing_bounds_are_named() -> None:
    checked = check({"min": 0.45}, cell(0.4, scored=1))
    assert "the gate requires 90%" in checked.reason
    assert "below the minimum" in checked.reason


def test_a_gate_without_a_system_looks_at_all_but_its_baseline() -> None:
    cells = [cell(0.5, system=system) for system in ("bm25", "dense", "hybrid")]
    everywhere = check_gates([GateNode(metric="ndcg@10", min=0.4)], cells, METRICS)
    assert [outcome.system for outcome in everywhere] == ["bm25", "dense", "hybrid"]
    gate = GateNode(metric="ndcg@10", baseline="bm25", max_drop=0.1)
    against = {"bm25": [comparison(0.1, system=system, baseline="bm25") for system in ("dense", "hybrid")]}
    compared = check_gates([gate], cells, METRICS, against)
    assert [(outcome.system, outcome.outcome) for outcome in compared] == [("dense", "pass"), ("hybrid", "pass")]
    one = check_gates([GateNode(metric="ndcg@10", min=0.4, system="dense")], cells, METRICS)
    assert [outcome.system for outcome in one] == ["dense"]


def test_a_gate_that_finds_nothing_fails() -> None:
    checked = check({"system": "dense", "dataset": "golden", "min": 0})
    assert (checked.outcome, checked.system, checked.observed) == ("fail", "dense", None)
    assert checked.reason == "the evaluation has no ndcg@10 of dense on golden, so the gate could not be checked"
    alone = check({"system": "bm25", "baseline": "bm25", "max_drop": 0})
    assert (alone.outcome, alone.reason) == ("fail", "the gate on ndcg@10 compares bm25 with itself")


def test_the_dataset_is_named_if_there_are_several() -> None:
    cells = [cell(0.5, dataset=dataset) for dataset in ("golden", "scifact")]
    reasons = [o.reason for o in check_gates([GateNode(metric="ndcg@10", min=0.6)], cells, METRICS)]
    assert reasons[1] == "ndcg@10 of bm25 on scifact is 0.500, below the minimum 0.600"
    assert len(reasons) == 2


def test_the_number_of_a_gate_is_its_index_in_the_spec() -> None:
    gates = [GateNode(metric="ndcg@10", min=0), GateNode(metric="ndcg@10", max=1)]
    assert [outcome.gate for outcome in check_gates(gates, [cell(0.5)], METRICS)] == [0, 1]


@pytest.mark.parametrize(
    ("gate", "bound"),
    [
        ({"min": 0.4, "target": 0.55}, "≥ 0.4, target 0.55"),
        ({"min": 0.85, "on": "lower"}, "lower end ≥ 0.85"),
        ({"max": 5}, "≤ 5.0"),
        ({"baseline": "main", "max_drop": 0.02, "alpha": 0.05}, "drop from main ≤ 0.02 (p < 0.05)"),
        ({"baseline": "main", "alpha": 0.05}, "no drop from main (p < 0.05)"),
        ({"baseline": "main"}, "no drop from main"),
        ({"min_scored": 0.95}, "scored ≥ 95%"),
    ],
)
def test_bounds_in_short(gate: dict[str, Any], bound: str) -> None:
    assert describe_bound(GateNode.model_validate({"metric": "ndcg@10"} | gate)) == bound


QUERIES = 12
GATE = {"metric": "token_f1", "baseline": "main", "max_drop": 0.02}
FAITHFUL = {**GATE, "metric": "faithfulness"}
JUDGE = {"use": "overlap", "threshold": 0.5}


def write_data(folder: Path, *, references: Collection[int] = (), questions: Collection[int] = ()) -> None:
    """Questions with their answers; the numbers are those whose reference or question is another one."""
    rows = [
        {
            "query_id": f"q{number}",
            "question": f"What is {number}?{' Say it.' if number in questions else ''}",
            "reference": f"It is {number}{' or more' if number in references else ''}.",
            "level": "hard" if number < 4 else "easy",
        }
        for number in range(QUERIES)
    ]
    answers = [
        {"query_id": row["query_id"], "answer": f"It is {number}.", "contexts": [f"It is {number}."]}
        for number, row in enumerate(rows)
    ]
    for name, table in (("golden", rows), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))


def evaluate(folder: Path, gates: list[Any], label: str | None = None, **changes: Any) -> Evaluation:
    spec = {
        "version": 1,
        "name": "bot",
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "answers.jsonl"}},
        "judges": {"words": JUDGE},
        "metrics": ["token_f1", {"use": "faithfulness", "judge": "words"}],
        "gates": gates,
        **changes,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    return run(folder / "spec.json", Options(output=folder / "out", save_as=label)).evaluation


def start(folder: Path, **changes: Any) -> None:
    write_data(folder)
    evaluate(folder, [], "main", **changes)


def test_edited_references_make_a_gate_inconclusive_unless_it_accepts_them(tmp_path: Path) -> None:
    start(tmp_path)
    write_data(tmp_path, references={0, 1, 2})
    accepting = {**GATE, "accept_changes": ["references"]}
    refused, accepted, other = evaluate(tmp_path, [GATE, accepting, FAITHFUL]).gates
    assert (refused.outcome, refused.counts_as) == ("inconclusive", "warn")
    assert refused.reason == (
        "token_f1 of bot is not comparable with main: the references of 3 queries changed; to compare all the same, "
        "write 'accept_changes: [references]'"
    )
    assert accepted.outcome == "fail"
    assert "although the references of 3 queries changed" in accepted.reason
    assert other.outcome == "pass"


def test_questions_that_changed_are_left_out(tmp_path: Path) -> None:
    start(tmp_path)
    write_data(tmp_path, questions={0, 1}, references={0})
    evaluation = evaluate(tmp_path, [GATE])
    [gate] = evaluation.gates
    assert (gate.outcome, gate.observed) == ("pass", 0.0)
    assert gate.reason.endswith("compared with main on 10 of 12 queries: 2 changed")
    assert evaluation.baselines[0].queries == 10


def test_a_judge_that_changed_makes_only_its_metrics_not_comparable(tmp_path: Path) -> None:
    start(tmp_path)
    judges = {"words": {**JUDGE, "threshold": 0.7}}
    gates = [GATE, {**FAITHFUL, "on_inconclusive": "fail"}]
    plain, judged = evaluate(tmp_path, gates, judges=judges).gates
    assert plain.outcome == "pass"
    assert (judged.outcome, judged.counts_as) == ("inconclusive", "fail")
    assert "the judge changed: words (threshold 0.5 → 0.7)" in judged.reason


def test_the_code_of_a_metric_is_part_of_its_meaning(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def score(answer): return 1.0\n")
    mine = {"use": "python", "function": "mine:score", "as": "mine"}
    gate = {"metric": "mine", "baseline": "main", "max_drop": 0}
    start(tmp_path, metrics=[mine], judges={})
    assert evaluate(tmp_path, [gate], metrics=[mine], judges={}).gates[0].outcome == "pass"
    (tmp_path / "mine.py").write_text("def score(answer): return 0.5\n")
    [gate_outcome] = evaluate(tmp_path, [gate], metrics=[mine], judges={}).gates
    assert gate_outcome.outcome == "inconclusive"
    assert "the metric's code or files changed" in gate_outcome.reason


def test_a_slice_is_compared_if_nothing_changed_in_it(tmp_path: Path) -> None:
    start(tmp_path, slices=["level"])
    write_data(tmp_path, references={0, 1})
    gates = [{**GATE, "slice": "level"}]
    outcomes = {gate.slice: gate.outcome for gate in evaluate(tmp_path, gates, slices=["level"]).gates}
    assert outcomes == {"level=hard": "inconclusive", "level=easy": "pass"}


def test_equal_data_say_nothing(tmp_path: Path) -> None:
    start(tmp_path)
    evaluation = evaluate(tmp_path, [GATE, FAITHFUL])
    assert [gate.outcome for gate in evaluation.gates] == ["pass", "pass"]
    assert [note for note in evaluation.notes if "main" in note.message] == []


@pytest.mark.parametrize("baseline", ["previous", "branch:topic"])
def test_the_first_evaluation_passes_and_becomes_the_baseline(tmp_path: Path, baseline: str) -> None:
    write_data(tmp_path)
    make_repository(tmp_path, "topic")
    gate = {**GATE, "baseline": baseline}
    first = evaluate(tmp_path, [gate])
    assert (first.verdict, first.gates[0].outcome) == ("warn", "inconclusive")
    assert "nothing to be compared with yet" in first.gates[0].reason
    second = evaluate(tmp_path, [gate])
    assert (second.verdict, second.gates[0].outcome) == ("pass", "pass")


def test_a_record_with_an_inconclusive_gate_passes_as_its_gate_counts(tmp_path: Path) -> None:
    write_data(tmp_path)
    make_repository(tmp_path, "main")
    gate = {**GATE, "baseline": "branch:main"}
    evaluate(tmp_path, [])
    write_data(tmp_path, references={0})
    strict = evaluate(tmp_path, [{**gate, "on_inconclusive": "fail"}])
    assert (strict.verdict, strict.gates[0].outcome) == ("fail", "inconclusive")
    again = evaluate(tmp_path, [gate])
    assert (again.verdict, again.gates[0].outcome) == ("warn", "inconclusive")
    assert evaluate(tmp_path, [gate]).gates[0].outcome == "pass"


def test_a_label_that_does_not_exist_stays_an_error_and_so_does_a_history_that_is_off(tmp_path: Path) -> None:
    write_data(tmp_path)
    with pytest.raises(DataError, match="baseline 'main' is neither a label"):
        evaluate(tmp_path, [GATE])
    with pytest.raises(DataError, match="the spec has 'history: none', so no evaluation is recorded"):
        evaluate(tmp_path, [{**GATE, "baseline": "previous"}], history="none")


def make_repository(folder: Path, branch: str) -> None:
    commands = (
        ["init", "-q", "-b", branch],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
    )
    for command in commands:
        subprocess.run(["git", "-C", str(folder), *command], check=True)


def test_a_percentile_is_compared_with_its_baseline(tmp_path: Path) -> None:
    def write_times(factor: float) -> None:
        rows = [{"query_id": f"q{at}", "question": f"What is {at}?", "reference": f"{at}"} for at in range(80)]
        answers = [
            {"query_id": row["query_id"], "answer": "x", "seconds": (1 + at / 80) * factor}
            for at, row in enumerate(rows)
        ]
        for name, table in (("golden", rows), ("answers", answers)):
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))

    changes: dict[str, Any] = {"metrics": ["latency@p95", "latency"], "judges": {}}
    gates = [{"metric": "latency@p95", "baseline": "main", "max_drop": "10%", "decide": "certain"}]
    write_times(1.0)
    evaluate(tmp_path, [], "main", **changes)
    write_times(1.5)
    evaluation = evaluate(tmp_path, gates, **changes, reports=["terminal", "markdown"])
    [gate], [found] = evaluation.gates, evaluation.baselines
    assert (gate.outcome, found.metric, found.queries) == ("fail", "latency@p95", 80)
    assert found.baseline_mean == pytest.approx(1.938125)
    assert found.difference == pytest.approx(0.5 * 1.938125)
    assert found.interval is not None
    assert found.interval.low < found.difference < found.interval.high
    assert found.p_value < 0.001
    assert gate.max_drop == pytest.approx(0.1938125)
    assert "with the whole interval above the allowed +0.194 (10% of 1.938)" in gate.reason
    assert "`latency@p95` | `bot` | `main` | +0.969" in (tmp_path / "out" / "report.md").read_text()


def test_other_questions_make_a_gate_inconclusive_and_the_next_evaluation_can_be_compared_again(tmp_path: Path) -> None:
    def rename_questions() -> None:
        for name in ("golden", "answers"):
            data = tmp_path / f"{name}.jsonl"
            data.write_text(data.read_text().replace('"query_id": "', '"query_id": "new-'))

    start(tmp_path)
    rename_questions()
    strict = {**GATE, "on_inconclusive": "fail"}
    hard = {**GATE, "slice": "level=hard"}
    lenient, strict_one, sliced = evaluate(tmp_path, [GATE, strict, hard], slices=["level"]).gates
    assert (lenient.outcome, lenient.counts_as) == ("inconclusive", "warn")
    assert lenient.reason == (
        "token_f1 of bot cannot be compared with main: the questions are not the same; compared with main on 0 of 12 "
        "queries: 12 are new, 12 were removed"
    )
    assert (strict_one.outcome, strict_one.counts_as) == ("inconclusive", "fail")
    way_out = "; to record a first one that passes, run with --set 'gates=[]'"
    assert way_out in strict_one.reason
    assert sliced.outcome == "inconclusive"
    (again,) = evaluate(tmp_path, [{**GATE, "baseline": "previous"}]).gates
    assert again.outcome == "pass"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"datasets": {"more": {"use": "jsonl", "path": "golden.jsonl"}}}, "dataset 'more'"),
        ({"systems": {"better": {"use": "file", "path": "answers.jsonl"}}}, "system 'better'"),
        ({"metrics": ["exact_match"], "judges": {}}, "metric 'exact_match'"),
    ],
)
def test_what_a_baseline_does_not_have_yet_is_inconclusive(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    start(tmp_path)
    (metric,) = changes.get("metrics", ["token_f1"])
    gates = [{**GATE, "metric": metric}, {**GATE, "metric": metric, "on_inconclusive": "fail"}]
    first, strict = evaluate(tmp_path, gates, "later", **changes).gates
    assert (first.outcome, first.counts_as, strict.counts_as) == ("inconclusive", "warn", "fail")
    assert first.reason.endswith(f"has nothing to be compared with yet: main has no {part}")
    assert strict.reason == f"{first.reason}; to record a first one that passes, run with --set 'gates=[]'"
    (again,) = evaluate(tmp_path, [{**GATE, "metric": metric, "baseline": "later"}], **changes).gates
    assert again.outcome == "pass"


def test_a_gate_on_the_questions_that_a_limit_left_is_undecided(tmp_path: Path) -> None:
    rows = [{"query_id": f"q{number}", "question": f"Who is {number}?", "reference": "Ada"} for number in range(8)]
    (tmp_path / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "app.py").write_text("def answer(question):\n    return 'Ada'\n")
    content: dict[str, Any] = {
        "version": 1,
        "datasets": {"golden": {"use": "golden", "path": "golden.jsonl"}},
        "systems": {"app": {"use": "python", "function": "app:answer"}},
        "metrics": ["token_f1"],
        "gates": [{"metric": "token_f1", "min": 0.2, "min_scored": 0.1}, {"metric": "token_f1", "max": 0.9}],
        "statistics": {"resamples": 100},
    }
    outcomes = {}
    for calls in (3, 8):
        limits = {"max_calls": {"systems": calls}}
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(content | {"limits": limits}))
        made = run(tmp_path / "spec.yaml", Options(no_store=True))
        outcomes[calls] = made.evaluation.gates
    assert [gate.outcome for gate in outcomes[3]] == ["inconclusive", "fail"]
    why = "undecided, because 5 of 8 queries were not asked: limits.max_calls: 3 of 3 calls to systems made"
    assert outcomes[3][0].reason.endswith(why)
    assert [gate.outcome for gate in outcomes[8]] == ["pass", "fail"]
