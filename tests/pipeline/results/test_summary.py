from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.runner import Options, run
from rageval_spec.wording import format_p_value


def test_a_gate_depends_neither_on_the_order_of_systems_nor_on_metrics_without_a_gate(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    gate = {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", "max_drop": 0.02, "alpha": 0.05}

    def reason(order: list[str], metrics: list[str]) -> str:
        """The gate's outcome, after a check that the table shows the gate's p-value for any order of systems."""
        spec = {
            "version": 1,
            "datasets": {"support": {"use": "beir", "path": str(support)}},
            "systems": {name: runs[name] for name in order},
            "metrics": metrics,
            "gates": [gate],
        }
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps(spec))
        evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
        (outcome,) = evaluation.gates
        shown = evaluation.comparison("support", order[1], "ndcg@10")
        assert shown is not None
        assert f"(Holm-adjusted {format_p_value(shown.p_adjusted)})" in outcome.reason
        return f"{outcome.outcome}: {outcome.reason}"

    alone = reason(["keyword", "rewrite"], ["ndcg@10"])
    assert alone.startswith("fail")
    for order in (["keyword", "rewrite"], ["rewrite", "keyword"]):
        assert reason(order, ["ndcg@10", "rr", "recall@20"]) == alone


def test_two_gates_on_one_pair_show_the_p_value_of_the_reports(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    drop = {"max_drop": 0.02, "alpha": 0.05}
    metrics = ["ndcg@10", "rr", "recall@20"]
    spec = {
        "version": 1,
        "datasets": {"support": {"use": "beir", "path": str(support)}},
        "systems": runs,
        "metrics": metrics,
        "gates": [
            {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", **drop},
            *({"metric": metric, "system": "rewrite", "baseline": "keyword", **drop} for metric in metrics),
        ],
        "reports": ["terminal", "markdown", "junit", "json"],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec))
    evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
    [shown] = [one for one in evaluation.every_comparison if one.metric == "ndcg@10"]
    told = f"Holm-adjusted {format_p_value(shown.p_adjusted)}"
    reasons = [gate.reason for gate in evaluation.gates if gate.metric == "ndcg@10"]
    assert len(reasons) == 2
    assert all(f"({told})" in reason for reason in reasons)
    assert {one.p_adjusted for one in evaluation.baselines if one.metric == "ndcg@10"} == {shown.p_adjusted}
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "| Holm-adjusted p |" in markdown
    assert f"| {told.rpartition(' ')[2]} |" in markdown


@pytest.mark.parametrize(
    ("keys", "expected"),
    [({}, {"q1": "One.", "q2": "Two."}), ({"redact": ["answer"]}, {}), ({"samples": "none"}, {})],
)
def test_answers_of_a_saved_baseline_are_at_hand_unless_the_spec_keeps_none(
    tmp_path: Path, keys: dict[str, Any], expected: dict[str, str]
) -> None:
    def evaluate(answers: dict[str, str], output: str, **changes: Any) -> Evaluation:
        rows = [{"query_id": query, "question": f"What is {query}?", "answer": answers[query], "reference": "One."}
                for query in answers]  # fmt: skip
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": {"use": "file", "path": "rows.jsonl"}},
            "metrics": ["token_f1"],
        }
        (tmp_path / "spec.yaml").write_text(json.dumps(spec | changes), encoding="utf-8")
        return run(tmp_path / "spec.yaml", Options(quiet=True, output=tmp_path / output)).evaluation

    evaluate({"q1": "One.", "q2": "Two."}, "before")
    gates = [{"metric": "token_f1", "baseline": "before", "max_drop": 0.1}]
    now = evaluate({"q1": "Une.", "q2": "Two.", "q3": "Three."}, "now", gates=gates, **keys)
    assert dict(now.base_answers.select("query_id", "answer").iter_rows()) == expected
    assert set(now.base_answers["baseline"]) == ({"before"} if expected else set())


def test_a_metric_that_is_shown_in_another_way_stays_comparable_and_its_values_stay_fractions(tmp_path: Path) -> None:
    row = {"question": "What is red?", "answer": "An apple is red.", "reference": "An apple."}
    rows = [{"query_id": f"q{at}", **row} for at in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    spec: dict[str, Any] = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"app": {"use": "file", "path": "rows.jsonl"}},
        "metrics": [{"use": "token_f1"}],
    }
    evaluations = []
    for output, changes in (
        ("before", {}),
        (
            "now",
            {
                "metrics": [{"use": "token_f1", "show_as": "percent"}],
                "gates": [{"metric": "token_f1", "baseline": "before"}],
            },
        ),
    ):
        (tmp_path / "spec.yaml").write_text(json.dumps(spec | changes), encoding="utf-8")
        evaluations.append(run(tmp_path / "spec.yaml", Options(quiet=True, output=tmp_path / output)).evaluation)
    before, now = evaluations
    assert now.show_as == {"token_f1": "percent"}
    assert now.values.equals(before.values)
    assert [one.changes for one in now.baselines] == [()]
    stored = json.loads((tmp_path / "now" / "results.json").read_bytes())
    assert stored["show_as"] == {"token_f1": "percent"}
    assert stored["aggregates"][0]["mean"] == before.aggregates[0].mean
    assert "show_as" not in json.loads((tmp_path / "before" / "results.json").read_bytes())
